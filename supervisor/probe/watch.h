/*
 * watch.h - watchpoints: the values that are written to a variable in memory,
 * whoever writes them, by the CPU's debug registers (four for each thread).
 * They are set through perf_event_open(2); at each hit a BPF program in the
 * kernel reads the variable and keeps its smallest and largest value in memory
 * that is shared with us. Nobody stops.
 *
 * Nothing of it is in the program's memory, and all of it goes with our
 * descriptors: there is nothing to undo, the program's death, exec and ours
 * included. A forked child has none.
 *
 * A breakpoint is the same at an instruction of the program: what registers
 * hold, and memory that they lead to, just before it runs. Its text is not
 * touched, so there is nothing to undo either, and it is at instructions of any
 * length.
 *
 * Where BPF is not permitted, but perf events are, the kernel's too
 * (perf_event_paranoid 1), the kernel tells of each hit the address of the next
 * instruction and the registers. A plain store says what it wrote; for all
 * others the variable is looked at later, which finds a value that it has had,
 * not always the one that was written. What pointers lead to cannot be watched
 * so. Where only the program's own level is permitted (perf_event_paranoid 2),
 * hits in the kernel are neither told nor ended: watchpoints_see_kernel.
 *
 * A value is read just after it was written: it is one that the variable had.
 * One that another thread has overwritten within that microsecond is missed.
 * Writes that do not go through the program's own addresses (of devices, of
 * another process) are no hits.
 *
 *	watchpoints_open(&ws, &err);			// once
 *	watchpoint_arm(&w, ws, p, &what, limit, &err);	// tasks may run
 *	watchpoint_read(w, part, &smallest, &largest);	// at any time
 *	watchpoint_disarm(w);
 *
 * perf_event_open(2), bpf_get_attach_cookie in bpf-helpers(7); Intel SDM 3B
 * chapter 17.2 for the registers.
 */
#ifndef SMCO_WATCH_H
#define SMCO_WATCH_H

#include "supervisor/probe/watch-bpf.h"
#include "supervisor/tracee/tracee.h"

/* Debug registers of a thread. */
#define WATCH_REGISTERS 4

struct watchpoints; /* of all processes */
struct watchpoint;  /* one armed word of one */

/*
 * Loads the program and measures what a hit costs on this machine, in some
 * 5 ms, by watchpoints of this thread's own. Errors: SMCO_PERM,
 * SMCO_UNSUPPORTED (no BPF, no perf events, no debug registers), SMCO_BUSY
 * (somebody else has them all), with cause and fix.
 */
int watchpoints_open(struct watchpoints **ret, struct smco_err *err);
/* As if BPF were not permitted. */
int watchpoints_open_without_bpf(struct watchpoints **ret,
				 struct smco_err *err);
/*
 * By ptrace's debug registers, of which all is different: each hit stops its
 * thread for some 20 to 100 us, and if we are killed they stay in the program
 * and end it at the next one (tproc_watch()). What is written is known as
 * without BPF, and what no instruction tells is read while the thread stands.
 * No breakpoints. Errors: as twatch_try().
 */
int watchpoints_open_by_ptrace(struct watchpoints **ret, struct smco_err *err);
bool watchpoints_have_bpf(const struct watchpoints *ws);
/* True: these are by ptrace: arming stops the process, and so does a hit. */
bool watchpoints_stop_threads(const struct watchpoints *ws);
/* May a word have pointers? */
bool watchpoints_know_pointers(const struct watchpoints *ws);
/* By ptrace: what a hit costs beyond what the tracer's clock has of it, ns. */
uint64_t watchpoints_untold_ns(const struct watchpoints *ws);
/* By ptrace: what of a hit is time of the program in the kernel, ns; by others:
 * 0, for it is not known. */
uint64_t watchpoints_own_ns(const struct watchpoints *ws);
/* False: what the kernel writes is no hit that anybody is told of, and yet
 * costs the program one; without a limit, so by all the time that it is in the
 * kernel while one is armed. */
bool watchpoints_see_kernel(const struct watchpoints *ws);
/* After all of its watchpoints. NULL is fine. */
void watchpoints_close(struct watchpoints *ws);
/* What a hit costs the thread that writes, ns; at least 1: the exception, and
 * bringing back what it drove out of the caches, of a program that goes
 * through 128 KB. */
uint64_t watchpoints_hit_ns(const struct watchpoints *ws);
/*
 * What it costs a program to be watched, beside hits, ns: while a data
 * breakpoint is armed, the processor moves memory by its string instructions
 * one word at a time, so copies in the kernel (and large ones of the C library,
 * which nobody sees) take several times as long. @bytes were read and written
 * by system calls, @faults pages cleared or copied. By what such a copy took
 * longer at open.
 */
