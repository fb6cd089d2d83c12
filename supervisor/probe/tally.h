/*
 * tally.h - counts of the system calls of threads, by column, and of rare
 * tracepoints: one BPF program where a call begins, for all of them, which
 * costs the program some 40 ns a call where perf's tracepoints with a filter
 * for each class take a microsecond. It comes and goes in half a millisecond,
 * and while it is gone calls cost nothing: a perf event that pauses costs 15 ns
 * each.
 */
#ifndef SMCO_TALLY_H
#define SMCO_TALLY_H

#include <sys/types.h>

#include "reports/base.h"
#include "supervisor/probe/past-bpf.h"
#include "supervisor/probe/tally-bpf.h"

struct tally;

/*
 * All calls are column 0, until tally_set_columns. It has begun. SMCO_PERM or
 * SMCO_UNSUPPORTED say what is missing, also that we are in a container, whose
 * numbers of threads are not the kernel's.
 */
int tally_open(struct tally **ret, struct smco_err *err);
/* The column of each call by its number, below TALLY_CALL_COLUMNS, before any
 * thread is added. SMCO_SYS, and all is as it was. */
int tally_set_columns(struct tally *t, const struct tally_columns *columns,
		      struct smco_err *err);
/* Hits of @tracepoint by threads that are added are counted from now on, with
 * calls and without; each costs as much as a call. It has its column until the
 * end; SMCO_UNSUPPORTED: there is no such one, or too many. */
int tally_put(struct tally *t, const char *tracepoint, struct smco_err *err);
/* Calls of threads that were added are counted from now on, or no more. Soon
 * after the end of the last time this waits for up to two hundredths of a
 * second. SMCO_SYS, and nothing is counted. */
int tally_begin(struct tally *t, struct smco_err *err);
void tally_end(struct tally *t);
/* The same, by a thread of ours, and nobody waits; or not at all, if it cannot
 * be. */
void tally_turn(struct tally *t, bool on);
bool tally_is_on(struct tally *t);
/* CPU time that beginnings and ends have taken so far: for most of it the
 * kernel waits for the other CPUs, whose code it changes by several interrupts
 * of each. */
uint64_t tally_took_ns(struct tally *t);
/* Thread @tid has nothing counted yet: its place; -1: too many are there. */
int tally_add(struct tally *t, pid_t tid);
void tally_remove(struct tally *t, pid_t tid, int place);
/* What the thread has called so far, while this was counted, and hit; no system
 * call. */
struct tally_counts tally_read(const struct tally *t, int place);
/* What the kernel itself has counted of a thread that is there; one system
 * call. False: there is none, or the kernel is too old (bpf_task_from_pid). */
bool tally_past(const struct tally *t, pid_t tid, struct past *ret);
/* The map of all counts, by place, for other BPF programs; owned by @t. */
int tally_map(const struct tally *t);
void tally_close(struct tally *t); /* NULL is fine */

#endif
