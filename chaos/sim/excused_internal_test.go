package sim

import (
	"testing"
	"time"
)

// A key that a dead client has set stays until it expires, although a living client has the same Reentrant owner.
func TestOnlyADeadClientExcusesAKeyThatStays(t *testing.T) {
	w := &world{plan: &Schedule{}, names: make(map[string]*owner)}
	dead, living := &client{w: w, dead: true, died: int64(time.Second)}, &client{w: w}
	long := dead.died + int64(w.patience())
	for name, tt := range map[string]struct {
		users []*client
		now   int64
		want  bool
	}{
		"dead":                        {[]*client{dead}, long, true},
		"dead, then living":           {[]*client{dead, living, dead}, long, true},
		"living, then dead":           {[]*client{living, dead}, long, true},
		"dead, until its keys expire": {[]*client{dead, living}, long + 1, false},
		"living":                      {[]*client{living}, long, false},
		"nobody":                      {nil, long, false},
	} {
		o := w.know(name)
		for _, c := range tt.users {
			o.usedBy(c)
		}
		if w.now = tt.now; w.excused(o.name) != tt.want {
			t.Errorf("%s: excused is %t", name, !tt.want)
		}
	}
}
