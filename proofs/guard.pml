/*
 * Restart guard: a master that comes back empty does not vote before every lock that it may have forgotten is over.
 *
 * Three masters, each of which may restart without its data as often as it likes, and two clients that acquire the key, and
 * release it or not, again and again. A restart breaks every connection. A client makes a new one, and uses it if the run that
 * it leads to has been there for the guard time. Ticks are those of acquire.pml, without drift: a guard is a whole ttl, and a
 * validity less.
 *
 * Left out: how a client finds out how old a run is (run_id, what it has observed, uptime as far as that is credible): here it
 * knows, and a clock that was set forward deceives the variant alone that believes uptime; TestTheGuardIsNeverFooledByAStepOfTheServersClock
 * is about that. Also left out: durable masters and their mark, connections that break alone, extensions, and messages that
 * are on their way: a restart loses them, and a vote that was read may be as old as its round.
 */
#define TTL 2
#define VALID TTL

#ifdef SHORT_GUARD
#define GUARD 1
#else
#define GUARD TTL
#endif

#define FREE 2

/* What a client does. */
#define IDLE 0
#define ASKING 1
#define HELD 2

byte state[2];
byte valid[2]; /* ticks to its bound */
typedef Master {
	byte key, keep;
	byte up;        /* ticks since its latest start, up to GUARD */
	bit forward;    /* its clock was set forward since then */
	byte connected; /* a bit for each client with a connection that was checked */
	byte voted      /* a bit for each client whose round it has granted */
};
Master master[3];

#define bit_of(c) (1 << (c))
#define is_connected(c, m) ((master[m].connected & bit_of(c)) != 0)
#define has_voted(c, m) ((master[m].voted & bit_of(c)) != 0)
#define votes(c) (has_voted(c, 0) + has_voted(c, 1) + has_voted(c, 2))
#define keys(c) ((master[0].key == c) + (master[1].key == c) + (master[2].key == c))
#define is_held(c) (state[c] == HELD && valid[c] > 0)

#ifdef NO_GUARD
#define is_old_enough(m) true
#endif
#ifdef BELIEVES_UPTIME
#define is_old_enough(m) (master[m].up >= GUARD || master[m].forward)
#endif
#ifndef is_old_enough
#define is_old_enough(m) (master[m].up >= GUARD)
#endif
#ifdef KEEPS_CONNECTIONS
#define what_remains(m) master[m].connected
#else
#define what_remains(m) 0
#endif

#ifndef REACHED
#define REACHED 0
#endif
#define FORGOTTEN 1   /* a hold is held that a quorum of masters has no key of any more */
#define REFUSED 2     /* a client asks a master that would grant if it were not guarded */
#define EXPIRED 3     /* a hold follows one that has expired and was not released */
#ifdef NOTE /* a search of everything says what it has reached */
c_decl { int printf(const char *, ...); char seen[16]; }
#define reached(what, when) if :: (c_expr { !seen[what] } && (when)) -> c_code { seen[what] = printf("reached %s\n", #what); } :: else fi
#else
#define reached(what, when) assert(REACHED != what || !(when))
#endif

inline Begin(c) {
	state[c] == IDLE && keys(c) == 0 ->
	state[c] = ASKING; valid[c] = VALID;
	printf("client %d begins\n", c)
}

/* A connection is made, and used if its run is old enough. */
inline Connect(c, m) {
	!is_connected(c, m) && is_old_enough(m) ->
	master[m].connected = master[m].connected | bit_of(c);
	printf("client %d has a connection to master %d\n", c, m)
}

inline Refuse(c, m) {
	state[c] == ASKING && !is_connected(c, m) && !is_old_enough(m) ->
	reached(REFUSED, master[m].key == FREE && state[1 - c] == HELD);
	printf("master %d is guarded: no vote for client %d\n", m, c)
}

inline Land(c, m) {
	state[c] == ASKING && is_connected(c, m) && !has_voted(c, m) && master[m].key == FREE ->
	master[m].key = c; master[m].keep = TTL; master[m].voted = master[m].voted | bit_of(c);
	printf("master %d grants to client %d\n", m, c)
}

