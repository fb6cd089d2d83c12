/*
 * traced.h - a puppet under a tracer.
 */
#ifndef TRACED_H
#define TRACED_H

#include <poll.h>
#include <pthread.h>

#include "supervisor/tracee/tracee.h"
#include "t/unit/puppet.h"
#include "t/unit/tap.h"

static inline void *traced_nothing(void *arg)
{
	return arg;
}

/* For puppet_do(): a thread that ends at once. */
static inline long make_thread(long a, long b)
{
	pthread_t t;
	(void)a, (void)b;
	if (pthread_create(&t, NULL, traced_nothing, NULL))
		return -1;
	return pthread_join(t, NULL);
}

/* All its threads stopped until tproc_resume_new(); NULL with *err filled. */
static inline struct tproc *traced_attach(struct tracer *tr, pid_t pid,
					  struct smco_err *err)
{
	struct tevent ev;
	if (tracer_attach(tr, pid, err))
		return NULL;
	uint64_t deadline = smco_now_ns() + 120 * NSEC_PER_SEC;
	while (tracer_next(tr, deadline, &ev) > 0 && ev.kind != TEV_NONE)
		if (ev.kind == TEV_PROC_NEW)
			return ev.proc;
	return NULL;
}

/* The same, or the test ends. */
static inline struct tproc *traced_must_attach(struct tracer *tr, pid_t pid)
{
	struct smco_err err = {0};
	struct tproc *p = traced_attach(tr, pid, &err);
	if (!check_msg(p != NULL, "attached %s", err.msg))
		exit(tap_done());
	return p;
}

/* tproc_stop(), given up never: on a busy machine a thread may get no CPU to
 * stop on for longer than that waits. */
static inline int traced_stop(struct tproc *p, struct smco_err *err)
{
	int r;
	do
		r = tproc_stop(p, err);
	while (r == SMCO_BUSY);
	return r;
}

/* As puppet_wait, with the tracer's event loop running meanwhile: fork and
 * signals stop the puppet, calls are made in it, and a stop that was asked for
 * may come when nobody waits for it any more. */
static inline long traced_wait(struct tracer *tr, struct puppet *p)
{
	struct pollfd fd = {.fd = p->answer, .events = POLLIN};
	struct tevent ev;
	while (poll(&fd, 1, 0) <= 0)
		if (tracer_next(tr, smco_now_ns() + NSEC_PER_MSEC, &ev) > 0 &&
		    ev.kind == TEV_PROC_NEW)
			tproc_resume_new(ev.proc);
	return puppet_wait(p);
}

static inline long traced_do(struct tracer *tr, struct puppet *p, puppet_fn fn,
			     long a, long b)
{
	puppet_begin(p, fn, a, b);
	return traced_wait(tr, p);
}

#endif
