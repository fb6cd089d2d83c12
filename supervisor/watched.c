#include "reports/procfs.h"
#include "supervisor/watched.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "supervisor/probe/hook-plan.h"
#include "supervisor/probe/hook-shm.h"
#include "supervisor/tables.h"

#define STACK_FRAMES  32
#define SAMPLE_FRAMES 96
#define MAPS_AGE_NS   (200 * NSEC_PER_MSEC)

static ssize_t read_tracee(void *ctx, taddr_t addr, void *buf, size_t len)
{
	return (ssize_t)tmem_read_some(ctx, addr, buf, len);
}

/* In order of preference. Alone, those that see writes only are no default. */
static const struct {
	enum options_mechanism name;
	const struct access_ops *ops;
} mechanisms[] = {
	{MECHANISM_BITS, &access_bits},
	{MECHANISM_MPROTECT, &access_mprotect},
	{MECHANISM_PAGESCAN, &access_pagescan},
	{MECHANISM_UFFD, &access_uffd},
};
static bool prepared[ARRAY_SIZE(mechanisms)];
static struct tables *tables;

static bool is_candidate(size_t i, enum options_mechanism asked)
{
	if (asked == MECHANISM_AUTO)
		return mechanisms[i].ops->sees & ACCESS_READS;
	return asked == mechanisms[i].name;
}

void watched_prepare(enum options_mechanism mechanism)
{
	/* It takes a millisecond, the first time: not while a program stands.*/
	struct tsc_map clock;
	tsc_map_init(&clock);
	for (size_t i = 0; i < ARRAY_SIZE(mechanisms); i++) {
		const struct access_ops *ops = mechanisms[i].ops;
		if (!is_candidate(i, mechanism) || !ops->prepare)
			continue;
		prepared[i] = !ops->prepare(NULL);
		if (prepared[i])
			break; /* this is the one that will be used */
	}
}

void watched_unprepare(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(mechanisms); i++)
		if (prepared[i]) {
			if (mechanisms[i].ops->unprepare)
				mechanisms[i].ops->unprepare();
			prepared[i] = false;
		}
}

void watched_set_tables(struct tables *t)
{
	tables = t;
}

struct watched *watched_create(struct tproc *p, bool is_young,
			       struct smco_err *err)
{
	struct watched *w = calloc(1, sizeof(*w));
	if (!w) {
		smco_fail(err, SMCO_NOMEM, 0, "out of memory");
		return NULL;
	}
	w->proc = p;
	w->pid = tproc_pid(p);
	tproc_linker_way(p, &w->linker_way, &w->linker_home);
	if (!is_young) /* not what it used before us */
		w->cpu_ns = tproc_cpu_ns(p);
	char root[PROCFS_PATH];
	procfs_path(root, sizeof(root), procfs_holder(w->pid), "root");
	w->space = sym_space_create(w->pid, root, read_tracee, p);
	if (!w->space) {
		free(w);
		smco_fail(err, SMCO_NOMEM, 0, "out of memory");
		return NULL;
	}
	return w;
}

static void drop_hooks(struct hooks *h, pid_t pid, bool gone)
{
	struct smco_err err = {0};
	if (h && !gone && hooks_remove(h, &err))
		smco_debug("session", "pid %d: sensors stay until we leave: %s",
			   (int)pid, err.msg);
	hooks_destroy(h);
}

void watched_destroy(struct watched *w, bool gone)
{
	if (!w)
		return;
	if (w->nap)
		nap_proc_destroy(w->nap, smco_now_ns(), gone);
	struct access *both[] = {w->guard, w->primary};
	for (size_t i = 0; i < ARRAY_SIZE(both); i++) {
		if (!both[i])
			continue;
		if (gone)
			both[i]->ops->forget(both[i]);
		else
			both[i]->ops->close(both[i]);
	}
	drop_hooks(w->hooks, w->pid, gone);
	drop_hooks(w->asleep, w->pid, gone);
	mapped_deinit(&w->mapped);
	free(w);
}

