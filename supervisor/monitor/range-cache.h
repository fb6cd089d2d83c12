/*
 * range-cache.h - the variables of a program and the plan for them, kept in the
 * cache directory for the next time. A file there is used only if it was
 * written by this very build of smco-trace, for the same selection and the same
 * bytes of the program's file, and its checksum is right; otherwise it is as if
 * there were none, and it is replaced.
 */
#ifndef SMCO_RANGE_CACHE_H
#define SMCO_RANGE_CACHE_H

#include "supervisor/cachedir.h"
#include "supervisor/monitor/range-select.h"
#include "supervisor/probe/range-store.h"

struct range_cache_key {
	char name[192]; /* of the file, from the build-id; "" if none is kept */
	uint64_t sign;	/* of the program's bytes, if is_signed */
	uint64_t select;
	bool is_signed;
};
void range_cache_key(struct range_cache_key *key, struct sym_space *s,
		     const struct range_select *select);
/* Reads all of the file of module 1 of @s (which range_cache_load does, too).
 * No name is left if more than that, or not that, can be read. */
void range_cache_sign(struct range_cache_key *key, struct sym_space *s);

/* False: nothing is there that fits. *plan_ret is NULL if there was no plan.
 * The key is signed meanwhile, if it is not yet. */
bool range_cache_load(int dir, struct range_cache_key *key, struct sym_space *s,
		      struct variables **vars_ret,
		      struct range_plan **plan_ret);
/* The same from memory, which is munmapped, at once or later. */
bool range_cache_take(uint8_t *bytes, size_t len,
		      const struct range_cache_key *key, struct sym_space *s,
		      struct variables **vars_ret,
		      struct range_plan **plan_ret);

/* Of a signed key. @plan may be NULL. At most @most bytes stay in the
 * directory. False: it could not be kept, which is no error. */
bool range_cache_store(int dir, const struct range_cache_key *key,
		       const struct variables *vars,
		       const struct range_plan *plan, uint64_t most);

/* The head of a file; for those who damage it on purpose. */
struct range_cache_head {
	char magic[8];
	uint64_t build; /* build_number */
	uint64_t sign, select;
	uint64_t len; /* of all */
	uint64_t sum; /* store_blocks_sum of all that follows the head */
	uint64_t zero[2];
	uint64_t has_plan;
	uint64_t more[2];  /* 0 */
	uint64_t head_sum; /* of all before it */
};

#endif
