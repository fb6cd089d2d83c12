/*
 * Calls that are not cut short. A blocking write to a pipe or socket that a
 * stop interrupts after some bytes returns how many; without us it would have
 * returned when all were written, and not every program looks. The same goes
 * for more calls than one would think (whole-rest.c). The kernel
 * restarts only calls that have done nothing. So the thread is led to a few
 * instructions in the unused end of the vdso that carry on with the rest and
 * then return what the whole call would have (arch-*-whole.c).
 *
 * A wait that is made again is made there, too (mend-late.c).
 *
 * They need no supervisor: it may die or leave meanwhile. What they need to
 * know is on the thread's own stack, below what it uses.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "supervisor/tracee/internal.h"
#include "supervisor/tracee/mend.h"

#define NONE 1 /* tproc.whole: no place for the code */

#define MOST_CODE 1024

/*
 * The kernel has prepared to start the call again, and was interrupted once
 * more before it did: what looks like a result is the number of the call.
 */
static bool is_about_to_call(struct task *t,
			     const struct user_regs_struct *regs)
{
	uint8_t insn[sizeof(arch.syscall_insn)];

	return arch.syscall_ret(regs) == arch.syscall_nr(regs) &&
	       (tmem_read(t->proc, arch.pc(regs), insn, arch.syscall_insn_len) <
			0 ||
		!memcmp(insn, arch.syscall_insn, arch.syscall_insn_len));
}

bool whole_is_cut(struct task *t, const struct user_regs_struct *regs)
{
	struct arch_whole_rest rest;

	return !arch.is_compat(regs) && whole_rest(t, regs, &rest) &&
	       !is_about_to_call(t, regs);
}

/* --- the code --- */

bool whole_has(const struct tproc *p, taddr_t pc)
{
	return p->whole > NONE && pc >= p->whole &&
	       pc - p->whole < p->whole_len;
}

bool whole_is_inside(struct task *t, const struct user_regs_struct *regs)
{
	return t->proc->whole > NONE &&
	       arch_whole_is_inside(regs, t->proc->whole);
}

static int take_out(struct tproc *p)
{
	static const uint8_t zeros[MOST_CODE];
	taddr_t at = p->whole;
	p->whole = NONE; /* or it would be the next change */
	p->whole_waits = false;
	return tmem_write(p, at, zeros, p->whole_len);
}

/* Of the stopped task @t: mere waits go home. Does it stay in the code? */
static bool stays_inside(struct task *t)
{
	struct user_regs_struct regs;
	taddr_t at = t->proc->whole;
	if (task_get_regs(t, &regs) == 0 && arch_whole_is_again(&regs, at))
		late_go_home(t);
	return task_get_regs(t, &regs) < 0 || arch_whole_is_inside(&regs, at);
}

/* Whoever is in it needs it, also when we are gone, and who has not stopped yet
 * is still to be mended. */
static int undo_code(struct tproc *p, void *arg)
{
	struct user_regs_struct regs;
	bool stays = false, waits = false;
	(void)arg;
	for (struct task *t = tproc_first_task(p); t; t = task_next(t)) {
		if (task_get_regs(t, &regs) < 0)
			waits = true;
		else if (stays_inside(t))
			stays = true;
		else
			continue;
		smco_debug("whole", "the code stays for %d, state %c", t->tid,
			   task_proc_state(t));
	}
	if (!stays && !waits)
		return take_out(p);
	p->whole_waits = !stays;
	return 0;
}

void whole_leave(struct task *t)
{
	struct tproc *p = t->proc;
	if (!p->whole_waits)
		return;
	p->whole_waits = !stays_inside(t);
	for (struct task *o = p->tasks; o; o = o->next)
		if (o != t && o->state != TASK_DEAD)
			return;
	if (p->whole_waits)
		take_out(p);
}

void whole_inherit(struct tproc *child, struct tproc *parent)
{
	if (parent->whole > NONE && tproc_undo_push(child, undo_code, NULL))
		child->whole = parent->whole;
	child->whole_len = parent->whole_len;
}

/* Room for @len bytes of code, or what we have left there before. */
static taddr_t find_place(struct tproc *p, const uint8_t *code, size_t len,
			  bool *is_there_ret)
{
	uint8_t there[MOST_CODE];
	taddr_t at = len > sizeof(there) ? 0 : inject_spare_code(p, len);
	if (!at || tmem_read(p, at, there, len) < 0)
		return 0;
	size_t zeros = 0;
	while (zeros < len && !there[zeros])
		zeros++;
	/* Else left by one who was here before us, for a thread in it. */
	*is_there_ret = zeros < len;
	return zeros == len || !memcmp(there, code, len) ? at : 0;
}

