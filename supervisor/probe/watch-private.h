/*
 * watch-private.h - what watch.c and watch-cost.c share: the words that are
 * watched, and a thread's register for one of them.
 */
#ifndef SMCO_WATCH_PRIVATE_H
#define SMCO_WATCH_PRIVATE_H

#include "supervisor/probe/watch-hits.h"
#include "supervisor/probe/watch.h"

struct bpf_object;

/* Hits take such a part more than the median of those that are measured: as
 * programs have them, seldom and on any CPU, they took 0.9 to 1.4 times that.
 */
#define WATCH_COLD_SHARE 3

struct watchpoints {
	struct bpf_object *obj;	 /* NULL: by what the kernel tells of hits */
	bool own_only;		 /* those at the program's own level */
	int prog, insn_prog;	 /* owned by obj */
	struct watch_word *word; /* shared with the program, if there is one */
	size_t word_bytes;
	bool is_used[WATCH_WORDS];
	/* The kernel counts every hit against the event's limit, not only those
	 * that the program lets through (before 6.9). */
	bool counts_all;
	uint64_t hit_ns;
	/* No events: each hit stops its thread. What one takes by itself, what
	 * the tracer's clock has of one, how long it stands. */
	bool by_ptrace;
	uint64_t tried_ns, told_ns, stood_ns;
	uint64_t own_ns;      /* of the first, in the thread's CPU time */
	uint64_t byte_ps;     /* of a copy in the kernel */
	uint64_t measured_ns; /* when */
	uint32_t thread_at;   /* watch_thread_at; 0: not asked yet */
	uint32_t *walk;	      /* at each line, the next one's number */
};

/* One thread's register. */
struct watch_task {
	pid_t tid;
	int event; /* perf event */
	int link;  /* that the program is attached by */
	/* Without it: what the kernel tells of hits, and how many more there
	 * may be before it switches the register off. */
	struct watch_hits told;
	int64_t left;
};

struct watchpoint {
	struct watchpoints *ws;
	uint32_t index; /* of its word */
	int64_t limit;
	uint64_t hits; /* those whose cost was asked */
	uint64_t off;  /* and those of threads being switched off */
	struct watch_task *task;
	size_t nr_tasks, cap_tasks;
	/* Without a BPF program: of the limit, what each thread gets, and what
	 * nobody has yet. */
	int64_t share, left;
	struct tproc *proc;
	watch_insn_fn insn;
	void *insn_ctx;
	uint32_t id; /* by ptrace: tproc_watch()'s; 0: stopped */
	/* What that said last. */
	taddr_t last_ip;
	const uint8_t *last_insn;
	size_t last_len;
};

/* A word that nobody uses; WATCH_WORDS if there is none. */
uint32_t watch_find_word(struct watchpoints *ws);
/* watch-what.c: can all of it be watched? */
bool watch_is_sound(const struct watch_what *what);
/* @w is watched from the next task on that is opened for it. */
void watch_fill(struct watch_word *w, const struct watch_what *what,
		int64_t most_hits);
/* Thread @tid (0: this one) at word @index, enabled, for @limit hits. On
 * errors, SMCO_GONE among them, nothing is open. */
int watch_open_task(const struct watchpoints *ws, uint32_t index, pid_t tid,
		    int64_t limit, struct watch_task *ret,
		    struct smco_err *err);
void watch_close_task(struct watch_task *t);
/* Without a BPF program: what the kernel has told of hits in @t goes into
 * @word;
 * @w as far as it is known whose they are, or NULL. */
void watch_take_told(struct watch_word *word, struct watch_task *t,
		     struct watchpoint *w);

/* watch.c: what @hit tells was written, or what is there now; false: neither is
 * known. */
bool watch_take_hit(struct watchpoint *w, const struct watch_hit *hit);
/* watch-ptrace.c: in all threads of w->proc, see tproc_watch(). */
int watch_stopping(struct watchpoint *w, struct smco_err *err);
/* It may have been given up: then it is spent. */
void watch_stopping_look(struct watchpoint *w);
/* No more. Both also of one that is watched otherwise. */
void watch_stopping_end(struct watchpoint *w);

/* watch-thread.c: where in the kernel's record of a thread (task_struct) the
 * thread's pointer (FS base) is; 0 where that is not known. Some ms. */
uint32_t watch_thread_at(void);

/* watch-cost.c: measures what hits and copies cost, once, at open. */
int watch_calibrate(struct watchpoints *ws, struct smco_err *err);

#endif
