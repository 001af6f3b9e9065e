package chaos

// This file keeps the masters' passwords out of a run's output. The harness itself writes no passwords; an error of the
// lock under test, of a program or of a caller's fault may contain anything.

// hidden is an error without passwords in its text.
func (r *run) hidden(err error) error {
	if r.hide == nil || err == nil || r.hide(err.Error()) == err.Error() {
		return err
	}
	return &hiddenError{text: r.hide(err.Error()), err: err}
}

type hiddenError struct {
	text string
	err  error
}

// Error implements error.
func (e *hiddenError) Error() string { return e.text }

// Unwrap is for errors.Is.
func (e *hiddenError) Unwrap() error { return e.err }

// hideIn goes over all text of a report that others may have written.
func (r *run) hideIn(rep *Report) {
	for _, list := range [][]string{rep.Reasons, rep.Errors, rep.Notes} {
		for i := range list {
			list[i] = r.hide(list[i])
		}
	}
	for _, byFault := range []map[string]string{rep.Observed, rep.Unavailable} {
		for name, text := range byFault {
			byFault[name] = r.hide(text)
		}
	}
	for i := range rep.Violations {
		rep.Violations[i].Text = r.hide(rep.Violations[i].Text)
	}
	for i := range rep.Allowed {
		rep.Allowed[i].Text = r.hide(rep.Allowed[i].Text)
	}
	for i := range rep.History {
		rep.History[i].Note = r.hide(rep.History[i].Note)
	}
	rep.Replay = r.hide(rep.Replay)
}
