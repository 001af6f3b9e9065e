package single

import (
	"fmt"

	"github.com/seed-624411e5/redlock/internal/wire"
)

// Decode converts a script's result, given as values in wire form.
func Decode(value any) (Reply, error) {
	answer := wire.Parse(onTheWire(nil, value), &wire.ExpectAny)
	if err := answer.Err(); err != nil {
		return Reply{}, err
	}
	return decode(&Request{Op: Inspect}, &answer)
}

func onTheWire(out []byte, value any) []byte {
	switch value := value.(type) {
	case int64:
		return fmt.Appendf(out, ":%d\r\n", value)
	case string:
		return fmt.Appendf(out, "$%d\r\n%s\r\n", len(value), value)
	case bool:
		return fmt.Appendf(out, "#%.1t\r\n", value)
	case float64:
		return fmt.Appendf(out, ",%v\r\n", value)
	case []any:
		out = fmt.Appendf(out, "*%d\r\n", len(value))
		for _, field := range value {
			out = onTheWire(out, field)
		}
		return out
	case map[any]any:
		out = fmt.Appendf(out, "%%%d\r\n", len(value))
		for key, field := range value {
			out = onTheWire(onTheWire(out, key), field)
		}
		return out
	default:
		return append(out, "_\r\n"...)
	}
}
