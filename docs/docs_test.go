// Package docs_test keeps the documents true: commands that are shown are run somewhere, code that is shown is tested
// code, tests that are named exist, links lead somewhere.
package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock/internal/testnames"
	"github.com/seed-624411e5/redlock/single"
)

// evidence is a file, from the root of the repository, and the text in it that runs a command.
type evidence struct{ file, text string }

// runs says for each command line in a document which test or CI step runs it. Who adds a command to a document adds
// the place that runs it here.
var runs = map[string]evidence{
	"go run ./cmd/redlock demo": {"cmd/redlock/e2e/readme_test.go", `"run", "./cmd/redlock", "demo", "-json"`},
	`for port in 6401 6402 6403; do redis-server --port $port --save "" --daemonize yes; done`: {
		"docs/readme_test.go", `"sh", "-c", onPorts(commandOf(t, "for port in ")`,
	},
	"go run . redis://127.0.0.1:6401 redis://127.0.0.1:6402 redis://127.0.0.1:6403": {
		"docs/readme_test.go", `onPorts(commandOf(t, "go run . ")`,
	},
	"go run ./cmd/redlock -h": {"docs/run_test.go", `"run", "./cmd/redlock", "-h"`},
	"docker compose -f docker-compose.chaos.yml --profile aof up -d --wait": {
		".ci/containers", `--profile aof up -d "${wait[@]}"`,
	},
	"docker compose -f docker-compose.chaos.yml --profile aof down -v": {
		".ci/containers", `--profile aof down -v`,
	},
	"redlock-chaos run -compose docker-compose.chaos.yml -file chaos/containers/testdata/five-faults.yaml": {
		".ci/containers", `run -compose "$file" -file chaos/containers/testdata/five-faults.yaml`,
	},
	"redlock-chaos run -backend containers -scenario unplugged": {
		".ci/containers", `run -backend containers -masters 3 -clients 2 -scenario unplugged`,
	},
	"chaos/images/build": {".ci/containers", "\nchaos/images/build\n"},
	"go run ./bench/chaos -seed 1 -duration 10s": {
		"bench/chaos/main_test.go", `"-seed", "1", "-duration", "3s", "-scenarios", "many-keys"`,
	},
	"go run ./bench/chaos -scenarios failover -seeds 3 -subjects " +
		"redlock,redlock:guarded,redsync,redsync-failfast,redsync-tuned,redislock,rueidislock": {
		"bench/chaos/main_test.go", `"-scenarios", "many-keys", "-subjects", "redlock,naive"`,
	},
	"go run ./chaos/cmd/redlock-chaos sim -broken joint-extended-by-one -seed 20001 -schedules 1000 -on -whole": {
		"chaos/sim/command_test.go", `"-on", "-whole"`,
	},
	"go run ./chaos/cmd/redlock-chaos sim -broken count-repairs -profile within -seed 20001 -schedules 500 " +
		"-on -whole": {
		"chaos/sim/command_test.go", `"-on", "-whole"`,
	},
	"go run ./bench/virtual -subject redsync -profile masters -on": {
		"bench/virtual/main_test.go", `"-subject", "redsync"`,
	},
	"go run ./chaos/cmd/redlock-chaos virtual -subject plain-del": {
		"chaos/cmd/redlock-chaos/virtual_test.go", `"virtual", "-subject", subject`,
	},
	"go run ./bench/servers -seeds 3": {
		"bench/servers/main_test.go", `run(t.Context(), []string{"-scenarios", "calm"`,
	},
	"go run ./chaos/cmd/redlock-chaos run -scenario partitions -seed 7 -duration 20s": {
		"chaos/cmd/redlock-chaos/main_test.go", `"run", "-backend", "embedded"`,
	},
	"go run ./chaos/cmd/redlock-chaos run -exec 'python3 chaos/examples/python/lock.py' -scenario bridge": {
		"chaos/program/program_test.go", `"python3", "../examples/python/lock.py"`,
	},
	"go build -o redlock-chaos ./chaos/cmd/redlock-chaos": {
		".ci/containers", `redlock-chaos" ./chaos/cmd/redlock-chaos`,
	},
	"./redlock-chaos gate -exec 'python3 chaos/examples/python/lock.py'": {
		"chaos/program/languages_test.go", `"python3 ../examples/python/lock.py"`,
	},
	"./redlock-chaos gate -exec 'python3 chaos/examples/python/lock.py --quorum 2' -scenario bridge": {
		"chaos/program/languages_test.go", `"--quorum 2",`,
	},
	"./redlock-chaos gate -exec 'node chaos/examples/node/lock.js'": {
		"chaos/program/languages_test.go", `"node ../examples/node/lock.js"`,
	},
	"./redlock-chaos gate -exec 'node chaos/examples/node/lock.js --plain-del' -scenario bridge": {
		"chaos/program/languages_test.go", `"--plain-del",`,
	},
	"./redlock-chaos gate -exec 'bash chaos/examples/bash/lock.sh' -ttl 10s": {
		"chaos/program/languages_test.go", `"bash ../examples/bash/lock.sh"`,
	},
	"./redlock-chaos gate -exec 'bash chaos/examples/bash/lock.sh --on-error-yes' -ttl 10s -scenario bridge": {
		"chaos/program/languages_test.go", `"--on-error-yes",`,
	},
	"go run ./chaos/cmd/redlock-chaos check chaos-report/history.jsonl": {
		"chaos/cmd/redlock-chaos/suite_test.go", `"check", filepath.Join(dir, "bridge-"+seed, "history.jsonl")`,
	},
	"go run ./chaos/cmd/redlock-chaos mutants": {
		"chaos/cmd/redlock-chaos/mutants_test.go", `"mutants", "-only", "retention-*`,
	},
	"go run ./chaos/cmd/redlock-chaos mutants -only 'lane-*,scripts/*' -json mutants.json": {
		"chaos/cmd/redlock-chaos/mutants_test.go", `file, "-page", page`,
	},
	"go run ./chaos/cmd/redlock-chaos controls -runs 10": {
		"chaos/cmd/redlock-chaos/main_test.go", `"controls", "-backend", "embedded"`,
	},
	"go run ./chaos/cmd/redlock-chaos controls -runs 10 -parallel 3 -table rates.md": {
		".github/workflows/night.yml", "redlock-chaos controls",
	},
	"go run ./chaos/cmd/redlock-chaos kinds -exec 'python3 chaos/examples/python/lock.py'": {
		".github/workflows/night.yml", "redlock-chaos kinds -exec",
	},
	"go run ./chaos/cmd/redlock-chaos run -scenario all -seeds 1..4 -duration 15s -parallel 3 -markdown seeds.md": {
		"chaos/cmd/redlock-chaos/suite_test.go", `draw("all", "1..2", 0)`,
	},
	"go run ./chaos/cmd/redlock-chaos run -scenario all -seeds 1..4 -duration 15s -parallel 3 " +
		"-exec 'python3 chaos/examples/python/lock.py'": {
		"chaos/program/program_test.go", `"python3", "../examples/python/lock.py"`,
	},
	"go test -v ./chaos/examples/semaphore": {".ci/run", "./chaos/examples/..."},
	"go test -v -timeout 30m ./chaos/examples/semaphore -args -seeds 5 -lasts 10s -reports /tmp/semaphore": {
		"chaos/examples/semaphore/semaphore_test.go", `flag.Uint64("seeds", 1`,
	},
	"go run ./chaos/cmd/redlock-chaos list": {"chaos/cmd/redlock-chaos/main_test.go", `t, "list")`},
	"export REDLOCK_CHAOS_ADDRS='rediss://chaos:…@a:6379,rediss://chaos:…@b:6379,rediss://chaos:…@c:6379'": {
		"chaos/cmd/redlock-chaos/addresses_test.go", `t.Setenv(addressesVariable, tt.env)`,
	},
	"redlock-chaos run -backend external -tls-ca ca.pem -scenario partitions": {
		"chaos/cmd/redlock-chaos/addresses_test.go", `"run", "-backend", "external"`,
	},
	"go mod init example.com/ours":                  {".ci/cleanroom", `go mod init "example.com/$name"`},
	"go get github.com/seed-624411e5/redlock/chaos": {".ci/cleanroom", `go get "$path/chaos@$version"`},
	"go test -v .":          {".ci/cleanroom", `go test -v -run TestLocksHoldWhileAMasterIsDown .`},
	"redlock members":       {"cmd/redlock/e2e/testdata/membership.txtar", "exec redlock members"},
	"redlock members -json": {"cmd/redlock/e2e/testdata/membership.txtar", "exec redlock members -json"},
	"redlock members -announce 3": {
		"cmd/redlock/e2e/testdata/membership.txtar", "exec redlock members -announce 3 -yes",
	},
	".ci/containers": {".ci/run", ".ci/containers"},
	"proofs/check":   {".ci/run", "proofs/check"},
	"go run ./examples/recipes nightly redis://127.0.0.1:6401 redis://127.0.0.1:6402 redis://127.0.0.1:6403": {
		"examples/recipes/recipes_test.go", `{"nightly", "making the report\n"}`,
	},
	"mkdir ../orders && cd ../orders && go mod init example.com/orders": {
		".ci/cleanroom", `go mod init "example.com/$name"`,
	},
	"go mod edit -replace github.com/seed-624411e5/redlock=../redlock": {
		".ci/cleanroom", `go mod edit -replace "$path=$repository"`,
	},
	"go mod edit -replace github.com/seed-624411e5/redlock/chaos=../redlock/chaos": {
		".ci/cleanroom", `go mod edit -replace "$path/chaos=$repository/chaos"`,
	},
	"go mod tidy # after adapter_test.go is there": {".ci/cleanroom", "go mod tidy # after adapter_test.go is there"},
	"go mod tidy": {".ci/cleanroom", "go mod tidy # after main.go is there"},
	"go install ./cmd/redlock": {
		".ci/cleanroom", `go install "$path/cmd/redlock@$version"`,
	},
	"git clone https://github.com/seed-624411e5/redlock && cd redlock": {
		".github/workflows/ci.yml", "actions/checkout",
	},
	".ci/servers test": {".ci/run", ".ci/servers test"},
	"redlock doctor -probe -masters redis://host:6379": {
		"cmd/redlock/e2e/testdata/probe.txtar", "redlock doctor -probe -json -masters $URL3",
	},
	"./test": {".ci/run", "./test -race"},
	"redlock run -key deploy -- ./deploy.sh": {
		"cmd/redlock/e2e/testdata/docs.txtar", "exec redlock run -key deploy -- ./deploy.sh",
	},
	"redlock run -key deploy -try -- ./deploy.sh": {
		"cmd/redlock/e2e/testdata/docs.txtar", "exec redlock run -key deploy -try -- ./deploy.sh",
	},
	"redlock run -key deploy -wait 1m -ttl 30s -- ./deploy.sh": {
		"cmd/redlock/e2e/testdata/docs.txtar", "exec redlock run -key deploy -wait 1m -ttl 30s -- ./deploy.sh",
	},
	"redlock run -key deploy -c './deploy.sh && ./announce.sh'": {
		"cmd/redlock/e2e/testdata/docs_run.txtar", "exec redlock run -key deploy -c './deploy.sh && ./announce.sh'",
	},
	"redlock run -key reports -n 3 -- ./report.sh": {
		"cmd/redlock/e2e/testdata/docs_run.txtar", "exec redlock run -key reports -n 3 -- ./report.sh",
	},
	"redlock run -key catalogue -shared -- ./read.sh": {
		"cmd/redlock/e2e/testdata/docs_run.txtar", "exec redlock run -key catalogue -shared -- ./read.sh",
	},
	"redlock run -key catalogue -exclusive -- ./write.sh": {
		"cmd/redlock/e2e/testdata/docs_run.txtar", "exec redlock run -key catalogue -exclusive -- ./write.sh",
	},
	"redlock run -key stock -key orders -- ./move.sh": {
		"cmd/redlock/e2e/testdata/docs_run.txtar", "exec redlock run -key stock -key orders -- ./move.sh",
	},
	"redlock list -prefix app:": {
		"cmd/redlock/e2e/testdata/list.txtar", "exec redlock list -prefix app:\n",
	},
	"redlock list -json": {
		"cmd/redlock/e2e/testdata/list.txtar", "exec redlock list -json",
	},
	"mkdir -p /usr/local/share/man/man1 && redlock man /usr/local/share/man/man1": {
		"cmd/redlock/e2e/testdata/man.txtar", "exec redlock man man1\n",
	},
	"redlock version": {"cmd/redlock/e2e/testdata/man.txtar", "exec redlock version\n"},
	"go run ./bench -scenario neighbour -repeat 1": {
		"bench/main_test.go", `case "neighbour":`,
	},
	"coproc LOCK { redlock hold -key deploy -fd 0; }": {
		"cmd/redlock/e2e/hold_linux_test.go", `"../../../docs/operate/command.md"`,
	},
	`exec {held}>"/dev/fd/$in" {in}>&-          # deploy.sh inherits held, and not in`: {
		"cmd/redlock/e2e/hold_linux_test.go", `"../../../docs/operate/command.md"`,
	},
	`exec {held}>&-`: {
		"cmd/redlock/e2e/hold_linux_test.go", `"../../../docs/operate/command.md"`,
	},
	"redlock hold -key deploy": {
		"cmd/redlock/e2e/testdata/hold.txtar", "redlock hold -key deploy <in",
	},
	"coproc LOCK { redlock hold -key deploy; }": {
		"cmd/redlock/e2e/testdata/docs_run.txtar", "coproc LOCK { redlock hold -key deploy",
	},
	`read -r line <&"$out" || { wait "$lock"; exit; }`: {
		"cmd/redlock/e2e/testdata/docs_run.txtar", `read -r line <&"$out" || { wait "$lock"; exit; }`,
	},
	"./deploy.sh": {"cmd/redlock/e2e/testdata/docs_run.txtar", "\n./deploy.sh\n"},
	`lock=$LOCK_PID out=${LOCK[0]} in=${LOCK[1]} # bash forgets LOCK when redlock ends`: {
		"cmd/redlock/e2e/testdata/docs_run.txtar", `lock=$LOCK_PID out=${LOCK[0]} in=${LOCK[1]}`,
	},
	`exec {in}>&-`: {"cmd/redlock/e2e/testdata/docs_run.txtar", `exec {in}>&-`},
	`wait "$lock" || echo "the lock was lost meanwhile"`: {
		"cmd/redlock/e2e/testdata/docs_run.txtar", `wait "$lock" || echo "the lock was lost meanwhile"`,
	},
	"redlock status deploy": {
		"cmd/redlock/e2e/testdata/docs.txtar", "redlock status deploy",
	},
	"redlock status -json deploy": {
		"cmd/redlock/e2e/testdata/docs.txtar", "redlock status -json deploy",
	},
	"redlock doctor": {
		"cmd/redlock/e2e/testdata/doctor.txtar", "exec redlock doctor",
	},
	"redlock doctor -json": {
		"cmd/redlock/e2e/testdata/doctor.txtar", "redlock doctor -json",
	},
	"redlock doctor -strict": {
		"cmd/redlock/e2e/testdata/password.txtar", "redlock doctor -strict",
	},
	"redlock bench": {
		"cmd/redlock/e2e/testdata/bench.txtar", "exec redlock bench -rounds 2",
	},
	"redlock bench -save before.json": {
		"cmd/redlock/e2e/testdata/bench.txtar", "-save kept.json",
	},
	"redlock bench -compare before.json": {
		"cmd/redlock/e2e/testdata/bench.txtar", "-compare kept.json",
	},
	"redlock bench -compare before.json -html report.html": {
		"cmd/redlock/e2e/testdata/bench.txtar", "-html report.html",
	},
	"redlock acquire -key deploy -ttl 30m -out deploy.lock": {
		"cmd/redlock/e2e/testdata/steps.txtar", "exec redlock acquire -key deploy -ttl 30m -out deploy.lock",
	},
	"redlock run -key report -textfile /var/lib/node_exporter/report.prom -- ./report.sh": {
		"cmd/redlock/e2e/testdata/textfile.txtar", "redlock run -key report -textfile run.prom -quiet",
	},
	"redlock doctor -textfile /var/lib/node_exporter/redlock.prom": {
		"cmd/redlock/e2e/testdata/textfile.txtar", "redlock doctor -textfile doctor.prom",
	},
	"redlock release -in deploy.lock": {
		"cmd/redlock/e2e/testdata/steps.txtar", "exec redlock release -in deploy.lock",
	},
	"redlock release -force deploy": {"cmd/redlock/e2e/testdata/release.txtar", "redlock release -force deploy"},
	"redlock release -force -yes deploy": {
		"cmd/redlock/e2e/testdata/release.txtar", "exec redlock release -force -yes deploy",
	},
	"redlock demo":                      {"cmd/redlock/e2e/testdata/demo.txtar", "redlock demo"},
	"redlock demo -json":                {"cmd/redlock/e2e/testdata/demo_json.txtar", "redlock demo -json"},
	"source <(redlock completion bash)": {"cmd/redlock/e2e/testdata/completion.txtar", "redlock completion bash"},
}

