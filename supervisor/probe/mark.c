/* Sensors at marks in a process, see mark.h. */
#include "supervisor/probe/mark-private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "supervisor/probe/near.h"
#include "supervisor/probe/own-tid.h"
#include "supervisor/probe/sigframe.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define STUB_BYTES 512 /* on average, at most */
#define CODE_BYTES (MARK_MAX * STUB_BYTES)
#define NAME_OFF   CODE_BYTES /* a page between code and data */
#define DATA_OFF   (CODE_BYTES + TPAGE_SIZE)
#define AREA_BYTES (DATA_OFF + MARK_DATA_BYTES)

struct marks {
	struct tproc *p;
	struct mark_shm *shm;
	taddr_t base;
	uint32_t code_used;
	struct tundo *undo;
	taddr_t semaphore[MARK_MAX];
	size_t nr_semaphores;
	struct tpatch *patch[MARK_MAX];
	taddr_t addr[MARK_MAX]; /* of the patches */
	uint8_t old[MARK_MAX][CODE_JUMP_BYTES];
	size_t nr_patches;
	size_t nr_planted; /* of addr and old */
	size_t nr_beside;  /* of these: another of ours comes next */
	bool planted;
};

/* ---------------------------------------------------------------- taking out
 */

static taddr_t keep_pc(void *ctx, taddr_t pc)
{
	(void)ctx;
	return pc;
}

static bool nobody_inside(void *ctx)
{
	struct marks *m = ctx;
	for (struct task *t = tproc_first_task(m->p); t; t = task_next(t))
		if (sigframes_leads_to(t, m->base, m->base + CODE_BYTES))
			return false;
	return true;
}

static void add_to_semaphore(struct tproc *p, taddr_t at, int by)
{
	uint16_t v;
	if (!tmem_read(p, at, &v, sizeof(v))) {
		v = (uint16_t)(v + by);
		tmem_write(p, at, &v, sizeof(v));
	}
}

/* Is a jump still there, or will it be? Where somebody else has patched over
 * it, it comes back when they take theirs out. */
static bool is_reachable(const struct marks *m)
{
	uint8_t now[CODE_JUMP_BYTES];
	for (size_t i = 0; i < m->nr_planted; i++)
		if (!tmem_read(m->p, m->addr[i], now, sizeof(now)) &&
		    memcmp(now, m->old[i], sizeof(now)) != 0)
			return true;
	return false;
}

/* The jumps are out already, or go with the engine's own undo. */
static int undo_marks(struct tproc *p, void *arg)
{
	struct marks *m = arg;
	struct smco_err err = {0};
	m->undo = NULL;
	if (!m->planted)
		return 0;
	m->planted = false;
	while (m->nr_semaphores)
		add_to_semaphore(p, m->semaphore[--m->nr_semaphores], -1);
	if (!is_reachable(m) && tproc_vacate(p, nobody_inside, m) &&
	    !near_unmap(p, m->base, AREA_BYTES, &err))
		return 0;
	smco_debug("mark", "pid %d: the stubs stay: %s", tproc_pid(p),
		   err.code ? err.msg : "a thread is in them");
	return SMCO_BUSY;
}

void marks_remove(struct marks *m)
{
	struct tundo *undo = m->undo;
	if (!m->planted)
		return;
	while (m->nr_patches) {
		struct tpatch *patch = m->patch[--m->nr_patches];
		if (patch)
			tproc_unpatch(m->p, patch, keep_pc, NULL, NULL);
	}
	undo_marks(m->p, m);
	if (undo)
		tproc_undo_drop(m->p, undo);
}

bool marks_are_there(const struct marks *m)
{
	uint8_t now[CODE_JUMP_BYTES];
	return !m->nr_planted ||
	       (!tmem_read(m->p, m->addr[0], now, sizeof(now)) &&
		memcmp(now, m->old[0], sizeof(now)) != 0);
}

void marks_forget(struct marks *m)
{
	m->nr_semaphores = 0;
	m->nr_planted = 0;
	marks_remove(m);
}

void marks_destroy(struct marks *m)
{
	if (!m)
		return;
	mark_shm_unref(m->shm);
	free(m);
}

struct mark_shm *marks_shm(struct marks *m)
{
	return m->shm;
}

/* --------------------------------------------------------------- planting ---
 */

/* Where those go on who stand in the bytes of a window that become a jump. */
struct moving {
	struct marks *m;
	const struct mark_window *w;
	const struct mark_stub *stub;
	taddr_t addr;
};

static taddr_t move_pc(void *ctx, taddr_t pc)
{
	const struct moving *x = ctx;
	uint64_t at = pc - x->addr;
	if (pc <= x->addr || at >= CODE_JUMP_BYTES)
		return pc;
	uint32_t to = at < x->w->len ? x->stub->at[at] : UINT32_MAX;
	return to == UINT32_MAX ? 0 : x->stub->code.base + to;
}

