package mutant

// edges are mutants of the engine's other operations: waiting, holding, inspecting, announcing, leading and closing.
func edges() []Mutant {
	return []Mutant{
		{
			Name:   "follows-without-time",
			Breaks: "a release that waits for a slow acquisition has no time left for itself",
			Edits: []Edit{
				{
					"internal/hold/send.go", "\t\t\t\tb.Deadline = b.Deadline.Add(max(h.terms.Timeout, " +
						"h.env.Lanes[i].Patience()))",
					"\t\t\t\t_ = 0",
				},
			},
			Tests: in(".", "TestAReleaseBehindASlowAcquisitionHasATimeoutOfItsOwn"),
		},
		{
			Name:   "renewal-without-end",
			Breaks: "a renewal that is not decided in time delays the next one without a limit",
			Edits: []Edit{
				{"internal/hold/renew.go", "case h.renewal.round != nil && now >= h.renewal.deadline:", "case false:"},
				{"internal/hold/renew.go", "\t\tat = min(at, h.renewal.deadline)\n", ""},
			},
			Tests: in(".", "TestARenewalIsTriedAgainWhileAMasterHangs"),
		},
		{
			Name:   "release-wakes-nobody",
			Breaks: "a release that notifies no process does not notify the waiters of its process either",
			Edits:  []Edit{{"internal/contend/crowd.go", "\t\tc.Wake(g.Keys)\n", ""}},
			Tests:  in(".", "TestAReleaseWakesWaitersOfItsProcess"),
		},
		{
			Name:   "split-without-chance",
			Breaks: "those who have split the votes come back in step",
			Edits: []Edit{
				{
					"internal/contend/next.go", "jitter(min(max(1, span)<<min(n-1, 5), max(MaxPause, " +
						"splitRounds*took)))",
					"min(max(1, span)<<min(n-1, 5), max(MaxPause, splitRounds*took))",
				},
			},
			Tests: in(".", "TestHazard31AnEvenSplitIsResolvedByChance"),
		},
		{
			Name:   "expiry-not-expected",
			Breaks: "a waiter comes by its backoff, not when the key in its way expires",
			Edits:  []Edit{{"internal/contend/next.go", "a.Free > 0 && a.Free < backoff/2:", "a.Free < 0:"}},
			Tests:  in(".", "TestAWaiterComesAtTheMomentWhenTheKeyExpires"),
		},
		{
			Name:   "token-proposed-again",
			Breaks: "a Locker proposes a token that it has seen, where the wall clock is not ahead of it",
			Edits:  []Edit{{"internal/hold/tokens.go", "t.greatest.Load()+1)", "t.greatest.Load())"}},
			Tests:  in(".", "TestTokensOfALockerGrowThoughMastersForgetAndTheClockStands"),
		},
		{
			Name:   "retained-by-some",
			Breaks: "a counter counts as kept everywhere after requests to some masters",
			Edits: []Edit{
				{
					"internal/hold/fence.go", "b.Reply.Outcome != single.Granted {\n\t\t\treturn",
					"b.Reply.Outcome != single.Granted {\n\t\t\tcontinue",
				},
			},
			Tests: in(".", "TestHazard28ACounterIsKeptThoughNotEveryAcquisitionAsks"),
		},
		{
			Name:   "retained-where-refused",
			Breaks: "a counter counts as kept by a master that has refused the acquisition, and so was not asked",
			Edits: []Edit{
				{
					"internal/hold/fence.go", "!b.ended || b.Err != nil || b.Reply.Outcome != single.Granted {",
					"!b.ended || b.Err != nil {",
				},
			},
			Tests: in(".", "TestARefusedAcquisitionDoesNotCountAsKeepingTheCounter"),
		},
		{
			Name:   "passed-while-closing",
			Breaks: "a lock is passed on by a Locker that is being closed",
			Edits:  []Edit{{"host.go", "if l := w.locker; l.isClosing() || l.current", "if l := w.locker; l.current"}},
			Tests:  in(".", "TestALockIsNotPassedOnOnceCloseHasBegun"),
		},
		{
			Name:   "generation-three-behind",
			Breaks: "a process that is two generations behind goes on",
			Sample: true,
			Edits: []Edit{
				{
					"internal/generation/generation.go", "case greatest.Generation > c.Own+1:",
					"case greatest.Generation > c.Own+2:",
				},
			},
			Tests: in(".", "TestAForgottenProcessTakesNoLockOnceTheNextGenerationIsAnnounced"),
		},
		{
			Name:   "generation-one-behind",
			Breaks: "a process that is one generation behind, as all are in the middle of an exchange, takes no locks",
			Edits: []Edit{
				{
					"internal/generation/generation.go", "case greatest.Generation > c.Own+1:",
					"case greatest.Generation > c.Own:",
				},
			},
			Tests: in(".", "TestServersKeepTheGreatestGeneration"),
		},
		{
			Name:   "generation-known-for-ever",
			Breaks: "a process reads the masters' generation once",
			Edits: []Edit{
				{
					"internal/generation/generation.go", "c.newer == nil && now < c.fresh",
					"c.newer == nil && 0 < c.fresh",
				},
				{"internal/generation/generation.go", "c.fresh > 0 && now < c.fresh-freshFor+askAgain", "c.fresh > 0"},
			},
			Tests: in(".", "TestAForgottenProcessTakesNoLockOnceTheNextGenerationIsAnnounced"),
		},
		{
			Name:   "generation-of-one-set",
			Breaks: "with two sets of masters a process reads the generation of the old one alone",
			Edits:  []Edit{{"membership.go", "Majority: l.sets.majority,", "Majority: l.sets[:1].majority,"}},
			Tests:  in(".", "TestAFailedAnnouncementNamesTheSetThatDidNotAnswer"),
		},
		{
			Name:   "announces-too-far",
			Breaks: "a Locker announces a generation that is two ahead, and stops every process",
			Edits:  []Edit{{"membership.go", "generation > l.opts.Generation+1:", "generation > l.opts.Generation+9:"}},
			Tests:  in(".", "TestALockerAnnouncesNoGenerationThatWouldStopItself"),
		},
		{
			Name:   "announces-what-is-over",
			Breaks: "an announcement of a generation succeeds where masters know a greater one",
			Edits: []Edit{
				{
					"membership.go", "case answers.Greatest.Generation > generation:",
					"case answers.Greatest.Generation > single.MaxToken:",
				},
			},
			Tests: in(".", "TestAnnounceReportsTheMastersGeneration"),
		},
		{
			Name:   "context-of-another-parent",
			Breaks: "a lock has one context, the last one, whatever the parent",
			Edits:  []Edit{{"context.go", "n > 0 && sameContext(cs.live[n-1].parent, parent)", "n > 0"}},
			Tests:  in(".", "TestALocksContextEndsWithItsParent"),
		},
		{
			Name:   "context-dropped-alive",
			Breaks: "of many contexts of one lock those are forgotten that have not ended",
			Edits:  []Edit{{"context.go", "return c.Context.Err() != nil })", "return c.Context.Err() == nil })"}},
			Tests: []Tests{
				{Package: ".", Names: []string{"TestHazard47ContextsOfEndedParentsAreNotKept"}, Crash: "goroutines " +
					"in bubble are blocked"},
			},
		},
		{
			Name:   "context-without-clock",
			Breaks: "the Err of a lock's context does not read the clock",
			Edits: []Edit{
				{"context.go", "if over := c.lock.Err(); over != nil {", "if over := error(nil); over != nil {"},
			},
			Tests: in(".", "TestHazard24AfterASuspensionEveryMethodReportsTheLossOfTheLock"),
		},
		{
			Name:   "context-of-what-is-over",
			Breaks: "a context that is made when the lock is over is not cancelled",
			Edits:  []Edit{{"context.go", "\tif over != nil {\n\t\tc.cancel(over)\n\t}\n\treturn c\n", "\treturn c\n"}},
			Tests:  in(".", "TestAReleasedLockIsOver"),
		},
		{
			Name:   "do-hides-a-loss",
			Breaks: "Do does not say that the lock was lost before its function had returned",
			Edits: []Edit{
				{
					"context.go", "if released := lock.Release(ctx); lock.lost() {",
					"if released := lock.Release(ctx); false {",
				},
			},
			Tests: in(".", "TestDoReportsALostLock"),
		},
		{
			Name:   "do-goes-on",
			Breaks: "the context of Do's function does not end with the lock",
			Edits:  []Edit{{"context.go", "return fn(lock.Context(ctx))", "return fn(ctx)"}},
			Tests: []Tests{
				{Package: ".", Names: []string{"TestDoReportsALostLock"}, Crash: "goroutines in bubble are " +
					"blocked"},
			},
		},
		{
			Name:   "do-not-renewed",
			Breaks: "Do does not renew its lock",
			Edits: []Edit{
				{"context.go", "append([]Option{AutoRenew(), forWork}, opts...)", "append([]Option{forWork}, opts...)"},
			},
			Tests: in(".", "TestDoRunsUnderARenewedLockAndReleasesIt"),
		},
		{
			Name:   "leader-not-told",
			Breaks: "the context of a leader does not end with its term",
			Edits:  []Edit{{"elect.go", "err := lead(t.Context(ctx), t)", "err := lead(ctx, t)"}},
			Tests:  in(".", "TestWhatALeaderReturnsAfterItsTermEndsRun"),
		},
		{
			Name:   "leader-error-lost",
			Breaks: "a leader's error after the end of its term is lost",
			Edits: []Edit{
				{"elect.go", "if over && (errors.Is(err, context.Canceled) ||", "if over && (err != nil ||"},
			},
			Tests: in(".", "TestWhatALeaderReturnsAfterItsTermEndsRun"),
		},
		{
			Name:   "leader-stays",
			Breaks: "a leader that panics keeps its term",
			Edits:  []Edit{{"elect.go", "\tdefer func() { _ = t.Resign(ctx) }()", "\t_ = t"}},
			Tests:  in(".", "TestRunResignsWhenTheLeaderPanics"),
		},
		{
			Name:   "leader-outlives-close",
			Breaks: "a term of Run goes on while its Locker is being closed, and Close waits for it",
			Edits:  []Edit{{"elect.go", "case <-t.lock.locker.closing:", "case <-(chan struct{})(nil):"}},
			Tests: []Tests{
				{
					Package: ".", Names: []string{"TestHazard82CloseEndsTheTermOfALeaderThatRuns"},
					Crash: "blocked goroutines remain",
				},
			},
		},
		{
			Name:   "leader-unfenced",
			Breaks: "terms have no tokens",
			Edits:  []Edit{{"elect.go", "AutoRenew(), Fenced(), forWork", "AutoRenew(), forWork"}},
			Tests:  in(".", "TestWhatALeaderReturnsAfterItsTermEndsRun"),
		},
		{
			Name:   "holder-of-a-minority",
			Breaks: "a minority's key is a lock",
			Edits: []Edit{
				{"holder.go", "\t\tif masters >= set.quorum {\n\t\t\tn++", "\t\tif masters > 0 {\n\t\t\tn++"},
			},
			Tests: in(".", "TestHolderNamesNoOwnerOfOrphansOnAMinority"),
		},
		{
			Name:   "holder-named-by-a-minority",
			Breaks: "some masters' owner is the holder of a key",
			Edits: []Edit{
				{"holder.go", "\tif votes >= set.quorum {\n\t\th.Identity", "\tif votes > 0 {\n\t\th.Identity"},
			},
			Tests: in(".", "TestHolderNamesNoOwnerThatOnlyAMinorityHas"),
		},
		{
			Name:   "holder-for-too-long",
			Breaks: "a key is said to be kept for as long as one master keeps it",
			Edits:  []Edit{{"holder.go", "h.TTL = ttls[set.quorum-1]", "h.TTL = ttls[0]"}},
			Tests:  in(".", "TestHolderReportsHowLongAQuorumKeepsTheKey"),
		},
		{
			Name:   "holder-unasked",
			Breaks: "a key is free when too few masters have answered",
			Edits: []Edit{
				{
					"holder.go", "set.of(r.Votes.Granted|r.Votes.Refused) < set.quorum {",
					"set.of(r.Votes.Granted|r.Votes.Refused) < 0 {",
				},
			},
			Tests: in(".", "TestHolderNeedsAQuorumOfAnswers"),
		},
		{
			Name:   "verify-without-clock",
			Breaks: "Verify says yes when the validity has ended during its round",
			Edits: []Edit{
				{"internal/hold/hold.go", "\tif h.Err() != nil {\n\t\treturn &Failure{Fault: Ended, Op: " +
					"single.Extend, Verifies: true}\n\t}\n", ""},
			},
			Tests: in(".", "TestVerifyNeverSaysYesOnceValidityIsOver"),
		},
		{
			Name:   "verify-prolongs",
			Breaks: "a Verify lets the keys live for the whole ttl again",
			Edits: []Edit{
				{
					"internal/hold/hold.go", "Op: single.Extend, TTL: time.Millisecond}",
					"Op: single.Extend, TTL: h.terms.TTL}",
				},
			},
			Tests: in(".", "TestVerifyLetsNoKeyLiveForLonger"),
		},
	}
}
