/*
 * Of a program with many tasks the one that stops next is waited for by its
 * number: to wait for any of them takes the longer the more there are.
 */
#include <pthread.h>

#include "supervisor/tracee/internal.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

#define BEFORE 1200 /* many */
#define BIRTHS 800

static void *sleeper(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static long act_make(long nr, long unused)
{
	pthread_attr_t attr;
	pthread_t t;
	(void)unused;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	while (nr && !pthread_create(&t, &attr, sleeper, NULL))
		nr--;
	return nr;
}

/* As traced_wait(), without a deadline in between: the answer's write ends no
 * wait, but the end of each wait is soon enough. */
static long make(struct tracer *tr, struct puppet *pup, long nr)
{
	struct pollfd fd = {.fd = pup->answer, .events = POLLIN};
	struct tevent ev;
	puppet_begin(pup, act_make, nr, 0);
	while (poll(&fd, 1, 0) <= 0)
		if (tracer_next(tr, smco_now_ns() + 20 * NSEC_PER_MSEC, &ev) >
			    0 &&
		    ev.task)
			tracer_resume(tr, ev.task, 0);
	return puppet_wait(pup);
}

static void births(void)
{
	struct tracer_options opts = {0};
	struct smco_err err = {0};
	struct tracer *tr;
	struct puppet pup = puppet_start();
	check_int(tracer_create(&tr, &opts, &err), 0);
	struct tproc *p = traced_attach(tr, pup.pid, &err);
	check(p != NULL);
	if (!p)
		return;
	tproc_resume_new(p);
	check_int(make(tr, &pup, BEFORE), 0);
	uint64_t nr_stops = tr->nr_stops, nr_wide = tr->nr_wide;
	check_int(make(tr, &pup, BIRTHS), 0);
	nr_stops = tr->nr_stops - nr_stops;
	nr_wide = tr->nr_wide - nr_wide;
	printf("# %u stops, %u waits for any task\n", (unsigned)nr_stops,
	       (unsigned)nr_wide);
	/* Each is two stops, its creator's and its own first, of which the
	 * last few are still to come. */
	check(nr_stops > BIRTHS);
	check(nr_wide < BIRTHS / 2);
	check_int(tr->nr_tasks, 1 + BEFORE + BIRTHS);
	tracer_destroy(tr);
	puppet_end(&pup);
}

/* Whom to wait for. */
static void guesses(void)
{
	struct likely l = {0};
	check_int(likely_next(&l), 0);
	/* Once or twice is an accident. */
	for (int i = 0; i < 3; i++)
		likely_stopped(&l, 7, false);
	check_int(likely_next(&l), 0);
	likely_stopped(&l, 7, false);
	check_int(likely_next(&l), 7);
	/* First its child, then itself, whoever else begins. */
	likely_born(&l, 8);
	check_int(likely_next(&l), 8);
	likely_stopped(&l, 9, true);
	check_int(likely_next(&l), 8);
	likely_stopped(&l, 8, true);
	check_int(likely_next(&l), 7);
	/* In vain. */
	likely_born(&l, 10);
	likely_missed(&l);
	check_int(likely_next(&l), 7);
	likely_missed(&l);
	check_int(likely_next(&l), 0);
	/* Others stop in between. */
	for (int i = 0; i < 20; i++)
		likely_stopped(&l, 7 + i % 2, false);
	check_int(likely_next(&l), 0);
}

int main(void)
{
	guesses();
	births();
	return tap_done();
}
