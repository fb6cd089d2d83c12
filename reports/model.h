/*
 * model.h - what a trace says, ready to be shown: naps without duplicates,
 * summed by allocation stack, the ledger over time, coverage, processes. Only
 * for the printers (summary-*.c); everybody else uses summary.h.
 */
#ifndef SMCO_MODEL_H
#define SMCO_MODEL_H

#include "reports/counts.h"
#include "reports/hindex.h"
#include "reports/ranges.h"
#include "reports/phase-ranges.h"
#include "reports/phases.h"
#include "reports/samples.h"
#include "reports/select.h"
#include "reports/shelf.h"
#include "reports/spill.h"
#include "reports/summary.h"

/* How a nap ended; a nap has exactly one. */
enum nap_end {
	END_READ,
	END_WRITE,
	END_SYSCALL,
	END_ACCESS, /* touched, nobody knows how */
	END_FREED,
	END_UNWATCHED, /* watched no longer, it may have lasted longer */
	END_NEVER,     /* still unused when the program or the trace ended */
	END_NR,
};
enum nap_end model_nap_end(const struct ev_nap *nap);
const char *model_nap_end_name(enum nap_end end); /* "read", "freed", ... */

struct model_nap {
	struct ev_nap nap; /* stack ids are the summary's: model_frames */
	uint32_t object;   /* id */
	uint32_t site;	   /* index in stacks */
	uint32_t file;	   /* index in files */
};

/* Sums over naps. Bytes times time are floating point: 2^47 bytes times a
 * day does not fit in 64 bits. */
struct nap_sum {
	uint64_t nr;
	uint64_t nr_objects; /* different blocks */
	uint64_t nr_never_accessed;
	uint64_t nr_by_end[END_NR];
	uint64_t unused_bytes;	 /* of END_NEVER: what lies there unused */
	uint64_t nr_writes_only; /* a read may have been missed */
	uint64_t nr_head_unseen; /* and any access to the first pages */
	uint64_t longest_ns;
	uint64_t longest_error_ns; /* the longest is within +- this */
	double byte_seconds;
	double error_byte_seconds; /* it is within +- this */
	/* Of naps so short that another run of the same might have had none:
	 * less than half as long again as the shortest that are told of. */
	uint64_t brief_unused_bytes;
	double brief_byte_seconds;
};

/* One allocation stack id as the trace has it. */
struct model_stack {
	uint32_t id; /* of the summary; 0 = unknown */
	uint32_t file;
	uint32_t file_id; /* as the file has it */
	const struct trace_frame *frames;
	size_t nr_frames;
	struct ev_site totals;	     /* all 0 if the trace has none */
	uint64_t first_nap, nr_naps; /* in naps; none where they are not kept */
	struct nap_sum sum;
	/* private: */
	size_t first_tally, nr_tallies;
};

/* Stacks that look the same, to a depth. */
struct model_site {
	const struct model_stack *stack; /* one of them */
	size_t nr_stacks;
	bool cut_alike; /* they differ beyond the depth */
	struct ev_site totals;
	struct nap_sum sum;
	uint32_t *member; /* owned: indices in stacks */
};

struct model_sites {
	struct model_site *site; /* most byte seconds first */
	size_t nr;
};

struct model_ledger {
	uint32_t file;
	uint64_t time_ns;
	struct ev_ledger ledger;
	int64_t local_target_ppb; /* of blocks' watching; -1 = not known */
};

struct model_process {
	uint32_t file;
	uint32_t pid, ppid;
	uint32_t first_why; /* of ev_process: how it came */
	int32_t exit_status;
	bool has_ended, was_detached;
	uint64_t start_ns, end_ns;
	struct nap_sum sum;
};

/* One trace. */
struct model_file {
	struct trace_reader *reader;
	const char *name; /* of the caller; may be NULL */
	uint64_t duration_ns;
	uint64_t counted_ns; /* of the selection, since counting began */
	struct ev_coverage coverage[COVER_NR];
	bool has_coverage[COVER_NR];
	struct ev_ledger ledger; /* the last one */
	bool has_ledger;
	int64_t local_target_ppb; /* so far; -1 = not known */
	struct counts *counts;	  /* NULL = none in the trace */
};

