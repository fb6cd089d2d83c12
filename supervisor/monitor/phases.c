#include "supervisor/monitor/phases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "supervisor/control/fixed.h"
#include "supervisor/monitor/phases-private.h"
#include "supervisor/probe/mark-cost.h"

/* Looks by the clock must have no rhythm that a program may have, too. */
#define TICK_NS	 (10 * NSEC_PER_MSEC)
#define EARLY_NS (TICK_NS / 2)
#define FIRST_NS (2 * NSEC_PER_MSEC) /* after marks came */

/* --- records --- */

static void drain(struct phases *ph, struct shared *sh)
{
	struct mark_record r;
	uint64_t nr = 0;
	while (nr < MARK_RING && mark_shm_next(sh->shm, &r)) {
		phase_times_take(ph, sh, &r);
		nr++;
	}
	ledger_charge(ph->ledger, LEDGER_OTHER, PHASES_MONITOR,
		      nr * MARK_RECORD_NS + phase_cost_take(ph, sh));
}

uint64_t phases_count(const struct phases *ph, size_t phase)
{
	uint64_t nr = ph->phase[phase].count;
	for (const struct shared *sh = ph->shared; sh; sh = sh->next)
		nr += mark_shm_count(sh->shm, (uint32_t)phase * 2);
	return nr;
}

uint64_t phases_due_ns(const struct phases *ph)
{
	uint64_t again_ns = ph->again_ns ? ph->again_ns : UINT64_MAX;
	return ph->is_finished ? UINT64_MAX : min_u64(ph->due_ns, again_ns);
}

/* Of what was passed by now, nothing is left to be looked at. */
static void settle(struct phases *ph, struct shared *sh)
{
	drain(ph, sh);
	phase_gaps_look(ph, sh);
	phase_still_leave(ph, sh);
}

void phases_settle(struct phases *ph)
{
	for (struct shared *sh = ph->shared; sh; sh = sh->next)
		settle(ph, sh);
}

/* Gaps last until now, at least. */
static void look_again(struct phases *ph, uint64_t now_ns)
{
	for (struct shared *sh = ph->shared; sh; sh = sh->next)
		phase_still_look_again(ph, sh, now_ns);
	ph->again_ns = 0;
}

void phases_tick(struct phases *ph, uint64_t now_ns)
{
	if (ph->again_ns && now_ns >= ph->again_ns)
		look_again(ph, now_ns);
	if (now_ns < ph->due_ns || ph->is_finished)
		return;
	phase_spans_look(ph, now_ns);
	phases_settle(ph);
	ph->due_ns =
		now_ns + phase_cost_judge(ph, now_ns,
					  TICK_NS - phase_draw(ph, EARLY_NS));
	for (struct shared *sh = ph->shared; sh; sh = sh->next)
		phase_slices_look(ph, sh);
	phase_spans_tick(ph, now_ns);
	now_ns = smco_now_ns();
	for (struct shared *sh = ph->shared; sh; sh = sh->next)
		phase_still_look(ph, sh, now_ns);
	ph->again_ns = phase_still_again_ns(ph, now_ns);
}

/* --- processes --- */

/* Its records are of a number that nobody can be asked about any more when it
 * has ended, and that another may have then. */
static void know_number(struct phases *ph, struct shared *sh, struct task *t)
{
	uint32_t own = (uint32_t)task_own_tid(t), tid = (uint32_t)task_tid(t);
	struct own_number *n = &sh->number[own % PHASE_NUMBERS];
	if (!sh->has_own_numbers)
		return;
	if (n->own == own && n->tid && n->tid != tid)
		drain(ph, sh);
	*n = (struct own_number){own, tid};
}

static struct shared *share(struct phases *ph, struct marks *m,
			    struct phase_proc *pp)
{
	struct task *t = tproc_first_task(pp->p);
	uint64_t soon_ns = smco_now_ns() + FIRST_NS;
	struct shared *sh = calloc(1, sizeof(*sh));
	if (!sh)
		return NULL;
	*sh = (struct shared){
		.next = ph->shared,
		.shm = marks_shm(m),
		.pid = pp->pid,
		.nr_owners = 1,
		.has_own_numbers = t && task_own_tid(t) != task_tid(t),
	};
	mark_shm_ref(sh->shm);
	for (; t; t = task_next(t)) {
		know_number(ph, sh, t);
		phase_threads_note(sh, pp, t, false);
	}
	ph->shared = sh;
	phase_slices_look(ph, sh);
	phase_still_look(ph, sh, smco_now_ns());
	if (ph->due_ns > soon_ns)
		ph->due_ns = soon_ns;
	return sh;
}

