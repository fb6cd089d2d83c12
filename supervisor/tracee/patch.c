/* Overwriting text, and putting it back. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/tracee/internal.h"

struct tpatch *patch_alloc(taddr_t addr, size_t len)
{
	/* With both kinds of bytes: a child has copies of all its parent's. */
	struct tpatch *patch = malloc(sizeof(*patch) + 2 * len);
	if (!patch)
		return NULL;
	*patch = (struct tpatch){.addr = addr, .len = len};
	patch->old_bytes = (uint8_t *)(patch + 1);
	patch->new_bytes = patch->old_bytes + len;
	return patch;
}

void patch_free(struct tproc *p, struct tpatch *patch)
{
	p->nr_indexed = 0;
	free(patch);
}

/*
 * Put back the bytes unless somebody else has written there since (the
 * program itself, another patch of a child made after the copy).
 */
static int restore(struct tproc *p, struct tpatch *patch)
{
	_cleanup_free_ uint8_t *now = malloc(patch->len ? patch->len : 1);
	if (!now)
		return SMCO_NOMEM;
	int r = tmem_read(p, patch->addr, now, patch->len);
	if (r < 0)
		return r == SMCO_FAULT ? 0 : r; /* unmapped */
	if (memcmp(now, patch->new_bytes, patch->len) != 0)
		return 0;
	return tmem_write(p, patch->addr, patch->old_bytes, patch->len);
}

static int undo_patch(struct tproc *p, void *arg)
{
	struct tpatch *patch = arg;
	int r = restore(p, patch);
	patch_free(p, patch);
	return r == SMCO_FAULT ? 0 : r;
}

bool undo_is_patch(const struct tundo *u)
{
	return u->undo == undo_patch;
}

void patch_forget(struct tproc *p, struct tundo *u)
{
	patch_free(p, u->arg);
}

int patch_register(struct tproc *p, struct tpatch *patch)
{
	patch->nr = p->nr_patches++;
	p->nr_indexed = 0;
	patch->undo = tproc_undo_push(p, undo_patch, patch);
	return patch->undo ? 0 : SMCO_NOMEM;
}

static struct tpatch *patch_create(struct tproc *p, taddr_t addr,
				   const void *old_bytes, const void *new_bytes,
				   size_t len)
{
	struct tpatch *patch = patch_alloc(addr, len);
	if (!patch)
		return NULL;
	memcpy(patch->old_bytes, old_bytes, len);
	memcpy(patch->new_bytes, new_bytes, len);
	if (!patch_register(p, patch))
		return patch;
	free(patch);
	return NULL;
}

/* So that what is made of them is in the same order. */
static struct tundo *oldest(struct tundo *u)
{
	while (u && u->next)
		u = u->next;
	return u;
}

void patch_copy_all(struct tproc *parent, struct tproc *child)
{
	for (struct tundo *u = oldest(parent->undos); u; u = u->newer) {
		const struct tpatch *o = u->arg;
		if (undo_is_patch(u))
			patch_create(child, o->addr, o->old_bytes, o->new_bytes,
				     o->len);
	}
}

int tproc_clear_text(struct tproc *p, taddr_t addr, size_t len,
		     taddr_t (*fix)(void *ctx, taddr_t pc), void *ctx,
		     bool move, struct smco_err *err)
{
	for (struct task *t = p->tasks; t; t = t->next) {
		struct user_regs_struct regs;
		taddr_t pc, sp;
		if (task_get_place(t, &pc, &sp) < 0 || pc <= addr ||
		    pc >= addr + len)
			continue;
		taddr_t to = fix ? fix(ctx, pc) : 0;
		if (to != pc && task_get_regs(t, &regs) < 0)
			to = 0; /* asleep in the kernel */
		if (!to) {
			smco_fail(err, SMCO_BUSY, 0,
				  "thread %d stands at 0x%" PRIx64
				  " inside the patch",
				  t->tid, pc);
			if (err)
				err->addr = pc;
			return SMCO_BUSY;
		}
		if (move && to != pc) {
			arch.set_pc(&regs, to);
			task_set_regs(t, &regs);
		}
	}
	return 0;
}

