/*
 * Extend: the bound of a hold moves only while a quorum of masters has had its key all the time.
 *
 * Three masters, one hold that is acquired once and extended as often as it likes, by a whole ttl or by less, and a rival
 * that acquires and releases the key again and again. Rules, messages, ticks and drift are those of acquire.pml.
 *
 * Left out: masters that forget, and with them what a repair must not be taken for (repair.pml); the rival's messages, which
 * arrive at once or never; renewals, which are extensions; two extensions at once, which take turns.
 */
#define TTL 3
#define DRIFT 1
#define KEEP (TTL - DRIFT)
#define VALID (TTL - DRIFT)
#define LESS 1 /* ticks that a shorter extension asks for */

#ifdef HALF_QUORUM
#define QUORUM 1
#else
#define QUORUM 2
#endif

/* What the hold is. */
#define ASKING 0
#define HELD 1
#define EXTENDING 2 /* held, and a round is under way that extends it */
#define OVER 3

/* What its latest operation is on one master. There is one at a time. */
#define ENDED 0
#define ACQUIRE 1 /* the request is on its way, and waited for */
#define EXTEND 2
#define REPAIR 3
#define GRANTED 4 /* the answer of an acquisition or extension is on its way */
#define GONE 5    /* an extension did not find the key, nor anybody else's */

/* What may still arrive there of operations that have ended without an answer. */
#define NOTHING 0
#define EXTENDS 1
#define SETS 2

#define OURS 0
#define RIVALS 1
#define FREE 2

byte state;
byte valid; /* ticks to the bound */
byte asked; /* ticks that the extension asks for */
byte next;  /* ticks to the bound that it would earn */
bit asks, has; /* the rival is acquiring; has acquired */
byte rivals;   /* ticks to the rival's bound */
bit other;     /* the rival has had the lock since the hold was acquired */
typedef Master {
	byte key, keep, call, late
};
Master master[3];

#define granted() ((master[0].call == GRANTED) + (master[1].call == GRANTED) + (master[2].call == GRANTED))
#define keys(who) ((master[0].key == who) + (master[1].key == who) + (master[2].key == who))
#define is_held() ((state == HELD || state == EXTENDING) && valid > 0)
#define max(a, b) (a > b -> a : b)

#ifdef LATE_EXTENSION
#define is_in_time() true
#else
#define is_in_time() (valid > 0)
#endif
#ifdef FROM_THE_ANSWER
#define earned() asked
#else
#define earned() next
#endif
#ifdef SHORTENS
#define longer(ticks, more) more
#else
#define longer(ticks, more) max(ticks, more)
#endif

#ifndef REACHED
#define REACHED 0
#endif
#define EXTENDED 1       /* an extension moves the bound */
#define EXTENDED_LESS 2  /* one by less leaves it */
#define REPAIRED 3       /* a master gets the key back that it had not */
#define TOO_LATE 4       /* a quorum has extended, and the bound has passed */
#define STRAGGLER 5      /* an acquisition arrives while the hold is extended */
#define EXPIRED 6        /* the rival has the lock of a hold that is over by the clock alone */
#ifdef NOTE /* a search of everything says what it has reached */
c_decl { int printf(const char *, ...); char seen[16]; }
#define reached(what, when) if :: (c_expr { !seen[what] } && (when)) -> c_code { seen[what] = printf("reached %s\n", #what); } :: else fi
#else
#define reached(what, when) assert(REACHED != what || !(when))
#endif

/* G1, and why. */
#ifdef BROKEN
#define has_quorum(who) true /* two holders are looked for */
#else
#define has_quorum(who) (keys(who) >= 2)
#endif
inline safe() {
	assert(!is_held() || has_quorum(OURS));
	assert(!(has && rivals > 0) || has_quorum(RIVALS));
	assert(!(is_held() && has && rivals > 0))
}

/* What comes behind an operation that has ended: the extension that had to wait for it. */
#define follow() (state == EXTENDING -> EXTEND : ENDED)

