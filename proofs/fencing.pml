/*
 * Fencing: tokens are unique, and follow the order of acquisitions. No clock appears.
 *
 * Three masters and two fenced acquisitions of one key; attempts of others that fail raise counters at any moment, ATTEMPTS
 * times. A master's key may expire at any moment, also while its hold is held: who has it does not matter here. Proposals are 1 or 2, whatever clients' wall clocks say. A request goes out as
 * the library's pipeline, SET NX and then ZADD GT, between which others' may come, and the script behind it where that is not
 * enough. An answer may be lost, and its request sent again. The first acquisition may be of a lock that is passed on inside its process: it
 * gets one token more, by the script alone.
 *
 * Left out: the end of a counter's retention, which is longer than all that happens here; masters that lose their counters
 * (docs/understand/fencing.md says what remains then); a second raise, which is another one like the first; repairs and extensions, which
 * raise counters, too; and requests that arrive when their acquisition is over: they only make counters grow.
 */
#define REPEATS 1 /* requests that are sent again */
#define ATTEMPTS 1

/* What an acquisition is. */
#define IDLE 0
#define ASKING 1
#define RAISING 2
#define OVER 3 /* it has got its token or none, and is forgotten */

/* What its latest operation is on one master. */
#define NONE 0    /* nothing is on its way, and there is no grant */
#define SENT 1    /* the acquisition is on its way */
#define HALF 2    /* its SET NX has set the key, its ZADD is next */
#define GRANTED 3 /* the answer is on its way, with the number that was accepted */
#define RAISE 4   /* the raise is on its way */
#define ACCEPTED 5

#define FREE 2

byte state[2];
byte proposal[2];
byte before[2]; /* the greatest token that had been returned when it began */
byte wanted[2]; /* the number that its raise asks for */
byte spare[2];  /* how many tokens it gets behind its own */
byte least;     /* the token that was returned first */
byte first;     /* the greatest of those returned first */
byte repeats, attempts;
typedef Master {
	byte key; /* whose it is */
	byte counter;
	byte call[2];
	byte number[2] /* that was accepted */
};
Master master[3];

#define max(a, b) (a > b -> a : b)
#define number(h, m) master[m].number[h]
#define is_going_on() (state[0] != OVER || state[1] != OVER)
#define is_granted(h, m) (master[m].call[h] == GRANTED)
#define has_accepted(h, m) (master[m].call[h] == ACCEPTED)

#ifdef NO_RAISE
#define agree(h, a, b) true
#else
#define agree(h, a, b) (number(h, a) == number(h, b))
#endif
#ifdef FIRST_REPLY
#define candidate(h, a, b) number(h, a)
#define is_agreed(h, a, b) true
#else
#define candidate(h, a, b) max(number(h, a), number(h, b))
#define is_agreed(h, a, b) agree(h, a, b)
#endif
#ifdef HALF_RAISE
#define enough 1
#else
#define enough 2
#endif
#define may_raise(h, m) (master[m].counter < wanted[h])
#ifdef NO_RETENTION
#define forget_counter(m) master[m].counter = 0
#else
#define forget_counter(m) skip
#endif
#ifdef REPEATED_AS_IT_IS
#define counted_on(h, m) (master[m].key == h -> max(master[m].counter, proposal[h]) : max(master[m].counter + 1, proposal[h]))
#else
#define counted_on(h, m) max(master[m].counter + 1, proposal[h])
#endif

#ifdef SPARE_NOT_COUNTED
#define counted_spare(h) 0
#else
#define counted_spare(h) spare[h]
#endif
#ifdef SPARE_BY_PIPELINE
#define by_pipeline(h) true
#else
#define by_pipeline(h) (spare[h] == 0)
#endif

#ifndef REACHED
#define REACHED 0
#endif
#define AGREED 1        /* a token that a quorum returned at once, behind an earlier one */
#define RAISED 2        /* a token that took a raise */
#define RAISE_REFUSED 3 /* a raise meets a counter that has grown meanwhile */
#define REPEATED 4      /* a repeated request finds its own key and gets another number */
#define INTERLEAVED 5   /* a counter was raised between SET NX and ZADD */
#define TWO_AT_ONCE 6   /* a token is returned while another acquisition has a grant */
#define SPARE_AGREED 7  /* a token is returned with one behind it */
#define SPARE_RAISED 8  /* that takes a raise */
#define BEHIND_SPARE 9  /* a token is returned behind such ones */
#ifdef NOTE /* a search of everything says what it has reached */
c_decl { int printf(const char *, ...); char seen[16]; }
#define reached(what, when) if :: (c_expr { !seen[what] } && (when)) -> c_code { seen[what] = printf("reached %s\n", #what); } :: else fi
#else
#define reached(what, when) assert(REACHED != what || !(when))
#endif

