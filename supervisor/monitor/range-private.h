/* range-private.h - what the files of the range monitor share. */
#ifndef SMCO_RANGE_PRIVATE_H
#define SMCO_RANGE_PRIVATE_H

#include "supervisor/monitor/range-cache.h"
#include "supervisor/monitor/range-duty.h"
#include "supervisor/monitor/range-monitor.h"
#include "supervisor/probe/range-subscript.h"
#include "supervisor/probe/range.h"

/* A variable that is looked at now and then. */
struct range_poll {
	uint32_t var;
	uint64_t addr; /* the file's */
	uint64_t len;  /* bytes, all elements */
	uint64_t at;   /* of what was read last, see polled */
};

/* What is known of a program file; lives as long as the monitor. */
struct range_unit {
	struct range_unit *next;
	char *path;
	char *module_path;
	char *build_id;
	struct variables *vars;	 /* NULL: nothing to watch; see why */
	struct range_plan *plan; /* NULL: polled only */
	size_t nr_windows;	 /* of the plan */
	/* Variables used as subscripts: the plan's. */
	const struct range_subscript *subscripts;
	size_t nr_subscripts;
	struct range_poll *polls; /* by address */
	size_t nr_polls;
	size_t poll_bytes;  /* of all together */
	uint8_t *is_polled; /* bit of each variable */
	uint32_t first_id;  /* of variables in the trace, then subscripts */
	uint8_t *told;	    /* bit of each of those: it is in the trace */
	bool is_told;	    /* all are */
	struct range_cache_key key;
	bool from_cache; /* or in it by now, or it need not be */
	bool no_match;	 /* the selection fits none of its variables */
	char why[320];
};

/* A variable's values in one process. */
struct range_value {
	int64_t smallest, largest;
	uint64_t hits;	/* polls */
	uint32_t flags; /* enum range_flags; 0: no value yet */
	bool is_new;	/* since it was written last */
};

struct range_proc {
	struct range_proc *next;
	struct tproc *proc; /* NULL: it is gone */
	uint32_t pid;
	struct range_unit *unit;
	struct ranges *ranges; /* NULL: polled only */
	uint64_t bias;
	struct range_duty duty; /* of unit->nr_windows */
	uint64_t *hits;		/* of each window so far */
	/* Those before were put in, and are the duty's. */
	uint32_t next_function, next_window;
	uint64_t next_start_ns;	   /* when the next may be */
	uint64_t run_ns;	   /* its processor time, when it was asked */
	uint64_t asked_ns;	   /* and when that was */
	uint64_t stop_ns;	   /* of a change, lately */
	struct range_value *value; /* of unit->vars, then subscripts */
	uint8_t *polled;	   /* what unit->polls had when read last */
	uint64_t born_ns, died_ns; /* died: 0 while it lives */
	uint64_t next_poll_ns;
};

struct range_monitor {
	struct range_params p;
	struct ledger *ledger;
	struct range_unit *units;
	struct range_proc *procs; /* also those that are gone */
	int cache_dir;		  /* -1: none */
	uint32_t next_id;
	uint64_t next_tick_ns;
	uint64_t next_emit_ns;
	uint32_t told_reasons; /* 1 << enum var_reason, and others */
	uint8_t *buf;	       /* for polling */
	/* For a step: of as many windows as the largest unit has. */
	struct range_news *news;
	struct range_duty_cost *cost;
	size_t max_windows;
};

#define RANGE_POLL_BYTES (64u << 10) /* read at once */
#define RANGE_POLL_MOST	 (4u << 20)  /* all variables together */

/* range-unit.c */
struct range_unit *range_unit_get(struct range_monitor *m, const char *path,
				  const char *open_path);
void range_unit_destroy(struct range_unit *u);
/* Those that were read, into the cache. */
void range_units_keep(struct range_monitor *m);
/* range-poll.c */
int range_polls_find(struct range_unit *u);
/* Look at all of them once. */
void range_poll(struct range_monitor *m, struct range_proc *rp,
		uint64_t now_ns);
/* Take in a value. */
void range_value_add(struct range_value *v, const struct var_type *t,
		     int64_t smallest, int64_t largest, uint32_t flags);
/* range.c */
void range_proc_free(struct range_proc *rp);
/* range-emit.c: what the sensors saw, to rp->value */
void range_collect(struct range_proc *rp);

#endif
