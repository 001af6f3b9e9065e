/*
 * Acquire and release: at most one hold of a key is held within its validity.
 *
 * Three masters and two holds of one key, each of a client of its own. A rule is one atomic step; the checker tries them in
 * every order. A message that is sent may arrive at any moment, or never: that is how it is lost. Time passes in ticks, and
 * by Tick alone. A master keeps a key for TTL ticks of its own clock, which may gain DRIFT on a client's meanwhile, so KEEP
 * ticks are sure; from then on the key may expire at any moment, or never.
 *
 * Left out: waiting and its queues, several keys, shared locks (a hold is one attempt); extensions (extend.pml), masters that
 * forget (repair.pml, guard.pml), two sets of masters (joint.pml); other numbers of masters, and ticks of different lengths.
 * Refusals are not counted: an attempt may be given up at any moment, whatever the reason. A third hold is not there; that
 * there could be none beside a hold that is held is asserted instead, and is more.
 */
#define TTL 3
#define DRIFT 1
#define KEEP (TTL - DRIFT)

#ifdef NO_DRIFT_ALLOWANCE
#define VALID TTL
#else
#define VALID (TTL - DRIFT)
#endif
#ifdef HALF_QUORUM
#define QUORUM 1
#else
#define QUORUM 2
#endif

/* What a hold is. */
#define IDLE 0 /* not yet begun */
#define ASKING 1
#define HELD 2
#define OVER 3

/* What its acquisition is on one master. */
#define ENDED 0     /* nothing is on its way: not sent yet, refused, read, or lost */
#define SENT 1      /* a request is on its way, and waited for */
#define GRANTED 2   /* the answer is on its way; an attempt that wins has read it */
#define TWICE 3     /* the same, and the client has repeated the request: a copy is on its way */
#define LATE 4      /* a request is on its way that nobody waits for: it timed out, or is a copy */
#define OVERTAKEN 5 /* the release was faster; only a broken order knows this */

#define FREE 2 /* a key that is neither hold's */

byte state[2];
byte valid[2]; /* ticks to the bound, from the reading of the clock before the first byte was sent */
typedef Master {
	byte key;     /* whose it is */
	byte keep;    /* ticks for which it is sure to be kept */
	byte call[2]; /* of either hold */
};
Master master[3];

#define is_granted(h, m) (master[m].call[h] == GRANTED || master[m].call[h] == TWICE)
#define granted(h) (is_granted(h, 0) + is_granted(h, 1) + is_granted(h, 2))
#define is_held(h) (state[h] == HELD && valid[h] > 0)
#define keys(h) ((master[0].key == h) + (master[1].key == h) + (master[2].key == h))

#ifdef OVERWRITES
#define may_set(h, m) true
#else
#define may_set(h, m) (master[m].key == FREE || master[m].key == h)
#endif
#ifdef FROM_THE_ANSWER
#define is_in_time(h) true
#define bound(h) VALID
#else
#define is_in_time(h) (valid[h] > 0)
#define bound(h) valid[h]
#endif
#ifdef RELEASE_OVERTAKES
#define may_release(h, m) true
#else
#define may_release(h, m) (master[m].call[h] != SENT)
#endif
#ifdef RELEASES_ANYBODYS
#define is_to_go(h, m) (master[m].key != FREE)
#else
#define is_to_go(h, m) (master[m].key == h)
#endif

/* A state of interest is reached if the search that denies it fails. */
#ifndef REACHED
#define REACHED 0
#endif
#define RELEASED_BEFORE 1 /* a hold is held after another one was released */
#define EXPIRED_BEFORE 2  /* a hold is held after another one has expired, and nobody has released that */
#define STRAGGLER 3       /* a request arrives after its round was won */
#define LATE_SET 4        /* a request that nobody waits for sets the key, and its hold is over */
#define REPEATED 5        /* a repeated request finds its hold's own key */
#define TOO_LATE 6        /* a quorum has granted, and the validity is over */
#ifdef NOTE /* a search of everything says what it has reached */
c_decl { int printf(const char *, ...); char seen[16]; }
#define reached(what, when) if :: (c_expr { !seen[what] } && (when)) -> c_code { seen[what] = printf("reached %s\n", #what); } :: else fi
#else
#define reached(what, when) assert(REACHED != what || !(when))
#endif

/* G1, and why: a quorum of masters has the key of a hold that is held, so nobody else can have a quorum. */
#if defined(BROKEN) && !defined(RELEASES_ANYBODYS)
#define has_quorum(h) true /* two holders are looked for, not only a hold that another one might join */
#else
#define has_quorum(h) (keys(h) >= 2)
#endif
inline safe() {
	assert(!is_held(0) || has_quorum(0));
	assert(!is_held(1) || has_quorum(1));
	assert(!(is_held(0) && is_held(1)))
}

/* The clock is read, then all masters are asked. The holds are alike: the second one begins after the first. */
inline Begin(h) {
	state[h] == IDLE && (h == 0 || state[0] != IDLE) ->
	state[h] = ASKING; valid[h] = VALID;
	master[0].call[h] = SENT; master[1].call[h] = SENT; master[2].call[h] = SENT;
	printf("hold %d asks all masters\n", h)
}

/* A master takes an acquisition: SET NX, where one's own key is a grant and lives at least ttl from now. What was granted is
 * over if the hold is, or is held without that vote. */