// documents are the paths, from here, of README.md and of every page.
func documents(t *testing.T) []string {
	t.Helper()
	return append(pages(t), "README.md", "../README.md")
}

// pages are the paths, from here, of the pages in start, operate, understand and evidence.
func pages(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("*/*.md")
	if err != nil || len(found) < 25 {
		t.Fatalf("found %q, %v; want the pages", found, err)
	}
	return found
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// blocks are the fenced blocks of a document in this language.
func blocks(text, language string) []string {
	var found []string
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```").FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}

// unknown returns the command lines of a document that are not in runs.
func unknown(text string) []string {
	var lines []string
	for _, block := range blocks(text, "(?:sh|bash|shell|console)") {
		for line := range strings.Lines(block) {
			line = strings.TrimSpace(line)
			if _, known := runs[line]; !known && line != "" && !strings.HasPrefix(line, "#") {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

func TestEveryCommandInTheDocumentsIsRunSomewhere(t *testing.T) {
	for _, path := range documents(t) {
		for _, line := range unknown(read(t, path)) {
			t.Errorf("%s shows %q, which nothing is known to run: see runs in docs_test.go", path, line)
		}
	}
	for line, where := range runs {
		if !strings.Contains(read(t, filepath.Join("..", where.file)), where.text) {
			t.Errorf("%q is said to be run by %s, which does not contain %q", line, where.file, where.text)
		}
	}
}

// The negative control.
func TestAnUnknownCommandIsNoticed(t *testing.T) {
	text := "```sh\nredlock demo\nredlock frobnicate\n```\n\n```go\nnot a command\n```\n"
	if got := unknown(text); !slices.Equal(got, []string{"redlock frobnicate"}) {
		t.Errorf("%q, want only the unknown command", got)
	}
}

// untested returns the Go snippets of a document that the source does not contain. Indentation does not matter.
func untested(text, source string) []string {
	flat := func(s string) string {
		var b strings.Builder
		for line := range strings.Lines(s) {
			b.WriteString(strings.TrimSpace(line) + "\n")
		}
		return b.String()
	}
	source = "\n" + flat(source)
	return slices.DeleteFunc(blocks(text, "go"), func(block string) bool {
		return strings.Contains(source, "\n"+flat(block))
	})
}

func TestTheExamplesOfTestingAreTested(t *testing.T) {
	text, source := read(t, "start/testing.md"), read(t, "../redlocktest/example_test.go")
	if len(blocks(text, "go")) < 5 {
		t.Error("the document shows too little for this test to mean anything")
	}
	for _, block := range untested(text, source) {
		t.Errorf("testing.md shows what example_test.go of redlocktest does not have:\n%s", block)
	}
	if got := untested("```go\nx := 1\n```\n```go\ny := 2\n```\n", "\tx := 1\n"); !slices.Equal(got, []string{
		"y := 2\n",
	}) {
		t.Errorf("%q, want only what is not there", got)
	}
}

// recipes are the files that have the code of the page of recipes.
func recipes(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("../examples/recipes/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %q, %v; want the program of recipes", files, err)
	}
	for _, dir := range []string{"sharded", "ecosystem/gocronlock", "ecosystem/asynqlock", "observe/promobserver"} {
		files = append(files, "../"+dir+"/example_test.go")
	}
	var all strings.Builder
	for _, file := range files {
		all.WriteString(read(t, file))
	}
	return all.String()
}

func TestTheRecipesAreTheCodeThatTestsRun(t *testing.T) {
	page := read(t, "start/recipes.md")
	if n := len(blocks(page, "go")); n < 12 {
		t.Errorf("the page has %d recipes: this test shows little", n)
	}
	for _, block := range untested(page, recipes(t)) {
		t.Errorf("recipes.md shows code that no recipe has:\n%s", block)
	}
}

func TestEveryHazardNamesATestThatExists(t *testing.T) {
	exists := testnames.Under(t, "..")
	rows := regexp.MustCompile(`(?m)^\| (\d+) \| .* \| ([^|]*) \|$`).
		FindAllStringSubmatch(read(t, "evidence/hazards.md"), -1)
	if len(rows) < 95 {
		t.Errorf("%d hazards, want at least 95", len(rows))
	}
	last := 0
	for _, row := range rows {
		number, err := strconv.Atoi(row[1])
		if err != nil || number <= last {
			t.Errorf("hazard %s stands behind hazard %d", row[1], last)
		}
		last = number
		names := regexp.MustCompile("`(Test[A-Za-z0-9_]+)`").FindAllStringSubmatch(row[2], -1)
		if len(names) == 0 {
			t.Errorf("hazard %s names no test", row[1])
		}
		for _, name := range names {
			if !exists[name[1]] {
				t.Errorf("hazard %s names %s, and there is no such test", row[1], name[1])
			}
		}
	}
}

// namedTests are the tests that a document says there are.
func namedTests(text string) []string {
	var names []string
	for _, m := range regexp.MustCompile("`(Test[A-Z][A-Za-z0-9_]+)`").FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}

func TestTestsThatADocumentNamesExist(t *testing.T) {
	exists := testnames.Under(t, "..")
	for _, path := range documents(t) {
		for _, name := range namedTests(read(t, path)) {
			if !exists[name] {
				t.Errorf("%s names %s, and there is no such test", path, name)
			}
		}
	}
	if got := namedTests("see `TestNothing` and `Test`"); !slices.Equal(got, []string{"TestNothing"}) ||
		exists[got[0]] {
		t.Errorf("a test that does not exist would not be noticed: %q", got)
	}
}

// links are the targets of the links in a document: files, headings, or both. Targets on other hosts are left out.
func links(text string) []string {
	text = regexp.MustCompile("(?ms)^```.*?\n```$").ReplaceAllString(text, "")
	var found []string
	for _, m := range regexp.MustCompile(`\]\(([^):\s]+)\)`).FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}

// anchors returns the anchors that GitHub makes of the headings of a page.
func anchors(text string) []string {
	text = regexp.MustCompile("(?ms)^```.*?\n```$").ReplaceAllString(text, "")
	var found []string
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		kept := regexp.MustCompile(`[^\p{L}\p{N}_ -]`).ReplaceAllString(strings.ToLower(m[1]), "")
		found = append(found, strings.ReplaceAll(kept, " ", "-"))
	}
	return found
}

func TestLinksLeadSomewhere(t *testing.T) {
	for _, path := range append(documents(t), "../CONTRIBUTING.md", "../SECURITY.md", "../CHANGELOG.md") {
		for _, link := range links(read(t, path)) {
			file, heading, _ := strings.Cut(link, "#")
			target := filepath.Join(filepath.Dir(path), file)
			if file == "" {
				target = path
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", path, link, err)
			} else if heading != "" && !slices.Contains(anchors(read(t, target)), heading) {
				t.Errorf("%s links to %s, which has no such heading", path, link)
			}
		}
	}
	if got := anchors("## A master's `data` is put back\n"); !slices.Equal(got, []string{
		"a-masters-data-is-put-back",
	}) {
		t.Errorf("%q, want the name that GitHub gives the heading", got)
	}
}

// notUpdated returns the folders of modules that a dependabot.yml leaves out.
func notUpdated(dependabot string, modules []string) (out []string) {
	for _, m := range modules {
		if !strings.Contains(dependabot, "      - /"+strings.TrimPrefix(m, ".")+"\n") {
			out = append(out, m)
		}
	}
	return out
}

func TestDependabotKnowsEveryModule(t *testing.T) {
	var folders []string
	err := fs.WalkDir(os.DirFS(".."), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "go.mod" {
			folders = append(folders, filepath.Dir(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	list := read(t, "../.github/dependabot.yml")
	if left := notUpdated(list, folders); len(folders) < 2 || len(left) > 0 {
		t.Errorf("of %d modules .github/dependabot.yml leaves out %q", len(folders), left)
	}
	if got := notUpdated(list, []string{"new"}); len(got) != 1 {
		t.Error("a module that is not listed was not noticed")
	}
}

func TestTheMapHasEveryPage(t *testing.T) {
	mapped := links(read(t, "README.md"))
	for _, path := range pages(t) {
		if !slices.Contains(mapped, path) {
			t.Errorf("the map, docs/README.md, has no link to %s", path)
		}
	}
}

// ofTheProject are the packages of this project that a package imports, the root left out.
func ofTheProject(imports string) []string {
	const root = "github.com/seed-624411e5/redlock"
	return slices.DeleteFunc(strings.Fields(imports), func(path string) bool {
		return !strings.HasPrefix(path, root+"/")
	})
}

// The list of packages says of some that they use nothing but what every program can.
func TestHazard117WhatIsOverThePublicAPIAloneImportsNothingElse(t *testing.T) {
	rows := regexp.MustCompile("(?m)^\\| `([a-z/]+?)/?` \\|.*over the public API alone").
		FindAllStringSubmatch(read(t, "understand/architecture.md"), -1)
	if len(rows) < 1 {
		t.Errorf("%q: want the row of observe", rows)
	}
	const imports = "{{join .Imports \" \"}}"
	for _, row := range rows {
		if others := ofTheProject(goCommand(t, "list", "-f", imports, "./"+row[1])); len(others) > 0 {
			t.Errorf("%s is said to be over the public API alone, and imports %q", row[1], others)
		}
	}
	if len(ofTheProject(goCommand(t, "list", "-f", imports, "./sharded"))) == 0 {
		t.Error("an import of something else would not be noticed")
	}
}

// untestedServers returns the images in a text whose servers are missing in the table of servers.md.
func untestedServers(text, table string) []string {
	var found []string
	for _, image := range regexp.MustCompile(`\b(redis|valkey):(\d+\.\d+)`).FindAllStringSubmatch(text, -1) {
		row := regexp.MustCompile(`(?mi)^\| ` + image[1] + ` ` + regexp.QuoteMeta(image[2]) + `\.`)
		if !row.MatchString(table) {
			found = append(found, image[0])
		}
	}
	return found
}

func TestHazard117ServersThatAreNamedAreServersThatAreTested(t *testing.T) {
	table := read(t, "operate/servers.md")
	files := []string{
		"../docker-compose.chaos.yml", "../examples/kubernetes/masters.yaml", "../chaos/containers/options.go",
		"../chaos/cmd/redlock-chaos/containers.go", "evidence/containers.md", "evidence/ci.md", "operate/operating.md",
	}
	for _, file := range files {
		for _, image := range untestedServers(read(t, file), table) {
			t.Errorf("%s has %s, which docs/operate/servers.md does not list as tested", file, image)
		}
	}
	if got := untestedServers("image: redis:7.4-alpine or redis:8.0", table); !slices.Equal(got, []string{
		"redis:7.4",
	}) {
		t.Errorf("%q, want the one that was not tested", got)
	}
}

// The document has the same table of errors as the code.
func TestTheTableOfErrorsIsTheCodes(t *testing.T) {
	ends := map[single.Lasting]string{
		single.Closed: "at once, with `ErrClosed`", single.Final: "at once, with `ErrMisconfigured`",
		single.Mendable: "after 10 s, with `ErrMisconfigured`", single.Renewed: "never", single.Passing: "never",
	}
	var want strings.Builder
	for _, f := range single.Faults() {
		want.WriteString("| " + f.Name + " | " + ends[f.Lasts] + " | " + f.Why + " |\n")
	}
	if !strings.Contains(read(t, "understand/waiting.md"), "| --- | --- | --- |\n"+want.String()+"\n") {
		t.Errorf("waiting.md does not have this table:\n%s", want.String())
	}
}
