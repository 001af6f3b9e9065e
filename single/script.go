package single

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"strings"
	"sync"
)

//go:embed lua
var sources embed.FS

// program numbers the scripts.
type program int

const (
	acquireProgram program = iota
	acquireSeveralProgram
	extendProgram
	releaseProgram
	releaseBundleProgram
	releaseSeveralProgram
	leaveProgram
	keepProgram
	raiseProgram
	transferProgram
	inspectProgram
	announceProgram
	shareProgram
	shareExtendProgram
	shareReleaseProgram
	numPrograms
)

// script is one Lua program and the SHA-1 under which a master remembers it.
type script struct {
	name   string
	source string
	sha    string
}

// scripts has the programs. Each is made at its first use, since most processes use few. Tests compare their SHAs with
// a real redis-server's.
var scripts = [numPrograms]func() *script{
	acquireProgram:        newScript("acquire"),
	acquireSeveralProgram: newScript("acquire_several"),
	extendProgram:         newScript("extend"),
	releaseProgram:        newScript("release"),
	releaseBundleProgram:  newScript("release_bundle"),
	releaseSeveralProgram: newScript("release_several"),
	leaveProgram:          newScript("leave"),
	keepProgram:           newScript("keep"),
	raiseProgram:          newScript("raise"),
	transferProgram:       newScript("transfer"),
	inspectProgram:        newScript("inspect"),
	announceProgram:       newScript("announce"),
	shareProgram:          newScript("share"),
	shareExtendProgram:    newScript("share_extend"),
	shareReleaseProgram:   newScript("share_release"),
}

// newScript reads a program, and replaces each include comment by the shared source. A script includes it after the
// code for the usual case, which does not need it.
func newScript(name string) func() *script {
	return sync.OnceValue(func() *script {
		source := sourceOf(name)
		for _, shared := range []string{"kind", "queue", "counter", "hold"} {
			source = strings.ReplaceAll(source, "-- include "+shared+".lua\n", sourceOf(shared))
		}
		sum := sha1.Sum([]byte(source))
		return &script{name: name, source: source, sha: hex.EncodeToString(sum[:])}
	})
}

func sourceOf(name string) string {
	text, _ := sources.ReadFile("lua/" + name + ".lua") // a test compares all programs with a server's
	return string(text)
}

// program returns the script that performs the request.
func (r *Request) program() program {
	shared := r.Kind != Plain
	switch {
	case r.Op == Acquire && shared:
		return shareProgram
	case r.Op == Acquire:
		return acquireProgram
	case r.Op == Extend && shared:
		return shareExtendProgram
	case r.Op == Extend:
		return extendProgram
	case r.Op == Leave:
		return leaveProgram
	case r.Op == Release && shared:
		return shareReleaseProgram
	case r.Op == Release && r.Keep > 0:
		return keepProgram
	case r.Op == Release:
		return releaseProgram
	case r.Op == Raise:
		return raiseProgram
	case r.Op == Transfer:
		return transferProgram
	case r.Op == Announce:
		return announceProgram
	default:
		return inspectProgram
	}
}
