/*
 * Repair: what is set again is never taken for what was there all the time, and nothing is set again after its release.
 *
 * Three masters that may forget the key of a hold, be it on a majority; the hold is extended again and again; others take
 * the key where it is free, and give it back. There is no clock: what matters is only what comes before what.
 *
 * Left out: the bound (extend.pml); how the hold was acquired: at first two masters have its key or all three, and nothing of
 * its acquisition is on its way. Two assumptions, without which a hold that has lost its majority may be taken for one that was
 * there all the time. Masters forget between rounds, and not from the first request of an extension until the last answer to it
 * and to its repairs, or their time being up (the variant FORGETS_MEANWHILE is without). And a repair that has timed out arrives
 * before its master has taken a later request of the hold, or never (the variant REPAIR_COMES_LAST is without).
 */
#define QUORUM 2

/* What the hold is. */
#define HELD 0
#define EXTENDING 1
#define OVER 2

/* What its latest operation is on one master. There is one at a time. */
#define ENDED 0
#define EXTEND 1
#define REPAIR 2
#define GRANTED 3 /* the answer is on its way: the key is still there */
#define GONE 4    /* the key was gone, and free */

#define OURS 0
#define OTHERS 1
#define FREE 2

byte state;
bit won;   /* the last extension was */
bit freed; /* since the hold was acquired there was a moment when no quorum of masters had its key */
typedef Master {
	byte key, call;
	bit late;     /* a repair that has timed out may still arrive */
	bit unknown;  /* the key was set again, and it is not known when */
	bit released; /* the master has confirmed the release, and nothing that timed out may still arrive */
	bit repaired  /* has once been */
};
Master master[3];

#define keys() ((master[0].key == OURS) + (master[1].key == OURS) + (master[2].key == OURS))
#define is_vote(m) (master[m].call == GRANTED && !master[m].unknown)
#define votes() (is_vote(0) + is_vote(1) + is_vote(2))
#define is_quiet() (state != EXTENDING && master[0].call == ENDED && master[1].call == ENDED && master[2].call == ENDED)

#ifdef FORGETS_MEANWHILE
#define may_forget() true
#else
#define may_forget() is_quiet()
#endif
#if defined(SETS_AT_ONCE) || defined(COUNTS_AT_ONCE)
#define sets_at_once true
#else
#define sets_at_once false
#endif
#ifdef COUNTS_AT_ONCE
#define set_again GRANTED
#else
#define set_again ENDED
#endif
#ifdef REPAIRS_LOST
#define is_to_repair() (state == HELD)
#else
#define is_to_repair() (state == HELD && won)
#endif
#ifdef COUNTS_UNANSWERED
#define is_unknown 0
#else
#define is_unknown 1
#endif
#ifdef REPAIR_COMES_LAST
#define still_late(m) master[m].late
#else
#define still_late(m) 0
#endif
#ifdef RELEASE_OVERTAKES
#define may_release(m) true
#else
#define may_release(m) (master[m].call != EXTEND && master[m].call != REPAIR)
#endif

#ifndef REACHED
#define REACHED 0
#endif
#define REPAIRED 1        /* a master gets the key back */
#define REPAIR_COUNTS 2   /* an extension needs the vote of a master that was repaired */
#define LATE_REPAIR 3     /* a repair that has timed out sets the key */
#define UNTRUSTED 4       /* a master has the key, and its vote does not count */
#define TRUSTED_AGAIN 5   /* an extension that was won without that vote: the next one counts it */
#define LOST 6            /* an extension finds no quorum after masters have forgotten */
#define RELEASED_REPAIR 7 /* a release undoes a repair that had not ended when the hold was over */
#ifdef NOTE /* a search of everything says what it has reached */
c_decl { int printf(const char *, ...); char seen[16]; }
#define reached(what, when) if :: (c_expr { !seen[what] } && (when)) -> c_code { seen[what] = printf("reached %s\n", #what); } :: else fi
#else
#define reached(what, when) assert(REACHED != what || !(when))
#endif

inline send(m) { master[m].call = (master[m].call == REPAIR -> REPAIR : EXTEND) }

/* An extension begins; on a master that is not done with its repair it waits. What is left of the last one has timed out. */
inline Extend() {
	state == HELD && master[0].call != EXTEND && master[1].call != EXTEND && master[2].call != EXTEND ->
	state = EXTENDING; won = 0;
	send(0); send(1); send(2);
	printf("an extension begins\n")
}

/* A master takes it, in time or as a straggler of an extension that was won. */
inline LandExtend(m) {
	master[m].call == EXTEND ->
	master[m].late = still_late(m);
	if
	:: master[m].key == OURS ->
		master[m].call = (state == EXTENDING -> GRANTED : ENDED);
		master[m].unknown = (won -> 0 : master[m].unknown);
		printf("master %d still has the key\n", m)
	:: master[m].key == FREE && sets_at_once ->
		master[m].key = OURS; master[m].call = set_again;
		printf("master %d had it no more, and has it again\n", m)
	:: else ->
		master[m].call = (master[m].key == FREE -> GONE : ENDED);
		printf("master %d has it no more\n", m)
	fi
}

inline TimeOut(m) {
	master[m].call == EXTEND || master[m].call == REPAIR || master[m].call == GRANTED ->
	if
	:: master[m].call == REPAIR ->
		master[m].late = 1;
		master[m].call = (state == EXTENDING -> EXTEND : ENDED)
	:: else ->
		master[m].call = ENDED
	fi;
	printf("the call to master %d has timed out\n", m)
}

