/*
 * Many changes of text in one stop. A call for each takes longer than all that
 * is copied, so what is on pages next to each other is read at once, changed
 * here, and written at once. What lies between two changes is written as it was
 * read a moment before, and only if it is as the caller expects it: what
 * another process takes out of there in that moment (the kernel's uprobes do)
 * would be put back otherwise.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/tracee/internal.h"

/* As much at once, but for a change that is longer. */
#define MOST_BYTES (4 * TPAGE_SIZE)

/* What is made of a change. */
struct job {
	struct tpatch_change *c;
	/* The bytes that were read and those to be written; becomes the patch
	 * if there is none. NULL: nothing is done. */
	struct tpatch *own;
	bool restores;
};

struct maker {
	struct tproc *p;
	const struct tpatch_ops *ops;
	void *ctx;
	uint8_t *buf; /* as long as what is written at once */
};

static taddr_t end_of(const struct job *j)
{
	return j->c->addr + j->c->len;
}

static taddr_t page_of(taddr_t addr)
{
	return addr / TPAGE_SIZE;
}

/* How many of @nr go together: no page lies between two of them. */
static size_t group(const struct job *j, size_t nr)
{
	size_t n = 1;
	while (n < nr &&
	       page_of(j[n].c->addr) <= page_of(end_of(&j[n - 1])) + 1 &&
	       end_of(&j[n]) - j->c->addr <= MOST_BYTES)
		n++;
	return n;
}

/* --- one --- */

/* It will not be: all that was done for it so far is undone. */
static void give_up(struct tproc *p, struct job *j, int ret)
{
	j->c->ret = ret;
	if (j->own && j->own->undo)
		undo_drop_known(p, j->own->undo);
	free(j->own);
	j->own = NULL;
}

/* From @now, which is there, to what is to be there; what will undo it is
 * registered. */
static void prepare(const struct maker *m, struct job *j, const uint8_t *now)
{
	struct tpatch_change *c = j->c;
	const struct tpatch *patch = *c->patch;
	bool is_others = patch && memcmp(now, patch->new_bytes, c->len) != 0;
	j->own = patch_alloc(c->addr, c->len);
	if (!j->own) {
		c->ret = SMCO_NOMEM;
		return;
	}
	memcpy(j->own->old_bytes, now, c->len);
	memcpy(j->own->new_bytes, now, c->len);
	enum tpatch_how how = m->ops->compose(m->ctx, c, j->own->new_bytes);
	j->restores = how == TPATCH_RESTORE;
	if (how == TPATCH_LEAVE)
		give_up(m->p, j, 0);
	else if (how == TPATCH_WRITE && is_others)
		give_up(m->p, j, SMCO_BUSY);
	else if (j->restores && !is_others)
		memcpy(j->own->new_bytes, patch->old_bytes, c->len);
	else if (!patch && patch_register(m->p, j->own))
		give_up(m->p, j, SMCO_NOMEM);
}

/* It is written. */
static void finish(struct tproc *p, struct job *j)
{
	struct tpatch_change *c = j->c;
	c->ret = 0;
	if (!*c->patch) {
		*c->patch = j->own;
		j->own = NULL;
	} else if (j->restores) {
		undo_drop_known(p, (*c->patch)->undo);
		patch_free(p, *c->patch);
		*c->patch = NULL;
	} else {
		memcpy((*c->patch)->new_bytes, j->own->new_bytes, c->len);
	}
	free(j->own);
	j->own = NULL;
	tproc_clear_text(p, c->addr, c->len, c->fix, c->ctx, true, NULL);
}

static void make_one(struct tproc *p, struct job *j)
{
	const struct tpatch *own = j->own;
	int ret = tmem_write(p, own->addr, own->new_bytes, own->len);
	if (ret == 0) {
		finish(p, j);
		return;
	}
	tmem_write(p, own->addr, own->old_bytes, own->len);
	give_up(p, j, ret);
}

/* --- those of a group --- */

/* What is there into m->buf. */
static int look(const struct maker *m, const struct job *j, size_t nr)
{
	taddr_t start = j->c->addr;
	return tmem_read(m->p, start, m->buf, end_of(&j[nr - 1]) - start);
}

