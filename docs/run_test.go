package docs_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// goCommand runs the go tool in the repository's root, as the documents tell their readers to.
func goCommand(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = ".."
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s%s", strings.Join(args, " "), err, out, &stderr)
	}
	return string(out)
}

func TestTheCommandExplainsItself(t *testing.T) {
	if out := goCommand(t, "run", "./cmd/redlock", "-h"); !strings.Contains(out, "usage: redlock COMMAND") {
		t.Errorf("redlock -h says %q", out)
	}
}

// What an import of the library compiles into a program. The README says so; if this changes, change it, too.
func TestTheReadmeSaysWhatIsCompiledIn(t *testing.T) {
	list := goCommand(t, "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".")
	modules := strings.Fields(list)
	slices.Sort(modules)
	const own = "github.com/seed-624411e5/redlock"
	modules = slices.DeleteFunc(slices.Compact(modules), func(m string) bool { return m == own })
	want := []string{
		"github.com/cespare/xxhash/v2", "github.com/redis/go-redis/v9", "go.uber.org/atomic",
		"golang.org/x/sync", "golang.org/x/sys",
	}
	for _, only := range []string{
		"testing", own + "/redlocktest", own + "/internal/store", own + "/internal/embedded",
	} {
		if slices.Contains(strings.Fields(goCommand(t, "list", "-deps", ".")), only) {
			t.Errorf("compiled in is %s, which is for tests", only)
		}
	}
	if !slices.Contains(strings.Fields(goCommand(t, "list", "-deps", "./redlocktest")), own+"/internal/store") {
		t.Error("the list of what is compiled in would not show it")
	}
	if !slices.Equal(modules, want) ||
		!strings.Contains(read(t, "../README.md"), "five other modules: go-redis, the two small ones that it needs, "+
			"x/sync and x/sys") {
		t.Errorf("compiled in are %q, and the README says %q", modules, want)
	}
}
