/*
 * A process and what it has mapped: its program, and libraries, which come and
 * go. The linker's list says that one did (linkmap.h), the mappings which. A
 * program that is begun while the command runs, and whose file takes long to be
 * read, or that comes when much more is spent than may be, has its turn later,
 * as libraries do.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "reports/array.h"
#include "reports/procfs.h"
#include "supervisor/control/fixed.h"
#include "supervisor/monitor/range-private.h"

/* How often it is asked whether libraries came. */
#define LOOK_NS (10 * NSEC_PER_MSEC)
/* How long those have debug registers for which there are not enough. */
#define SHARE_NS NSEC_PER_SEC
/* A program that had to wait for its start and lives for so long is worth it.
 */
#define LATE_NS (100 * NSEC_PER_MSEC)

static bool keep(struct range_proc *p, struct range_part *rp)
{
	if (!rp || !ARRAY_ROOM(p->part, p->nr, p->cap))
		return false;
	p->part[p->nr++] = rp;
	return true;
}

/* A file as this process has it may be another for us. */
static const char *path_for_us(const struct range_proc *p, const char *path,
			       char *full, size_t size)
{
	if (!access(path, R_OK))
		return path;
	procfs_path(full, size, procfs_holder(tproc_pid(p->proc)), "root%s",
		    path);
	return full;
}

/* What each may take is divided among those that are there; of more than there
 * are registers others begin each time. */
static void share(struct range_monitor *m, struct range_proc *p)
{
	unsigned nr = 0, nr_watching = 0, regs = WATCH_REGISTERS;
	size_t from = 0;
	for (size_t i = 0; i < p->nr; i++) {
		nr += !p->part[i]->is_unloaded;
		nr_watching += p->part[i]->turn_control != NULL;
	}
	p->is_crowded = nr_watching > WATCH_REGISTERS;
	if (p->is_crowded)
		from = (p->nr_shares += WATCH_REGISTERS) % p->nr;
	for (size_t k = 0; k < p->nr; k++) {
		struct range_part *rp = p->part[(from + k) % p->nr];
		rp->nr_sharing = nr ? nr : 1;
		if (!rp->turn_control)
			continue;
		unsigned some = (regs + nr_watching - 1) / nr_watching;
		range_watch_allow(m, rp, some);
		nr_watching--;
		regs -= some;
	}
}

/* --- files --- */

static struct range_part *part_of(const struct range_proc *p,
				  const struct range_unit *u)
{
	for (size_t i = 0; i < p->nr; i++)
		if (p->part[i]->unit == u)
			return p->part[i];
	return NULL;
}

static bool is_program(const struct range_proc *p, const char *path)
{
	return !strcmp(path, p->path);
}

/* The next mapping of the text of a file that is to be watched, from *i on. */
static const struct tmap *next_file(const struct range_monitor *m,
				    const struct range_proc *p,
				    const struct tmaps *maps, size_t *i)
{
	while (*i < maps->nr) {
		const struct tmap *t = &maps->maps[(*i)++];
		if (t->prot & PROT_EXEC && t->inode && !t->deleted &&
		    (is_program(p, t->path) ||
		     range_library_selected(&m->p.select, t->path)))
			return t;
	}
	return NULL;
}

/* File @path is read, by @until_ns (UINT64_MAX: here and now), or cannot be;
 * false: it is being read, or has to wait for others that are. */
static bool read_file(struct range_monitor *m, const struct range_proc *p,
		      const char *path, uint64_t until_ns)
{
	char full[PATH_MAX + 64];
	bool is_library = !is_program(p, path);
	const char *open = path_for_us(p, path, full, sizeof(full));
	struct range_unit *u = range_unit_find(m, path);
	if (u && !u->is_being_read)
		return true;
	if (range_reader_busy(m, until_ns))
		return false;
	if (!u && until_ns == UINT64_MAX)
		range_unit_get(m, path, open, is_library);
	if (u || until_ns == UINT64_MAX)
		return true;
	/* Where no thread is to be had, it is not watched. */
	u = range_unit_new(m, path, is_library);
	return !u || !range_reader_start(m, u, open) ||
	       !range_reader_busy(m, until_ns);
}

