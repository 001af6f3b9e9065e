package control_test

import (
	"testing"

	"github.com/seed-624411e5/redlock/internal/mutant/testdata/control"
)

func TestLooks(t *testing.T) {
	if control.Answer() != 42 {
		t.Errorf("the answer is %d", control.Answer())
	}
}

// TestLooksAway notices nothing.
func TestLooksAway(*testing.T) { control.Answer() }

// TestIsRed fails whatever the answer is.
func TestIsRed(t *testing.T) { t.Errorf("the answer is %d", control.Answer()) }

func TestPanics(*testing.T) {
	if control.Answer() != 42 {
		panic("the answer is another one")
	}
}

func TestIsSkipped(t *testing.T) {
	if control.Answer() != 42 {
		t.Skip("there is nothing to look at")
	}
}

func TestHangs(*testing.T) {
	if control.Answer() != 42 {
		<-make(chan struct{})
	}
}