inline Win(c) {
	state[c] == ASKING && votes(c) >= 2 && valid[c] > 0 ->
	state[c] = HELD;
	printf("client %d holds the key for %d ticks\n", c, valid[c]);
	reached(EXPIRED, state[1 - c] == HELD);
	assert(!(is_held(0) && is_held(1))) /* G1 */
}

/* The attempt is lost, or the hold over. */
inline End(c) {
	state[c] != IDLE ->
	state[c] = IDLE; valid[c] = 0;
	master[0].voted = master[0].voted & ~bit_of(c);
	master[1].voted = master[1].voted & ~bit_of(c);
	master[2].voted = master[2].voted & ~bit_of(c);
	printf("client %d is done\n", c)
}

inline Release(c, m) {
	state[c] == IDLE && master[m].key == c && is_connected(c, m) ->
	master[m].key = FREE; master[m].keep = 0;
	printf("client %d releases the key on master %d\n", c, m)
}

/* A master starts again, empty. */
inline Restart(m) {
	true ->
	reached(FORGOTTEN, is_held(0) && keys(0) == 1 && master[m].key == 0);
	master[m].key = FREE; master[m].keep = 0; master[m].up = 0; master[m].forward = 0;
	master[m].connected = what_remains(m);
	printf("master %d restarts empty\n", m)
}

inline SetForward(m) {
	master[m].up < GUARD ->
	master[m].forward = 1;
	printf("the clock of master %d is set forward\n", m)
}

inline Expire(m) {
	master[m].key != FREE && master[m].keep == 0 ->
	master[m].key = FREE;
	printf("the key expires on master %d\n", m)
}

inline pass(ticks) { ticks = (ticks > 0 -> ticks - 1 : 0) }
inline grow(m) {
	master[m].up = (master[m].up < GUARD -> master[m].up + 1 : GUARD);
	master[m].forward = (master[m].up < GUARD -> master[m].forward : 0)
}

inline Tick() {
	pass(valid[0]); pass(valid[1]);
	pass(master[0].keep); pass(master[1].keep); pass(master[2].keep);
	grow(0); grow(1); grow(2);
	printf("a tick\n")
}

/* Masters are alike, so states that differ by their order alone are one. */
#define rank(m) (((((master[m].key * 4 + master[m].keep) * 4 + master[m].up) * 2 + master[m].forward) * 4 + master[m].connected) * 4 + master[m].voted)
inline swap(x, y) { x = x ^ y; y = x ^ y; x = x ^ y }
inline sort(a, b) {
	if
	:: rank(a) > rank(b) ->
		swap(master[a].key, master[b].key); swap(master[a].keep, master[b].keep); swap(master[a].up, master[b].up);
		swap(master[a].forward, master[b].forward); swap(master[a].connected, master[b].connected);
		swap(master[a].voted, master[b].voted);
		printf("swap %d %d\n", a, b)
	:: else
	fi
}

#define BY(c, m) \
	:: d_step { Connect(c, m) } \
	:: d_step { Refuse(c, m) } \
	:: d_step { Land(c, m) } \
	:: d_step { Release(c, m) }
#define OF(c) \
	:: d_step { Begin(c) } \
	:: d_step { Win(c) } \
	:: d_step { End(c) } \
	BY(c, 0) BY(c, 1) BY(c, 2)
#define ON(m) \
	:: d_step { Restart(m) } \
	:: d_step { SetForward(m) } \
	:: d_step { Expire(m) }

init {
	d_step {
		master[0].key = FREE; master[1].key = FREE; master[2].key = FREE;
		master[0].up = GUARD; master[1].up = GUARD; master[2].up = GUARD
	};
	do
	:: atomic {
		if
		OF(0)
		OF(1)
		ON(0)
		ON(1)
		ON(2)
		:: d_step { Tick() }
		fi;
		d_step { sort(0, 1); sort(1, 2); sort(0, 1) }
	}
	od
}
