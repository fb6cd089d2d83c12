/* Planting, traps and the small accessors, see hook.h. */
#include "reports/procfs.h"
#include "supervisor/probe/hook-private.h"
#include "supervisor/probe/near.h"
#include "supervisor/probe/own-tid.h"
#include "supervisor/probe/sigframe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

extern const uint8_t agent_image_start[], agent_image_end[];

#define FIRST_ALWAYS_BYTES (4ULL << 20)
#define FIRST_SPARE_BYTES  (16ULL << 20)
/* What a recorded block is taken to cost before the agent has timed any, and
 * what its timing leaves out: entry and exit, twice. */
#define FIRST_COST_NS 150
#define ENTRY_NS      16
/* All that we map, of all that the program has mapped. */
#define MORE_PERCENT 4

void hook_say(struct hooks *h, const char *text)
{
	size_t at = strlen(h->text);
	snprintf(h->text + at, sizeof(h->text) - at, "%s", text);
}

static size_t read_tracee(void *ctx, taddr_t addr, void *buf, size_t len)
{
	return tmem_read_some(ctx, addr, buf, len);
}

static taddr_t fix_pc(void *ctx, taddr_t pc)
{
	return stub_moved_pc(ctx, pc);
}

static int undo_hooks(struct tproc *p, void *arg)
{
	struct hooks *h = arg;
	(void)p;
	h->undo = NULL;
	/* The engine's own undo of the patches runs before this, or after it
	 * in a forked copy, where it finds them restored. */
	memset(h->patches, 0, sizeof(h->patches));
	hook_take_out(h);
	bool left = h->left;
	if (h->is_orphan)
		hook_free(h);
	return left ? SMCO_BUSY : 0;
}

/* Does each of @p's threads keep its number there? */
static bool all_agree(struct tproc *p, uint32_t off)
{
	size_t max = tproc_nr_tasks(p), nr = 0;
	_cleanup_free_ taddr_t *at = calloc(max, sizeof(*at));
	_cleanup_free_ uint32_t *tids = calloc(max, sizeof(*tids));
	_cleanup_free_ uint32_t *there = calloc(max, sizeof(*there));
	struct user_regs_struct regs;

	if (!at || !tids || !there)
		return false;
	for (struct task *t = tproc_first_task(p); t && nr < max;
	     t = task_next(t)) {
		if (task_get_regs(t, &regs))
			continue;
		tids[nr] = (uint32_t)task_own_tid(t);
		at[nr++] = regs.fs_base + off;
	}
	return tmem_read_words(p, at, nr, there) == 0 &&
	       !memcmp(there, tids, nr * sizeof(*tids));
}

static uint32_t find_tid_offset(struct tproc *p)
{
	uint32_t off = own_tid_offset(p);
	return off && all_agree(p, off) ? off : 0;
}

static int write_life(struct hooks *h, bool alive, struct smco_err *err)
{
	struct agent_life life = {.alive = alive};
	int r = tmem_write(h->p, h->base + AGENT_LIFE_OFF, &life, sizeof(life));
	return r ? smco_fail(err, r, 0, "cannot write the agent's memory") : 0;
}

/* A process, or who made it, may have forbidden itself the time stamp counter
 * (PR_SET_TSC). Not to be told: it has not. */
static bool clock_is_forbidden(struct hooks *h)
{
	taddr_t at = h->base + AGENT_PRIV_OFF;
	int64_t ret;
	int tsc = 0;
	if (near_call(h->p, SYS_prctl, (uint64_t[6]){PR_GET_TSC, at}, "prctl",
		      &ret, NULL) ||
	    tmem_read(h->p, at, &tsc, sizeof(tsc)))
		return false;
	return tsc == PR_TSC_SIGSEGV;
}

