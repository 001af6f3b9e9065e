// Package term asks the operating system about the terminal behind a file, without a further dependency.
package term

import (
	"cmp"
	"os"
	"strings"
)

// Size returns the width and height in characters of the terminal that f is connected to, and false if it is none.
func Size(f *os.File) (width, height int, ok bool) {
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
	Colour  bool // SGR sequences, see https://no-color.org
	Unicode bool // characters outside ASCII
}

// OwnStyle reads the abilities of this program's terminal from the environment.
func OwnStyle() Style {
	// the first variable that is set decides, as POSIX says
	locale := cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_CTYPE"), os.Getenv("LANG"))
	locale = strings.ToLower(strings.ReplaceAll(locale, "-", ""))
	return Style{
		Colour:  os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
		Unicode: strings.Contains(locale, "utf8"),
	}
}