/* Acquisitions are alike: they begin in order. */
inline Begin(h, p, more) {
	state[h] == IDLE && (h == 0 || state[0] != IDLE) ->
	state[h] = ASKING; proposal[h] = p; spare[h] = more; before[h] = first;
	master[0].call[h] = SENT; master[1].call[h] = SENT; master[2].call[h] = SENT;
	printf("acquisition %d begins and proposes %d, and %d more\n", h, p, more)
}

/* A master takes the pipeline's SET NX: the key is set, or the request is refused. */
inline SetNX(h, m) {
	master[m].call[h] == SENT && master[m].key != h && by_pipeline(h) ->
	if
	:: master[m].key == FREE -> master[m].key = h; master[m].call[h] = HALF; printf("master %d sets the key of %d\n", m, h)
	:: else -> master[m].call[h] = NONE
	fi
}

/* And its ZADD XX GT CH: the proposal is accepted if the counter is there and below it; if not, Script follows. */
inline ZAdd(h, m) {
	master[m].call[h] == HALF && master[m].counter > 0 && master[m].counter < proposal[h] + spare[h] ->
	master[m].counter = proposal[h] + spare[h];
	number(h, m) = proposal[h]; master[m].call[h] = GRANTED;
	printf("master %d accepts %d of %d\n", m, number(h, m), h)
}

/* A master takes the script: it grants what is free or the owner's, and accepts a number above its counter. */
inline Script(h, m) {
	(master[m].call[h] == SENT || master[m].call[h] == HALF) && (master[m].key == FREE || master[m].key == h) ->
	reached(REPEATED, master[m].call[h] == SENT && master[m].key == h);
	reached(INTERLEAVED, master[m].call[h] == HALF && master[m].counter >= proposal[h]);
	number(h, m) = counted_on(h, m);
	master[m].key = h;
	master[m].counter = number(h, m) + counted_spare(h); master[m].call[h] = GRANTED;
	printf("master %d accepts %d of %d\n", m, number(h, m), h)
}

/* The key may be another's before the script comes. */
inline Refuse(h, m) {
	(master[m].call[h] == HALF || master[m].call[h] == SENT && !by_pipeline(h)) && master[m].key != FREE && master[m].key != h ->
	master[m].call[h] = NONE;
	printf("master %d refuses %d\n", m, h)
}

/* The answer is lost, and the request is sent again. */
inline Repeat(h, m) {
	repeats < REPEATS && state[h] == ASKING && is_granted(h, m) ->
	repeats++;
	master[m].call[h] = SENT; number(h, m) = 0;
	printf("the answer of master %d to %d is lost, and it is asked again\n", m, h)
}

inline clear(h, m) { master[m].call[h] = NONE; number(h, m) = 0 }

inline over(h) {
	state[h] = OVER; proposal[h] = 0; spare[h] = 0; before[h] = 0; wanted[h] = 0;
	clear(h, 0); clear(h, 1); clear(h, 2)
}

/* An acquisition gets its token and those behind it. G3: nobody else has one of them, and they are above those that had been returned when
 * it began. */
inline give(h) {
	printf("%d gets token %d and %d more\n", h, wanted[h], spare[h]);
	reached(BEHIND_SPARE, first > least);
	assert(wanted[h] > before[h]);
	assert(wanted[h] > first || wanted[h] + spare[h] < least);
	least = wanted[h]; first = wanted[h] + spare[h]
}

/* A quorum has granted, a and b, and returned the same number: that is the token. */
inline Agree(h, a, b) {
	state[h] == ASKING && is_granted(h, a) && is_granted(h, b) && is_agreed(h, a, b) ->
	reached(AGREED, first > 0);
	reached(SPARE_AGREED, spare[h] > 0);
	reached(TWO_AT_ONCE, h == 1 && (is_granted(0, a) || is_granted(0, b) || is_granted(0, 3 - a - b)));
	wanted[h] = candidate(h, a, b);
	give(h);
	over(h)
}

