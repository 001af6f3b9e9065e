package cli

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

const (
	// envPrefix is the beginning of a flag's variable; the flag's name in capitals, with underscores, follows.
	envPrefix = "REDLOCK_"

	settingsHelp = `Settings come from flags, else from the environment (REDLOCK_MASTERS, REDLOCK_TTL, ...), else from
one file: the one that -config or REDLOCK_CONFIG names, else $XDG_CONFIG_HOME/redlock/config (~/.config/redlock/config),
else /etc/redlock/config. "-config none" reads no file. The file has lines of "name = value" with the names
of flags, and comments that begin with #.
Everyone on the machine can read a command line. Keep passwords in the file, in the environment, or in a -password-file.
`
	// noFile as a file name means no configuration file, not even the default.
	noFile = "none"
)

// explicit are flags that count only if they are typed. An old variable must not force anything, skip a confirmation,
// or change the output.
var explicit = map[string]bool{
	"force": true, "yes": true, "json": true, "config": true, "announce": true, "c": true, "E": true, "prefix": true,
	"limit": true, "scan": true, "unlimited": true, "save": true, "compare": true, "html": true, "fd": true,
	"pid": true, "in": true, "out": true, "textfile": true,
}

// excludes are flags that mean the same or the opposite. The flag from the nearest source counts.
var excludes = map[string][]string{
	"try": {"wait"}, "wait": {"try"}, "E": {"conflict-exit-code"}, "leader-only": {"wait-descendants"},
	"wait-descendants": {"leader-only"}, "v": {"quiet"}, "log": {"quiet"},
	"quiet": {"v", "log"}, "password": {"password-file"}, "password-file": {"password"},
}

// fillIn sets the flags that were not given, from the environment or the file.
func fillIn(flags *flag.FlagSet) error {
	config := flags.Lookup("config")
	if config == nil {
		return nil
	}
	if flags.Lookup("password").Value.String() != "" {
		return usage("-password: everybody on the machine can read a command line; use -password-file, " +
			"REDLOCK_PASSWORD or the configuration file")
	}
	env, err := fromEnvironment()
	if err != nil {
		return err
	}
	path := cmp.Or(config.Value.String(), env["config"], defaultFile())
	if path == noFile {
		path = ""
	}
	if err := config.Value.Set(path); err != nil { // so that a message can name the file
		return err
	}
	file, err := readFile(path)
	if err != nil {
		return err
	}
	if slices.Contains(strings.Split(env[underKey], "\n"), file["key"]) {
		delete(file, "key")
	}
	if err := fillFrom(flags, env, envName); err != nil {
		return err
	}
	return fillFrom(flags, file, func(string) string { return path })
}

// defaultFile is the configuration file that is read if none is named; "" if there is none. One that is there and can't
// be read is an error, since its settings may matter. A home that this user may not enter is another user's: a program
// that changes the user may leave HOME as it was.
func defaultFile() string {
	for _, dir := range configFolders() {
		path := filepath.Join(dir, "redlock", "config")
		_, err := os.Lstat(path)
		foreign := errors.Is(err, fs.ErrPermission) && dir != machineFolder
		if !foreign && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return path
		}
	}
	return ""
}

// machineFolder has the configuration of all users.
const machineFolder = "/etc"

func configFolders() []string {
	xdg, home := os.Getenv("XDG_CONFIG_HOME"), os.Getenv("HOME")
	if !filepath.IsAbs(xdg) && filepath.IsAbs(home) { // a relative one is invalid by the standard
		xdg = filepath.Join(home, ".config")
	}
	if !filepath.IsAbs(xdg) {
		return []string{machineFolder}
	}
	return []string{xdg, machineFolder}
}

// fillFrom sets flags from the settings. It skips flags that were set before, and flags that those exclude.
func fillFrom(fs *flag.FlagSet, settings map[string]string, source func(name string) string) error {
	before := make(map[string]bool)
	fs.Visit(func(f *flag.Flag) {
		for _, name := range append(excludes[f.Name], f.Name) {
			before[name] = true
		}
	})
	var failure error
	fs.VisitAll(func(f *flag.Flag) {
		value := settings[f.Name]
		if before[f.Name] || explicit[f.Name] || failure != nil || value == "" {
			return
		}
		if err := fs.Set(f.Name, value); err != nil {
			failure = usage("%s: %s: %s", source(f.Name), f.Name, complaint(f, err))
		}
	})
	return failure
}

// underKey is not the name of a flag. Its value is the key of the lock that this redlock runs under, or several keys,
// one a line. A redlock does not take this key from the environment, because it would wait for its own ancestor. A user
// who wants that types it.
const underKey = "(under)"

// Variables of a program under a lock, in addition to REDLOCK_KEY: ownerVariable always, slotVariable under a permit.
const (
	ownerVariable = "REDLOCK_OWNER"
	tokenVariable = "REDLOCK_TOKEN"
	slotVariable  = "REDLOCK_SLOT"
)

