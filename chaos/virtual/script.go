package virtual

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/alicebob/miniredis/v2/server"
	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"

	"github.com/seed-624411e5/redlock/internal/embedded"
)

// scripts are a master's Lua scripts. miniredis makes a new Lua state for each call, which takes ten times as long as
// the call. Here states are used again. Calls are not made at the same time: each master gets one message at a time.
type scripts struct {
	engine *embedded.Engine
	known  map[string]string // by their SHA1
}

// interpreter is a Lua state that runs one script at a time.
type interpreter struct {
	*lua.LState
	engine *embedded.Engine // of the script under way
	out    bytes.Buffer     // what a command of the script has written
	writer *bufio.Writer
	peer   *server.Peer
}

// answer answers the commands about scripts.
func (s *scripts) answer(c *server.Peer, command string, args []string) bool {
	switch {
	case command == "SCRIPT" && len(args) == 2 && strings.EqualFold(args[0], "LOAD"):
		c.WriteBulk(s.load(args[1]))
	case command == "SCRIPT" && len(args) > 0 && strings.EqualFold(args[0], "EXISTS"):
		c.WriteLen(len(args) - 1)
		for _, sha := range args[1:] {
			_, is := s.known[strings.ToLower(sha)]
			c.WriteInt(map[bool]int{true: 1}[is])
		}
	case command == "SCRIPT" && len(args) > 0 && strings.EqualFold(args[0], "FLUSH"):
		clear(s.known)
		c.WriteOK()
	case (command == "EVAL" || command == "EVALSHA") && len(args) > 1:
		text, known := args[0], true
		if command == "EVALSHA" {
			text, known = s.known[strings.ToLower(args[0])]
		}
		n, err := strconv.Atoi(args[1])
		switch {
		case err != nil || n < 0 || n > len(args)-2:
			c.WriteError("ERR Number of keys can't be greater than number of args")
		case !known:
			c.WriteError("NOSCRIPT No matching script. Please use EVAL.")
		default:
			if command == "EVAL" {
				s.load(text)
			}
			s.eval(c, text, args[2:][:n], args[2:][n:])
		}
	default:
		return false
	}
	return true
}

func (s *scripts) load(text string) string {
	sha, ok := hashes.Load(text)
	if !ok {
		sha, _ = hashes.LoadOrStore(text, sha1hex(text))
	}
	name := sha.(string) //nolint:forcetypeassert // nothing else is stored
	s.known[name] = text
	return name
}