/* May all that is not to be changed from the first to the last be written? */
static bool may_join(const struct maker *m, const struct job *j, size_t nr)
{
	taddr_t at = end_of(j);
	bool may = true;
	for (size_t i = 1; i < nr && may; i++) {
		if (!j[i].own)
			continue;
		may = j[i].c->addr == at ||
		      m->ops->may_write(m->ctx, at, m->buf + (at - j->c->addr),
					j[i].c->addr - at);
		at = end_of(&j[i]);
	}
	return may;
}

/* In one call; false: nothing is changed. */
static bool write_joined(const struct maker *m, struct job *j, size_t nr)
{
	taddr_t start = j->c->addr;
	if (nr < 2 || !may_join(m, j, nr))
		return false;
	for (size_t i = 0; i < nr; i++)
		if (j[i].own)
			memcpy(m->buf + (j[i].c->addr - start),
			       j[i].own->new_bytes, j[i].c->len);
	if (!tmem_write(m->p, start, m->buf, end_of(&j[nr - 1]) - start))
		return true;
	for (size_t i = 0; i < nr; i++)
		if (j[i].own)
			tmem_write(m->p, j[i].c->addr, j[i].own->old_bytes,
				   j[i].c->len);
	return false;
}

static void make_group(const struct maker *m, struct job *j, size_t nr)
{
	taddr_t start = j->c->addr;
	for (size_t i = 0; i < nr; i++)
		prepare(m, &j[i], m->buf + (j[i].c->addr - start));
	/* From the first that is to be written to the last. */
	size_t a = 0, b = nr;
	while (a < b && !j[a].own)
		a++;
	while (a < b && !j[b - 1].own)
		b--;
	uint8_t *from = m->buf + (a < b ? j[a].c->addr - start : 0);
	struct maker some = *m;
	some.buf = from;
	bool done = write_joined(&some, j + a, b - a);
	for (size_t i = a; i < b; i++)
		if (j[i].own && done)
			finish(m->p, &j[i]);
		else if (j[i].own)
			make_one(m->p, &j[i]);
}

/* Where all cannot be read at once, each is. */
static void make_some(const struct maker *m, struct job *j, size_t nr)
{
	int ret = look(m, j, nr);
	if (ret == 0)
		make_group(m, j, nr);
	for (size_t i = 0; i < nr && ret; i++) {
		j[i].c->ret = look(m, &j[i], 1);
		if (!j[i].c->ret)
			make_group(m, &j[i], 1);
	}
}

/* --- all --- */

static int by_addr(const void *pa, const void *pb)
{
	const struct job *a = pa, *b = pb;
	return a->c->addr < b->c->addr ? -1 : a->c->addr > b->c->addr;
}

static int tell(const struct tpatch_change *c, struct smco_err *err)
{
	if (c->ret == SMCO_BUSY)
		return smco_fail(err, SMCO_BUSY, 0,
				 "somebody else has changed the text at "
				 "0x%" PRIx64,
				 c->addr);
	return smco_fail(err, (enum smco_code)c->ret, 0,
			 "cannot change %zu bytes of text at 0x%" PRIx64,
			 c->len, c->addr);
}

int tproc_patch_all(struct tproc *p, struct tpatch_change *change, size_t nr,
		    const struct tpatch_ops *ops, void *ctx,
		    struct smco_err *err)
{
	_cleanup_free_ struct job *job = calloc(nr + 1, sizeof(*job));
	size_t most = MOST_BYTES;
	int none = p->execed ? SMCO_GONE : SMCO_NOMEM;
	for (size_t i = 0; i < nr; i++) {
		change[i].ret = none;
		most = change[i].len > most ? change[i].len : most;
		if (job)
			job[i].c = &change[i];
	}
	_cleanup_free_ uint8_t *buf = malloc(most);
	if (p->execed)
		return smco_fail(err, SMCO_GONE, 0, "process %d has exec'ed",
				 p->pid);
	if (!job || !buf)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	const struct maker m = {p, ops, ctx, buf};
	qsort(job, nr, sizeof(*job), by_addr);
	for (size_t i = 0, n; i < nr; i += n) {
		n = group(job + i, nr - i);
		make_some(&m, job + i, n);
	}
	for (size_t i = 0; i < nr; i++)
		if (change[i].ret)
			return tell(&change[i], err);
	return 0;
}
