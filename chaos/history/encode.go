package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// Write encodes events as JSON lines. Text that is no UTF-8, for instance a key, is quoted as in Go: JSON would make
// different keys equal.
func Write(w io.Writer, events []Event) error {
	buf := bufio.NewWriter(w)
	enc := json.NewEncoder(buf)
	for i := range events {
		e := events[i]
		for _, text := range []*string{&e.Key, &e.Owner, &e.Before, &e.After} {
			if !utf8.ValidString(*text) {
				*text = strconv.Quote(*text)
			}
		}
		if err := enc.Encode(&e); err != nil {
			return fmt.Errorf("history: event %d: %w", i, err)
		}
	}
	return buf.Flush()
}

// Read decodes what Write wrote, to the end of r. An unknown field or name, or a time before the beginning of the run,
// is an error that says which event it is in; the events before it are returned too.
func Read(r io.Reader) ([]Event, error) {
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	var events []Event
	for {
		var e Event
		err := dec.Decode(&e)
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return events, fmt.Errorf("history: event %d: %w", len(events), err)
		}
		if e.At < 0 { // for oracles 0 means "never", and all times are after it
			return events, fmt.Errorf("history: event %d: at %d, and a run begins at 0", len(events), e.At)
		}
		events = append(events, e)
	}
}