/* A master takes the acquisition, or a repair: SET NX, or at least ttl from now. */
inline Set(m) {
	master[m].call == ACQUIRE || master[m].call == REPAIR ->
	reached(STRAGGLER, master[m].call == ACQUIRE && state == EXTENDING);
	reached(REPAIRED, master[m].call == REPAIR && master[m].key == FREE);
	if
	:: master[m].key == FREE || master[m].key == OURS ->
		master[m].key = OURS; master[m].keep = max(master[m].keep, KEEP);
		master[m].call = (state == ASKING -> GRANTED : follow());
		printf("master %d sets the key\n", m)
	:: else ->
		master[m].call = follow();
		printf("master %d has another's key\n", m)
	fi
}

/* The time of one call is up. What has not arrived may still do so. */
inline TimeOut(m) {
	ACQUIRE <= master[m].call && master[m].call <= GRANTED ->
	if
	:: master[m].call == ACQUIRE || master[m].call == REPAIR -> master[m].late = SETS; master[m].call = follow()
	:: master[m].call == EXTEND -> master[m].late = max(master[m].late, EXTENDS); master[m].call = ENDED
	:: master[m].call == GRANTED -> master[m].call = ENDED
	fi;
	printf("the call to master %d has timed out\n", m)
}

inline LandLate(m) {
	master[m].late != NOTHING ->
	if
	:: master[m].key == OURS || master[m].key == FREE && master[m].late == SETS ->
		master[m].key = OURS; master[m].keep = max(master[m].keep, KEEP);
		printf("a late request gives master %d the key for a whole ttl\n", m)
	:: else
	fi;
	master[m].late = NOTHING
}

inline read(m) { master[m].call = (master[m].call == GRANTED -> ENDED : master[m].call) }

inline Win() {
	state == ASKING && granted() >= 2 && valid > 0 ->
	state = HELD; read(0); read(1); read(2);
	printf("the hold is held for %d ticks\n", valid)
}

inline send(m) { master[m].call = (master[m].call == ENDED || master[m].call == GONE -> EXTEND : master[m].call) }

/* An extension begins, unless the bound has passed. On a master that is not done with an earlier operation it waits. */
inline Extend(ticks) {
	state == HELD && valid > 0 && master[0].call != EXTEND && master[1].call != EXTEND && master[2].call != EXTEND ->
	state = EXTENDING; asked = ticks; next = ticks;
	send(0); send(1); send(2);
	printf("an extension by %d ticks begins\n", ticks)
}

/* A master takes it: where the key is still there, it lives at least so long from now. */
inline LandExtend(m) {
	master[m].call == EXTEND ->
	if
	:: master[m].key == OURS ->
		master[m].keep = longer(master[m].keep, asked);
		master[m].call = (state == EXTENDING -> GRANTED : ENDED);
		printf("master %d still has the key\n", m)
	:: else ->
		master[m].call = (master[m].key == FREE -> GONE : ENDED);
		printf("master %d has it no more\n", m)
	fi
}

/* A quorum still had the key, and the old bound is ahead. The bound never moves back. */
inline WinExtension() {
	state == EXTENDING && granted() >= QUORUM && is_in_time() ->
	reached(EXTENDED, earned() > valid);
	reached(EXTENDED_LESS, asked < valid);
	state = HELD; valid = max(valid, earned());
	read(0); read(1); read(2);
	printf("it is won: the hold is held for %d ticks\n", valid);
	assert(!other) /* G2 */
}

/* It is lost, or nobody knows: the old bound stays. Nothing is repaired. */
inline LoseExtension() {
	state == EXTENDING ->
	reached(TOO_LATE, granted() >= QUORUM && valid == 0);
	state = HELD; read(0); read(1); read(2);
	master[0].call = (master[0].call == GONE -> ENDED : master[0].call);
	master[1].call = (master[1].call == GONE -> ENDED : master[1].call);
	master[2].call = (master[2].call == GONE -> ENDED : master[2].call);
	printf("it is lost\n")
}

