/*
 * hook-run.h - runs a fixture under the sensors with the real engine and
 * keeps the books: which blocks are live according to the events.
 */
#ifndef HOOK_RUN_H
#define HOOK_RUN_H

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/probe/hook-private.h"
#include "symbols/symbols.h"
#include "t/unit/tap.h"

#define BOOK_SLOTS (1u << 16)

struct book_entry {
	taddr_t addr;
	uint64_t size;
	uint32_t stack;
	taddr_t caller;
	bool own_pages;
};

struct run {
	struct tracer *tr;
	struct tproc *p;
	struct hooks *h;
	struct sym_space *syms;
	uint64_t cutoff;
	uint32_t tokens;
	struct run *child; /* follow a fork into this one; or NULL */
	bool survives;	   /* the program, when this process dies */
	bool no_answers;   /* traps are resumed and nothing else */
	struct book_entry book[BOOK_SLOTS]; /* by address, open addressing */
	unsigned nr_live, nr_events, nr_kind[8];
	unsigned nr_traps, nr_no_stack;
	unsigned double_allocs, free_unknown, realloc_unknown;
	int exit_status;
	/* Called for every event besides the bookkeeping; may be NULL. */
	void (*hear)(struct run *r, const struct heap_event *ev);
	/* After planting. */
	void (*planted)(struct run *r);
	/* Something else is planted instead of hooks, and followed. */
	int (*plant)(struct run *r, struct smco_err *err);
	void (*forked)(struct run *r, struct tproc *child);
	bool plant_tried;
	/* At every wake-up of the loop. */
	void (*tick)(struct run *r);
	unsigned tick_ms;
	struct hooks_stats stats;
	uint64_t plant_ns;
	char text[256];
};

static inline struct book_entry *book_find(struct run *r, taddr_t addr)
{
	unsigned i = (addr >> 4) * 2654435761u % BOOK_SLOTS;
	while (r->book[i].addr && r->book[i].addr != addr)
		i = (i + 1) % BOOK_SLOTS;
	return &r->book[i];
}

static inline bool book_drop(struct run *r, taddr_t addr)
{
	struct book_entry *e = book_find(r, addr);
	if (!e->addr)
		return false;
	e->addr = 0;
	r->nr_live--;
	/* Close the gap. */
	unsigned i = e - r->book;
	for (i = (i + 1) % BOOK_SLOTS; r->book[i].addr;
	     i = (i + 1) % BOOK_SLOTS) {
		struct book_entry move = r->book[i];
		r->book[i].addr = 0;
		*book_find(r, move.addr) = move;
	}
	return true;
}

static inline void book_add(struct run *r, const struct heap_event *ev)
{
	struct book_entry *e = book_find(r, ev->addr);
	if (e->addr)
		r->double_allocs++;
	else
		r->nr_live++;
	*e = (struct book_entry){ev->addr, ev->size, ev->stack, ev->caller,
				 ev->own_pages};
}

static inline void run_hear(void *ctx, const struct heap_event *ev)
{
	struct run *r = ctx;
	r->nr_events++;
	r->nr_kind[ev->kind]++;
	r->nr_no_stack += !ev->stack && ev->kind != HEAP_FREE;
	if (ev->kind == HEAP_ALLOC || ev->kind == HEAP_REALLOC)
		book_add(r, ev);
	else if (ev->kind == HEAP_FREE && !book_drop(r, ev->addr))
		r->free_unknown++;
	if (r->hear)
		r->hear(r, ev);
}

static inline ssize_t run_read(void *ctx, taddr_t addr, void *buf, size_t len)
{
	return (ssize_t)tmem_read_some(ctx, addr, buf, len);
}

static inline taddr_t run_find(void *ctx, const char *name, taddr_t *start,
			       taddr_t *end)
{
	struct run *r = ctx;
	return sym_find(r->syms, name, "malloc", start, end, NULL);
}

static inline taddr_t run_find_libc(void *ctx, const char *name, taddr_t *start,
				    taddr_t *end)
{
	struct run *r = ctx;
	return sym_find(r->syms, name, "gnu_get_libc_version", start, end,
			NULL);
}