int tproc_patch(struct tproc *p, taddr_t addr, const void *bytes, size_t len,
		taddr_t (*fix)(void *ctx, taddr_t pc), void *ctx,
		struct tpatch **ret, struct smco_err *err)
{
	if (p->execed)
		return smco_fail(err, SMCO_GONE, 0, "process %d has exec'ed",
				 p->pid);
	int r = tproc_clear_text(p, addr, len, fix, ctx, false, err);
	if (r < 0)
		return r;
	_cleanup_free_ uint8_t *old_bytes = malloc(len ? len : 1);
	if (!old_bytes)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	r = tmem_read(p, addr, old_bytes, len);
	if (r < 0)
		return smco_fail(err, (enum smco_code)r, 0,
				 "cannot read %zu bytes of text at 0x%" PRIx64,
				 len, addr);
	struct tpatch *patch = patch_create(p, addr, old_bytes, bytes, len);
	if (!patch)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	r = tmem_write(p, addr, bytes, len);
	if (r < 0) {
		tmem_write(p, addr, old_bytes, len);
		undo_drop_known(p, patch->undo);
		patch_free(p, patch);
		return smco_fail(err, (enum smco_code)r, 0,
				 "cannot write %zu bytes of text at 0x%" PRIx64,
				 len, addr);
	}
	if (fix)
		tproc_clear_text(p, addr, len, fix, ctx, true, NULL);
	*ret = patch;
	return 0;
}

static int by_place(const void *a, const void *b)
{
	const struct tpatch *x = *(struct tpatch *const *)a;
	const struct tpatch *y = *(struct tpatch *const *)b;
	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	return x->nr < y->nr ? -1 : x->nr > y->nr;
}

/* A forked copy's are asked for one after the other. */
static void index_patches(struct tproc *p)
{
	size_t nr = 0;
	for (const struct tundo *u = p->undos; u; u = u->next)
		nr += undo_is_patch(u);
	struct tpatch **index =
		realloc(p->patch_index, (nr + 1) * sizeof(*index));
	if (!index)
		return;
	p->patch_index = index;
	for (const struct tundo *u = p->undos; u; u = u->next)
		if (undo_is_patch(u))
			p->patch_index[p->nr_indexed++] = u->arg;
	qsort(index, nr, sizeof(*index), by_place);
}

struct tpatch *tproc_patch_at(struct tproc *p, taddr_t addr, size_t len)
{
	const struct tpatch beyond = {
		.addr = addr, .len = len, .nr = UINT64_MAX};
	const struct tpatch *key = &beyond;
	if (!p->nr_indexed)
		index_patches(p);
	size_t a = 0, b = p->nr_indexed;
	while (a < b) { /* the first that comes behind it */
		size_t mid = a + (b - a) / 2;
		if (by_place(&p->patch_index[mid], &key) < 0)
			a = mid + 1;
		else
			b = mid;
	}
	struct tpatch *patch = a ? p->patch_index[a - 1] : NULL;
	return patch && patch->addr == addr && patch->len == len ? patch : NULL;
}

const uint8_t *tpatch_old(const struct tpatch *patch)
{
	return patch->old_bytes;
}

const uint8_t *tpatch_new(const struct tpatch *patch)
{
	return patch->new_bytes;
}

int tproc_unpatch(struct tproc *p, struct tpatch *patch,
		  taddr_t (*fix)(void *ctx, taddr_t pc), void *ctx,
		  struct smco_err *err)
{
	int r = 0;
	if (!p->execed) {
		r = tproc_clear_text(p, patch->addr, patch->len, fix, ctx,
				     false, err);
		if (r < 0)
			return r;
		r = restore(p, patch);
		if (r < 0)
			return smco_fail(err, (enum smco_code)r, 0,
					 "cannot restore text at 0x%" PRIx64,
					 patch->addr);
		if (fix)
			tproc_clear_text(p, patch->addr, patch->len, fix, ctx,
					 true, NULL);
	}
	undo_drop_known(p, patch->undo);
	patch_free(p, patch);
	return 0;
}