struct summary {
	struct model_file *file;
	size_t nr_files;
	/* Of the first file: its meta stand for all where all must agree. */
	struct trace_reader *reader;
	struct select select;
	/* By stack, process, object, start; none with select.only_sums, where
	 * sum.nr says how many there are. */
	struct shelf naps; /* of struct model_nap */
	struct model_stack *stack;
	size_t nr_stacks, cap_stacks;
	struct model_ledger *ledger; /* file by file, in their order */
	size_t nr_ledger, cap_ledger;
	struct model_process *process; /* in order of appearance */
	size_t nr_processes, cap_processes;
	struct model_ranges ranges;
	struct model_samples samples;
	struct model_phase_ranges phase_ranges;
	struct model_phases phases;
	/* Sums over the files, of each file's last. */
	struct ev_coverage coverage[COVER_NR];
	bool has_coverage[COVER_NR];
	struct ev_ledger overhead; /* longest_stop_ns, worst_window_ppb: the
				    * worst */
	bool has_overhead;
	struct nap_sum sum;
	struct nap_sum suppressed;	 /* naps left out by suppressions */
	uint64_t nr_left_out;		 /* by the rest of the selection */
	uint64_t nr_records, nr_unknown; /* events not known here */
	uint64_t duration_ns;		 /* of all files together */
	/* private: */
	struct spill read_naps; /* while loading: all records of naps */
	uint64_t nr_read_naps;
	struct hindex stack_index, process_index, id_index;
	struct model_tally *tally; /* owned; whom naps of a stack have */
	size_t nr_tallies, cap_tallies, many_tallies;
	uint32_t tallied_stack;	   /* index: that the last tallies are of */
	struct stack_texts *texts; /* made when asked for */
	struct file_id *file_id;   /* [id - 1], where there are several files */
	size_t nr_ids, cap_ids;
};

struct file_id { /* a stack as its file calls it */
	uint32_t file;
	uint32_t id;
};

/* Frames of a stack by the summary's id, NULL if unknown. */
const struct trace_frame *model_frames(const struct summary *s, uint32_t id,
				       size_t *nr_ret);

/* The same as one text, section_stack's; NULL if unknown or out of memory.
 * Valid as long as @s is. */
const char *model_stack_text(const struct summary *s, uint32_t id);

/* private: */
struct stack_texts *model_texts_new(void);
void model_texts_free(struct stack_texts *texts);

/* Over all files. */
uint64_t model_nr_damaged(const struct summary *s);
uint64_t model_nr_lost(const struct summary *s);
uint64_t model_nr_dropped(const struct summary *s);
bool model_is_truncated(const struct summary *s);
uint64_t model_file_bytes(const struct summary *s);

/* Group stacks whose first @depth frames are shown alike; 0 = all frames.
 * SMCO_NOMEM. model_sites_free afterwards. */
int model_sites(const struct summary *s, unsigned depth,
		struct model_sites *ret);
void model_sites_free(struct model_sites *sites);

/* What stands out among stacks: the one most naps of a site have. */
struct model_culprit {
	uint32_t stack;	    /* 0 = none known */
	uint64_t nr;	    /* naps with it; 0 = nothing is known */
	uint64_t nr_nearby; /* of these, seen running nearby, not proven */
	int32_t syscall;    /* -1 = none */
};
/* Count in the one who ended @nap and who used the block before. The naps of a
 * stack come in one piece. SMCO_NOMEM. */
int model_culprits_take(struct summary *s, const struct model_nap *nap);
/* After the last one, before the next are called. */
void model_culprits_finish(struct summary *s);
/* Who ended those naps of @site that ended this way. */
struct model_culprit model_ended_by(const struct summary *s,
				    const struct model_site *site,
				    enum nap_end end);
/* Who used the blocks before their naps. */
struct model_culprit model_last_used_by(const struct summary *s,
					const struct model_site *site);

/* Did the first file's run look for this ("nap", "counters", "range",
 * "samples", "phases")? */
bool model_has_monitor(const struct summary *s, const char *name);
/* The same of one file. */
bool model_file_has_monitor(struct trace_reader *r, const char *name);
/* Number in a meta value of the first file; @fallback if it is missing or not
 * one. */
uint64_t model_meta_u64(const struct summary *s, const char *key,
			uint64_t fallback);
uint64_t model_reader_u64(struct trace_reader *r, const char *key,
			  uint64_t fallback);
/* The process that was asked for in file @file, NULL if that is not known. */
const struct model_process *model_root(const struct summary *s, size_t file);
/* A process of a file, NULL if that is not known. */
struct model_process *model_process(struct summary *s, uint32_t file,
				    uint32_t pid);
/* Command line of a process, or NULL. */
const char *model_command(const struct summary *s,
			  const struct model_process *p);
/* Overhead so far: spent / (run - spent), ppb; -1 if nothing ran. */
int64_t model_overhead_ppb(const struct ev_ledger *l, uint64_t spent_ns);

#endif