static void free_shared(struct shared *sh)
{
	phase_still_free(sh);
	mark_shm_unref(sh->shm);
	free(sh);
}

static void unshare_it(struct phases *ph, struct shared *sh)
{
	struct shared **at = &ph->shared;
	settle(ph, sh);
	if (--sh->nr_owners)
		return;
	phase_slices_end(ph, sh);
	phase_gaps_end(ph, sh);
	for (uint32_t i = 0; i < ph->p.nr; i++) {
		ph->phase[i].count += mark_shm_count(sh->shm, i * 2);
		ph->phase[i].ended += mark_shm_count(sh->shm, i * 2 + 1);
	}
	while (*at != sh)
		at = &(*at)->next;
	*at = sh->next;
	free_shared(sh);
}

static bool add_marks(struct phase_proc *pp, struct marks *m, struct shared *sh,
		      const struct place *place)
{
	if (pp->nr == pp->cap) {
		size_t cap = pp->cap * 2 + 4;
		struct marks **marks =
			realloc(pp->marks, cap * sizeof(struct marks *));
		if (marks)
			pp->marks = marks;
		struct shared **shared =
			realloc(pp->shared, cap * sizeof(struct shared *));
		if (shared)
			pp->shared = shared;
		struct place *places =
			realloc(pp->place, cap * sizeof(*places));
		if (places)
			pp->place = places;
		if (!marks || !shared || !places)
			return false;
		pp->cap = cap;
	}
	pp->marks[pp->nr] = m;
	pp->place[pp->nr] = *place;
	pp->shared[pp->nr++] = sh;
	return true;
}

static bool is_same(struct code_file a, struct code_file b)
{
	return a.bias == b.bias && a.inode == b.inode;
}

static bool is_known(struct phase_proc *pp, struct code_file file)
{
	for (size_t i = 0; i < pp->nr_known; i++)
		if (is_same(pp->known[i], file))
			return true;
	if (pp->nr_known == pp->cap_known) {
		size_t cap = pp->cap_known * 2 + 16;
		struct code_file *more =
			realloc(pp->known, cap * sizeof(*more));
		if (!more)
			return true;
		pp->known = more;
		pp->cap_known = cap;
	}
	pp->known[pp->nr_known++] = file;
	return false;
}

/* It came when its program ran already: not before @since_ns. */
static void note_late(struct phases *ph, const char *path, uint64_t since_ns)
{
	const char *name = strrchr(path, '/');
	uint64_t now_ns = smco_now_ns();
	if (ph->nr_late++)
		return;
	snprintf(ph->late, sizeof(ph->late),
		 "%.150s since %.4g s, at most %.3g ms after it was loaded",
		 name ? name + 1 : path,
		 (double)(now_ns - ph->p.start_ns) / (double)NSEC_PER_SEC,
		 (double)(now_ns - since_ns) / (double)NSEC_PER_MSEC);
}

static void note_refused(struct phases *ph, const struct mark_plan *plan,
			 size_t planted, const struct smco_err *why)
{
	size_t nr = plan->nr_spots + plan->nr_refused;
	if (planted == nr || ph->nr_refused++)
		return;
	if (why->code)
		smco_fail(
			&ph->why_refused, why->code, 0,
			"%zu of %zu places there cannot carry a sensor: %.200s",
			nr - planted, nr, why->msg);
	else
		smco_fail(&ph->why_refused, SMCO_UNSUPPORTED, 0,
			  "%zu of %zu places there cannot carry a sensor, as "
			  "0x%llx: %s",
			  nr - planted, nr,
			  (unsigned long long)plan->refused_at,
			  plan->why_refused);
}

static void plant_module(struct phases *ph, struct phase_proc *pp,
			 struct sym_space *space, uint32_t module,
			 const struct tmap *map, uint64_t bias)
{
	struct smco_err err = {0};
	struct marks *m = NULL;
	size_t planted = 0;
	Elf *elf = sym_module_elf(space, module);
	const struct phase_file *file =
		elf ? phase_file_get(ph, map->inode, elf, space, module) : NULL;
	elf_end(elf);
	if (!file)
		return;
	int rc = file->plan.nr_windows
			 ? marks_plant(&m, pp->p, &file->plan, bias, map->start,
				       map->end, &planted, &err)
			 : SMCO_NOTFOUND;
	note_refused(ph, &file->plan, planted, &err);
	if (rc)
		return;
	ph->nr_beside = max_u64(ph->nr_beside, marks_nr_beside(m));
	struct shared *sh = share(ph, m, pp);
	const struct place place = {{bias, map->inode}, map->start};
	if (sh && add_marks(pp, m, sh, &place)) {
		if (pp->is_late)
			note_late(ph, map->path, pp->since_ns);
		return;
	}
	marks_remove(m);
	if (sh)
		unshare_it(ph, sh);
	marks_destroy(m);
}