func sha1hex(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// compiled and hashes are of all scripts, by their text. Each run loads the same few.
var compiled, hashes sync.Map

func compile(text string) (*lua.FunctionProto, error) {
	if p, ok := compiled.Load(text); ok {
		return p.(*lua.FunctionProto), nil //nolint:forcetypeassert // nothing else is stored
	}
	chunk, err := parse.Parse(strings.NewReader(text), "@user_script")
	if err != nil {
		return nil, fmt.Errorf("ERR Error compiling script: %w", err)
	}
	p, err := lua.Compile(chunk, "@user_script")
	if err != nil {
		return nil, fmt.Errorf("ERR Error compiling script: %w", err)
	}
	compiled.Store(text, p)
	return p, nil
}

// interpreters are those that run no script.
var interpreters = sync.Pool{New: func() any { return newInterpreter() }}

func newInterpreter() *interpreter {
	l := &interpreter{LState: lua.NewState(lua.Options{SkipOpenLibs: true})}
	l.writer = bufio.NewWriter(&l.out)
	l.peer = server.NewPeer(l.writer)
	for name, open := range map[string]lua.LGFunction{
		lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable, lua.StringLibName: lua.OpenString,
		lua.MathLibName: lua.OpenMath,
	} {
		l.Push(l.NewFunction(open))
		l.Push(lua.LString(name))
		l.Call(1, 0)
	}
	l.SetGlobal("redis", l.module())
	l.SetGlobal("KEYS", l.NewTable())
	l.SetGlobal("ARGV", l.NewTable())
	l.forbidGlobals()
	return l
}

// forbidGlobals makes reading or writing a new global variable an error of the script, as Redis does.
func (l *interpreter) forbidGlobals() {
	meta := l.NewTable()
	for name, text := range map[string]string{
		"__index":    "Script attempted to access nonexistent global variable '%s'",
		"__newindex": "Attempt to modify a readonly table, global variable '%s'",
	} {
		meta.RawSetString(name, l.NewFunction(func(l *lua.LState) int {
			l.RaiseError(text, l.Get(2).String())
			return 0
		}))
	}
	l.SetMetatable(l.Get(lua.GlobalsIndex), meta)
}

// eval runs a script and writes its result.
func (s *scripts) eval(c *server.Peer, text string, keys, args []string) {
	proto, err := compile(text)
	if err != nil {
		c.WriteError(oneLine(err.Error()))
		return
	}
	l := interpreters.Get().(*interpreter) //nolint:forcetypeassert // nothing else is stored
	l.engine = s.engine
	l.SetGlobal("KEYS", l.table(keys))
	l.SetGlobal("ARGV", l.table(args))
	l.Push(l.NewFunctionFromProto(proto))
	if err := l.PCall(0, 1, nil); err != nil {
		c.WriteError(oneLine(raised(err)))
	} else {
		reply(c, l.Get(-1))
	}
	l.SetTop(0)
	l.engine = nil
	interpreters.Put(l)
}

// raised is the error reply for an error of a script: a command's own, or Lua's.
func raised(err error) string {
	if failed, ok := errors.AsType[*lua.ApiError](err); ok {
		if t, ok := failed.Object.(*lua.LTable); ok {
			if text, ok := t.RawGetString("err").(lua.LString); ok {
				return string(text)
			}
		}
		return "ERR user_script: " + failed.Object.String()
	}
	return "ERR " + err.Error()
}

// oneLine is what fits into an error reply.
func oneLine(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	return strings.TrimSuffix(text, "\r")
}

func (l *interpreter) table(values []string) *lua.LTable {
	t := l.CreateTable(len(values), 0)
	for _, v := range values {
		t.Append(lua.LString(v))
	}
	return t
}

// module is what scripts know as redis.
func (l *interpreter) module() *lua.LTable {
	field := func(name string) lua.LGFunction {
		return func(l *lua.LState) int {
			t := l.NewTable()
			t.RawSetString(name, l.CheckAny(1))
			l.Push(t)
			return 1
		}
	}
	m := l.NewTable()
	for name, f := range map[string]lua.LGFunction{
		"call":        func(*lua.LState) int { return l.command(true) },
		"pcall":       func(*lua.LState) int { return l.command(false) },
		"error_reply": field("err"), "status_reply": field("ok"),
		"sha1hex": func(l *lua.LState) int {
			l.Push(lua.LString(sha1hex(l.CheckString(1))))
			return 1
		},
		"log": func(*lua.LState) int { return 0 }, "replicate_commands": func(*lua.LState) int { return 0 },
	} {
		m.RawSetString(name, l.NewFunction(f))
	}
	m.RawSetString("LOG_WARNING", lua.LNumber(3))
	return m
}

// command is redis.call, and redis.pcall if errors are not raised.
func (l *interpreter) command(raises bool) int {
	args := make([]string, l.GetTop())
	for i := range args {
		if !lua.LVCanConvToString(l.Get(i + 1)) {
			l.RaiseError("Lua redis lib command arguments must be strings or integers")
		}
		args[i] = lua.LVAsString(l.Get(i + 1))
	}
	if len(args) == 0 {
		l.RaiseError("Please specify at least one argument for this redis.call() call")
	}
	l.out.Reset()
	l.engine.Dispatch(l.peer, args)
	l.peer.Flush()
	v, _ := value(l.LState, l.out.Bytes())
	if t, is := v.(*lua.LTable); is && raises && t.RawGetString("err") != lua.LNil {
		l.Error(t, 0)
	}
	l.Push(v)
	return 1
}

// value converts a reply into a value of Lua. It also returns the rest of b.
func value(l *lua.LState, b []byte) (lua.LValue, []byte) {
	line, rest, _ := bytes.Cut(b, []byte("\r\n"))
	if len(line) == 0 {
		return lua.LFalse, rest
	}
	text := string(line[1:])
	switch line[0] {
	case ':':
		n, _ := strconv.ParseInt(text, 10, 64)
		return lua.LNumber(n), rest
	case '+', '-':
		t := l.NewTable()
		t.RawSetString(map[byte]string{'+': "ok", '-': "err"}[line[0]], lua.LString(text))
		return t, rest
	}
	n, err := strconv.Atoi(text)
	switch {
	case err != nil || n < 0:
		return lua.LFalse, rest
	case line[0] == '$':
		return lua.LString(rest[:n]), rest[n+2:]
	}
	t := l.CreateTable(n, 0)
	for range n {
		var v lua.LValue
		v, rest = value(l, rest)
		t.Append(v)
	}
	return t, rest
}

// reply writes the result of a script.
func reply(c *server.Peer, v lua.LValue) {
	switch v := v.(type) {
	case lua.LNumber:
		c.WriteInt(int(v))
	case lua.LString:
		c.WriteBulk(string(v))
	case lua.LBool:
		if v {
			c.WriteInt(1)
		} else {
			c.WriteNull()
		}
	case *lua.LTable:
		if text := v.RawGetString("err"); text != lua.LNil {
			c.WriteError(oneLine(text.String()))
			return
		}
		if text := v.RawGetString("ok"); text != lua.LNil {
			c.WriteInline(text.String())
			return
		}
		n := 0 // up to the first nil, as Redis does it
		for v.RawGetInt(n+1) != lua.LNil {
			n++
		}
		c.WriteLen(n)
		for i := range n {
			reply(c, v.RawGetInt(i+1))
		}
	default:
		c.WriteNull()
	}
}
