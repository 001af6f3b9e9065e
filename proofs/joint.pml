/*
 * Joint configurations: while masters are exchanged, neighbours exclude each other, and a client that was forgotten stops.
 *
 * One master becomes three: {0} is the old set and {0, 1, 2} the new one, so that a master is in both, and majorities of them
 * that share none are there. Three clients acquire, extend and release the key again and again: one of the old configuration
 * (generation 1), which was forgotten, one of the joint (2) and one of the new one (3). The operator announces generation 3, waits, and lets the new client begin. Ticks are those of
 * acquire.pml, without drift.
 *
 * Left out: other sets (quorum_joint_test.go tries every pair of small ones); messages that are on their way (acquire.pml); the joint client's generation, which is never out of date here;
 * tokens; masters that come back empty, which docs/operate/membership.md excludes for as long as a forgotten client may be there.
 */
#define TTL 2
#define VALID TTL
#define FRESH 2 /* for how many ticks an answer about the generation holds */

#define OLD_QUORUM 1
#define of_old(is) (is(0))
#define of_new(is) (is(0) + is(1) + is(2))
#define is_old(m) (m == 0)
#define NEW_QUORUM 2

#define FREE 3
#define OLD 0
#define JOINT 1
#define NEW 2

/* What a client does. */
#define IDLE 0
#define READY 1 /* the old client alone: it knows that its generation is not out of date, and has not asked yet */
#define ASKING 2
#define HELD 3

/* What the operator has done. */
#define BEFORE 0
#define WAITING 1 /* generation 3 was announced */
#define EXCHANGED 2

byte state[3];
byte valid[3]; /* ticks to its bound */
byte fresh;    /* for how long the old client takes its generation for current */
bit outdated;  /* it knows better */
bit asks;      /* it is asking, */
byte asked;    /* and the answers hold for so long yet */
byte step;
byte wait;
typedef Master {
	byte key, keep;
	bit told; /* generation 3 */
	bit said  /* the old client that it was not */
};
Master master[3];

#define is_of_old(m) (master[m].key == OLD)
#define is_of_joint(m) (master[m].key == JOINT)
#define is_of_new(m) (master[m].key == NEW)
#define is_told(m) master[m].told
#define has_said(m) master[m].said
#define has_old_quorum(is) (of_old(is) >= OLD_QUORUM)
#define has_new_quorum(is) (of_new(is) >= NEW_QUORUM)
#define is_held(c) (state[c] == HELD && valid[c] > 0)
#define keys(c) ((master[0].key == c) + (master[1].key == c) + (master[2].key == c))

#ifdef ONE_SET_DECIDES
#define joint_wins (has_old_quorum(is_of_joint) || has_new_quorum(is_of_joint))
#endif
#ifdef MAJORITY_OF_ALL
#define joint_wins (of_new(is_of_joint) >= 2) /* of {0, 1, 2}, which are all */
#endif
#ifndef joint_wins
#define joint_wins (has_old_quorum(is_of_joint) && has_new_quorum(is_of_joint))
#endif
#define wins(c) (c == OLD && has_old_quorum(is_of_old) || c == JOINT && joint_wins || c == NEW && has_new_quorum(is_of_new))
#ifdef GENERATION_NOT_CHECKED
#define is_current(c) true
#else
#define is_current(c) (c != OLD || !outdated && fresh > 0)
#endif
#ifdef FRESH_FROM_THE_ANSWER
#define freshness() FRESH
#else
#define freshness() asked
#endif
#ifdef PAUSE_NOT_COUNTED
#define validity(c) VALID
#else
#define validity(c) valid[c]
#endif
#ifdef ANNOUNCED_TO_NEW
#define is_announced() has_new_quorum(is_told)
#else
#define is_announced() (has_old_quorum(is_told) && has_new_quorum(is_told))
#endif
#ifdef NO_WAIT
#define WAIT 0
#else
#define WAIT (TTL + FRESH)
#endif
#ifdef OLD_AND_NEW
#define may_begin(c) true
#else
#define may_begin(c) (c != NEW || step == EXCHANGED)
#endif

#ifndef REACHED
#define REACHED 0
#endif
#define JOINT_AFTER_OLD 1 /* the joint client holds the key behind an old hold that has expired */
#define NEW_AFTER_JOINT 2 /* the new client behind a joint one */
#define STOPPED 3         /* the old client would acquire, and has learnt that it is out of date */
#define UNAWARE 4         /* it has not learnt that, and does not acquire because its last answer is too old */
#define EXTENDED 5        /* the joint client extends its lock after the exchange */
#define LATE_OLD 6        /* the old client holds the key after the announcement */
#ifdef NOTE /* a search of everything says what it has reached */
c_decl { int printf(const char *, ...); char seen[16]; }
#define reached(what, when) if :: (c_expr { !seen[what] } && (when)) -> c_code { seen[what] = printf("reached %s\n", #what); } :: else fi
#else
#define reached(what, when) assert(REACHED != what || !(when))
#endif

/* The old client asks its masters what generation they know. */
inline Ask() {
	!outdated && !asks ->
	asks = 1; asked = FRESH;
	printf("the old client asks for the generation\n")
}

inline Answer(m) {
	asks && is_old(m) && !master[m].said && !outdated ->
	if
	:: master[m].told ->
		outdated = 1; asks = 0; asked = 0; fresh = 0;
		master[0].said = 0; master[1].said = 0; master[2].said = 0;
		printf("master %d tells it that generation 3 is in use\n", m)
	:: else ->
		master[m].said = 1;
		printf("master %d knows none that is two ahead\n", m)
	fi
}

