package audit_test

import (
	"testing"

	"github.com/seed-624411e5/redlock/internal/testing/locktest"
)

func TestMain(m *testing.M) { locktest.Main(m) }

var (
	must = locktest.Must
	dial = locktest.Dial
)
