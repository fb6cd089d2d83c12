/*
 * A file that comes while the program runs is read by a thread of its own. A
 * program that is begun waits for it, but not for long; then it computes like
 * everybody as long as the budget has room for what that may take from the
 * program, and otherwise when nobody else wants to: where all CPUs are busy
 * that is hardly ever.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "supervisor/control/fixed.h"
#include "supervisor/monitor/range-private.h"

struct range_reader {
	pthread_t thread;
	const struct range_monitor *m;
	struct range_unit *unit;
	char *path;
	bool is_idle; /* SCHED_IDLE */
	bool is_done; /* atomic */
};

static void *run(void *arg)
{
	struct range_reader *r = arg;
	/* Not on the program's, where who has no priority would never run. */
	sched_setaffinity(0, sizeof(r->m->cpus), &r->m->cpus);
	range_unit_read(r->m, r->unit, r->path);
	__atomic_store_n(&r->is_done, true, __ATOMIC_RELEASE);
	return NULL;
}

bool range_reader_start(struct range_monitor *m, struct range_unit *u,
			const char *open_path)
{
	struct range_reader *r = calloc(1, sizeof(*r));
	sigset_t all, before;
	if (!r || !(r->path = strdup(open_path))) {
		free(r);
		return false;
	}
	r->m = m;
	r->unit = u;
	u->is_being_read = true;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int failed = pthread_create(&r->thread, NULL, run, r);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed) {
		u->is_being_read = false;
		free(r->path);
		free(r);
		return false;
	}
	m->reader = r;
	return true;
}

static void set_idle(struct range_reader *r, bool idle)
{
	const struct sched_param none = {.sched_priority = 0};
	if (idle != r->is_idle &&
	    !pthread_setschedparam(r->thread, idle ? SCHED_IDLE : SCHED_OTHER,
				   &none))
		r->is_idle = idle;
}

/* False: it has not ended by then. */
static bool wait_for(struct range_reader *r, uint64_t until_ns)
{
	const struct timespec until = {
		.tv_sec = (time_t)(min_u64(until_ns, INT64_MAX) / NSEC_PER_SEC),
		.tv_nsec = (long)(until_ns % NSEC_PER_SEC),
	};
	if (__atomic_load_n(&r->is_done, __ATOMIC_ACQUIRE))
		return !pthread_join(r->thread, NULL);
	if (until_ns)
		set_idle(r, false);
	return until_ns &&
	       !pthread_clockjoin_np(r->thread, NULL, CLOCK_MONOTONIC, &until);
}

bool range_reader_busy(struct range_monitor *m, uint64_t until_ns)
{
	struct range_reader *r = m->reader;
	if (!r)
		return false;
	if (!wait_for(r, until_ns)) {
		set_idle(r, ledger_room_ns(m->ledger) <= 0);
		return true;
	}
	range_unit_ready(m, r->unit);
	free(r->path);
	free(r);
	m->reader = NULL;
	return false;
}