/* All that is mapped is; false: some have to wait. */
static bool read_files(struct range_monitor *m, const struct range_proc *p,
		       const struct tmaps *maps, uint64_t until_ns)
{
	const struct tmap *t;
	for (size_t i = 0; (t = next_file(m, p, maps, &i));)
		if (!read_file(m, p, t->path, until_ns))
			return false;
	return true;
}

/* Is there one to put in, or one that is gone? */
static bool has_other(const struct range_monitor *m, const struct range_proc *p,
		      const struct tmaps *maps)
{
	const struct tmap *t;
	for (size_t i = 0; i < p->nr; i++)
		if (!p->part[i]->is_unloaded &&
		    !range_part_is_mapped(p->part[i], maps))
			return true;
	for (size_t i = 0; (t = next_file(m, p, maps, &i));) {
		const struct range_unit *u = range_unit_find(m, t->path);
		const struct range_part *rp = u ? part_of(p, u) : NULL;
		if (u && u->vars && !u->is_being_read &&
		    (!rp || rp->is_unloaded) && u->odd_inode != t->inode)
			return true;
	}
	return false;
}

/* In a stop: those that are gone, then those that came. */
static void follow(struct range_monitor *m, struct range_proc *p,
		   const struct tmaps *maps, bool can_go)
{
	const struct tmap *t;
	for (size_t i = 0; i < p->nr; i++)
		if (!p->part[i]->is_unloaded &&
		    !range_part_is_mapped(p->part[i], maps))
			range_part_close(m, p->part[i], RANGE_UNLOADED);
	for (size_t i = 0; (t = next_file(m, p, maps, &i));) {
		struct range_unit *u = range_unit_find(m, t->path);
		if (!u || u->is_being_read || !u->vars)
			continue;
		struct range_part *rp = part_of(p, u);
		bool goes = can_go && !is_program(p, t->path);
		if (rp && !rp->is_unloaded)
			continue;
		bool fine =
			rp ? range_part_reopen(m, rp, maps)
			   : keep(p, range_part_create(m, p, u, goes, maps));
		if (!fine)
			u->odd_inode = t->inode;
	}
	share(m, p);
}

void range_proc_libraries(struct range_monitor *m, struct range_proc *p,
			  bool for_good)
{
	bool all = target_is_unlimited(m->p.target_overhead_ppb);
	struct tmaps maps;
	if (!p || tproc_code_maps(p->proc, &maps, NULL))
		return;
	p->is_behind |= !read_files(m, p, &maps, all ? UINT64_MAX : 0);
	follow(m, p, &maps, !for_good);
	tmaps_deinit(&maps);
	linkmap_changed(&p->linkmap, p->proc);
}

void range_proc_look(struct range_monitor *m, struct range_proc *p,
		     uint64_t now_ns)
{
	struct tmaps maps;
	if (now_ns < p->next_look_ns)
		return;
	p->next_look_ns = now_ns + LOOK_NS;
	if (p->is_crowded && now_ns >= p->next_share_ns &&
	    ledger_room_ns(m->ledger) > 0) {
		p->next_share_ns =
			now_ns + max_u64(SHARE_NS, range_watch_turn_ns(m));
		share(m, p);
	}
	p->is_behind |= linkmap_changed(&p->linkmap, p->proc);
	if (!p->is_behind || ledger_room_ns(m->ledger) < 0 ||
	    tproc_code_maps(p->proc, &maps, NULL))
		return;
	p->is_behind = !read_files(m, p, &maps, 0);
	bool other = has_other(m, p, &maps);
	tmaps_deinit(&maps);
	p->is_late &= p->is_behind || other;
	if (!other)
		return;
	if (tproc_stop_briefly(p->proc, NULL)) {
		p->is_behind = true;
		return;
	}
	if (!tproc_code_maps(p->proc, &maps, NULL)) {
		follow(m, p, &maps, true);
		p->is_late &= p->is_behind;
		tmaps_deinit(&maps);
	}
	tproc_cont(p->proc);
}

