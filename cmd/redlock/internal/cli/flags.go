package cli

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// The errors of these flags name the expected form of a value. Package flag's own errors do not.

// durationForm matches durations that time.ParseDuration accepts, if they are not too long.
var durationForm = lazily(`^[-+]?((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+$`)

func durationVar(fs *flag.FlagSet, at *time.Duration, name string, preset time.Duration, text string) {
	*at = preset
	fs.Func(name, text, func(value string) (err error) {
		*at, err = time.ParseDuration(value)
		switch {
		case err != nil && durationForm().MatchString(value): // time's own error does not tell
			return fmt.Errorf("longer than the longest time there is, %v",
				time.Duration(math.MaxInt64).Truncate(time.Hour))
		case err != nil:
			return errors.New("want a time with its unit, such as 30s or 2m")
		}
		return nil
	})
}

// wordForm is the form of values that may be shown although they are no numbers.
var wordForm = lazily(`^[-+]?[0-9A-Za-z.]{1,20}$`)

// numberVar defines a flag for a whole number from least to most.
func numberVar[N int | uint64](fs *flag.FlagSet, at *N, name string, least, most N, text string) {
	fs.Func(name, text, func(value string) error {
		parsed, err := strconv.ParseInt(value, 10, 64)
		if err != nil || parsed < int64(least) || parsed > int64(most) {
			was := "this" // perhaps a URL
			if wordForm().MatchString(value) {
				was = strconv.Quote(value)
			}
			return fmt.Errorf("%s is not a whole number from %d to %d", was, least, most)
		}
		*at = N(parsed)
		return nil
	})
}

// listVar defines a flag for several values, separated by commas or blanks.
func listVar(fs *flag.FlagSet, at *[]string, name, text string) {
	fs.Func(name, text, func(value string) error {
		*at = nil
		for between := range strings.SplitSeq(value, ",") {
			words := strings.Fields(between)
			if len(words) == 0 {
				return errors.New("a value is missing: at the end, or beside a comma")
			}
			*at = append(*at, words...)
		}
		return nil
	})
}

// toggle is a flag that is on or off, and knows whether it was set.
type toggle struct{ on, given bool }

func (s *toggle) define(fs *flag.FlagSet, name, text string) {
	fs.BoolFunc(name, text, func(value string) (err error) {
		if s.on, err = strconv.ParseBool(value); err != nil {
			return errors.New("want true or false")
		}
		s.given = true
		return nil
	})
}