void watched_let_stand(struct watched *w, bool may_stand)
{
	struct access *both[] = {w->guard, w->primary};
	for (size_t i = 0; i < ARRAY_SIZE(both); i++)
		if (both[i] && both[i]->ops->relax && !may_stand)
			both[i]->ops->relax(both[i]);
	if (w->nap)
		nap_hold_back(w->nap, w->primary && w->primary->ops->relax &&
					      !may_stand);
}

/* Those of @pid's mappings that code or its information may be in. */
static int update_space(struct sym_space *space, pid_t pid,
			const struct tmaps *maps, struct smco_err *err)
{
	if (!maps->nr) /* it has ended, and nobody has taken its status */
		return smco_fail(err, SMCO_GONE, 0,
				 "process %d has no memory any more", (int)pid);
	_cleanup_free_ struct sym_mapping *m = calloc(maps->nr, sizeof(*m));
	if (!m)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	size_t nr = 0;
	for (size_t i = 0; i < maps->nr; i++) {
		const struct tmap *t = &maps->maps[i];
		bool is_vdso = !strcmp(t->path, "[vdso]");
		bool is_file = t->inode && t->path[0] == '/';
		/* Generated code, so that it is not taken for a new module. */
		bool is_code = (t->prot & PROT_EXEC) && !t->path[0];
		if (!is_vdso && !is_file && !is_code)
			continue;
		m[nr++] = (struct sym_mapping){
			.start = t->start,
			.end = t->end,
			.offset = t->offset,
			.inode = t->inode,
			.exec = t->prot & PROT_EXEC,
			.deleted = t->deleted,
			.path = t->path,
		};
	}
	return sym_space_update(space, m, nr, err);
}

static taddr_t find_symbol(void *ctx, const char *name, taddr_t *start,
			   taddr_t *end)
{
	struct watched *w = ctx;
	uint64_t size;
	return sym_find(w->space, name, "malloc", start, end, &size);
}

/* Where libc is part of the program its calls cannot be told from that one's.
 */
static taddr_t find_in_libc(void *ctx, const char *name, taddr_t *start,
			    taddr_t *end)
{
	static const char libc[] = "gnu_get_libc_version";
	struct watched *w = ctx;
	uint64_t size;
	if (sym_find(w->space, "_start", libc, NULL, NULL, NULL))
		return 0;
	return sym_find(w->space, name, libc, start, end, &size);
}

/* All names that planting looks for, so that nothing is read for them then. */
static void look_up_all(struct sym_space *space)
{
	struct watched nobody = {.space = space};
	struct hook_symbols syms = {
		.find = find_symbol, .find_libc = find_in_libc, .ctx = &nobody};
	struct hook_plan plan;
	hook_plan_find(&plan, &syms, NULL);
}

struct sym_space *watched_expect(pid_t pid)
{
	char root[PROCFS_PATH];
	procfs_path(root, sizeof(root), procfs_holder(pid), "root");
	struct sym_space *space = sym_space_create(pid, root, NULL, NULL);
	struct tmaps maps = {0};
	int rc = space ? tmaps_read(pid, &maps, NULL) : SMCO_NOMEM;
	if (!rc)
		rc = update_space(space, pid, &maps, NULL);
	tmaps_deinit(&maps);
	if (rc) {
		sym_space_destroy(space);
		return NULL;
	}
	look_up_all(space);
	tables_want(tables, space);
	return space;
}

int watched_update_modules(struct watched *w, struct smco_err *err)
{
	uint64_t began_ns = smco_now_ns();
	struct tmaps maps;
	int rc = tproc_code_maps(w->proc, &maps, err);
	if (!rc) {
		rc = update_space(w->space, w->pid, &maps, err);
		tmaps_deinit(&maps);
	}
	w->maps_read_ns = began_ns;
	if (!rc)
		mapped_forget(&w->mapped);
	if (!rc && tables_want(tables, w->space) && !w->is_patient) {
		w->is_patient = true;
		sym_space_set_patience(w->space, tables_patience_ns(tables));
	}
	return rc;
}

