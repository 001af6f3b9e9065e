// Package term asks the operating system about the terminal behind a file, without a further dependency.
package term

import (
	"os"
	"strings"
)

// Size returns the width and height in characters of the terminal that f is connected to, and false if it is none.
func Size(f *os.File) (width, height int, ok bool) {
	if f == nil {
		return 0, 0, false
	}
	width, height, err := size(f.Fd())
	if err != nil {
		return 0, 0, false
	}
	if width <= 0 || height <= 0 { // a terminal that does not know its size, such as a serial line
		width, height = 80, 24
	}
	return width, height, true
}

// Style says how text may be drawn.
type Style struct {
	// Colour allows SGR sequences. See https://no-color.org.
	Colour bool
	// Unicode allows characters outside ASCII.
	Unicode bool
}

// StyleOf reads the abilities of a terminal from the environment. getenv is os.Getenv, or a fake in a test.
func StyleOf(getenv func(string) string) Style {
	locale := ""
	// the first variable that is set decides, as POSIX says
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale = getenv(name); locale != "" {
			break
		}
	}
	locale = strings.ToLower(strings.ReplaceAll(locale, "-", ""))
	return Style{
		Colour:  getenv("NO_COLOR") == "" && getenv("TERM") != "dumb",
		Unicode: strings.Contains(locale, "utf8"),
	}
}