static int write_agent(struct hooks *h, struct smco_err *err)
{
	struct agent_private *priv = &h->plan.priv;
	size_t len = agent_image_end - agent_image_start;
	struct agent_header hdr;

	priv->trap_signal = tproc_trap_signal(h->p);
	priv->pid = tproc_pid(h->p);
	priv->tid_offset = find_tid_offset(h->p);
	priv->no_clock = clock_is_forbidden(h);
	memcpy(&hdr, agent_image_start, sizeof(hdr));
	h->trap_pc = h->base + AGENT_IMAGE_OFF + hdr.trap_off;
	int r = tmem_write(h->p, h->base + AGENT_IMAGE_OFF, agent_image_start,
			   len);
	if (r == 0)
		r = tmem_write(h->p, h->base + AGENT_STUB_OFF, h->plan.stubs,
			       sizeof(h->plan.stubs));
	if (r == 0)
		r = tmem_write(h->p, h->base + AGENT_PRIV_OFF, priv,
			       sizeof(*priv));
	if (r)
		return smco_fail(err, r, 0, "cannot write the agent");
	r = hook_area_protect(h->p, h->base, err);
	return r ? r : write_life(h, true, err);
}

/* Who returns from a signal handler into the bytes of a jump. */
struct moving {
	struct tproc *p;
	const struct stub *stub;
};

static void move_slot(void *ctx, taddr_t slot, taddr_t pc)
{
	const struct moving *m = ctx;
	taddr_t to = stub_moved_pc(m->stub, pc);
	if (to)
		tmem_write(m->p, slot, &to, sizeof(to));
}

static void move_frames(struct hooks *h, const struct stub *stub)
{
	struct moving m = {h->p, stub};
	for (struct task *t = tproc_first_task(h->p); t; t = task_next(t)) {
		taddr_t pc, sp;
		if (task_in_handler(t) && task_get_place(t, &pc, &sp) == 0)
			sigframes_find(h->p, sp, stub->patch + 1,
				       stub->patch + STUB_JUMP_BYTES, move_slot,
				       &m);
	}
}

static int patch_all(struct hooks *h, struct smco_err *err)
{
	for (unsigned i = 0; i < h->plan.nr_sites; i++) {
		struct hook_site *site = &h->plan.sites[i];
		if (!site->planted)
			continue;
		int r = tproc_patch(h->p, site->stub.patch, site->stub.jump,
				    STUB_JUMP_BYTES, fix_pc, &site->stub,
				    &h->patches[i], err);
		if (r)
			return r;
		move_frames(h, &site->stub);
	}
	return 0;
}

/* Everything that can be hooked must be within reach of one area. */
static void reach_of(const struct hook_plan *plan, taddr_t *start, taddr_t *end)
{
	*start = plan->mod_start;
	*end = plan->mod_end;
	for (unsigned i = 0; i < plan->nr_sites; i++) {
		if (plan->sites[i].addr < *start)
			*start = plan->sites[i].addr;
		if (plan->sites[i].addr > *end)
			*end = plan->sites[i].addr;
	}
}

/* Of its own memory it may have no more than so much (ulimit -v, -d). Not to
 * be told: so it may be. */
static bool memory_is_limited(const struct tproc *p)
{
	struct rlimit space, data;
	return prlimit(tproc_pid(p), RLIMIT_AS, NULL, &space) ||
	       prlimit(tproc_pid(p), RLIMIT_DATA, NULL, &data) ||
	       space.rlim_cur != RLIM_INFINITY ||
	       data.rlim_cur != RLIM_INFINITY;
}

