/*
 * A process and what it has mapped: its program, and libraries, which come and
 * go. The linker's list says that one did (linkmap.h), the mappings which.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "reports/array.h"
#include "supervisor/control/fixed.h"
#include "supervisor/monitor/range-private.h"

/* How often it is asked whether libraries came. */
#define LOOK_NS (10 * NSEC_PER_MSEC)
/* How long those have debug registers for which there are not enough. */
#define SHARE_NS NSEC_PER_SEC

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
	snprintf(full, size, "/proc/%d/root%s", (int)tproc_pid(p->proc), path);
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

/* --- libraries --- */

static struct range_part *part_of(const struct range_proc *p,
				  const struct range_unit *u)
{
	for (size_t i = 0; i < p->nr; i++)
		if (p->part[i]->unit == u)
			return p->part[i];
	return NULL;
}

/* The next mapping of a library's text from *i on. */
static const struct tmap *next_library(const struct range_monitor *m,
				       const struct range_proc *p,
				       const struct tmaps *maps, size_t *i)
{
	while (*i < maps->nr) {
		const struct tmap *t = &maps->maps[(*i)++];
		if (t->prot & PROT_EXEC && t->inode && !t->deleted &&
		    strcmp(t->path, p->path) != 0 &&
		    range_library_selected(&m->p.select, t->path))
			return t;
	}
	return NULL;
}

/* All libraries are known, or being read; false: some have to wait. */
static bool read_libraries(struct range_monitor *m, const struct range_proc *p,
			   const struct tmaps *maps, bool at_once)
{
	char full[PATH_MAX + 64];
	const struct tmap *t;
	for (size_t i = 0; (t = next_library(m, p, maps, &i));) {
		struct range_unit *u = range_unit_find(m, t->path);
		if (u && u->is_being_read)
			return false;
		if (u)
			continue;
		const char *path = path_for_us(p, t->path, full, sizeof(full));
		if (at_once) {
			range_unit_get(m, t->path, path, true);
			continue;
		}
		if (range_reader_busy(m, false))
			return false;
		/* Where no thread is to be had, it is not watched. */
		u = range_unit_new(m, t->path, true);
		if (u && range_reader_start(m, u, path))
			return false;
	}
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
	for (size_t i = 0; (t = next_library(m, p, maps, &i));) {
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
	for (size_t i = 0; (t = next_library(m, p, maps, &i));) {
		struct range_unit *u = range_unit_find(m, t->path);
		if (!u || u->is_being_read || !u->vars)
			continue;
		struct range_part *rp = part_of(p, u);
		if (rp && !rp->is_unloaded)
			continue;
		bool fine =
			rp ? range_part_reopen(m, rp, maps)
			   : keep(p, range_part_create(m, p, u, can_go, maps));
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
	if (!p || tmaps_read(tproc_pid(p->proc), &maps, NULL))
		return;
	p->is_behind |= !read_libraries(m, p, &maps, all);
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
	    tmaps_read(tproc_pid(p->proc), &maps, NULL))
		return;
	p->is_behind = !read_libraries(m, p, &maps, false);
	bool other = has_other(m, p, &maps);
	tmaps_deinit(&maps);
	if (!other)
		return;
	if (tproc_stop_briefly(p->proc, NULL)) {
		p->is_behind = true;
		return;
	}
	if (!tmaps_read(tproc_pid(p->proc), &maps, NULL)) {
		follow(m, p, &maps, true);
		tmaps_deinit(&maps);
	}
	tproc_cont(p->proc);
}

/* --- processes --- */

static struct range_proc *new_process(struct range_monitor *m, struct tproc *p)
{
	struct range_proc *rp = calloc(1, sizeof(*rp));
	char exe[64], path[PATH_MAX];
	snprintf(exe, sizeof(exe), "/proc/%d/exe", (int)tproc_pid(p));
	ssize_t n = readlink(exe, path, sizeof(path) - 1);
	if (!rp || n <= 0 || !m->p.target_overhead_ppb) {
		free(rp);
		return NULL;
	}
	path[n] = '\0';
	rp->path = strdup(path);
	rp->proc = p;
	if (!rp->path) {
		free(rp);
		return NULL;
	}
	rp->next = m->procs;
	m->procs = rp;
	m->next_tick_ns = 0;
	return rp;
}

struct range_proc *range_proc_create(struct range_monitor *m, struct tproc *tp)
{
	char full[PATH_MAX + 64];
	struct tmaps maps;
	struct range_proc *p = new_process(m, tp);
	if (!p)
		return NULL;
	struct range_unit *u = range_unit_get(
		m, p->path, path_for_us(p, p->path, full, sizeof(full)), false);
	if (u && u->vars && !u->is_being_read &&
	    !tmaps_read(tproc_pid(tp), &maps, NULL)) {
		keep(p, range_part_create(m, p, u, false, &maps));
		tmaps_deinit(&maps);
	}
	return p;
}

struct range_proc *range_proc_fork(struct range_monitor *m,
				   struct range_proc *parent, struct tproc *tp)
{
	struct range_proc *p = parent ? new_process(m, tp) : NULL;
	if (!p)
		return NULL;
	p->linkmap = parent->linkmap;
	p->is_behind = parent->is_behind;
	for (size_t i = 0; i < parent->nr; i++)
		keep(p, range_part_fork(m, parent->part[i], p));
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
