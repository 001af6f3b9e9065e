/*
 * Passing on: a lock that goes from one goroutine of a process to the next, without a message, is nobody else's meanwhile.
 *
 * Hold 0 is that of a Locker in which others wait: its holder may pass it on, again and again. Hold 1 is a rival's, and is as in
 * acquire.pml, as are rules, messages, ticks and drift. The holder ends before the next one is told; ticks may pass in between.
 *
 * Left out: the window, after which nothing is passed on, as it is for others to have their turn; extensions, after which nothing is passed on; who waits where, and gives up when (tests of internal/waitqueue); a second
 * hold of the same Locker, which takes another owner value and is a rival like hold 1; tokens (fencing.pml).
 */
#define TTL 3
#define DRIFT 1
#define KEEP (TTL - DRIFT)
#define VALID (TTL - DRIFT)
#define QUORUM 2

/* What a hold is. */
#define IDLE 0 /* not yet begun */
#define ASKING 1
#define HELD 2
#define OVER 3
#define PASSING 4 /* its holder has ended, and the next one is about to begin */

/* What its acquisition is on one master. */
#define ENDED 0     /* nothing is on its way: not sent yet, refused, read, or lost */
#define SENT 1      /* a request is on its way, and waited for */
#define GRANTED 2   /* the answer is on its way; an attempt that wins has read it */
#define LATE 4      /* a request is on its way that nobody waits for: it timed out, or is a copy */
#define OVERTAKEN 5 /* the release was faster; only a broken order knows this */

#define FREE 2 /* a key that is neither hold's */

byte state[2];
byte valid[2]; /* ticks to the bound, from the reading of the clock before the first byte was sent */
byte passes;   /* how often hold 0 was passed on, up to two */
typedef Master {
	byte key;     /* whose it is */
	byte keep;    /* ticks for which it is sure to be kept */
	byte call[2]; /* of either hold */
};
Master master[3];

#define is_granted(h, m) (master[m].call[h] == GRANTED)
#define granted(h) (is_granted(h, 0) + is_granted(h, 1) + is_granted(h, 2))
#define is_held(h) (state[h] == HELD && valid[h] > 0)
#define keys(h) ((master[0].key == h) + (master[1].key == h) + (master[2].key == h))

#define may_set(h, m) (master[m].key == FREE || master[m].key == h)
#define is_to_go(h, m) (master[m].key == h)
#ifdef STATES_STAY
#define may_release(h, m) (master[m].call[h] != SENT || h == 0 && passes > 0)
#else
#define may_release(h, m) (master[m].call[h] != SENT)
#endif
/* A state of interest is reached if the search that denies it fails. */
#ifndef REACHED
#define REACHED 0
#endif
#define PASSED_TWICE 1   /* a lock is passed on a second time */
#define STRAGGLER 2      /* a request of the acquisition arrives after its lock was passed on */
#define EXPIRED_BEFORE 3 /* the rival has the lock after one that was passed on, and that nobody has released */
#define RELEASED_BEFORE 4 /* the same, and it was released */
#define TOO_LATE 5        /* nothing is left of the validity when the next holder is told */
#ifdef NOTE /* a search of everything says what it has reached */
c_decl { int printf(const char *, ...); char seen[16]; }
#define reached(what, when) if :: (c_expr { !seen[what] } && (when)) -> c_code { seen[what] = printf("reached %s\n", #what); } :: else fi
#else
#define reached(what, when) assert(REACHED != what || !(when))
#endif

/* G1, and why: a quorum of masters has the key of a hold that is held, so nobody else can have a quorum. */
#ifdef BROKEN
#define has_quorum(h) true /* two holders are looked for, not only a hold that another one might join */
#else
#define has_quorum(h) (keys(h) >= 2)
#endif
inline safe() {
	assert(!is_held(0) || has_quorum(0));
	assert(!is_held(1) || has_quorum(1));
	assert(!(is_held(0) && is_held(1)))
}

/* The clock is read, then all masters are asked. */
inline Begin(h) {
	state[h] == IDLE && (true) ->
	state[h] = ASKING; valid[h] = VALID;
	master[0].call[h] = SENT; master[1].call[h] = SENT; master[2].call[h] = SENT;
	printf("hold %d asks all masters\n", h)
}

/* A master takes an acquisition: SET NX, where one's own key is a grant and lives at least ttl from now. What was granted is
 * over if the hold is, or is held without that vote. */
inline Land(h, m) {
	master[m].call[h] == SENT || master[m].call[h] == LATE || master[m].call[h] == OVERTAKEN ->
	reached(STRAGGLER, h == 0 && master[m].call[h] == SENT && state[h] == HELD && passes > 0);
	if
	:: may_set(h, m) ->
		printf("master %d grants to hold %d\n", m, h);
		assert(master[m].call[h] != OVERTAKEN); /* no release arrives before what it undoes */
		master[m].key = h; master[m].keep = KEEP;
		master[m].call[h] = (master[m].call[h] == SENT && state[h] == ASKING -> GRANTED : ENDED)
	:: else ->
		printf("master %d refuses hold %d\n", m, h);
		master[m].call[h] = ENDED
	fi
}

/* The time of one call is up: its vote is unknown. What has not arrived may still do so. */
inline TimeOut(h, m) {
	master[m].call[h] == SENT || master[m].call[h] == GRANTED ->
	master[m].call[h] = (master[m].call[h] == GRANTED -> ENDED : LATE);
	printf("hold %d waits for master %d no longer\n", h, m)
}

inline decided(h, m) {
	master[m].call[h] = (master[m].call[h] == GRANTED -> ENDED : master[m].call[h])
}

/* A quorum has granted, and the bound is still ahead. Nothing that is on its way is cancelled. */
inline Win(h) {
	state[h] == ASKING && granted(h) >= QUORUM && valid[h] > 0 ->
	state[h] = HELD;
	decided(h, 0); decided(h, 1); decided(h, 2);
	printf("hold %d is held for %d ticks\n", h, valid[h]);
	reached(RELEASED_BEFORE, h == 1 && passes > 0 && state[0] == OVER);
	reached(EXPIRED_BEFORE, h == 1 && passes > 0 && state[0] == HELD)
}

/* A holder releases while another one waits: its own hold is over. */
inline Pass() {
	state[0] == HELD && valid[0] > 0 ->
	reached(PASSED_TWICE, passes > 0);
	state[0] = PASSING;
#ifdef WHOLE_VALIDITY
	valid[0] = VALID;
#endif
	passes = (passes < 2 -> passes + 1 : 2);
	printf("hold 0 is passed on\n")
}

/* The next holder has it, for as long as the one before would have had it. */
inline Receive() {
	state[0] == PASSING ->
	reached(TOO_LATE, valid[0] == 0);
	state[0] = HELD;
	printf("the next holder has hold 0 for %d ticks\n", valid[0])
}

/* The attempt is lost: refused, without a quorum, too late, or its caller has left. */
inline Lose(h) {
	state[h] == ASKING ->
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
#define rank(m) (((master[m].key * 8 + master[m].keep) * 8 + master[m].call[0]) * 8 + master[m].call[1])
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
		:: d_step { Pass() }
		:: d_step { Receive() }
		:: d_step { Expire(0) }
		:: d_step { Expire(1) }
		:: d_step { Expire(2) }
		:: d_step { Tick() }
		fi;
		d_step { safe(); sort(0, 1); sort(1, 2); sort(0, 1) }
	}
	od
}