int hooks_plant(struct tproc *p, const struct hook_symbols *syms,
		uint64_t cutoff_bytes, struct hooks **ret, struct smco_err *err)
{
	taddr_t start, end;
	_cleanup_close_ int fd = -1;
	struct hooks *h = calloc(1, sizeof(*h));
	if (!h)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	h->p = p;
	/* First: in a sandbox nobody tells when the libraries are there. */
	int r = near_calls_allowed(p, err);
	if (r == 0)
		r = hook_plan_find(&h->plan, syms, err);
	if (r)
		goto failed;
	reach_of(&h->plan, &start, &end);
	h->undo = tproc_undo_push(p, undo_hooks, h);
	if (!h->undo) {
		r = smco_fail(err, SMCO_NOMEM, 0, "out of memory");
		goto failed;
	}
	r = hook_area_map(p, start, end, &h->base, &fd, err);
	if (r)
		goto failed;
	h->planted = true;
	r = hook_shm_init(&h->shm, fd, true, err);
	if (r == 0)
		r = hook_plan_build(&h->plan, h->base, read_tracee, p, err);
	if (r == 0)
		r = write_agent(h, err);
	snprintf(h->text, sizeof(h->text), "%s", h->plan.text);
	if (r == 0 && tproc_set_trap_range(p, h->trap_pc, h->trap_pc) < 0)
		r = smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	if (r)
		goto failed;
	hooks_set_spare(h, FIRST_SPARE_BYTES, UINT64_MAX);
	hook_shm_set_cutoff(&h->shm, cutoff_bytes);
	h->shm.ctl->always_bytes = FIRST_ALWAYS_BYTES;
	/* Others than glibc give out large blocks at any distance. */
	h->shm.ctl->use_filter = !h->plan.priv.is_glibc;
	r = patch_all(h, err);
	if (r)
		goto failed;
	smco_debug("hook", "pid %d: %s, agent at 0x%llx", tproc_pid(p), h->text,
		   (unsigned long long)h->base);
	*ret = h;
	return 0;
failed:
	if (h->planted)
		hook_take_out(h);
	if (h->undo)
		tproc_undo_drop(p, h->undo);
	hook_shm_deinit(&h->shm);
	free(h);
	return r;
}

/* Taken out, so that the copy is not left with half of it. */
static void give_up(struct hooks *h)
{
	hook_take_out(h);
	if (h->undo)
		tproc_undo_drop(h->p, h->undo);
	hook_free(h);
}

/* Pools of stacks that a copy has, too, and does not use. */
static void note_pools(struct hooks *h, const struct hooks *parent)
{
	h->nr_older = parent->nr_older;
	memcpy(h->older, parent->older, sizeof(h->older));
	for (unsigned i = 0; i < parent->shm.nr_more; i++)
		if (h->nr_older < ARRAY_SIZE(h->older))
			h->older[h->nr_older++] = parent->shm.stacks->more[i];
}

/* Has @child, a copy, the sensors of @h? It may be one from before they were
 * planted, of which it is heard afterwards. */
static bool has_copied(const struct hooks *h, struct tproc *child)
{
	for (unsigned i = 0; i < h->plan.nr_sites; i++)
		if (h->plan.sites[i].planted)
			return tproc_patch_at(child,
					      h->plan.sites[i].stub.patch,
					      STUB_JUMP_BYTES);
	return false;
}

/* Threads that were inside in the parent are not in its copy. */
static int nobody_is_inside(struct hooks *h)
{
	uint32_t nobody = 0;
	return tmem_write(h->p,
			  h->base + AGENT_PRIV_OFF +
				  offsetof(struct agent_private, inside),
			  &nobody, sizeof(nobody));
}

int hooks_copy(const struct hooks *parent, struct tproc *child,
	       struct hooks **ret, struct smco_err *err)
{
	if (!has_copied(parent, child))
		return smco_fail(err, SMCO_NOTFOUND, 0,
				 "process %d was copied before sensors were "
				 "planted",
				 (int)tproc_pid(child));
	struct hooks *h = calloc(1, sizeof(*h));
	if (!h)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	h->p = child;
	h->plan = parent->plan;
	h->base = parent->base;
	h->trap_pc = parent->trap_pc;
	memcpy(h->text, parent->text, sizeof(h->text));
	h->is_short = parent->is_short;
	if (parent->shm.map)
		hook_shm_tell(&parent->shm, &h->known);
	else
		h->known = parent->known;
	note_pools(h, parent);
	h->planted = true;
	h->is_unseen = true;
	h->undo = tproc_undo_push(child, undo_hooks, h);
	int r = h->undo ? 0 : smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	if (r == 0 && !tproc_is_whole_copy(child))
		r = nobody_is_inside(h);
	if (r == 0)
		*ret = h;
	else
		give_up(h);
	return r;
}

/* From now on it is @h's process that its agent speaks for. */
static int say_who(struct hooks *h)
{
	uint32_t pid = tproc_pid(h->p);
	return tmem_write(h->p,
			  h->base + AGENT_PRIV_OFF +
				  offsetof(struct agent_private, pid),
			  &pid, sizeof(pid));
}