void phases_new_thread(struct phases *ph, struct phase_proc *pp, struct task *t)
{
	ph->has_more = true;
	ph->nr_tasks++;
	for (size_t i = 0; pp && i < pp->nr; i++) {
		know_number(ph, pp->shared[i], t);
		uint32_t doubtful =
			phase_threads_note(pp->shared[i], pp, t, true);
		if (doubtful)
			phase_times_doubt(ph, pp->shared[i], doubtful);
	}
}

void phases_thread_gone(struct phases *ph, struct phase_proc *pp,
			struct task *t)
{
	for (size_t i = 0; pp && i < pp->nr; i++) {
		struct shared *sh = pp->shared[i];
		know_number(ph, sh, t);
		settle(ph, sh);
		phase_threads_forget(sh, pp->pid, t);
	}
}

static void note_process(struct phases *ph, struct tproc *p)
{
	struct task *t = tproc_first_task(p);
	uint32_t pid = (uint32_t)tproc_pid(p);
	ph->nr_tasks += tproc_nr_tasks(p);
	if (!t || task_next(t) || (ph->sole_pid && ph->sole_pid != pid)) {
		ph->has_more = true;
		return;
	}
	ph->sole_pid = pid;
	ph->sole_tid = (uint32_t)task_tid(t);
}

void phases_plant(struct phases *ph, struct phase_proc **ret, struct tproc *p,
		  struct sym_space *space)
{
	struct phase_proc *pp = *ret;
	struct tmaps maps;
	if (!pp)
		pp = *ret = calloc(1, sizeof(*pp));
	if (!pp || tproc_code_maps(p, &maps, NULL))
		return;
	pp->p = p;
	pp->pid = (uint32_t)tproc_pid(p);
	note_process(ph, p);
	for (size_t i = 0; i < maps.nr; i++) {
		const struct tmap *map = &maps.maps[i];
		if (!(map->prot & PROT_EXEC) || !map->inode)
			continue;
		struct sym_place at = sym_pin(space, map->start);
		const struct code_file code = {map->start - at.offset,
					       map->inode};
		if (at.module && sym_runs(space, at.module) &&
		    !is_known(pp, code))
			plant_module(ph, pp, space, at.module, map, code.bias);
	}
	tmaps_deinit(&maps);
}

struct phase_proc *phases_fork(struct phases *ph, struct phase_proc *parent,
			       struct tproc *child)
{
	struct phase_proc *pp = parent ? calloc(1, sizeof(*pp)) : NULL;
	ph->has_more = true;
	ph->nr_tasks++;
	if (!pp)
		return NULL;
	pp->p = child;
	pp->pid = (uint32_t)tproc_pid(child);
	for (size_t i = 0; i < parent->nr_known; i++)
		is_known(pp, parent->known[i]);
	for (size_t i = 0; i < parent->nr; i++) {
		struct marks *m;
		if (marks_fork(&m, parent->marks[i], child, NULL))
			continue;
		if (add_marks(pp, m, parent->shared[i], &parent->place[i])) {
			parent->shared[i]->nr_owners++;
			phase_threads_copied(parent->shared[i], pp);
			continue;
		}
		marks_remove(m);
		marks_destroy(m);
	}
	return pp;
}

bool phases_has_lost(const struct phase_proc *pp)
{
	for (size_t i = 0; pp && i < pp->nr; i++)
		if (!marks_are_there(pp->marks[i]))
			return true;
	return false;
}

/* The marks at @i go, in whichever way. */
static void take_out(struct phases *ph, struct phase_proc *pp, size_t i,
		     bool is_unmapped)
{
	struct marks *m = pp->marks[i];
	if (is_unmapped)
		marks_forget(m);
	else
		marks_remove(m);
	unshare_it(ph, pp->shared[i]);
	marks_destroy(m);
	pp->nr--;
	pp->marks[i] = pp->marks[pp->nr];
	pp->shared[i] = pp->shared[pp->nr];
	pp->place[i] = pp->place[pp->nr];
}

