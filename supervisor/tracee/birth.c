/*
 * Where tasks come from: clone, fork, vfork, exec. Booked while the status is
 * gathered, before anything in the parent's memory can change, so that the
 * child's list of patches is what its copy of the memory holds.
 */
#include <errno.h>
#include <linux/kcmp.h>
#include <linux/sched.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "supervisor/tracee/debugreg.h"
#include "supervisor/tracee/internal.h"
#include "supervisor/tracee/mend.h"

/* So long it is left to its creator's status; and looked for that often. */
#define ORPHAN_NS (100 * NSEC_PER_MSEC)

static bool same_thread_group(pid_t tgid, pid_t tid)
{
	/* The null signal reaches @tid only as a member of @tgid. */
	return syscall(SYS_tgkill, tgid, tid, 0) == 0;
}

static bool same_memory(struct task *parent, pid_t child)
{
	long r = syscall(SYS_kcmp, parent->tid, child, KCMP_VM, 0UL, 0UL);
	if (r >= 0)
		return r == 0;
	if (errno == ESRCH)
		return false;

	/* Without kcmp: what did the parent ask for? */
	struct user_regs_struct regs;
	if (task_get_regs(parent, &regs) < 0)
		return false;
	uint64_t flags = 0;
	switch (arch.syscall_nr(&regs)) {
	case SYS_clone:
		flags = arch.syscall_arg(&regs, 0);
		break;
	case SYS_clone3:
		tmem_read(parent->proc, arch.syscall_arg(&regs, 0), &flags,
			  sizeof(flags));
		break;
	default:
		flags = task_kind(parent) == STOP_VFORK ? CLONE_VM : 0;
		break;
	}
	return flags & CLONE_VM;
}

/* Nobody was told of it yet, so that nothing is planted that a copy of now
 * would have, although it may be once the copy is told of. */
static bool is_being_attached(const struct tproc *p)
{
	return p->seized || p->from_before ||
	       (p->is_new && p->why == TPROC_ATTACHED);
}

/* @c, known or not yet stopped, belongs to @parent's family. */
static void place(struct task *c, struct task *parent)
{
	struct tproc *p = parent->proc;

	c->no_handler = parent->no_handler; /* a copy of its stack, or none */
	c->options = parent->options;
	if (same_thread_group(parent->tgid, c->tid)) {
		task_join(c, p, parent->tgid);
	} else if (same_memory(parent, c->tid)) {
		task_join(c, p, c->tid);
	} else {
		struct tproc *q = tproc_create(p->tr, c->tid);
		if (!q) {
			if (c->state == TASK_STOPPED)
				ptrace(PTRACE_DETACH, c->tid, NULL, 0L);
			task_unlink(c);
			return;
		}
		q->is_new = true;
		q->why = TPROC_FORKED;
		q->parent = p;
		q->from_before = is_being_attached(p);
		q->is_whole_copy = p->nr_tasks == 1;
		q->launched = p->launched;
		q->syscall_insn = p->syscall_insn;
		q->boot_site = p->boot_site;
		q->trap_sig = p->trap_sig;
		q->trace_syscalls = p->trace_syscalls;
		patch_copy_all(p, q);
		stub_inherit(q, p);
		whole_inherit(q, p);
		libs_inherit(q, p);
		for (size_t i = 0; i < p->nr_trap_ranges; i++)
			tproc_set_trap_range(q, p->trap_ranges[i].start,
					     p->trap_ranges[i].end);
		task_join(c, q, c->tid);
	}
	/* An orphan's first stop came before; now it can be acted upon. */
	if (c->state == TASK_STOPPED)
		task_enqueue(c);
}

/* Whoever was reaped before its creator told of it will not be heard of. */
static void hold_creator(struct task *c, struct task *parent)
{
	if (!parent->tr->opts.hold_creators || syscall(SYS_tkill, c->tid, 0))
		return;
	c->creator = parent;
	parent->created = c;
}

void birth_over(struct task *t)
{
	struct task *creator = t->creator;
	if (!creator)
		return;
	t->creator = NULL;
	creator->created = NULL;
	task_release(creator);
}

/* The kernel's figure of a process that has ended has its children's in it. */
static void note_family(struct task *c, struct task *parent)
{
	if (same_thread_group(parent->tgid, c->tid))
		return;
	struct task *leader = task_find(parent->tr, parent->tgid);
	if (leader)
		leader->is_childless = false;
	c->is_childless = true;
}