inline ask_raise(h, m) { master[m].call[h] = RAISE; number(h, m) = 0 }

/* They have returned different numbers: one above both is asked for. A master takes it behind the acquisition. */
inline Raise(h, a, b) {
	state[h] == ASKING && is_granted(h, a) && is_granted(h, b) && !is_agreed(h, a, b) ->
	state[h] = RAISING; wanted[h] = candidate(h, a, b) + spare[h] + 1;
	ask_raise(h, 0); ask_raise(h, 1); ask_raise(h, 2);
	printf("%d asks for %d\n", h, wanted[h])
}

/* A master takes the raise, where the key is still the owner's. */
inline LandRaise(h, m) {
	master[m].call[h] == RAISE ->
	reached(RAISE_REFUSED, master[m].key == h && !may_raise(h, m));
	if
	:: master[m].key == h && may_raise(h, m) ->
		master[m].counter = wanted[h] + counted_spare(h); master[m].call[h] = ACCEPTED;
		printf("master %d accepts %d of %d\n", m, wanted[h], h)
	:: else ->
		master[m].call[h] = NONE;
		printf("master %d does not accept %d of %d\n", m, wanted[h], h)
	fi
}

inline WinRaise(h) {
	state[h] == RAISING && has_accepted(h, 0) + has_accepted(h, 1) + has_accepted(h, 2) >= enough ->
	reached(RAISED, true);
	reached(SPARE_RAISED, spare[h] > 0);
	give(h);
	over(h)
}

inline Lose(h) {
	state[h] == ASKING || state[h] == RAISING ->
	over(h);
	printf("%d is given up\n", h)
}

/* Somebody else's attempt is granted here and there, and fails. */
inline Others(m) {
	attempts < ATTEMPTS && is_going_on() ->
	attempts++; master[m].counter++;
	printf("another attempt raises the counter of master %d to %d\n", m, master[m].counter)
}

/* The key expires, or is released. The counter is kept. */
inline Expire(m) {
	master[m].key != FREE && is_going_on() ->
	master[m].key = FREE; forget_counter(m);
	printf("the key is gone on master %d\n", m)
}

#define rank(m) (((((master[m].key * 16 + master[m].counter) * 8 + master[m].call[0]) * 8 + master[m].call[1]) * 16 + number(0, m)) * 16 + number(1, m))
inline swap(x, y) { x = x ^ y; y = x ^ y; x = x ^ y }
inline sort(a, b) {
	if
	:: rank(a) > rank(b) ->
		swap(master[a].key, master[b].key); swap(master[a].counter, master[b].counter);
		swap(master[a].call[0], master[b].call[0]); swap(master[a].call[1], master[b].call[1]);
		swap(number(0, a), number(0, b)); swap(number(1, a), number(1, b));
		printf("swap %d %d\n", a, b)
	:: else
	fi
}

#define ON_MASTER(h, m) \
	:: d_step { SetNX(h, m) } \
	:: d_step { ZAdd(h, m) } \
	:: d_step { Script(h, m) } \
	:: d_step { Refuse(h, m) } \
	:: d_step { Repeat(h, m) } \
	:: d_step { LandRaise(h, m) }
#define BY(h, a, b) \
	:: d_step { Agree(h, a, b) } \
	:: d_step { Raise(h, a, b) }
#define OF(h) \
	:: d_step { Begin(h, 1, 0) } \
	:: d_step { Begin(h, 2, 0) } \
	:: d_step { WinRaise(h) } \
	:: d_step { Lose(h) } \
	BY(h, 0, 1) BY(h, 0, 2) BY(h, 1, 2) \
	ON_MASTER(h, 0) ON_MASTER(h, 1) ON_MASTER(h, 2)

init {
	d_step { master[0].key = FREE; master[1].key = FREE; master[2].key = FREE };
end:	do
	:: atomic {
		if
		OF(0)
		OF(1)
		:: d_step { Begin(0, 1, 1) }
		:: d_step { Begin(0, 2, 1) }
		:: d_step { Others(0) }
		:: d_step { Others(1) }
		:: d_step { Others(2) }
		:: d_step { Expire(0) }
		:: d_step { Expire(1) }
		:: d_step { Expire(2) }
		fi;
		d_step { sort(0, 1); sort(1, 2); sort(0, 1) }
	}
	od
}
