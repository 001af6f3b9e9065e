// Moves the wall clock of the process it is preloaded into: CLOCK_REALTIME, gettimeofday and time, nothing else.
//
// redis-server's allocator asks for the time before the C library is ready, so nothing here may allocate, look up symbols
// or call a function that the loader has not resolved: the time comes by system call, the control file by open and mmap.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

// The control file. seq is odd during a write.
struct control {
	uint64_t seq;
	int64_t offset_ns; // added to the true time
	int64_t rate_ppb;  // and this many nanoseconds a second since base_ns
	int64_t base_ns;
};

extern char **environ;
static struct control *control;
static int tried;

static const char *setting(const char *name)
{
	for (char **e = environ; e != NULL && *e != NULL; e++) {
		const char *have = *e, *want = name;
		while (*want != 0 && *have == *want) {
			have++;
			want++;
		}
		if (*want == 0 && *have == '=')
			return have + 1;
	}
	return NULL;
}

static struct control *mapped(void)
{
	if (__atomic_load_n(&tried, __ATOMIC_ACQUIRE))
		return control;
	if (environ == NULL)
		return NULL; // too early: ask again later
	const char *path = setting("REDLOCK_CHAOS_CLOCK");
	if (path != NULL) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0) {
			void *p = mmap(NULL, sizeof(struct control), PROT_READ, MAP_SHARED, fd, 0);
			if (p != MAP_FAILED)
				control = p;
			close(fd);
		}
	}
	__atomic_store_n(&tried, 1, __ATOMIC_RELEASE);
	return control;
}

static int64_t moved(int64_t now)
{
	struct control *c = mapped();
	if (c == NULL)
		return now;
	for (;;) {
		uint64_t seq = __atomic_load_n(&c->seq, __ATOMIC_ACQUIRE);
		int64_t offset = __atomic_load_n(&c->offset_ns, __ATOMIC_RELAXED);
		int64_t rate = __atomic_load_n(&c->rate_ppb, __ATOMIC_RELAXED);
		int64_t base = __atomic_load_n(&c->base_ns, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if ((seq & 1) != 0 || seq != __atomic_load_n(&c->seq, __ATOMIC_RELAXED))
			continue;
		return now + offset + (int64_t)((__int128)(now - base) * rate / 1000000000);
	}
}

static int realtime(struct timespec *ts)
{
	long r = syscall(SYS_clock_gettime, CLOCK_REALTIME, ts);
	if (r != 0)
		return (int)r;
	int64_t now = moved((int64_t)ts->tv_sec * 1000000000 + ts->tv_nsec);
	ts->tv_sec = now / 1000000000;
	ts->tv_nsec = now % 1000000000;
	return 0;
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
	if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)
		return realtime(ts);
	return (int)syscall(SYS_clock_gettime, id, ts);
}

int gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
	(void)tz;
	struct timespec ts;
	int r = realtime(&ts);
	if (r == 0 && tv != NULL) {
		tv->tv_sec = ts.tv_sec;
		tv->tv_usec = ts.tv_nsec / 1000;
	}
	return r;
}

time_t time(time_t *out)
{
	struct timespec ts;
	if (realtime(&ts) != 0)
		return (time_t)-1;
	if (out != NULL)
		*out = ts.tv_sec;
	return ts.tv_sec;
}