static void move_slot(void *ctx, taddr_t slot, taddr_t pc)
{
	const struct moving *x = ctx;
	taddr_t to = move_pc(ctx, pc);
	if (to && to != pc)
		tmem_write(x->m->p, slot, &to, sizeof(to));
}

static void move_frames(struct moving *x)
{
	for (struct task *t = tproc_first_task(x->m->p); t; t = task_next(t)) {
		struct user_regs_struct regs;
		if (x->w->nr_insns > 1 && task_in_handler(t) &&
		    !task_get_regs(t, &regs))
			sigframes_find(x->m->p, regs.rsp, x->addr + 1,
				       x->addr + CODE_JUMP_BYTES, move_slot, x);
	}
}

static void listen(struct marks *m, const struct mark_plan *plan,
		   const struct mark_window *w, uint64_t bias)
{
	for (uint32_t i = 0; i < w->nr_spots; i++) {
		uint64_t at = plan->spot[w->first_spot + i].semaphore;
		if (!at)
			continue;
		add_to_semaphore(m->p, at + bias, 1);
		m->semaphore[m->nr_semaphores++] = at + bias;
	}
}

/*
 * What a window is in memory. Where it begins with a jump of ours, which was
 * put there before, that is its only instruction: what it leads to goes on as
 * the file does. Sensors further on in it are left out.
 */
static bool look_at(struct marks *m, const struct mark_plan *plan,
		    const struct mark_window *w, taddr_t addr,
		    struct mark_window *ret)
{
	uint8_t now[MARK_WINDOW_BYTES];
	size_t n = w->len > w->room ? w->len : w->room;
	const size_t jump = CODE_JUMP_BYTES;
	*ret = *w;
	if (tmem_read(m->p, addr, now, n))
		return false;
	if (!memcmp(now, w->bytes, n))
		return true;
	/* Or where the function begins, before its first spot. */
	size_t behind = plan->spot[w->first_spot].behind;
	const struct tpatch *patch = tproc_patch_at(m->p, addr, jump);
	if (patch)
		behind = 0;
	else
		patch = tproc_patch_at(m->p, addr - behind, jump);
	size_t rest = jump - behind; /* of the jump, in this window */
	if (!patch || n < jump ||
	    memcmp(tpatch_old(patch) + behind, w->bytes, rest) ||
	    memcmp(now + rest, w->bytes + rest, n - rest) != 0 ||
	    tmem_read(m->p, addr - behind, ret->bytes, jump))
		return false;
	ret->addr -= behind;
	ret->behind = (uint8_t)behind;
	ret->len = ret->room = (uint8_t)jump;
	ret->nr_insns = 1;
	ret->goes_on = false;
	ret->nr_spots = 0;
	while (ret->nr_spots < w->nr_spots &&
	       plan->spot[w->first_spot + ret->nr_spots].addr == w->addr)
		ret->nr_spots++;
	m->nr_beside += ret->nr_spots > 0;
	return ret->nr_spots > 0;
}

static int plant_one(struct marks *m, const struct mark_plan *plan,
		     const struct mark_window *planned, uint64_t bias,
		     uint32_t tid_offset, size_t *nr_ret, struct smco_err *err)
{
	uint8_t code[4096], jump[CODE_JUMP_BYTES];
	struct mark_window there;
	const struct mark_window *w = &there;
	struct mark_stub stub = {
		.code = {.buf = code,
			 .cap = sizeof(code),
			 .base = m->base + m->code_used},
	};
	struct moving x = {m, w, &stub, planned->addr + bias};
	struct tpatch *patch;
	memset(stub.at, 0xff, sizeof(stub.at));
	bool is_known = look_at(m, plan, planned, x.addr, &there);
	x.addr = there.addr + bias;
	if (!is_known)
		return smco_fail(err, SMCO_BUSY, 0,
				 "the code at 0x%llx is not the file's: "
				 "somebody has changed it",
				 (unsigned long long)x.addr);
	const char *why = mark_stub_build(&stub, plan, w, bias,
					  m->base + DATA_OFF, tid_offset);
	struct code_buf j = {.buf = jump, .cap = sizeof(jump), .base = x.addr};
	code_jump(&j, stub.code.base);
	if (!why && (j.failed || m->code_used + stub.code.len > CODE_BYTES))
		why = "there is no room for its stub";
	if (why)
		return smco_fail(err, SMCO_UNSUPPORTED, 0, "%s", why);
	int rc = tmem_write(m->p, stub.code.base, code, stub.code.len);
	if (rc)
		return smco_fail(err, rc, 0, "cannot write a sensor");
	rc = tproc_patch(m->p, x.addr, jump, sizeof(jump), move_pc, &x, &patch,
			 err);
	if (rc)
		return rc;
	move_frames(&x);
	m->code_used += (uint32_t)(stub.code.len + 15) & ~15U;
	m->addr[m->nr_patches] = x.addr;
	memcpy(m->old[m->nr_patches], w->bytes, CODE_JUMP_BYTES);
	m->patch[m->nr_patches++] = patch;
	m->nr_planted = m->nr_patches;
	listen(m, plan, w, bias);
	*nr_ret += w->nr_spots;
	return 0;
}