/* A quorum of its set has answered. It holds from before the question. */
inline Learn() {
	asks && has_old_quorum(has_said) ->
	fresh = (fresh > freshness() -> fresh : freshness());
	asks = 0; asked = 0;
	master[0].said = 0; master[1].said = 0; master[2].said = 0;
	printf("so it is current for %d ticks\n", fresh)
}

/* The validity counts from the reading of the clock by which the configuration was current. */
inline Check(c) {
	state[c] == IDLE && keys(c) == 0 && may_begin(c) && is_current(c) ->
	state[c] = (c == OLD -> READY : ASKING); valid[c] = VALID;
	printf("client %d may acquire\n", c)
}

inline Stop() {
	state[OLD] == IDLE && !is_current(OLD) ->
	reached(STOPPED, outdated && step == EXCHANGED);
	reached(UNAWARE, !outdated && step == EXCHANGED);
	printf("the old client does not acquire\n")
}

inline Begin(c) {
	c == OLD && state[c] == READY ->
	state[c] = ASKING; valid[c] = validity(c);
	printf("client %d asks its masters\n", c)
}

inline Land(c, m) {
	state[c] == ASKING && master[m].key == FREE && (c != OLD || is_old(m)) ->
	master[m].key = c; master[m].keep = TTL;
	printf("master %d grants to client %d\n", m, c)
}

#define holders() (is_held(OLD) + is_held(JOINT) + is_held(NEW))

inline Win(c) {
	state[c] == ASKING && valid[c] > 0 && wins(c) ->
	reached(JOINT_AFTER_OLD, c == JOINT && state[OLD] == HELD);
	reached(NEW_AFTER_JOINT, c == NEW && state[JOINT] == HELD);
	reached(LATE_OLD, c == OLD && step == WAITING);
	state[c] = HELD;
	printf("client %d holds the key for %d ticks\n", c, valid[c]);
	assert(holders() == 1); /* G1 */
	assert(c != OLD || step != EXCHANGED) /* who was forgotten has stopped */
}

inline extend_on(c, m) { master[m].keep = (master[m].key == c -> TTL : master[m].keep) }

/* An extension, as if it took no time: the masters still have the key. */
inline Extend(c) {
	is_held(c) && valid[c] < VALID && wins(c) && is_current(c) ->
	reached(EXTENDED, c == JOINT && step == EXCHANGED);
	valid[c] = VALID;
	extend_on(c, 0); extend_on(c, 1); extend_on(c, 2);
	printf("client %d extends its lock\n", c);
	assert(holders() == 1)
}

/* The attempt is lost, or the hold over. */
inline End(c) {
	state[c] != IDLE ->
	state[c] = IDLE; valid[c] = 0;
	printf("client %d is done\n", c)
}

inline Release(c, m) {
	state[c] == IDLE && master[m].key == c ->
	master[m].key = FREE; master[m].keep = 0;
	printf("client %d releases the key on master %d\n", c, m)
}

inline Announce(m) {
	!master[m].told ->
	master[m].told = 1;
	printf("master %d is told generation 3\n", m)
}

/* A quorum of each set keeps it. From now on it is waited. */
inline Announced() {
	step == BEFORE && is_announced() ->
	step = WAITING; wait = WAIT;
	printf("it is announced\n")
}

inline Exchange() {
	step == WAITING && wait == 0 ->
	step = EXCHANGED;
	printf("new clients may begin\n")
}

inline Expire(m) {
	master[m].key != FREE && master[m].keep == 0 ->
	master[m].key = FREE;
	printf("the key expires on master %d\n", m)
}

inline pass(ticks) { ticks = (ticks > 0 -> ticks - 1 : 0) }

inline Tick() {
	pass(valid[0]); pass(valid[1]); pass(valid[2]); pass(fresh); pass(asked); pass(wait);
	pass(master[0].keep); pass(master[1].keep); pass(master[2].keep);
	printf("a tick\n")
}

#define rank(m) (((master[m].key * 4 + master[m].keep) * 2 + master[m].told) * 2 + master[m].said)
inline swap(x, y) { x = x ^ y; y = x ^ y; x = x ^ y }
inline sort(a, b) {
	if
	:: rank(a) > rank(b) ->
		swap(master[a].key, master[b].key); swap(master[a].keep, master[b].keep);
		swap(master[a].told, master[b].told); swap(master[a].said, master[b].said);
		printf("swap %d %d\n", a, b)
	:: else
	fi
}

#define BY(c, m) \
	:: d_step { Land(c, m) } \
	:: d_step { Release(c, m) }
#define OF(c) \
	:: d_step { Check(c) } \
	:: d_step { Begin(c) } \
	:: d_step { Win(c) } \
	:: d_step { Extend(c) } \
	:: d_step { End(c) } \
	BY(c, 0) BY(c, 1) BY(c, 2)
#define ON(m) \
	:: d_step { Answer(m) } \
	:: d_step { Announce(m) } \
	:: d_step { Expire(m) }

init {
	d_step { master[0].key = FREE; master[1].key = FREE; master[2].key = FREE };
	do
	:: atomic {
		if
		OF(OLD)
		OF(JOINT)
		OF(NEW)
		ON(0)
		ON(1)
		ON(2)
		:: d_step { Ask() }
		:: d_step { Learn() }
		:: d_step { Stop() }
		:: d_step { Announced() }
		:: d_step { Exchange() }
		:: d_step { Tick() }
		fi;
		d_step { sort(1, 2) }
	}
	od
}