int watched_open_access(struct watched *w, enum options_mechanism mechanism,
			struct nap *nap, struct smco_err *err)
{
	struct smco_err why = {0};
	int rc = SMCO_UNSUPPORTED;

	w->why_mechanism[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(mechanisms); i++) {
		const struct access_ops *ops = mechanisms[i].ops;
		if (!is_candidate(i, mechanism))
			continue;
		rc = ops->open(w->proc, &w->primary, &why);
		if (!rc)
			break;
		size_t len = strlen(w->why_mechanism);
		snprintf(w->why_mechanism + len, sizeof(w->why_mechanism) - len,
			 "%s%s: %s", len ? "; " : "", ops->name, why.msg);
	}
	if (rc)
		return smco_fail(err, rc, 0, "no access mechanism: %s",
				 w->why_mechanism);
	w->nap = nap_proc_create(nap, w->pid, w->primary);
	if (!w->nap)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	return 0;
}

void watched_open_guard(struct watched *w)
{
	struct smco_err err = {0};
	if (w->guard || w->guard_tried || w->primary->ops->is_guard)
		return;
	if (tproc_stop_briefly(w->proc, NULL))
		return; /* the next time */
	w->guard_tried = true;
	int rc = access_uffd.open(w->proc, &w->guard, &err);
	if (rc == SMCO_BUSY)
		w->no_guard = err;
	if (rc)
		smco_debug("session", "pid %d: %s", (int)w->pid, err.msg);
	tproc_cont(w->proc);
	if (w->guard)
		nap_set_guard(w->nap, w->guard);
}

int watched_plant(struct watched *w, uint64_t cutoff, struct smco_err *err)
{
	struct hook_symbols syms = {
		.find = find_symbol,
		.find_libc = find_in_libc,
		.ctx = w,
	};
	if (w->hooks)
		return 0;
	int rc = watched_update_modules(w, err);
	if (rc)
		return rc;
	return hooks_plant(w->proc, &syms, cutoff, &w->hooks, err);
}

struct drain {
	struct watched *w;
	struct stacks *stacks;
};

/* Where the budget had no room for the whole stack, the caller is known. */
static void to_monitor(void *ctx, const struct heap_event *ev)
{
	struct drain *d = ctx;
	struct heap_event e = *ev;
	if (!e.stack && e.caller)
		e.stack = stacks_intern(d->stacks, d->w->space, &e.caller, 1,
					true);
	nap_heap_event(d->w->nap, &e);
}

/* Private anonymous memory that is neither heap nor stack and was not
 * allocated before our eyes. */
static void adopt_mappings(struct watched *w, const struct tmaps *maps)
{
	uint64_t now = smco_now_ns();
	for (size_t i = 0; i < maps->nr; i++) {
		const struct tmap *m = &maps->maps[i];
		if (m->inode || m->shared || m->path[0] ||
		    !(m->prot & PROT_WRITE) || m->prot & PROT_EXEC)
			continue;
		nap_adopt_mapping(w->nap, m->start, m->end - m->start, now);
	}
}

int watched_adopt(struct watched *w, uint64_t min_bytes, bool only_own,
		  struct stacks *stacks, struct smco_err *err)
{
	const struct tmaps *maps;
	if (!w->nap || w->adopted)
		return 0;
	w->adopted = true;
	struct drain d = {.w = w, .stacks = stacks};
	if (w->hooks)
		return hooks_adopt(w->hooks, min_bytes, only_own, to_monitor,
				   &d, err);
	if (only_own)
		return 0;
	int rc = tproc_get_maps(w->proc, &maps, err);
	if (!rc)
		adopt_mappings(w, maps);
	return rc;
}