inline accept(m) {
	master[m].unknown = (master[m].call == GRANTED -> 0 : master[m].unknown);
	master[m].call = (master[m].call == GRANTED -> ENDED : master[m].call)
}

/* It is won by masters whose key was there all the time. The others that have it are trusted from now on. */
inline WinExtension() {
	state == EXTENDING && votes() >= QUORUM ->
	reached(REPAIR_COUNTS, votes() == 2 && (is_vote(0) && master[0].repaired || is_vote(1) && master[1].repaired || is_vote(2) && master[2].repaired));
	reached(TRUSTED_AGAIN, master[0].call == GRANTED && master[0].unknown || master[1].call == GRANTED && master[1].unknown || master[2].call == GRANTED && master[2].unknown);
	state = HELD; won = 1;
	accept(0); accept(1); accept(2);
	printf("it is won\n");
	assert(!freed) /* G2 */
}

inline reject(m) { master[m].call = (master[m].call == GRANTED || master[m].call == GONE -> ENDED : master[m].call) }

#ifdef REPAIRS_LOST
#define leave(m) master[m].call = (master[m].call == GRANTED -> ENDED : master[m].call)
#else
#define leave(m) reject(m)
#endif

inline LoseExtension() {
	state == EXTENDING ->
	reached(LOST, freed && (master[0].call == GRANTED || master[1].call == GRANTED || master[2].call == GRANTED));
	reached(UNTRUSTED, votes() == 1 && (master[0].call == GRANTED) + (master[1].call == GRANTED) + (master[2].call == GRANTED) >= QUORUM);
	state = HELD;
	leave(0); leave(1); leave(2);
	printf("it is lost\n")
}

inline Repair(m) {
	is_to_repair() && master[m].call == GONE ->
	master[m].call = REPAIR; master[m].unknown = is_unknown;
	printf("a repair is sent to master %d\n", m)
}

/* A master takes a repair, and its answer is read. */
inline LandRepair(m) {
	master[m].call == REPAIR ->
	reached(REPAIRED, master[m].key == FREE);
	reached(RELEASED_REPAIR, state == OVER);
	if
	:: master[m].key == FREE ->
		printf("master %d sets the key again\n", m);
		assert(!master[m].released); /* nothing is set again after its release */
		master[m].key = OURS; master[m].repaired = 1
	:: else
	fi;
	master[m].unknown = 0; master[m].late = still_late(m);
	master[m].call = (state == EXTENDING -> EXTEND : ENDED);
	printf("master %d is repaired\n", m)
}

inline LandLate(m) {
	master[m].late ->
	master[m].late = 0;
	reached(LATE_REPAIR, master[m].key == FREE && state != OVER);
	if
	:: master[m].key == FREE -> master[m].key = OURS; master[m].repaired = 1
	:: else
	fi;
	printf("a late repair arrives at master %d\n", m)
}

inline End() {
	state != OVER ->
	state = OVER; won = 0;
	reject(0); reject(1); reject(2);
	printf("the hold is over\n")
}

/* A master takes the release, behind what came before. The janitor asks again while something may still arrive. */
inline Release(m) {
	state == OVER && !master[m].released && may_release(m) ->
	master[m].key = (master[m].key == OURS -> FREE : master[m].key);
	master[m].released = !master[m].late;
	printf("the key is released on master %d\n", m)
}

inline Forget(m) {
	master[m].key != FREE && may_forget() ->
	master[m].key = FREE;
	printf("master %d forgets the key\n", m)
}

inline OthersTake(m) {
	master[m].key == FREE ->
	master[m].key = OTHERS;
	printf("somebody else gets the key on master %d\n", m)
}

inline OthersRelease(m) {
	master[m].key == OTHERS ->
	master[m].key = FREE;
	printf("and gives it back on master %d\n", m)
}

/* What has become of the hold; what has no meaning any more must not tell states apart. */
inline note() {
	freed = freed || state != OVER && keys() < 2;
	if
	:: state == OVER -> freed = 0
	:: else
	fi
}

#define rank(m) (((((master[m].key * 8 + master[m].call) * 2 + master[m].late) * 2 + master[m].unknown) * 2 + master[m].released) * 2 + master[m].repaired)
inline swap(x, y) { x = x ^ y; y = x ^ y; x = x ^ y }
inline sort(a, b) {
	if
	:: rank(a) > rank(b) ->
		swap(master[a].key, master[b].key); swap(master[a].call, master[b].call); swap(master[a].late, master[b].late);
		swap(master[a].unknown, master[b].unknown); swap(master[a].released, master[b].released);
		swap(master[a].repaired, master[b].repaired);
		printf("swap %d %d\n", a, b)
	:: else
	fi
}

#define ON_MASTER(m) \
	:: d_step { LandExtend(m) } \
	:: d_step { TimeOut(m) } \
	:: d_step { Repair(m) } \
	:: d_step { LandRepair(m) } \
	:: d_step { LandLate(m) } \
	:: d_step { Release(m) } \
	:: d_step { Forget(m) } \
	:: d_step { OthersTake(m) } \
	:: d_step { OthersRelease(m) }

init {
	if
	:: master[2].key = OURS
	:: master[2].key = OTHERS
	:: master[2].key = FREE
	fi;
	do
	:: atomic {
		if
		ON_MASTER(0)
		ON_MASTER(1)
		ON_MASTER(2)
		:: d_step { Extend() }
		:: d_step { WinExtension() }
		:: d_step { LoseExtension() }
		:: d_step { End() }
		fi;
		d_step { note(); sort(0, 1); sort(1, 2); sort(0, 1) }
	}
	od
}
