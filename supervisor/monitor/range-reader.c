/*
 * A library that comes while the program runs is read by a thread of its own,
 * which computes when nobody else wants to: nothing waits for it.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/monitor/range-private.h"

struct range_reader {
	pthread_t thread;
	const struct range_monitor *m;
	struct range_unit *unit;
	char *path;
	bool is_done; /* atomic */
};

static void *run(void *arg)
{
	struct range_reader *r = arg;
	const struct sched_param none = {.sched_priority = 0};
	sched_setscheduler(0, SCHED_IDLE, &none);
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

bool range_reader_busy(struct range_monitor *m, bool wait)
{
	struct range_reader *r = m->reader;
	if (!r)
		return false;
	if (!wait && !__atomic_load_n(&r->is_done, __ATOMIC_ACQUIRE))
		return true;
	pthread_join(r->thread, NULL);
	range_unit_ready(m, r->unit);
	free(r->path);
	free(r);
	m->reader = NULL;
	return false;
}
