/*
 * A supervisor that was killed leaves its helper, which opens all guards, is
 * the SIGSEGV handler for two more seconds and ends, and the helper's mappings.
 * Two helpers would take each other's handler away: each puts back what it
 * found. So the older one goes before anything is guarded again. Threads that
 * it stayed for are seen by us now: a fault of theirs is tried again.
 */
#include "supervisor/probe/guard.h"

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* Code, then the table, of one file. */
static bool find(const struct tmaps *maps, struct addr_ranges *ret)
{
	for (size_t i = 0; i + 1 < maps->nr; i++) {
		const struct tmap *code = &maps->maps[i], *table = code + 1;
		if (strstr(code->path, "/memfd:" WARDEN_NAME) &&
		    (code->prot & PROT_EXEC) && !code->offset &&
		    code->end - code->start == WARDEN_CODE_SIZE &&
		    table->start == code->end && table->inode == code->inode &&
		    table->end - table->start >= sizeof(struct warden_shared) &&
		    !addr_ranges_add(ret, code->start, table->end))
			return false;
	}
	return true;
}

int guard_older_look(struct guard *g, struct smco_err *err)
{
	struct tmaps maps;
	int rc = tproc_read_maps(g->base.proc, &maps, err);
	if (rc)
		return rc;
	if (!find(&maps, &g->older))
		rc = smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	g->had_older = g->older.nr > 0;
	tmaps_deinit(&maps);
	return rc;
}

static bool is_inside(struct tproc *p, taddr_t start, taddr_t end)
{
	struct user_regs_struct r;
	for (struct task *t = tproc_first_task(p); t; t = task_next(t))
		if (task_get_regs(t, &r) || (r.rip >= start && r.rip < end))
			return true;
	return false;
}

static uint32_t look(struct tproc *p, taddr_t table, size_t offset)
{
	uint32_t v = 0; /* unmapped meanwhile: nothing is there */
	tmem_read(p, table + offset, &v, sizeof(v));
	return v;
}
#define LOOK(table, field) look(p, table, offsetof(struct warden_shared, field))

/* True if nothing is to be waited for any more. */
static bool relieve(struct tproc *p, taddr_t start, taddr_t end)
{
	taddr_t table = start + WARDEN_CODE_SIZE;
	const uint32_t yes = 1;
	const uint64_t args[6] = {start, end - start};
	int64_t ret;

	if (LOOK(table, alive)) {
		tmem_write(p, table + offsetof(struct warden_shared, relieved),
			   &yes, sizeof(yes));
		return false;
	}
	/* Somebody has killed it while it was the handler: so it stays. */
	if (LOOK(table, is_on))
		return true;
	if (is_inside(p, start, end))
		return false;
	tproc_syscall(p, SYS_munmap, args, &ret, NULL);
	return true;
}

static bool relieve_all(struct tproc *p, struct addr_ranges *o)
{
	for (size_t i = o->nr; i-- > 0;)
		if (relieve(p, o->v[i].start, o->v[i].end))
			o->v[i] = o->v[--o->nr];
	return !o->nr;
}

int guard_older_relieve(struct guard *g)
{
	return relieve_all(g->base.proc, &g->older) ? 0 : SMCO_BUSY;
}

struct relieving {
	struct tproc *p;
	struct addr_ranges older;
};

static bool all_relieved(void *ctx)
{
	struct relieving *r = ctx;
	return relieve_all(r->p, &r->older);
}

bool guard_older_remove(struct tproc *p, const struct tmaps *maps)
{
	struct relieving r = {.p = p};
	bool gone = find(maps, &r.older) &&
		    (!r.older.nr || tproc_vacate(p, all_relieved, &r));
	addr_ranges_free(&r.older);
	return gone;
}