uint64_t watchpoints_standing_ns(const struct watchpoints *ws, uint64_t bytes,
				 uint64_t faults);
/* Measures it anew if it was not for 2 s, in some 1 ms: what an exception costs
 * depends on what else runs on the machine. Where it cannot (no register is
 * free), what was measured before stays. */
void watchpoints_measure_again(struct watchpoints *ws, uint64_t now_ns);

/* An integer in a word. */
struct watch_field {
	uint8_t shift; /* of its lowest bit in the word */
	uint8_t bits;  /* 1 to 64, within the word */
	bool is_signed;
	/* Of an instruction: where the word is then, see struct watch_part. */
	enum watch_source source;
	uint8_t reg, bytes;
	uint8_t first_op, nr_ops; /* WATCH_EXPR: of watch_what's */
	int64_t offset;
};
struct watch_op {
	enum watch_op_code code;
	int64_t arg;
};
/* A pointer that leads to what is watched, or another word that says that it is
 * there: as long as @value is at @addr. */
struct watch_pointer {
	taddr_t addr;
	uint64_t value;
};
/* The instruction that ends at @ip, which is not to be guessed; NULL: nobody
 * knows. It stays as long as the watchpoint does. */
typedef const uint8_t *(*watch_insn_fn)(void *ctx, taddr_t ip, size_t *len_ret);
/* What one register watches. */
struct watch_what {
	taddr_t addr;	/* a multiple of @bytes */
	unsigned bytes; /* 1, 2, 4 or 8 */
	/* No word but the instruction at @addr, whatever @bytes: a breakpoint.
	 * The fields are read each time that a thread is about to run it. Only
	 * with BPF. */
	bool is_insn;
	struct watch_field field[WATCH_FIELDS];
	size_t nr_fields;
	struct watch_op op[WATCH_OPS];
	size_t nr_ops;
	struct watch_pointer pointer[WATCH_GUARDS];
	size_t nr_pointers; /* 0 where nobody looks: watchpoints_know_pointers
			     */
	watch_insn_fn insn; /* without BPF; NULL: nobody knows any */
	void *insn_ctx;
};

/*
 * In all threads of @p, which may run (by ptrace they are stopped for it, if
 * they are not: SMCO_SYS, one does not stop); all or none. After @most_hits in
 * all of them together the kernel switches it off (INT64_MAX: never), each
 * thread's at its next hit. Errors: SMCO_BUSY (no register is free), SMCO_GONE,
 * SMCO_PERM, SMCO_SYS (no descriptors left).
 */
int watchpoint_arm(struct watchpoint **ret, struct watchpoints *ws,
		   struct tproc *p, const struct watch_what *what,
		   int64_t most_hits, struct smco_err *err);
/* A new thread, before its first instruction, is watched, too; an error leaves
 * it as it is. */
int watchpoint_add_task(struct watchpoint *w, pid_t tid, struct smco_err *err);
/* It has ended: its descriptors go. */
void watchpoint_drop_task(struct watchpoint *w, pid_t tid);
/* What was written to field @i since it was armed. False: nothing. */
bool watchpoint_read(struct watchpoint *w, size_t i, int64_t *smallest_ret,
		     int64_t *largest_ret);
/* Hits since it was armed; it may have been switched off meanwhile. */
uint64_t watchpoint_hits(struct watchpoint *w);
/* What the hits since this was asked last cost, ns, and how many they are: so
 * many times watchpoints_hit_ns(), once more for each thread that it was
 * switched off for. */
uint64_t watchpoint_take_cost_ns(struct watchpoint *w, uint64_t *hits_ret);
/* When the hits that it may have were used up, CLOCK_MONOTONIC: it sees no more
 * since. UINT64_MAX: they are not. */
uint64_t watchpoint_spent_ns(struct watchpoint *w);
/* It may have @most_hits from now on. False: it is spent, or that cannot be
 * done (before Linux 6.9, or without BPF); then it has to be disarmed and armed
 * again. */
bool watchpoint_refill(struct watchpoint *w, int64_t most_hits);
/* No hit comes any more when this returns; what came can still be read. This
 * and what follows do not touch the tproc, but by ptrace, where it must not be
 * dead yet: no hit is told any more, and each thread's register goes at its
 * next stop. */
void watchpoint_stop(struct watchpoint *w);
/* The same, and frees; NULL is fine. */
void watchpoint_disarm(struct watchpoint *w);

#endif
