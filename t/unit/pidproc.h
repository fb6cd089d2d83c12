/*
 * pidproc.h - a process under control of nobody: what the polled mechanisms
 * ask of the tracee room (its pid, how many tasks; where process_madvise is not
 * permitted, calls, which this one refuses). To be included by one file of a
 * program that does not use the real one.
 */
#ifndef SMCO_PIDPROC_H
#define SMCO_PIDPROC_H

#include "supervisor/tracee/tracee.h"

struct tproc {
	pid_t pid;
};

pid_t tproc_pid(const struct tproc *p)
{
	return p->pid;
}

unsigned tproc_nr_tasks(const struct tproc *p)
{
	(void)p;
	return 1;
}

struct tracer *tproc_tracer(struct tproc *p)
{
	(void)p;
	return NULL;
}

bool tracer_relax(struct tracer *tr, bool is_relaxed)
{
	(void)tr;
	(void)is_relaxed;
	return false;
}

int tproc_stop(struct tproc *p, struct smco_err *err)
{
	(void)p;
	return smco_fail(err, SMCO_UNSUPPORTED, 0, "no tracer here");
}

int tproc_stop_briefly(struct tproc *p, struct smco_err *err)
{
	return tproc_stop(p, err);
}

void tproc_cont(struct tproc *p)
{
	(void)p;
}

int tproc_syscalls(struct tproc *p, struct tsyscall *calls, size_t n,
		   struct smco_err *err)
{
	(void)calls;
	(void)n;
	return tproc_stop(p, err);
}

#endif