// told are the variables, in addition to REDLOCK_KEY, of a command under a lock.
var told = map[string]bool{ownerVariable: true, tokenVariable: true, slotVariable: true, aboveVariable: true}

// ofService are variables that Kubernetes makes where there is a Service called redlock, or redlock- and anything. No
// setting ends so.
var ofService = lazily(
	`^REDLOCK(_\w+)?_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`,
)

// fromEnvironment returns the settings of the environment, by their flags. A variable that no command knows is an
// error, as in a file.
func fromEnvironment() (map[string]string, error) {
	known := map[string]string{envName("config"): "config"}
	for name := range allSettings() {
		known[envName(name)] = name
	}
	settings := make(map[string]string)
	under := false
	for _, entry := range os.Environ() {
		variable, value, _ := strings.Cut(entry, "=")
		name, ok := known[variable]
		switch {
		case !strings.HasPrefix(variable, envPrefix) || value == "":
		case ok:
			settings[name] = value
		case told[variable]:
			under = under || variable == ownerVariable
		case !ofService().MatchString(variable):
			return nil, usage("environment: there is no setting %s%s", variable,
				meantSetting(variable, envName, slices.Sorted(maps.Keys(known))))
		}
	}
	if under {
		settings[underKey] = settings["key"]
		delete(settings, "key")
	}
	return settings, nil
}

// byteOrderMark is the beginning of UTF-8 texts from some editors.
const byteOrderMark = "\uFEFF"

// nameForm is the form of names that may be shown.
var nameForm = lazily(`^[a-z][a-z-]{0,24}$`)

func envName(name string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// readFile reads settings; no path, no settings. A name that no command knows is an error, so that a slip of the pen is
// not a lock with another ttl. Errors never quote a value, which may hold a password.
func readFile(path string) (map[string]string, error) {
	if path == "" {
		return nil, nil //nolint:nilnil // a nil map reads as one without settings
	}
	content, err := readSmall(path, maxFile)
	if err != nil {
		return nil, usage("configuration: %w; -config names another file, -config none reads no file", err)
	}
	known := allSettings()
	settings := make(map[string]string)
	n := 0
	for line := range strings.Lines(strings.TrimPrefix(string(content), byteOrderMark)) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		// A zero byte can't be in an argument or variable of a command, and UTF-16 is full of zero bytes.
		if strings.ContainsRune(line, 0) {
			return nil, usage("configuration: %s, line %d: a NUL byte; want text in ASCII or UTF-8", path, n)
		}
		name, value, found := strings.Cut(line, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		switch {
		case !found:
			return nil, usage("configuration: %s, line %d: want name = value", path, n)
		case !nameForm().MatchString(name): // perhaps the rest of a list, which may hold a password
			return nil, usage("configuration: %s, line %d: want name = value; a value, also a list, stands on one line",
				path, n)
		case !known[name]:
			return nil, usage("configuration: %s, line %d: there is no setting %q%s", path, n, name,
				meantSetting(name, strings.Clone, slices.Sorted(maps.Keys(known))))
		case settings[name] != "":
			return nil, usage("configuration: %s, line %d: %s is set twice", path, n, name)
		}
		settings[name] = value
	}
	// Half a list of masters would be another list, with majorities that may not overlap the whole list's.
	if len(content) > 0 && content[len(content)-1] != '\n' {
		return nil, usage("configuration: %s: its last line has no end, as if the file were still being written; "+
			"end it, and put a changed file into its place by mv", path)
	}
	return settings, nil
}

// allSettings are the names that a file may set: one file serves all commands.
func allSettings() map[string]bool {
	known := make(map[string]bool)
	for _, c := range commands() {
		fs, _ := c.flags()
		if fs.Lookup("config") == nil {
			continue
		}
		fs.VisitAll(func(f *flag.Flag) {
			if !explicit[f.Name] {
				known[f.Name] = true
			}
		})
	}
	return known
}

// refused is how package flag words that a flag does not take a value: with the value, which may be a URL that slipped.
var refused = lazily(`(?s)^invalid (?:boolean )?value .* for (?:flag )?-([a-zA-Z-]+): (.*)$`)

// flagError describes the error in a command line. It quotes no value.
func flagError(fs *flag.FlagSet, err error) error {
	if parts := refused().FindStringSubmatch(err.Error()); parts != nil {
		if f := fs.Lookup(parts[1]); f != nil {
			return fmt.Errorf("-%s: %s", f.Name, complaint(f, errors.New(parts[2])))
		}
	}
	return err
}

// complaint returns a flag's own error about a value. The errors of package flag say only that the value could not be
// parsed.
func complaint(f *flag.Flag, err error) string {
	getter, ok := f.Value.(flag.Getter)
	if !ok {
		return err.Error()
	}
	if _, ok := getter.Get().(bool); ok {
		return "want true or false"
	}
	return "want a number"
}