static void unknow(struct phase_proc *pp, struct code_file file)
{
	for (size_t i = 0; i < pp->nr_known; i++)
		if (is_same(pp->known[i], file))
			pp->known[i] = (struct code_file){0};
}

static bool is_mapped(const struct tmaps *maps, const struct place *place)
{
	for (size_t i = 0; i < maps->nr; i++)
		if (maps->maps[i].start == place->start &&
		    maps->maps[i].inode == place->file.inode)
			return true;
	return false;
}

/* Modules that nobody has looked at: has any of them something of a phase? What
 * that takes is read before anybody is stopped. */
static bool has_news(struct phases *ph, struct phase_proc *pp,
		     struct sym_space *space, const struct tmaps *maps)
{
	bool any = false;
	for (size_t i = 0; i < maps->nr; i++) {
		const struct tmap *map = &maps->maps[i];
		if (!(map->prot & PROT_EXEC) || !map->inode)
			continue;
		struct sym_place at = sym_pin(space, map->start);
		const struct code_file code = {map->start - at.offset,
					       map->inode};
		if (!at.module || !sym_runs(space, at.module) ||
		    is_known(pp, code))
			continue;
		Elf *elf = sym_module_elf(space, at.module);
		const struct phase_file *file =
			elf ? phase_file_get(ph, map->inode, elf, space,
					     at.module)
			    : NULL;
		elf_end(elf);
		if (!file || !file->plan.nr_windows)
			continue;
		unknow(pp, code);
		any = true;
	}
	return any;
}

bool phases_reload(struct phases *ph, struct phase_proc *pp,
		   struct sym_space *space, bool may_touch, uint64_t since_ns)
{
	struct tmaps maps;
	bool any = false;
	if (!pp || tproc_code_maps(pp->p, &maps, NULL))
		return false;
	pp->is_late = true;
	pp->since_ns = since_ns;
	for (size_t i = pp->nr; i-- > 0;) {
		if (is_mapped(&maps, &pp->place[i]) &&
		    marks_are_there(pp->marks[i]))
			continue;
		any = true;
		if (!may_touch)
			continue;
		unknow(pp, pp->place[i].file);
		take_out(ph, pp, i, true);
	}
	if (has_news(ph, pp, space, &maps))
		any = true;
	tmaps_deinit(&maps);
	return any;
}

bool phases_wants_trim(const struct phase_proc *pp)
{
	for (size_t i = 0; pp && i < pp->nr; i++)
		if (pp->shared[i]->is_dear)
			return true;
	return false;
}

void phases_trim(struct phases *ph, struct phase_proc *pp)
{
	for (size_t i = pp->nr; i-- > 0;)
		if (pp->shared[i]->is_dear)
			take_out(ph, pp, i, false);
}

void phases_drop(struct phases *ph, struct phase_proc *pp, bool gone)
{
	if (!pp)
		return;
	for (size_t i = 0; i < pp->nr; i++) {
		if (!gone)
			marks_remove(pp->marks[i]);
		settle(ph, pp->shared[i]);
		mark_shm_disown(pp->shared[i]->shm, 0, pp->pid);
		unshare_it(ph, pp->shared[i]);
		marks_destroy(pp->marks[i]);
	}
	if (pp->p)
		phase_times_leave(ph, pp->pid, smco_now_ns());
	free(pp->marks);
	free(pp->shared);
	free(pp->place);
	free(pp->known);
	free(pp->seen);
	free(pp);
}

/* --- coming and going --- */

int phases_create(const struct phases_params *p, struct ledger *ledger,
		  struct phases **ret, struct smco_err *err)
{
	struct phases *ph = calloc(1, sizeof(*ph));
	if (ph)
		ph->phase = calloc(p->nr, sizeof(*ph->phase));
	if (!ph || !ph->phase) {
		free(ph);
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	}
	ph->p = *p;
	ph->ledger = ledger;
	for (size_t i = 0; i < p->nr; i++) {
		phase_name_split(p->name[i], &ph->phase[i].name);
		ph->any_function |= ph->phase[i].name.function != NULL;
	}
	ph->due_ns = p->start_ns + TICK_NS;
	ph->span_start_ns = p->start_ns;
	ph->timing_ns = mark_cost_here()->timing / 1000;
	*ret = ph;
	return 0;
}

void phases_destroy(struct phases *ph)
{
	if (!ph)
		return;
	phase_times_free(ph);
	phase_files_free(ph);
	while (ph->shared) {
		struct shared *sh = ph->shared;
		ph->shared = sh->next;
		free_shared(sh);
	}
	free(ph->phase);
	free(ph);
}
