/*
 * select.h - which of what traces hold is looked at. All conditions must hold;
 * one that says nothing about a kind of thing lets it pass.
 */
#ifndef SMCO_SELECT_H
#define SMCO_SELECT_H

#include "reports/base.h"

#define SELECT_NAP_BYTES (12u << 20)

struct where;
struct suppress;
struct summary;
struct model_nap;

struct select {
	bool has_process, has_thread;
	uint32_t process;
	uint32_t thread;	 /* of a record */
	uint64_t from_ns, to_ns; /* session time, [from, to); to 0: no end */
	const struct where *nap_where;	 /* over nap_section's; or NULL */
	const struct suppress *suppress; /* or NULL */
	/* How finely time is divided at most where counts are added up over
	 * time; even, 0 = COUNTS_BUCKETS. */
	size_t nr_buckets;
	/* Is what happened in each phase to be found out? Not with
	 * @only_sums. */
	bool phase_sums;
	/* Naps are added up, but none is kept. */
	bool only_sums;
	/* Memory for putting naps in order, and for keeping them: what is more
	 * goes to a temporary file; 0 = SELECT_NAP_BYTES. */
	size_t nap_bytes;
	/* A trace of so many bytes is decoded by a thread of its own; 0 =
	 * AHEAD_WORTH_BYTES. */
	uint64_t ahead_bytes;
};

static inline bool select_time(const struct select *s, uint64_t time_ns)
{
	return time_ns >= s->from_ns && (!s->to_ns || time_ns < s->to_ns);
}
static inline bool select_process(const struct select *s, uint32_t pid)
{
	return !s->has_process || pid == s->process;
}
/* What a thread of a process did, at whatever time. */
static inline bool select_thread(const struct select *s, uint32_t pid,
				 uint32_t tid)
{
	return select_process(s, pid) && (!s->has_thread || tid == s->thread);
}
/* By process, and by time: does any of the nap lie within? And --where. */
bool select_nap(const struct select *s, const struct summary *model,
		const struct model_nap *nap);
/* Is nothing left out by process, thread or time? */
static inline bool select_is_all(const struct select *s)
{
	return !(s->has_process || s->has_thread || s->from_ns || s->to_ns);
}
/* Does any of these conditions leave naps out? */
static inline bool select_any_nap(const struct select *s)
{
	return s->has_process || s->from_ns || s->to_ns || s->nap_where;
}

#endif
