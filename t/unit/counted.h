/*
 * counted.h - one traced thread whose counts are summed up, for tests that are
 * the tracer themselves: how often it stopped, what was told of it.
 */
#ifndef T_UNIT_COUNTED_H
#define T_UNIT_COUNTED_H

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "supervisor/monitor/counters-private.h"
#include "t/unit/tap.h"

static uint64_t counted_stops, counted_told; /* so far */

static uint64_t counted_stops_of(const void *task)
{
	(void)task;
	return counted_stops;
}

static void counted_emit(void *ctx, const struct record *r)
{
	(void)ctx;
	if (r->event == EV_COUNTS)
		counted_told +=
			((const struct ev_counts *)r->payload)->value[0];
}

static void counted_meta(void *ctx, const char *key, const char *value)
{
	(void)ctx, (void)key, (void)value;
}

/* Counters of @event, which pay into @l, without a bound. */
static struct counters *counted_open(const char *event, struct ledger *l)
{
	struct counters *c = NULL;
	const struct counters_params p = {
		.events = event,
		.interval_ns = 10 * NSEC_PER_MSEC,
		.reads_all = true,
		.nr_stops = counted_stops_of,
		.target_overhead_ppb = INT64_MAX,
		.start_ns = smco_now_ns(),
		.emit = counted_emit,
		.put_meta = counted_meta,
	};
	check_int(counters_create(&p, l, &c, NULL), 0);
	return c;
}

static void counted_close(struct counters *c)
{
	counters_finish(c, smco_now_ns());
	counters_destroy(c);
}

/* It stops for a signal, which it does not get; false: it has ended. */
static bool counted_stop(pid_t pid, int signal)
{
	int status;
	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		return false;
	check_int(WSTOPSIG(status), signal);
	counted_stops++;
	return true;
}

/* From a thread that stands at its own SIGSTOP: it is traced. */
static void counted_seize(pid_t pid)
{
	check_int(ptrace(PTRACE_SEIZE, pid, 0, 0), 0);
	check(counted_stop(pid, SIGSTOP));
}

/* It is counted from now on, and is in its stop for SIGCONT. */
static void counted_begin(struct counters *c, pid_t pid)
{
	counters_add(c, pid, pid, &counted_stops, COUNTER_NOW);
	kill(pid, SIGCONT);
	ptrace(PTRACE_CONT, pid, 0, 0);
	check(counted_stop(pid, SIGTRAP)); /* it goes on */
	ptrace(PTRACE_CONT, pid, 0, 0);
	check(counted_stop(pid, SIGCONT));
}

/* In its last stop: its counts are taken. */
static void counted_end(struct counters *c, pid_t pid)
{
	check(counted_stop(pid, SIGUSR1));
	counters_gone(c, pid, smco_now_ns());
}

static void counted_let_end(pid_t pid)
{
	ptrace(PTRACE_CONT, pid, 0, 0);
	check(!counted_stop(pid, 0));
}

#endif
