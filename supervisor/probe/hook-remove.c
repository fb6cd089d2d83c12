/*
 * Taking the sensors out. First the text goes back, so that nobody enters;
 * then the area is unmapped as soon as no thread can return into it.
 */
#include "supervisor/probe/hook-private.h"
#include "supervisor/probe/sigframe.h"

#include <string.h>
#include <sys/syscall.h>

static bool in_area(const struct hooks *h, taddr_t pc)
{
	return pc >= h->base && pc < h->base + AGENT_LIFE_OFF;
}

bool hook_is_there(struct hooks *h)
{
	for (unsigned i = 0; h->is_unseen && i < h->plan.nr_sites; i++) {
		const struct hook_site *site = &h->plan.sites[i];
		uint8_t now[STUB_JUMP_BYTES];
		if (site->planted &&
		    tmem_read(h->p, site->stub.patch, now, sizeof(now)) == 0 &&
		    !memcmp(now, site->stub.jump, sizeof(now)))
			h->is_unseen = false;
	}
	return !h->is_unseen;
}

static void restore_text(struct hooks *h)
{
	for (unsigned i = 0; i < h->plan.nr_sites; i++) {
		struct hook_site *site = &h->plan.sites[i];
		uint8_t now[STUB_JUMP_BYTES];
		if (!site->planted)
			continue;
		if (h->patches[i] &&
		    tproc_unpatch(h->p, h->patches[i], NULL, NULL, NULL) == 0) {
			h->patches[i] = NULL;
			continue;
		}
		/* A forked copy, or already undone by the engine. */
		if (tmem_read(h->p, site->stub.patch, now, sizeof(now)) == 0 &&
		    !memcmp(now, site->stub.jump, sizeof(now)))
			tmem_write(h->p, site->stub.patch, site->stub.old,
				   sizeof(now));
	}
}

/*
 * A thread that has trapped and waits for an answer stands at a known place:
 * it leaves as if the agent had let it go. The text is restored by now, so
 * calling the function again does not lead back here.
 */
static bool leave_trap(struct hooks *h, struct user_regs_struct *regs)
{
	struct agent_frame f;
	uint32_t inside;
	taddr_t count = h->base + AGENT_PRIV_OFF +
			offsetof(struct agent_private, inside);

	if (regs->rip != h->trap_pc || regs->rbx != AGENT_MAGIC ||
	    tmem_read(h->p, regs->r12, &f, sizeof(f)) ||
	    f.site >= h->plan.nr_sites || (f.state & AGENT_FRAME_MASK) ||
	    tmem_read(h->p, count, &inside, sizeof(inside)))
		return false;
	hook_frame_regs(regs, regs->r12, &f);
	if (f.state & AGENT_FRAME_RESULT) {
		regs->rip = f.ret;
		regs->rsp += 8;
		regs->rax = f.result;
	} else {
		regs->rip = h->plan.sites[f.site].addr;
		regs->rdi = f.args[0];
		regs->rsi = f.args[1];
		regs->rdx = f.args[2];
		regs->rcx = f.args[3];
		regs->r8 = f.args[4];
		regs->r9 = f.args[5];
	}
	inside--;
	return tmem_write(h->p, count, &inside, sizeof(inside)) == 0;
}

/* Who returns from a signal handler into a stub goes to the function itself. */
static void leave_by_frame(void *ctx, taddr_t slot, taddr_t pc)
{
	const struct hooks *h = ctx;
	struct user_regs_struct regs = {.rip = pc};
	/* The frame has the stack pointer of the place that it is for. */
	if (hook_leave_stub(h, &regs) && !regs.rsp)
		tmem_write(h->p, slot, &regs.rip, sizeof(regs.rip));
}

static void leave_frames(struct hooks *h, struct task *t)
{
	taddr_t pc, sp;
	if (task_in_handler(t) && task_get_place(t, &pc, &sp) == 0)
		sigframes_find(h->p, sp, h->base, h->base + AGENT_LIFE_OFF,
			       leave_by_frame, h);
}

