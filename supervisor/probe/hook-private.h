/* hook-private.h - shared by the files of hook.h, nobody else's. */
#ifndef SMCO_HOOK_PRIVATE_H
#define SMCO_HOOK_PRIVATE_H

#include "supervisor/probe/hook-area.h"
#include "supervisor/probe/hook-plan.h"
#include "supervisor/probe/hook-shm.h"

struct hooks {
	struct tproc *p;
	struct hook_plan plan;
	struct hook_shm shm;
	taddr_t base;
	taddr_t trap_pc;
	struct tpatch *patches[AGENT_MAX_SITES]; /* NULL in a forked copy */
	struct hook_known known;      /* of a copy, as it was copied */
	taddr_t older[AGENT_NR_MORE]; /* pools that only our parents used */
	unsigned nr_older;
	struct tundo *undo;
	bool planted;	   /* text is patched, area mapped */
	bool is_unseen;	   /* as far as books say, of a copy: hook_is_there() */
	bool left;	   /* taken out, but the area had to stay */
	bool is_owed;	   /* could not be taken out: detach does it */
	bool is_orphan;	   /* and frees this, too */
	bool is_short;	   /* was told of: blocks stay as they come, or most */
	bool has_own_uffd; /* a trap said so: hooks_own_uffd() */
	taddr_t trap_slot; /* of the trap being answered */
	char text[256];
};

/* @regs as the program had them when it made the call whose frame is @f, read
 * from @at: at its return address, which is not popped. */
static inline void hook_frame_regs(struct user_regs_struct *regs, taddr_t at,
				   const struct agent_frame *f)
{
	regs->rsp = at + offsetof(struct agent_frame, ret);
	regs->rbx = f->rbx;
	regs->rbp = f->rbp;
	regs->r12 = f->r12;
	regs->r13 = f->r13;
	regs->r14 = f->r14;
	regs->r15 = f->r15;
}

/* Is @regs->rip in a near stub? Then it becomes where the function itself goes
 * on, with its stack pointer. */
bool hook_leave_stub(const struct hooks *h, struct user_regs_struct *regs);
/* Is any of it in the text of its process? Of a copy that is what was noted
 * when it was made, by a thread that nobody had stopped perhaps. */
bool hook_is_there(struct hooks *h);
/* Takes everything out; all tasks stopped. Whether the area could go is in
 * h->left. */
void hook_take_out(struct hooks *h);
/* Whoever it belongs to. */
void hook_free(struct hooks *h);
/* Appends to what hooks_describe returns. */
void hook_say(struct hooks *h, const char *text);

#endif