static struct sym_regs to_sym_regs(const struct user_regs_struct *r)
{
	return (struct sym_regs){{r->rax, r->rdx, r->rcx, r->rbx, r->rsi,
				  r->rdi, r->rbp, r->rsp, r->r8, r->r9, r->r10,
				  r->r11, r->r12, r->r13, r->r14, r->r15,
				  r->rip}};
}

void watched_mapped(struct watched *w, const struct ring_record *r)
{
	if (r->time > w->maps_read_ns)
		mapped_note(&w->mapped, r);
}

/*
 * A module that came since (dlopen) ends a stack early or bends it. What is
 * seen of a call now is kept for all later ones, so ask at once; but not again
 * and again for what no mapping explains. Who is gone cannot be asked.
 */
static bool update_for_stack(struct watched *w)
{
	bool may_ask = w->nr_stale++ < 1000 ||
		       smco_now_ns() - w->maps_read_ns > MAPS_AGE_NS;
	if (!w->is_gone && may_ask && !watched_update_modules(w, NULL))
		return true;
	return mapped_tell(&w->mapped, w->space);
}

/* The stack that is unwound: memory now, or a copy of then. */
struct reading {
	struct watched *w;
	const struct sym_stack *copy;
};

static size_t read_stack(void *ctx, taddr_t addr, void *buf, size_t len)
{
	const struct reading *r = ctx;
	if (!r->copy)
		return tmem_read_some(r->w->proc, addr, buf, len);
	taddr_t off = addr - r->copy->start;
	if (addr < r->copy->start || off >= r->copy->len)
		return 0;
	if (len > r->copy->len - off)
		len = r->copy->len - off;
	memcpy(buf, (const char *)r->copy->data + off, len);
	return len;
}

static size_t unwind_once(struct watched *w,
			  const struct user_regs_struct *regs,
			  const struct sym_stack *copy, taddr_t *frames,
			  taddr_t *slots, size_t max, bool *complete_ret)
{
	struct sym_regs sr = to_sym_regs(regs);
	return copy ? sym_unwind_copy(w->space, &sr, copy, frames, slots, max,
				      complete_ret)
		    : sym_unwind(w->space, &sr, frames, slots, max,
				 complete_ret);
}

/*
 * Through the sensors of allocation functions: from where a stack comes to the
 * agent it goes on with the function's caller, or, if that is where the thread
 * is, with the function.
 */
#define CALLS_INSIDE 8 /* realloc calls malloc, which calls mmap */
static size_t unwind_through(struct watched *w,
			     const struct user_regs_struct *regs,
			     const struct sym_stack *copy, taddr_t *frames,
			     taddr_t *slots, size_t max, bool *complete_ret)
{
	struct reading reading = {w, copy};
	struct hook_stack stack = {read_stack, &reading};
	struct user_regs_struct at = *regs;
	if (w->hooks)
		hooks_home(w->hooks, &at);
	size_t i = 0,
	       nr = unwind_once(w, &at, copy, frames, slots, max, complete_ret);
	for (int inside = 0; w->hooks && inside < CALLS_INSIDE; inside++) {
		while (i < nr && !hooks_have(w->hooks, frames[i]))
			i++;
		if (i == nr ||
		    !hooks_leave(w->hooks, &stack, i ? &slots[i] : NULL, &at))
			break;
		taddr_t slot = at.rsp;
		if (i) { /* the function itself is among the frames */
			if (read_stack(&reading, slot, &at.rip,
				       sizeof(at.rip)) != sizeof(at.rip))
				break;
			at.rsp += sizeof(taddr_t);
		}
		nr = i + unwind_once(w, &at, copy, frames + i, slots + i,
				     max - i, complete_ret);
		if (i)
			slots[i] = slot;
	}
	return nr;
}

