/*
 * hook-plan.h - which functions get a sensor and what is written where,
 * worked out before the tracee is touched. No ptrace; the tracee's bytes come
 * through a callback.
 */
#ifndef SMCO_HOOK_PLAN_H
#define SMCO_HOOK_PLAN_H

#include "supervisor/probe/hook.h"
#include "supervisor/probe/hook-stub.h"

typedef size_t (*hook_read_fn)(void *ctx, taddr_t addr, void *buf, size_t len);

struct hook_site {
	const char *name;
	enum agent_kind kind;
	bool required; /* an allocator without it cannot be followed */
	bool planted;  /* it could be displaced */
	taddr_t addr;
	struct stub stub;
};

struct hook_plan {
	struct agent_private priv; /* the page as the agent is to find it */
	struct hook_site sites[AGENT_MAX_SITES];
	unsigned nr_sites;
	taddr_t mod_start, mod_end; /* text of the allocator's module */
	taddr_t base;		    /* of the area */
	uint8_t stubs[AGENT_STUB_BYTES];
	char text[160]; /* for the report */
};

/* Looks the functions up. SMCO_NOTFOUND: there is no malloc. */
int hook_plan_find(struct hook_plan *plan, const struct hook_symbols *syms,
		   struct smco_err *err);
/* Generates all stubs for an area at @base. SMCO_UNSUPPORTED: a function that
 * is indispensable cannot carry a sensor. */
int hook_plan_build(struct hook_plan *plan, taddr_t base, hook_read_fn read,
		    void *ctx, struct smco_err *err);

/*
 * Where a thread of this program has its own tid, as a distance from @fs_base
 * (its TLS): reading it saves the agent a system call per record. 0 if it
 * cannot be told for sure.
 */
uint32_t hook_tid_offset(taddr_t fs_base, uint32_t tid, hook_read_fn read,
			 void *ctx);

#endif
