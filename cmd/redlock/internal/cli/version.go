package cli

import (
	"context"
	"flag"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
)

// module is where this command comes from.
const module = "github.com/seed-624411e5/redlock"

func versionCommand() command {
	return command{
		name:    "version",
		summary: "print the version",
		help: `
Prints the version of the module and the revision of the source, as far as the Go toolchain has recorded them. A
program installed by go install has a version; a program built in a checkout has a revision.`,
		setup: func(fs *flag.FlagSet) action {
			asJSON := fs.Bool("json", false, "print JSON")
			return func(_ context.Context, t *terminal, _ []string) error {
				v := ownVersion()
				return t.print(*asJSON, v, func(out io.Writer) { fmt.Fprintln(out, v) })
			}
		},
	}
}

// version is the output of `redlock version`.
type version struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"` // of the revision
	Modified bool   `json:"modified"`       // there were changes that are not in the revision
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func ownVersion() version {
	info, _ := debug.ReadBuildInfo() // of another toolchain there is none
	return versionOf(info)
}

// versionOf reads the toolchain's build information; info may be nil.
func versionOf(info *debug.BuildInfo) version {
	v := version{Version: "(unknown)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info == nil {
		return v
	}
	from := &info.Main
	for _, dep := range info.Deps { // in a program that has this command in it
		if dep.Path == module {
			from = dep
		}
	}
	if from.Replace != nil {
		from = from.Replace
	}
	if from.Version != "" {
		v.Version = from.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.time":
			v.Time = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

func (v version) String() string {
	text := "redlock " + v.Version
	if v.Revision != "" {
		text += ", revision " + v.Revision
		if day, _, ok := strings.Cut(v.Time, "T"); ok {
			text += " of " + day
		}
		if v.Modified {
			text += " with changes"
		}
	}
	return text + ", " + v.Go + " " + v.Platform
}
