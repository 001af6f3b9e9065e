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

// Read decodes what Write wrote, to the end of r. An unknown field or name is an error that says which event it is in;
// the events before it are returned too.
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
		events = append(events, e)
	}
}