inline Land(h, m) {
	master[m].call[h] == SENT || master[m].call[h] == TWICE || master[m].call[h] == LATE || master[m].call[h] == OVERTAKEN ->
	reached(STRAGGLER, master[m].call[h] == SENT && state[h] == HELD);
	reached(LATE_SET, master[m].call[h] == LATE && state[h] == OVER && may_set(h, m));
	reached(REPEATED, master[m].call[h] == TWICE && master[m].key == h);
	if
	:: may_set(h, m) ->
		printf("master %d grants to hold %d\n", m, h);
		assert(master[m].call[h] != OVERTAKEN); /* no release arrives before what it undoes */
		master[m].key = h; master[m].keep = KEEP;
		master[m].call[h] = (master[m].call[h] == TWICE || master[m].call[h] == SENT && state[h] == ASKING -> GRANTED : ENDED)
	:: else ->
		printf("master %d refuses hold %d\n", m, h);
		master[m].call[h] = (master[m].call[h] == TWICE -> GRANTED : ENDED)
	fi
}

/* The client under the library repeats a request, because it knows of no answer. */
inline Repeat(h, m) {
	state[h] == ASKING && master[m].call[h] == GRANTED ->
	master[m].call[h] = TWICE;
	printf("the request of hold %d to master %d is sent again\n", h, m)
}

/* The time of one call is up: its vote is unknown. What has not arrived may still do so. */
inline TimeOut(h, m) {
	master[m].call[h] == SENT || master[m].call[h] == GRANTED || master[m].call[h] == TWICE ->
	master[m].call[h] = (master[m].call[h] == GRANTED -> ENDED : LATE);
	printf("hold %d waits for master %d no longer\n", h, m)
}

inline decided(h, m) {
	master[m].call[h] = (master[m].call[h] == GRANTED -> ENDED : (master[m].call[h] == TWICE -> LATE : master[m].call[h]))
}

/* A quorum has granted, and the bound is still ahead. Nothing that is on its way is cancelled. */
inline Win(h) {
	state[h] == ASKING && granted(h) >= QUORUM && is_in_time(h) ->
	state[h] = HELD; valid[h] = bound(h);
	decided(h, 0); decided(h, 1); decided(h, 2);
	printf("hold %d is held for %d ticks\n", h, valid[h]);
	reached(RELEASED_BEFORE, state[1 - h] == OVER);
	reached(EXPIRED_BEFORE, state[1 - h] == HELD)
}

/* The attempt is lost: refused, without a quorum, too late, or its caller has left. */
inline Lose(h) {
	state[h] == ASKING ->
	reached(TOO_LATE, granted(h) >= QUORUM && valid[h] == 0);
	state[h] = OVER; valid[h] = 0;
	decided(h, 0); decided(h, 1); decided(h, 2);
	printf("hold %d is given up\n", h)
}

/* The holder is told that the hold is over before any master is. */
inline End(h) {
	state[h] == HELD ->
	state[h] = OVER; valid[h] = 0;
	printf("hold %d is over\n", h)
}

/* A master takes the release: behind the acquisition's end and, by the janitor, as often as it is asked again. */
inline Release(h, m) {
	state[h] == OVER && (is_to_go(h, m) || master[m].call[h] == SENT) && may_release(h, m) ->
	if
	:: is_to_go(h, m) -> master[m].key = FREE; master[m].keep = 0
	:: else
	fi;
	master[m].call[h] = (master[m].call[h] == SENT -> OVERTAKEN : master[m].call[h]);
	printf("hold %d is released on master %d\n", h, m)
}

inline Expire(m) {
	master[m].key != FREE && master[m].keep == 0 ->
	master[m].key = FREE;
	printf("the key expires on master %d\n", m)
}

inline pass(ticks) { ticks = (ticks > 0 -> ticks - 1 : 0) }

inline Tick() {
	pass(valid[0]); pass(valid[1]);
	pass(master[0].keep); pass(master[1].keep); pass(master[2].keep);
	printf("a tick\n")
}

/* Masters are alike, so states that differ by their order alone are one. */
#define rank(m) (((master[m].key * 4 + master[m].keep) * 8 + master[m].call[0]) * 8 + master[m].call[1])
inline swap(x, y) { x = x ^ y; y = x ^ y; x = x ^ y }
inline sort(a, b) {
	if
	:: rank(a) > rank(b) ->
		swap(master[a].key, master[b].key); swap(master[a].keep, master[b].keep);
		swap(master[a].call[0], master[b].call[0]); swap(master[a].call[1], master[b].call[1]);
		printf("swap %d %d\n", a, b)
	:: else
	fi
}

#define ON_MASTER(h, m) \
	:: d_step { Land(h, m) } \
	:: d_step { Repeat(h, m) } \
	:: d_step { TimeOut(h, m) } \
	:: d_step { Release(h, m) }
#define OF_HOLD(h) \
	:: d_step { Begin(h) } \
	:: d_step { Win(h) } \
	:: d_step { Lose(h) } \
	:: d_step { End(h) } \
	ON_MASTER(h, 0) ON_MASTER(h, 1) ON_MASTER(h, 2)

init {
	d_step { master[0].key = FREE; master[1].key = FREE; master[2].key = FREE };
	do
	:: atomic {
		if
		OF_HOLD(0)
		OF_HOLD(1)
		:: d_step { Expire(0) }
		:: d_step { Expire(1) }
		:: d_step { Expire(2) }
		:: d_step { Tick() }
		fi;
		d_step { safe(); sort(0, 1); sort(1, 2); sort(0, 1) }
	}
	od
}