/* All tasks stopped. Moves threads out of the stubs where it can. */
static bool nobody_inside(void *hooks)
{
	struct hooks *h = hooks;
	uint32_t inside = 0;
	for (struct task *t = tproc_first_task(h->p); t; t = task_next(t)) {
		struct user_regs_struct regs;
		if (task_get_regs(t, &regs) == 0 && in_area(h, regs.rip) &&
		    (hook_leave_stub(h, &regs) || leave_trap(h, &regs)))
			task_set_regs(t, &regs);
		leave_frames(h, t);
		if (sigframes_leads_to(t, h->base, h->base + AGENT_LIFE_OFF)) {
			smco_debug("hook", "thread %d may be in the agent",
				   task_tid(t));
			return false;
		}
	}
	return tmem_read(h->p,
			 h->base + AGENT_PRIV_OFF +
				 offsetof(struct agent_private, inside),
			 &inside, sizeof(inside)) == 0 &&
	       inside == 0;
}

/* The table of tracked blocks, mapped by the agent, and pools of stacks. */
static void free_tables(struct hooks *h)
{
	for (unsigned i = 0; i < h->shm.nr_more; i++) {
		int64_t ret;
		uint64_t args[6] = {h->shm.stacks->more[i], AGENT_MORE_BYTES};
		if (args[0])
			tproc_syscall(h->p, SYS_munmap, args, &ret, NULL);
	}
	for (unsigned i = 0; i < h->nr_older; i++) {
		int64_t ret;
		uint64_t args[6] = {h->older[i], AGENT_MORE_BYTES};
		tproc_syscall(h->p, SYS_munmap, args, &ret, NULL);
	}
	uint64_t seg[AGENT_MAX_SEGMENTS];
	if (tmem_read(h->p,
		      h->base + AGENT_PRIV_OFF +
			      offsetof(struct agent_private, segments),
		      seg, sizeof(seg)))
		return;
	for (int i = 0; i < AGENT_MAX_SEGMENTS && seg[i]; i++) {
		int64_t ret;
		uint64_t args[6] = {seg[i], AGENT_SEGMENT_BYTES(i)};
		tproc_syscall(h->p, SYS_munmap, args, &ret, NULL);
	}
}

void hook_take_out(struct hooks *h)
{
	if (!h->planted)
		return;
	h->planted = false;
	if (!hook_is_there(h))
		return;
	if (h->shm.ctl) {
		hook_shm_set_cutoff(&h->shm, UINT64_MAX);
		h->shm.ctl->tokens = 0;
		h->shm.ctl->trap_tokens = 0;
	}
	restore_text(h);
	bool empty = tproc_vacate(h->p, nobody_inside, h), gone = empty;
	tproc_clear_trap_range(h->p, h->trap_pc, h->trap_pc);
	smco_debug("hook", "pid %d: %s", tproc_pid(h->p),
		   gone ? "nobody is in the agent" : "somebody stays inside");
	if (gone) {
		struct smco_err err = {0};
		free_tables(h);
		gone = hook_area_unmap(h->p, h->base, &err) == 0;
		if (!gone)
			smco_debug("hook", "pid %d: %s", tproc_pid(h->p),
				   err.msg);
	}
	h->left = !gone;
	if (h->left)
		hook_say(h, empty ? "; no call could be made to unmap it"
				  : "; a thread was still in the agent, left "
				    "mapped");
}

int hooks_remove(struct hooks *h, struct smco_err *err)
{
	if (!h->planted)
		return 0;
	int rc = tproc_stop(h->p, err);
	h->is_owed = rc == SMCO_BUSY;
	if (rc)
		return rc;
	hook_take_out(h);
	if (h->undo)
		tproc_undo_drop(h->p, h->undo);
	h->undo = NULL;
	tproc_cont(h->p);
	return 0;
}