/* --- processes --- */

static struct range_proc *new_process(struct range_monitor *m, struct tproc *p)
{
	struct range_proc *rp = calloc(1, sizeof(*rp));
	char exe[PROCFS_PATH], path[PATH_MAX];
	procfs_path(exe, sizeof(exe), procfs_holder(tproc_pid(p)), "exe");
	ssize_t n = readlink(exe, path, sizeof(path) - 1);
	if (!rp || n <= 0 || !m->p.target_overhead_ppb) {
		free(rp);
		return NULL;
	}
	path[n] = '\0';
	rp->path = strdup(path);
	rp->proc = p;
	rp->wake_ns = UINT64_MAX;
	if (!rp->path) {
		free(rp);
		return NULL;
	}
	rp->next = m->procs;
	m->procs = rp;
	m->next_tick_ns = 0;
	return rp;
}

struct range_proc *range_proc_create(struct range_monitor *m, struct tproc *tp,
				     uint64_t wait_ns)
{
	struct tmaps maps;
	struct range_proc *p = new_process(m, tp);
	uint64_t now_ns = smco_now_ns();
	if (!p)
		return NULL;
	p->is_begun = wait_ns != UINT64_MAX;
	if (!wait_ns ||
	    !read_file(m, p, p->path, sat_add_u64(now_ns, wait_ns))) {
		p->is_behind = p->is_late = true;
		p->next_look_ns = now_ns + (wait_ns ? LOOK_NS : LATE_NS);
		return p;
	}
	struct range_unit *u = range_unit_find(m, p->path);
	if (u && u->vars && !tproc_code_maps(tp, &maps, NULL)) {
		keep(p, range_part_create(m, p, u, false, &maps));
		tmaps_deinit(&maps);
	}
	return p;
}

bool range_proc_is_late(const struct range_proc *p)
{
	return p && p->is_late;
}

struct range_proc *range_proc_fork(struct range_monitor *m,
				   struct range_proc *parent, struct tproc *tp)
{
	struct range_proc *p = parent ? new_process(m, tp) : NULL;
	if (!p)
		return NULL;
	p->linkmap = parent->linkmap;
	p->is_begun = true;
	p->is_behind = parent->is_behind;
	p->is_late = parent->is_late;
	p->next_look_ns = parent->next_look_ns;
	p->wake_ns = smco_now_ns() + LATE_NS;
	for (size_t i = 0; i < parent->nr; i++)
		keep(p, range_part_fork(m, parent->part[i], p));
	/* Nothing is to be missed, or to be in a phase of another's. */
	if (target_is_unlimited(m->p.target_overhead_ppb) || m->p.nr_phases)
		for (size_t i = 0; i < p->nr; i++)
			range_wake(m, p->part[i]);
	share(m, p);
	return p;
}

void range_proc_destroy(struct range_monitor *m, struct range_proc *p,
			bool gone)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->nr; i++) {
		range_part_close(m, p->part[i], gone ? RANGE_GONE : RANGE_LEFT);
		p->part[i]->owner = NULL;
		p->part[i]->proc = NULL;
	}
	for (struct range_proc **at = &m->procs; *at; at = &(*at)->next)
		if (*at == p) {
			*at = p->next;
			break;
		}
	free(p->part);
	free(p->path);
	free(p);
}

void range_proc_home(const struct range_proc *p, struct user_regs_struct *regs)
{
	for (size_t i = 0; p && i < p->nr; i++)
		if (p->part[i]->ranges && ranges_home(p->part[i]->ranges, regs))
			return;
}

void range_task_new(struct range_monitor *m, struct range_proc *p, pid_t tid)
{
	for (size_t i = 0; p && i < p->nr; i++)
		range_watch_task_new(m, p->part[i], tid);
}

void range_task_gone(struct range_proc *p, pid_t tid)
{
	for (size_t i = 0; p && i < p->nr; i++)
		range_watch_task_gone(p->part[i], tid);
}
