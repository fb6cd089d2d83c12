/*
 * likely.h - which task stops next, as far as that can be told. Pure.
 *
 * To wait for any task the kernel goes through all of them, each time twice:
 * before it sleeps, and when somebody has stopped. Of ten thousand that is half
 * a millisecond, in which whoever stopped stands. To wait for one by its number
 * takes as long as with one. A task that was just made stops first of all; and
 * who makes tasks, one after the other, makes the next.
 */
#ifndef SMCO_LIKELY_H
#define SMCO_LIKELY_H

#include <stdbool.h>
#include <sys/types.h>

/* All zero at first. */
struct likely {
	pid_t newborn; /* has not stopped yet; 0 = none */
	pid_t tid;     /* who stopped last, but for their first stops */
	unsigned nr;   /* in a row */
};

/* @tid has stopped; it is its first stop. */
void likely_stopped(struct likely *l, pid_t tid, bool is_first);
/* @tid was made, and has not stopped yet. */
void likely_born(struct likely *l, pid_t tid);
/* Whom to wait for; 0: anybody. */
pid_t likely_next(const struct likely *l);
/* That one was waited for in vain. */
void likely_missed(struct likely *l);

#endif
