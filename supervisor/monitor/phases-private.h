/* phases-private.h - what the parts of the phases' monitor share. */
#ifndef SMCO_PHASES_PRIVATE_H
#define SMCO_PHASES_PRIVATE_H

#include "supervisor/monitor/phase-name.h"
#include "supervisor/monitor/phases.h"

#define PHASES_HASH_SIZE 1024

struct phase {
	struct phase_name name;
	bool is_found;	/* in a file that is the program's */
	uint64_t count; /* begins and points, of memory that is gone */
	uint64_t nr_seen, seen_ns, longest_ns;
};

/* Memory that processes share with us. */
struct shared {
	struct shared *next;
	struct mark_shm *shm;
	uint32_t pid; /* of the first that had it */
	unsigned nr_owners;
	uint64_t counted; /* passings that the ledger was told of */
	int64_t debt_ns;  /* what counting has cost beyond the budget */
	bool is_dear;	  /* so much that it ends */
};

/* What a file has of the phases. */
struct phase_file {
	struct phase_file *next;
	uint64_t inode, entry, sections; /* enough to know it by */
	struct mark_plan plan;
};

struct thread_phase; /* a phase that a thread is or was in */

struct phases {
	struct phases_params p;
	struct ledger *ledger;
	struct phase *phase;
	bool any_function;
	struct phase_file *file;
	char **expected; /* paths */
	size_t nr_expected, cap_expected;
	struct thread_phase *open[PHASES_HASH_SIZE];
	size_t nr_open;
	struct shared *shared;
	uint64_t due_ns;
	size_t nr_refused; /* modules */
	struct smco_err why_refused;
	uint64_t base_ns;    /* the program's time at the last tick */
	size_t nr_trimmed;   /* modules, in copies once */
	uint64_t trimmed_ns; /* the first of them, since the beginning */
	bool is_finished;
};

/* phase-files.c: the file @elf, module @module of @space, which may be NULL if
 * no phase is a function. NULL: memory is out. */
const struct phase_file *phase_file_get(struct phases *ph, uint64_t inode,
					Elf *elf, struct sym_space *space,
					uint32_t module);
void phase_files_free(struct phases *ph);

/* phase-times.c */
void phase_times_take(struct phases *ph, const struct shared *sh,
		      const struct mark_record *r);
void phase_times_free(struct phases *ph);

#endif