void note_birth(struct task *parent)
{
	unsigned long child = 0;

	if (!parent->proc ||
	    ptrace(PTRACE_GETEVENTMSG, parent->tid, NULL, &child) < 0 || !child)
		return;
	struct task *c = task_find(parent->tr, (pid_t)child);
	if (c && c->proc)
		return; /* found by the scan of an attach */
	if (!c) {
		c = task_create(parent->tr, (pid_t)child);
		if (!c)
			return;
	}
	c->made_by = parent->tid;
	note_family(c, parent);
	if (c->state != TASK_STOPPED)
		likely_born(&parent->tr->likely, c->tid);
	hold_creator(c, parent);
	/* Of two that have stopped the kernel tells of the younger first. Its
	 * creator goes on first all the same: it may be about to wait for it.
	 */
	if (!parent->proc->leaving)
		task_enqueue(parent);
	place(c, parent);
}

/* The tasks of @tgid but @t no longer exist; told as ended. */
static void bury_others(struct tproc *p, struct task *t, pid_t former)
{
	for (struct task *o = p->tasks; o; o = o->next) {
		if (o == t || o->tgid != t->tgid)
			continue;
		if (o->state == TASK_DEAD)
			continue;
		smco_debug("ptrace", "%d gone by exec of %d (was %d)", o->tid,
			   t->tid, former);
		o->state = TASK_DEAD;
		o->status = 0;
		o->held = false;
		task_dequeue(o); /* a stop that is void now */
		task_enqueue(o);
	}
}

static void move_task(struct task *t, struct tproc *to)
{
	struct task **link = &t->proc->tasks;
	while (*link != t)
		link = &(*link)->next;
	*link = t->next;
	t->proc->nr_tasks--;
	task_join(t, to, t->tgid);
}

void note_exec(struct task *t)
{
	unsigned long former = 0;
	struct tracer *tr = t->tr;

	ptrace(PTRACE_GETEVENTMSG, t->tid, NULL, &former);
	if (!t->proc) {
		/* The leader was no longer there when we attached. */
		struct task *f = task_find(tr, (pid_t)former);
		if (!f || !f->proc)
			return;
		task_join(t, f->proc, f->tgid);
	}
	struct tproc *p = t->proc;
	t->held = false;
	t->is_new = false;
	mend_forget(t);
	t->rseq = 1;
	t->own_tid = 0; /* it has the leader's now */
	debugreg_forget(t);
	t->no_handler = true;
	bury_others(p, t, (pid_t)former);

	/*
	 * Where others live on in the old memory, or when it was another
	 * process's, the new one is a tproc of its own.
	 */
	bool split = t->tgid != p->pid;
	for (struct task *o = p->tasks; o; o = o->next)
		split |= o->tgid != t->tgid && o->state != TASK_DEAD;
	if (p->leaving) {
		/* The new program is none of ours. */
		p->execed |= !split;
		return;
	}
	if (split) {
		struct tproc *q = tproc_create(tr, t->tgid);
		if (!q)
			return;
		move_task(t, q);
		q->parent = p;
		q->split = true;
		q->launched = p->launched;
		if (p->pid == t->tgid)
			for (struct task *o = p->tasks; o; o = o->next)
				if (o->state != TASK_DEAD)
					p->pid = o->tgid;
		if (!p->nr_tasks)
			tproc_gone(p, true);
		p = q;
	}
	bool first = p->why == TPROC_LAUNCHED && !t->announced;
	p->why = first ? TPROC_LAUNCHED : TPROC_EXECED;
	p->execed = true;
	p->is_new = true;
}

void leave_child(struct tproc *child)
{
	undo_run_all(child, NULL);
	for (struct task *t = child->tasks; t; t = t->next)
		task_detach(t);
	tproc_discard(child);
}

void adopt_orphans(struct tracer *tr)
{
	/*
	 * The creator's status is on its way unless it was killed in between.
	 * So only those that have waited for long are looked at, and seldom; so
	 * are creators whose child does not stop.
	 */
	uint64_t now = smco_now_ns();
	if (now < tr->orphans_ns)
		return;
	tr->orphans_ns = now + ORPHAN_NS;
	for (int i = 0; i < TASK_HASH_SIZE; i++)
		for (struct task *t = tr->hash[i], *next; t; t = next) {
			next = t->hash_next;
			if (t->created && now - t->stop_ns >= ORPHAN_NS)
				birth_over(t->created);
			if (t->proc || t->state != TASK_STOPPED ||
			    now - t->stop_ns < ORPHAN_NS)
				continue;
			uint64_t tgid = 0;
			proc_status_u64(t->tid, "Tgid", 10, &tgid);
			struct task *l = task_find(tr, (pid_t)tgid);
			if (l && l != t && l->proc) {
				task_join(t, l->proc, (pid_t)tgid);
				task_enqueue(t);
			} else {
				task_detach(t);
				task_unlink(t);
			}
		}
}
