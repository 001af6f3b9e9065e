package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// written are the files of a run in its directory.
var written = []string{"report.html", "report.json", "junit.xml", "history.jsonl"}

// claim takes a directory for the runs of this process, until release. It fails while another process has it, since the
// files of both would be mixed. Files of earlier runs are removed, which is said on stderr; other files stay.
func claim(dir string, stderr io.Writer) (release func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	mark, err := os.OpenFile(filepath.Join(dir, ".redlock-chaos"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = lockFile(mark)
	if err == nil && !isAt(mark) {
		err = errors.New("they have just ended")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s is in use by other runs, use another -dir: %w", dir, err), mark.Close())
	}
	release = func() { _ = errors.Join(os.Remove(mark.Name()), mark.Close()) } // it is empty
	removed, err := removeEarlier(dir)
	if err != nil {
		release()
		return nil, err
	}
	if removed > 0 {
		fmt.Fprintf(stderr, "redlock-chaos: %s had %d files of earlier runs, which are removed\n", dir, removed)
	}
	return release, nil
}

// isAt reports that the name of an open file still leads to it. Otherwise the file was removed before it was locked,
// and another process may have made a new one.
func isAt(f *os.File) bool {
	mine, err := f.Stat()
	at, wrong := os.Stat(f.Name())
	return err == nil && wrong == nil && os.SameFile(mine, at)
}

// removeEarlier removes the files that runs have written into dir and into directories there, and what is empty then.
func removeEarlier(dir string) (removed int, err error) {
	for _, pattern := range []string{"*/smaller", "*", "."} {
		within, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return removed, err
		}
		for _, d := range within {
			before := removed
			for _, name := range written {
				switch err := os.Remove(filepath.Join(d, name)); {
				case err == nil:
					removed++
				case !errors.Is(err, fs.ErrNotExist) && !isFile(d):
					return removed, err
				}
			}
			if removed > before && d != filepath.Clean(dir) {
				_ = os.Remove(d) // fails if there is anything else in it
			}
		}
	}
	return removed, nil
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.IsDir()
}
