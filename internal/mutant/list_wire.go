package mutant

import "time"

// connections are the mutants of the code that reads and writes on one connection.
func connections() []Mutant {
	return []Mutant{
		{
			Name:   "wire-any-status",
			Breaks: "any simple string is taken for OK, so that +QUEUED grants",
			Edits: []Edit{
				{
					"internal/wire/read.go", "(got.kind != Status || e.Status == \"\" || got.text == e.Status)",
					"(got.kind != Status || got.text != \"\")",
				},
			},
			Tests: in("internal/wire", "TestOnlyTheExpectedStatusIsAReply"),
		},
		{
			Name:   "wire-any-kind",
			Breaks: "a reply of any kind is one to the command",
			Edits: []Edit{
				{"internal/wire/read.go", "e.Kinds.Has(got.kind) && (", "(e.Kinds.Has(got.kind) || true) && ("},
			},
			Tests:  in("internal/wire", "TestAReplyBeyondItsBoundIsAnError"),
			Sample: true,
		},
		{
			Name:   "wire-unread-is-empty",
			Breaks: "a reply that was not read is no error",
			Edits:  []Edit{{"internal/wire/wire.go", "\tif r.kind == Unread {\n\t\treturn ErrUnread\n\t}\n", ""}},
			Tests:  in("internal/wire", "TestAnUnreadReplyIsAnError"),
		},
		{
			Name:   "wire-leftovers",
			Breaks: "a connection is used again after surplus bytes",
			Edits: []Edit{
				{
					"internal/wire/conn.go", "return !c.broken && c.reader.in.Buffered() == 0 && (",
					"return !c.broken && (",
				},
			},
			Tests: in("internal/wire", "TestAConnectionIsNotUsedAfterUnaskedBytes"),
		},
		{
			Name:   "wire-no-look",
			Breaks: "a connection is used again without a look at its socket",
			Edits: []Edit{
				{"internal/wire/conn.go", "func (c *Conn) silent() bool { return c.raw.Control(c.peek) == nil && " +
					"c.quiet }", "func (c *Conn) silent() bool { return c.raw.Control(c.peek) == nil }"},
			},
			Tests: in("internal/wire", "TestAConnectionWithUnreadBytesIsNotClean"),
		},
		{
			Name:   "wire-no-look-wrapped",
			Breaks: "a connection that shows no socket is used again without being read",
			Edits:  []Edit{{"internal/wire/conn.go", "\t\treturn c.nothingComes()\n", "\t\treturn true\n"}},
			Tests:  in("internal/wire", "TestHazard42AWrappedConnectionIsLookedAt"),
		},
		{
			Name:   "wire-closes-politely",
			Breaks: "a connection is closed without a reset, and delivers its send queue later",
			Edits:  []Edit{{"internal/wire/conn.go", "tcp.SetLinger(0)", "tcp.SetLinger(-1)"}},
			Tests:  in("internal/wire", "TestAWrappedConnectionIsClosedWithAReset"),
		},
		{
			Name:   "wire-broken-goes-on",
			Breaks: "replies are read on after one that was none",
			Edits:  []Edit{{"internal/wire/conn.go", "\tc.broken = err != nil\n\tif err", "\tif err"}},
			Tests:  in("internal/wire", "TestAConnectionIsNotUsedAfterUnaskedBytes"),
		},
		{
			Name:   "wire-set-up-fails",
			Breaks: "a set-up that is answered with an error makes a connection",
			Edits: []Edit{
				{"internal/wire/dial.go", "\t\tif err := reply.Err(); err != nil {\n\t\t\treturn nil, " +
					"fmt.Errorf(\"setting up a connection: %s: %w\", s.name, err)\n\t\t}\n", "\t\t_ = reply.Err()\n"},
			},
			Tests: in("internal/wire", "TestASetUpWithWrongRepliesMakesNoConnection"),
		},
		{
			Name:   "wire-set-up-says-more",
			Breaks: "a set-up with a reply too many makes a connection",
			Edits:  []Edit{{"internal/wire/dial.go", "\tif !c.Drained() {\n", "\tif false {\n"}},
			Tests:  in("internal/wire", "TestASetUpWithWrongRepliesMakesNoConnection"),
		},
		{
			Name:   "wire-no-last",
			Breaks: "no command ends a set-up, so that a reply too many comes as that to the first request",
			Edits:  []Edit{{"internal/wire/dial.go", "if len(steps) > 0 {", "if false {"}},
			Tests:  in("internal/wire", "TestASetUpWithWrongRepliesMakesNoConnection"),
		},
		{
			Name:   "wire-no-deadline",
			Breaks: "the wait for a reply has no end",
			Edits: []Edit{
				{
					"internal/wire/conn.go", "\tif err := c.conn.SetDeadline(deadline); err != nil {\n\t\tc.broken " +
						"= true",
					"\tif err := c.conn.SetDeadline(time.Time{}); err != nil {\n\t\tc.broken = true",
				},
			},
			Tests: []Tests{
				{
					Package: "internal/wire", Names: []string{"TestAWaitForAReplyEnds"}, Crash: "test timed out",
					Within: 20 * time.Second,
				},
			},
		},
		{
			Name:   "wire-items-unbounded",
			Breaks: "an array has as many elements as the server says",
			Edits: []Edit{
				{"internal/wire/read.go", "n < 0 || n > int64(r.left) || depth == 0", "n < 0 || depth == 0"},
			},
			Tests: []Tests{
				{Package: "internal/wire", Names: []string{"TestAReplyBeyondItsBoundIsAnError"}, Crash: "panic"},
			},
		},
		{
			Name:   "wire-depth-unbounded",
			Breaks: "arrays are nested as deep as the server likes",
			Edits:  []Edit{{"internal/wire/read.go", "|| n > int64(r.left) || depth == 0", "|| n > int64(r.left)"}},
			Tests:  in("internal/wire", "TestAReplyBeyondItsBoundIsAnError"),
		},
		{
			Name:   "wire-text-unbounded",
			Breaks: "a text takes the memory that the server says",
			Edits:  []Edit{{"internal/wire/read.go", "if n > int64(limit) {", "if false {"}},
			Tests:  in("internal/wire", "TestAReplyBeyondItsBoundIsAnError"),
		},
		{
			Name:   "wire-line-end",
			Breaks: "the end of a text is not looked at",
			Edits:  []Edit{{"internal/wire/read.go", "if end != [2]byte{'\\r', '\\n'} {", "if false {"}},
			Tests:  in("internal/wire", "TestAReplyBeyondItsBoundIsAnError"),
		},
		{
			Name:   "wire-endless-error",
			Breaks: "an error without an end is read without an end",
			Edits:  []Edit{{"internal/wire/read.go", "for n < maxLine {", "for {"}},
			Tests:  in("internal/wire", "TestAReplyBeyondItsBoundIsAnError"),
		},
		{
			Name:   "wire-shows-pieces-of-secrets",
			Breaks: "a piece of a secret is shown where a server has cut it short",
			Edits:  []Edit{{"internal/wire/hide.go", "if n > longestShown {", "if n == len(secret) {"}},
			Tests:  in("internal/wire", "TestHazard119PiecesOfSecretsAreHidden"),
		},
		{
			Name:   "wire-shows-owners",
			Breaks: "an error shows the owner value that a server quotes",
			Edits:  []Edit{{"single/batch.go", "\thideSecrets(todo)\n", ""}},
			Tests:  in(".", "TestHazard119NoErrorShowsAnOwnerThatAServerQuotes"),
		},
	}
}