/* With what @parent knows, if that is not NULL. */
static int wake(struct hooks *h, const struct hooks *parent,
		struct smco_err *err)
{
	_cleanup_close_ int fd = -1;
	int r = hook_is_there(h) ? say_who(h) : SMCO_NOTFOUND;
	if (r == 0)
		r = hook_area_renew(h->p, h->base, &fd, err);
	else
		smco_fail(err, r, 0, "process %d has no sensors",
			  (int)tproc_pid(h->p));
	if (r == 0)
		r = hook_shm_init(&h->shm, fd, true, err);
	if (r == 0 && parent) {
		hook_shm_inherit(&h->shm, &parent->shm);
		h->nr_older = parent->nr_older; /* the others are used */
	} else if (r == 0) {
		hook_shm_learn(&h->shm, &h->known);
	}
	if (r == 0)
		hooks_set_spare(h, FIRST_SPARE_BYTES, UINT64_MAX);
	if (r == 0)
		r = write_life(h, true, err);
	if (r)
		give_up(h);
	return r;
}

int hooks_wake(struct hooks *h, struct smco_err *err)
{
	return wake(h, NULL, err);
}

int hooks_fork(const struct hooks *parent, struct tproc *child,
	       struct hooks **ret, struct smco_err *err)
{
	struct hooks *h;
	int r = hooks_copy(parent, child, &h, err);
	if (r == 0)
		r = wake(h, parent, err);
	if (r == 0)
		*ret = h;
	return r;
}

void hook_free(struct hooks *h)
{
	hook_shm_deinit(&h->shm);
	free(h);
}

void hooks_destroy(struct hooks *h)
{
	if (!h)
		return;
	/* Detach is still to come for it (or an end: then it stays). */
	if (h->is_owed && h->planted)
		h->is_orphan = true;
	else
		hook_free(h);
}

static int32_t as_tokens(uint32_t tokens)
{
	return tokens < INT32_MAX / 2 ? (int32_t)tokens : INT32_MAX / 2;
}

void hooks_set_tokens(struct hooks *h, uint32_t tokens)
{
	__atomic_store_n(&h->shm.ctl->tokens, as_tokens(tokens),
			 __ATOMIC_RELAXED);
}

void hooks_set_trap_tokens(struct hooks *h, uint32_t tokens)
{
	__atomic_store_n(&h->shm.ctl->trap_tokens, as_tokens(tokens),
			 __ATOMIC_RELAXED);
}

void hooks_set_cutoff(struct hooks *h, uint64_t bytes)
{
	hook_shm_set_cutoff(&h->shm, bytes);
}

void hooks_set_always_bytes(struct hooks *h, uint64_t bytes)
{
	__atomic_store_n(&h->shm.ctl->always_bytes, bytes, __ATOMIC_RELAXED);
}

static uint32_t as_kib(uint64_t bytes)
{
	return bytes >> 10 < UINT32_MAX ? (uint32_t)(bytes >> 10) : UINT32_MAX;
}

bool hooks_set_spare(struct hooks *h, uint64_t small_bytes,
		     uint64_t large_bytes)
{
	if (memory_is_limited(h->p))
		small_bytes = large_bytes = 0;
	__atomic_store_n(&h->shm.ctl->small_spare, as_kib(small_bytes),
			 __ATOMIC_RELAXED);
	__atomic_store_n(&h->shm.ctl->large_spare, as_kib(large_bytes),
			 __ATOMIC_RELAXED);
	if (!h->plan.priv.is_glibc || h->is_short ||
	    (large_bytes == UINT64_MAX && small_bytes >= FIRST_SPARE_BYTES))
		return false;
	h->is_short = true;
	hook_say(h, small_bytes || large_bytes
			    ? ", few pages of their own (memory is limited)"
			    : ", no pages of their own (memory is limited)");
	return true;
}

static_assert(HOOKS_RING == AGENT_RING_SLOTS, "ring");

size_t hooks_drain(struct hooks *h,
		   void (*fn)(void *ctx, const struct heap_event *ev),
		   void *ctx)
{
	return hook_shm_drain(&h->shm, fn, ctx);
}

bool hooks_own_uffd(struct hooks *h)
{
	bool has = h->has_own_uffd;
	h->has_own_uffd = false;
	return has;
}