void whole_find(struct tproc *p)
{
	const uint8_t *code;
	uint8_t there[MOST_CODE];
	size_t lens[2];

	lens[0] = arch_whole_code(&code, &lens[1]);
	for (size_t i = 0; !p->whole && i < ARRAY_SIZE(lens); i++) {
		taddr_t at = inject_spare_was(p, lens[i]);
		if (lens[i] <= sizeof(there) && at &&
		    tmem_read(p, at, there, lens[i]) == 0 &&
		    !memcmp(there, code, lens[i]) &&
		    tproc_undo_push(p, undo_code, NULL)) {
			p->whole = at;
			p->whole_len = lens[i];
		}
	}
}

static bool install(struct tproc *p)
{
	const uint8_t *code;
	bool is_there;
	size_t basic, len = arch_whole_code(&code, &basic);

	if (p->whole)
		return p->whole > NONE;
	p->whole = NONE;
	taddr_t at = find_place(p, code, len, &is_there);
	if (!at) {
		len = basic;
		at = find_place(p, code, len, &is_there);
	}
	struct tundo *u = at ? tproc_undo_push(p, undo_code, NULL) : NULL;
	if (!u)
		return false;
	if (!is_there && tmem_write(p, at, code, len) < 0) {
		tproc_undo_drop(p, u);
		return false;
	}
	p->whole = at;
	p->whole_len = len;
	return true;
}

bool whole_carry_on(struct task *t, const struct user_regs_struct *was)
{
	struct user_regs_struct regs = *was;
	struct arch_whole_frame frame;
	struct arch_whole_rest rest;

	if (task_diverts_calls(t) || !install(t->proc) ||
	    !whole_rest(t, was, &rest) ||
	    !arch_whole_has(rest.loop, t->proc->whole_len))
		return false;
	if (rest.pull_nr && !whole_pull(t, &rest))
		return false;
	if (rest.done)
		arch.set_syscall_ret(&regs, (int64_t)rest.done);
	taddr_t sp = arch_whole_enter(&regs, t->proc->whole, &rest, &frame);
	smco_debug("whole", "%d: call %ld did %ld", t->tid,
		   arch.syscall_nr(was), (long)arch.syscall_ret(was));
	if (tmem_write(t->proc, sp, &frame, sizeof(frame)) < 0 ||
	    task_set_regs(t, &regs) < 0)
		return false;
	/* It finds back alone, and nobody takes the code out any more. */
	t->proc->whole_waits = false;
	return true;
}

bool whole_go_home(struct task *t, const struct user_regs_struct *was,
		   struct user_regs_struct *ret)
{
	long nr = arch.syscall_nr(was);

	if (nr != SYS_recvmmsg || !(arch.syscall_arg(was, 3) & MSG_WAITALL) ||
	    arch.syscall_ret(was) <= 0 || is_about_to_call(t, was))
		return false;
	whole_end(t);
	if (task_get_regs(t, ret) < 0)
		return false;
	arch.set_pc(ret, arch.pc(ret) - arch.syscall_insn_len);
	arch.undo_restart(ret, nr, arch.syscall_ret(ret));
	return true;
}

bool whole_again(struct task *t, struct user_regs_struct *regs,
		 const struct arch_whole_late *late)
{
	struct user_regs_struct there = *regs;
	struct arch_whole_frame frame;

	/* Who is being left has gone home from there: the code may be taken out
	 * as soon as the last has stopped. */
	if (t->proc->leaving || task_diverts_calls(t) || !install(t->proc) ||
	    (late->is_vector && !arch_whole_has_vector(t->proc->whole_len)))
		return false;
	/* The frame is to say how it is made again, not that it has ended: who
	 * goes home before it has entered the call gets what is there. */
	if (arch.syscall_ret(&there) == -EINTR)
		arch.ask_restart(&there);
	taddr_t sp = arch_whole_again(&there, t->proc->whole, late, &frame);
	if (tmem_write(t->proc, sp, &frame,
		       arch_whole_frame_len(&there, t->proc->whole)) < 0 ||
	    task_set_regs(t, &there) < 0)
		return false;
	*regs = there;
	return true;
}

void whole_end(struct task *t)
{
	struct user_regs_struct regs;
	struct arch_whole_frame frame;
	struct arch_whole_fix fix;
	uint32_t v;

	smco_debug("whole", "%d: ended by a handler", t->tid);
	if (task_get_regs(t, &regs) < 0 ||
	    tmem_read(t->proc, arch.sp(&regs), &frame,
		      arch_whole_frame_len(&regs, t->proc->whole)) < 0 ||
	    !arch_whole_leave(&regs, t->proc->whole, &frame, &fix))
		return;
	if (fix.add && tmem_read(t->proc, fix.at, &v, sizeof(v)) == 0) {
		v += fix.add;
		tmem_write(t->proc, fix.at, &v, sizeof(v));
	}
	if (fix.msg) {
		tmem_write(t->proc,
			   fix.msg + offsetof(struct msghdr, msg_controllen),
			   &fix.control_len, sizeof(fix.control_len));
		tmem_write(t->proc,
			   fix.msg + offsetof(struct msghdr, msg_flags),
			   &fix.msg_flags, sizeof(fix.msg_flags));
	}
	task_set_regs(t, &regs);
}