/*
 * The stack of a stopped thread, or of its @copy. *whole_ret: false if it could
 * be named better a little later. *complete_ret: it reaches its outermost
 * frame.
 */
static size_t unwind(struct watched *w, const struct user_regs_struct *regs,
		     const struct sym_stack *copy, taddr_t *frames,
		     taddr_t *slots, bool *whole_ret, bool *complete_ret)
{
	size_t nr, max = copy ? SAMPLE_FRAMES : STACK_FRAMES;
	for (int again = 0;; again++) {
		nr = unwind_through(w, regs, copy, frames, slots, max,
				    complete_ret);
		if (again || !sym_unwind_stale(w->space) ||
		    !update_for_stack(w))
			break;
	}
	*whole_ret = !sym_unwind_late(w->space);
	if (nr && w->linker_way && frames[nr - 1] == w->linker_way) {
		frames[nr - 1] = w->linker_home;
		*complete_ret = true;
	}
	return nr;
}

/* Its own is there already, and found by who would make another. */
static void yield_uffd(struct watched *w)
{
	struct access *both[] = {w->guard, w->primary};
	for (size_t i = 0; i < ARRAY_SIZE(both); i++)
		if (both[i] && both[i]->ops->yield)
			both[i]->ops->yield(both[i]);
}

bool watched_on_trap(struct watched *w, struct task *t, const siginfo_t *si,
		     struct stacks *stacks)
{
	struct user_regs_struct regs;
	taddr_t frames[STACK_FRAMES], slots[STACK_FRAMES];
	bool whole, complete;

	w->stack_late = false;
	if (!w->hooks || !hooks_on_trap(w->hooks, t, si, &regs)) {
		if (w->hooks && hooks_own_uffd(w->hooks))
			yield_uffd(w);
		return false;
	}
	size_t nr = unwind(w, &regs, NULL, frames, slots, &whole, &complete);
	/* Without an answer the next call from here asks again; this one is
	 * known by its caller. */
	w->stack_late = !whole;
	if (!whole)
		return true;
	slots[0] = regs.rsp - sizeof(taddr_t);
	uint32_t id = stacks_intern(stacks, w->space, frames, nr, true);
	hooks_answer(w->hooks, t, id, frames, slots, nr);
	return true;
}

uint32_t watched_stack(struct watched *w, struct task *t, struct stacks *stacks)
{
	struct user_regs_struct regs;
	taddr_t frames[STACK_FRAMES], slots[STACK_FRAMES];
	bool whole, complete;
	if (task_get_regs(t, &regs))
		return 0;
	/* In a range sensor it is where the program would be without. */
	range_proc_home(w->range, &regs);
	size_t nr = unwind(w, &regs, NULL, frames, slots, &whole, &complete);
	return stacks_intern(stacks, w->space, frames, nr, false);
}

uint32_t watched_sample_stack(struct watched *w,
			      const struct watched_sample *sample,
			      struct stacks *stacks,
			      enum samples_stack *how_ret)
{
	taddr_t frames[SAMPLE_FRAMES], slots[SAMPLE_FRAMES];
	bool whole = true, complete = false;
	size_t nr = 0;
	if (sample->regs) {
		struct user_regs_struct regs = *sample->regs;
		range_proc_home(w->range, &regs);
		nr = unwind(w, &regs, &sample->stack, frames, slots, &whole,
			    &complete);
	}
	*how_ret = complete ? SAMPLES_WHOLE
		   : whole  ? SAMPLES_CUT
			    : SAMPLES_LATE;
	if (sample->may_wait && *how_ret == SAMPLES_LATE)
		return 0;
	return stacks_intern_kernel(stacks, w->space, sample->kernel,
				    sample->nr_kernel, frames, nr);
}

size_t watched_drain(struct watched *w, struct stacks *stacks)
{
	struct drain d = {.w = w, .stacks = stacks};
	return w->hooks && w->nap ? hooks_drain(w->hooks, to_monitor, &d) : 0;
}