bool hooks_on_trap(struct hooks *h, struct task *t, const siginfo_t *si,
		   struct user_regs_struct *regs)
{
	struct user_regs_struct r;
	struct agent_frame f;

	(void)si;
	if (task_get_regs(t, &r) || r.rip != h->trap_pc || r.rbx != AGENT_MAGIC)
		return false;
	h->has_own_uffd |= r.r13 == AGENT_TRAP_UFFD;
	if (r.r13 == AGENT_TRAP_DRAIN) {
		hook_shm_save(&h->shm);
		return false;
	}
	if (r.r13 != AGENT_TRAP_STACK || tmem_read(h->p, r.r12, &f, sizeof(f)))
		return false;
	*regs = r;
	hook_frame_regs(regs, r.r12, &f);
	h->trap_slot = regs->rsp;
	regs->rip = f.ret;
	regs->rsp += 8;
	return true;
}

/* Another pool, if that is little beside what the program has mapped. */
static int more_stacks(struct hooks *h)
{
	char path[PROCFS_PATH];
	unsigned long pages = 0;
	procfs_path(path, sizeof(path), procfs_holder(tproc_pid(h->p)),
		    "statm");
	FILE *f = fopen(path, "re");
	if (!f)
		return SMCO_GONE;
	int got = fscanf(f, "%lu", &pages);
	fclose(f);
	uint64_t ours =
		AGENT_AREA_BYTES + (h->shm.nr_more + 1) * AGENT_MORE_BYTES;
	if (got != 1 || ours > pages * TPAGE_SIZE / 100 * MORE_PERCENT)
		return SMCO_NOMEM;
	taddr_t addr;
	_cleanup_close_ int fd = -1;
	int r = hook_area_more(h->p, h->base, AGENT_MORE_BYTES, &addr, &fd,
			       NULL);
	return r ? r : hook_shm_add_pool(&h->shm, fd, addr);
}

int hooks_answer(struct hooks *h, struct task *t, uint32_t stack,
		 const taddr_t *frames, const taddr_t *slots, size_t nr)
{
	taddr_t at[AGENT_MAX_FRAMES];

	(void)t;
	if (nr > ARRAY_SIZE(at))
		nr = ARRAY_SIZE(at);
	if (nr == 0 || !h->trap_slot)
		return SMCO_FORMAT;
	memcpy(at, slots, nr * sizeof(*at));
	at[0] = h->trap_slot;
	h->trap_slot = 0;
	int r = hook_shm_add_stack(&h->shm, stack, frames, at, nr);
	if (r != SMCO_NOMEM)
		return r;
	if (more_stacks(h) == 0)
		return hook_shm_add_stack(&h->shm, stack, frames, at, nr);
	__atomic_store_n(&h->shm.stacks->full, 1, __ATOMIC_RELAXED);
	hook_say(h, "; more call stacks than can be kept");
	return SMCO_NOMEM;
}

void hooks_get_stats(struct hooks *h, struct hooks_stats *ret)
{
	const struct agent_ctl *c = h->shm.ctl;
	*ret = (struct hooks_stats){
		.nr_recorded = c->head,
		.nr_skipped = c->nr_skipped,
		.skipped_bytes = c->skipped_bytes,
		.nr_lost = c->nr_lost + h->shm.nr_given_up,
		.nr_traps = c->nr_traps,
		.agent_ns = (double)c->agent_tsc * h->shm.clock.ns_per_tick,
	};
}

uint64_t hooks_cost_ns(const struct hooks *h)
{
	const struct agent_ctl *c = h->shm.ctl;
	/* The sampled time also has the traps' and the unrecorded calls' in
	 * it: on the safe side. */
	if (c->head < 1000)
		return FIRST_COST_NS;
	double per_record = (double)c->agent_tsc * h->shm.clock.ns_per_tick /
			    (double)c->head;
	uint64_t ns = 2 * per_record + ENTRY_NS;
	return ns < 10 * FIRST_COST_NS ? ns : 10 * FIRST_COST_NS;
}

const char *hooks_describe(const struct hooks *h)
{
	return h->text;
}