/*
 * The code is executable, and the pages of the ring are there: else the first
 * to write to one of them would take a fault for it, of two microseconds in one
 * of 128 records, which is in what these time. Older kernels cannot (Linux
 * 5.14).
 */
static int finish_area(struct marks *m, struct smco_err *err)
{
	const taddr_t ring =
		m->base + DATA_OFF + offsetof(struct mark_data, ring);
	const taddr_t start = ring & ~(taddr_t)(TPAGE_SIZE - 1);
	struct tsyscall calls[] = {
		{.nr = SYS_mprotect,
		 .args = {m->base, CODE_BYTES, PROT_READ | PROT_EXEC}},
		{.nr = SYS_madvise,
		 .args = {start, m->base + AREA_BYTES - start,
			  MADV_POPULATE_WRITE}},
	};
	int rc = tproc_syscalls(m->p, calls, ARRAY_SIZE(calls), err);
	if (rc || !calls[0].ret)
		return rc;
	return smco_fail(err, SMCO_SYS, (int)-calls[0].ret,
			 "mprotect to executable in the monitored process");
}

static int map_area(struct marks *m, taddr_t lo, taddr_t hi,
		    struct smco_err *err)
{
	_cleanup_close_ int fd = -1;
	taddr_t addr;
	int rc = near_map(m->p, lo, hi, AREA_BYTES, &m->base, err);
	if (rc)
		return rc;
	m->planted = true;
	rc = near_share(m->p, m->base, m->base + NAME_OFF, m->base + DATA_OFF,
			MARK_DATA_BYTES, PROT_READ | PROT_WRITE, &addr, &fd,
			err);
	if (rc)
		return rc;
	m->shm = mark_shm_create(fd, err);
	if (!m->shm)
		return SMCO_NOMEM;
	return finish_area(m, err);
}

/* Those that cannot be, for one reason or another, are left out. */
static int plant_all(struct marks *m, const struct mark_plan *plan,
		     uint64_t bias, size_t *nr_planted, struct smco_err *err)
{
	uint32_t tid_offset = m->shm->tid_offset = own_tid_offset(m->p);
	struct smco_err why = {0};
	for (size_t i = 0; i < plan->nr_windows; i++) {
		const struct mark_window *w = &plan->window[i];
		struct smco_err this = {0};
		int rc = plant_one(m, plan, w, bias, tid_offset, nr_planted,
				   &this);
		if (rc == SMCO_GONE)
			return smco_fail(err, rc, 0, "%s", this.msg);
		if (rc && !why.code)
			why = this;
	}
	if (*nr_planted) {
		if (why.code)
			smco_fail(err, why.code, 0, "%s", why.msg);
		return 0;
	}
	return smco_fail(err, SMCO_NOTFOUND, 0,
			 "no place there can carry a sensor: %s",
			 why.code ? why.msg : plan->why_refused);
}

int marks_plant(struct marks **ret, struct tproc *p,
		const struct mark_plan *plan, uint64_t bias, taddr_t lo,
		taddr_t hi, size_t *nr_ret, struct smco_err *err)
{
	size_t nr_planted = 0;
	int rc = near_calls_allowed(p, err);
	if (rc)
		return rc;
	struct marks *m = calloc(1, sizeof(*m));
	if (!m)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	m->p = p;
	m->undo = tproc_undo_push(p, undo_marks, m);
	rc = m->undo ? map_area(m, lo, hi, err)
		     : smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	if (!rc)
		rc = plant_all(m, plan, bias, &nr_planted, err);
	if (rc) { /* nothing is patched */
		struct tundo *undo = m->undo;
		undo_marks(p, m);
		if (undo)
			tproc_undo_drop(p, undo);
		marks_destroy(m);
		return rc;
	}
	if (nr_ret)
		*nr_ret = nr_planted;
	*ret = m;
	return 0;
}

size_t marks_nr_beside(const struct marks *m)
{
	return m->nr_beside;
}

int marks_fork(struct marks **ret, struct marks *parent, struct tproc *child,
	       struct smco_err *err)
{
	struct marks *m = calloc(1, sizeof(*m));
	if (!m)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	*m = *parent;
	m->p = child;
	for (size_t i = 0; i < m->nr_patches; i++)
		m->patch[i] =
			tproc_patch_at(child, m->addr[i], CODE_JUMP_BYTES);
	mark_shm_ref(m->shm);
	m->undo = tproc_undo_push(child, undo_marks, m);
	if (!m->undo) {
		marks_destroy(m);
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	}
	*ret = m;
	return 0;
}