/* Behind an extension that was won: a master that has lost the key gets it back. */
inline Repair(m) {
	state == HELD && valid > 0 && master[m].call == GONE ->
	master[m].call = REPAIR;
	printf("a repair is sent to master %d\n", m)
}

inline End() {
	state != OVER ->
	state = OVER; valid = 0; read(0); read(1); read(2);
	printf("the hold is over\n")
}

inline Release(m) {
	state == OVER && (master[m].call == ENDED || master[m].call == GONE) && master[m].key == OURS ->
	master[m].key = FREE; master[m].keep = 0;
	printf("the key is released on master %d\n", m)
}

inline RivalBegins() {
	!asks && !has && keys(RIVALS) == 0 ->
	asks = 1; rivals = VALID;
	printf("the rival asks\n")
}

inline RivalTakes(m) {
	asks && master[m].key == FREE ->
	master[m].key = RIVALS; master[m].keep = KEEP;
	printf("master %d grants to the rival\n", m)
}

inline RivalWins() {
	asks && keys(RIVALS) >= 2 && rivals > 0 ->
	asks = 0; has = 1; other = other || state == HELD || state == EXTENDING;
	reached(EXPIRED, state == HELD);
	printf("the rival has the lock for %d ticks\n", rivals)
}

inline RivalEnds() {
	asks || has ->
	asks = 0; has = 0; rivals = 0;
	printf("the rival is done\n")
}

inline RivalReleases(m) {
	!asks && !has && master[m].key == RIVALS ->
	master[m].key = FREE; master[m].keep = 0;
	printf("the rival releases master %d\n", m)
}

inline Expire(m) {
	master[m].key != FREE && master[m].keep == 0 ->
	master[m].key = FREE;
	printf("the key expires on master %d\n", m)
}

inline pass(ticks) { ticks = (ticks > 0 -> ticks - 1 : 0) }

inline Tick() {
	pass(valid); pass(next); pass(rivals);
	pass(master[0].keep); pass(master[1].keep); pass(master[2].keep);
	printf("a tick\n")
}

#define rank(m) (((master[m].key * 4 + master[m].keep) * 8 + master[m].call) * 4 + master[m].late)
inline swap(x, y) { x = x ^ y; y = x ^ y; x = x ^ y }
inline sort(a, b) {
	if
	:: rank(a) > rank(b) ->
		swap(master[a].key, master[b].key); swap(master[a].keep, master[b].keep);
		swap(master[a].call, master[b].call); swap(master[a].late, master[b].late);
		printf("swap %d %d\n", a, b)
	:: else
	fi
}

/* What has no meaning any more must not tell states apart. */
inline tidy() {
	if
	:: state != EXTENDING -> next = 0; asked = (state == OVER -> 0 : asked)
	:: else
	fi
}

#define ON_MASTER(m) \
	:: d_step { Set(m) } \
	:: d_step { TimeOut(m) } \
	:: d_step { LandLate(m) } \
	:: d_step { LandExtend(m) } \
	:: d_step { Repair(m) } \
	:: d_step { Release(m) } \
	:: d_step { RivalTakes(m) } \
	:: d_step { RivalReleases(m) } \
	:: d_step { Expire(m) }

init {
	d_step {
		valid = VALID;
		master[0].key = FREE; master[1].key = FREE; master[2].key = FREE;
		master[0].call = ACQUIRE; master[1].call = ACQUIRE; master[2].call = ACQUIRE;
		
	};
	do
	:: atomic {
		if
		ON_MASTER(0)
		ON_MASTER(1)
		ON_MASTER(2)
		:: d_step { Win() }
		:: d_step { Extend(LESS) }
		:: d_step { Extend(VALID) }
		:: d_step { WinExtension() }
		:: d_step { LoseExtension() }
		:: d_step { End() }
		:: d_step { RivalBegins() }
		:: d_step { RivalWins() }
		:: d_step { RivalEnds() }
		:: d_step { Tick() }
		fi;
		d_step { safe(); tidy(); sort(0, 1); sort(1, 2); sort(0, 1) }
	}
	od
}