static inline void run_update_syms(struct run *r)
{
	struct tmaps maps;
	struct sym_mapping m[256];
	size_t n = 0;
	if (tmaps_read(tproc_pid(r->p), &maps, NULL))
		return;
	for (size_t i = 0; i < maps.nr && n < 256; i++)
		if (maps.maps[i].path[0] == '/')
			m[n++] = (struct sym_mapping){
				.start = maps.maps[i].start,
				.end = maps.maps[i].end,
				.offset = maps.maps[i].offset,
				.inode = maps.maps[i].inode,
				.exec = maps.maps[i].prot & PROT_EXEC,
				.deleted = maps.maps[i].deleted,
				.path = maps.maps[i].path};
	if (!r->syms)
		r->syms = sym_space_create(tproc_pid(r->p), "", run_read, r->p);
	sym_space_update(r->syms, m, n, NULL);
	tmaps_deinit(&maps);
}

static inline int run_plant(struct run *r, struct smco_err *err)
{
	const struct hook_symbols s = {
		.find = run_find, .find_libc = run_find_libc, .ctx = r};
	run_update_syms(r);
	r->plant_tried = true;
	uint64_t began_ns = smco_now_ns();
	int ret = r->plant ? r->plant(r, err)
			   : hooks_plant(r->p, &s, r->cutoff, &r->h, err);
	r->plant_ns = smco_now_ns() - began_ns;
	if (ret || r->plant)
		return ret;
	hooks_set_tokens(r->h, r->tokens);
	hooks_set_trap_tokens(r->h, 1000000);
	snprintf(r->text, sizeof(r->text), "%s", hooks_describe(r->h));
	if (r->planted)
		r->planted(r);
	return 0;
}

/* Fixtures are compiled without an optimiser: frame pointers do. */
static inline void run_trap(struct run *r, struct tevent *ev)
{
	struct user_regs_struct regs;
	taddr_t frames[40], slots[40];
	size_t nr = 1;
	if (!r->h || r->no_answers ||
	    !hooks_on_trap(r->h, ev->task, &ev->siginfo, &regs))
		return;
	r->nr_traps++;
	frames[0] = regs.rip;
	slots[0] = 0;
	taddr_t bp = regs.rbp, low = regs.rsp;
	uint64_t w[2];
	while (nr < 40 && bp >= low && bp < low + 65536 &&
	       tmem_read(r->p, bp, w, sizeof(w)) == 0) {
		frames[nr] = w[1];
		slots[nr++] = bp + 8;
		low = bp + 16;
		bp = w[0];
	}
	hooks_answer(r->h, ev->task, r->nr_traps, frames, slots, nr);
}

static inline void run_fork(struct run *r, struct tproc *p,
			    struct smco_err *err)
{
	struct run *c = r->child;
	if (r->forked) {
		r->forked(r, p);
		return;
	}
	hooks_drain(r->h, run_hear, r);
	memcpy(c->book, r->book, sizeof(c->book));
	c->nr_live = r->nr_live;
	c->p = p;
	c->tr = r->tr;
	if (hooks_fork(r->h, p, &c->h, err))
		printf("# fork: %s\n", err->msg);
	else
		hooks_set_tokens(c->h, r->tokens);
}

