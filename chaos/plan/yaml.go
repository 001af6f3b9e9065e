package plan

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Parse reads a plan from YAML. It is strict: unknown or repeated fields, unknown faults and numbers out of range are
// errors. The error names the line, the field and the valid values. own are the caller's faults that the plan may name.
func Parse(src []byte, own ...Fault) (*Plan, error) {
	p := &Plan{Own: own}
	if err := decode(src, p); err != nil {
		return nil, fmt.Errorf("plan: %w", decodeError(err))
	}
	err := p.Complete()
	if field, ok := errors.AsType[*fieldError](err); ok {
		return nil, fmt.Errorf("plan: line %d: %w", lineOf(src, field.path), err)
	}
	return p, err
}

// decode reads YAML. The decoder panics on some texts that are none (a tag with nothing behind it, for instance).
func decode(src []byte, p *Plan) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("not YAML that can be read: %v", r)
		}
	}()
	return yaml.NewDecoder(bytes.NewReader(src), yaml.Strict(), yaml.DisallowUnknownField()).Decode(p)
}

// ParseFile is Parse for a file; errors begin with its name.
func ParseFile(name string, own ...Fault) (*Plan, error) {
	src, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	p, err := Parse(src, own...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// UnmarshalYAML reads a duration and says where it is if it is none.
func (d *Duration) UnmarshalYAML(node ast.Node) error {
	token := node.GetToken()
	if err := d.UnmarshalText([]byte(token.Value)); err != nil {
		return fmt.Errorf("line %d: %q is not a duration such as 1.5s or 200ms", token.Position.Line, token.Value)
	}
	return nil
}

// decodeError turns goccy's error, which quotes the source over several lines, into "line 3: message".
func decodeError(err error) error {
	var syntax yaml.Error
	if !errors.As(err, &syntax) || syntax.GetToken() == nil {
		return err
	}
	at := syntax.GetToken()
	_, value := errors.AsType[*yaml.TypeError](err)
	_, node := errors.AsType[*yaml.UnexpectedNodeTypeError](err)
	if field := fieldOf(at); (value || node) && shapes[field] != "" {
		return fmt.Errorf("line %d: %s: want %s (at %q)", at.Position.Line, field, shapes[field],
			strings.TrimSpace(at.Value))
	}
	return fmt.Errorf("line %d: %s (at %q)", at.Position.Line, syntax.GetMessage(), strings.TrimSpace(at.Value))
}

// shapes has the fields that are easy to nest wrongly: the decoder's errors for them name Go types.
var shapes = map[string]string{
	"sets":    "a list of lists of masters: [[0, 1, 2]], or the old and the new ones: [[0, 1, 2], [0, 1, 3]]",
	"members": "a list of masters: [0, 1, 2]",
	"masters": "their number, and in a step a list of them: [0, 2]",
	"clients": "their number, and in a step a list of them: [0, 2]",
	"steps":   "a list of steps: - {at: 1s, for: 3s, fault: silence, masters: [2]}",
}

// fieldOf returns the name of the field that a token belongs to; empty if there is no field before it.
func fieldOf(at *token.Token) string {
	for ; at != nil; at = at.Prev {
		if at.Type == token.MappingValueType && at.Prev != nil {
			return strings.TrimSpace(at.Prev.Value)
		}
	}
	return ""
}

// lineOf finds the line of a field, or of the closest thing around it that the file has.
func lineOf(src []byte, path string) int {
	file, err := parser.ParseBytes(src, 0)
	if err != nil {
		return 1
	}
	for path != "" {
		if at, err := yaml.PathString(path); err == nil {
			if node, err := at.FilterFile(file); err == nil && node != nil {
				return firstLine(node)
			}
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut <= 0 {
			break
		}
		path = path[:cut]
	}
	return 1
}

func firstLine(node ast.Node) int {
	switch n := node.(type) {
	case *ast.MappingNode:
		if len(n.Values) > 0 {
			return n.Values[0].Key.GetToken().Position.Line
		}
	case *ast.MappingValueNode:
		return n.Key.GetToken().Position.Line
	}
	return node.GetToken().Position.Line
}

// YAML writes the plan so that Parse reads it back the same.
func (p *Plan) YAML() ([]byte, error) {
	out, err := yaml.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	return out, nil
}
