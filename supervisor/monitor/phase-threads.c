/*
 * Which thread a record is of, where its number does not say so. A thread that
 * was made without a thread area of its own (a raw clone) reads its creator's
 * number: it is told from that by its stack. What cannot be told is left out.
 */
#include <string.h>

#include "supervisor/monitor/phases-private.h"
#include "supervisor/probe/own-tid.h"

/* The clone's stack begins at its first stack pointer, or a little above. */
#define FIRST_BYTES 64

/* May the creator's stack be in it, too? That has the creator's area above it.
 */
static bool is_of_creator(const struct tmap *m,
			  const struct user_regs_struct *r)
{
	return !m || !strcmp(m->path, "[stack]") ||
	       (r->fs_base >= m->start && r->fs_base < m->end);
}

/* @is_new: it is at its first instruction, and has all of its stack below. */
static struct thread_stack stack_of(struct tproc *p, struct task *t,
				    uint32_t there, bool is_new)
{
	struct thread_stack s = {
		.there = there,
		.tid = (uint32_t)task_tid(t),
		.end = UINT64_MAX,
	};
	struct user_regs_struct r;
	struct tmaps maps;
	if (!is_new || task_get_regs(t, &r) || tproc_read_maps(p, &maps, NULL))
		return s;
	const struct tmap *m = tmaps_find(&maps, r.rsp - 1);
	if (!is_of_creator(m, &r)) {
		s.start = m->start;
		s.end = r.rsp + FIRST_BYTES;
		s.is_known = true;
	}
	tmaps_deinit(&maps);
	return s;
}

static void add(struct shared *sh, const struct thread_stack *s)
{
	if (sh->nr_stacks == PHASE_STACKS)
		sh->has_too_many = true;
	else
		sh->stack[sh->nr_stacks++] = *s;
}

static bool is_read_by_others(const struct shared *sh, uint32_t number)
{
	for (size_t i = 0; i < sh->nr_stacks; i++)
		if (sh->stack[i].there == number)
			return true;
	return false;
}

void phase_threads_forget(struct shared *sh, uint32_t pid, struct task *t)
{
	uint32_t tid = (uint32_t)task_tid(t);
	for (size_t i = 0; i < sh->nr_stacks; i++) {
		uint32_t there = sh->stack[i].there;
		if (sh->stack[i].tid != tid)
			continue;
		sh->stack[i--] = sh->stack[--sh->nr_stacks];
		if (!is_read_by_others(sh, there))
			mark_shm_resume(sh->shm, there);
	}
	mark_shm_disown(sh->shm, (uint32_t)task_own_tid(t), pid);
}

uint32_t phase_threads_note(struct shared *sh, const struct phase_proc *p,
			    struct task *t, bool is_new)
{
	uint32_t off = mark_shm_tid_offset(sh->shm);
	if (is_new || tproc_nr_tasks(p->p) > 1)
		sh->is_shared = true;
	if (!off)
		return 0;
	uint32_t there = own_tid_there(t, off);
	if (there == (uint32_t)task_own_tid(t)) {
		if (!is_read_by_others(sh, there))
			mark_shm_own(sh->shm, there, p->pid);
		return 0;
	}
	sh->is_mixed = true;
	if (!there) { /* it may come to read any */
		mark_shm_share(sh->shm);
		return 0;
	}
	mark_shm_pause(sh->shm, there);
	const struct thread_stack s = stack_of(p->p, t, there, is_new);
	add(sh, &s);
	if (sh->has_too_many)
		mark_shm_share(sh->shm);
	return s.is_known ? 0 : there;
}

void phase_threads_copied(struct shared *sh, const struct phase_proc *copy)
{
	struct task *t = tproc_first_task(copy->p);
	uint32_t off = mark_shm_tid_offset(sh->shm);
	sh->is_shared = true;
	if (t && off && own_tid_there(t, off) == (uint32_t)task_own_tid(t)) {
		mark_shm_own(sh->shm, (uint32_t)task_own_tid(t), copy->pid);
	} else { /* it may read its creator's */
		sh->is_mixed = true;
		mark_shm_share(sh->shm);
	}
}

enum phase_thread phase_threads_find(const struct shared *sh,
				     const struct mark_record *r, uint32_t *tid)
{
	const struct thread_stack *found = NULL;
	if (sh->has_too_many || (!r->tid && sh->is_shared))
		return PHASE_THREAD_UNKNOWN;
	/* Several in one mapping: the one that begins next above. */
	for (size_t i = 0; r->tid && i < sh->nr_stacks; i++) {
		const struct thread_stack *s = &sh->stack[i];
		if (s->there == r->tid && r->sp >= s->start && r->sp < s->end &&
		    (!found || s->end < found->end))
			found = s;
	}
	if (!found)
		return PHASE_THREAD_AS_SAID;
	*tid = found->tid;
	return found->is_known ? PHASE_THREAD_TOLD : PHASE_THREAD_UNKNOWN;
}