static inline bool run_event(struct run *r, struct tevent *ev,
			     struct smco_err *err)
{
	struct user_regs_struct regs;
	switch (ev->kind) {
	case TEV_PROC_NEW:
		if (ev->why == TPROC_FORKED && (r->child || r->forked) &&
		    ev->parent == r->p)
			run_fork(r, ev->proc, err);
		else if (!r->p) {
			r->p = ev->proc;
			tproc_trace_syscalls(r->p, true);
		}
		tproc_resume_new(ev->proc);
		break;
	case TEV_LIBS:
		if (!r->h && !r->plant_tried && tproc_stop(r->p, err) == 0) {
			err->code = run_plant(r, err);
			tproc_cont(r->p);
		}
		tracer_resume(r->tr, ev->task, 0);
		break;
	case TEV_TRAP:
		run_trap(r->child && r->child->p == ev->proc ? r->child : r,
			 ev);
		tracer_resume(r->tr, ev->task, 0);
		break;
	case TEV_FAULT:
		tracer_resume(r->tr, ev->task, ev->siginfo.si_signo);
		break;
	case TEV_SYSCALL_IN:
	case TEV_SYSCALL_OUT:
		/* The loader's last call gives its cache back: from here on
		 * the program can be found, and has not run yet. */
		if (!r->h && !r->plant_tried &&
		    task_get_regs(ev->task, &regs) == 0 &&
		    regs.orig_rax == SYS_munmap && tproc_stop(r->p, err) == 0) {
			err->code = run_plant(r, err);
			tproc_cont(r->p);
		}
		if (r->plant_tried)
			tproc_trace_syscalls(r->p, false);
		tracer_resume(r->tr, ev->task, 0);
		break;
	case TEV_PROC_GONE:
		if (r->child && ev->proc == r->child->p) {
			r->child->exit_status = ev->exit_status;
			r->child->p = NULL;
		}
		if (ev->proc == r->p) {
			r->exit_status = ev->exit_status;
			r->p = NULL;
		}
		break;
	default:
		break;
	}
	if (r->h)
		hooks_drain(r->h, run_hear, r);
	if (r->child && r->child->h)
		hooks_drain(r->child->h, run_hear, r->child);
	return true;
}

static inline const char *fixture(const char *name)
{
	static char path[512];
	const char *o = getenv("O");
	snprintf(path, sizeof(path), "%s/t/fixtures/%s", o ? o : "build", name);
	return path;
}

/* Until it ends. @r's settings are the caller's. */
static inline bool run_to_end(struct run *r, char *const argv[])
{
	struct smco_err err = {0};
	struct tevent ev;
	int got;
	pid_t pid;
	r->exit_status = -1;
	if (tracer_create(
		    &r->tr,
		    &(struct tracer_options){.follow = r->child || r->forked,
					     .kill_on_exit = !r->survives},
		    &err) ||
	    tracer_launch(r->tr, argv, &pid, &err)) {
		printf("# %s\n", err.msg);
		return false;
	}
	for (;;) {
		uint64_t ms = r->tick_ms ? r->tick_ms : 5;
		got = tracer_next(r->tr, smco_now_ns() + ms * NSEC_PER_MSEC,
				  &ev);
		if (got <= 0 || ev.kind == TEV_DONE)
			break;
		run_event(r, &ev, &err);
		if (r->tick && r->p)
			r->tick(r);
	}
	if (r->h) {
		hooks_drain(r->h, run_hear, r);
		hooks_get_stats(r->h, &r->stats);
	} else if (!r->plant || err.code) {
		printf("# not planted: %s\n", err.msg);
	}
	hooks_destroy(r->h);
	r->h = NULL;
	sym_space_destroy(r->syms);
	r->syms = NULL;
	tracer_destroy(r->tr);
	return true;
}

/* The books against the program's own account in a file. */
static inline bool run_live_set_is_exact(struct run *r, const char *path)
{
	char line[128];
	unsigned nr = 0, missing = 0, wrong_size = 0;
	bool success = false;
	FILE *f = fopen(path, "r");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		unsigned long addr;
		size_t size;
		if (!strcmp(line, "EXIT-SUCCESS\n"))
			success = true;
		else if (sscanf(line, "%lx %zu", &addr, &size) != 2)
			printf("# %s", line);
		else {
			struct book_entry *e = book_find(r, addr);
			nr++;
			if (!e->addr)
				missing++;
			else if (e->size != size)
				wrong_size++;
			book_drop(r, addr);
		}
	}
	fclose(f);
	unlink(path);
	printf("# %u blocks, %u missing, %u of wrong size, %u too many\n", nr,
	       missing, wrong_size, r->nr_live);
	/* libstdc++ keeps a block in reserve where it is loaded. */
	for (unsigned i = 0; i < BOOK_SLOTS; i++)
		r->nr_live -= r->book[i].addr && r->book[i].size == 72704;
	for (unsigned i = 0; i < BOOK_SLOTS && r->nr_live; i++)
		if (r->book[i].addr)
			printf("# extra %lx %lu caller %lx\n",
			       (long)r->book[i].addr, (long)r->book[i].size,
			       (long)r->book[i].caller);
	return success && nr > 50 && !missing && !wrong_size && !r->nr_live;
}

#endif
