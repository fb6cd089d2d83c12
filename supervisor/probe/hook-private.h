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
	struct tundo *undo;
	bool planted;	   /* text is patched, area mapped */
	bool left;	   /* taken out, but the area had to stay */
	taddr_t trap_slot; /* of the trap being answered */
	char text[256];
};

/* Takes everything out; all tasks stopped. Whether the area could go is in
 * h->left. */
void hook_take_out(struct hooks *h);
/* Appends to what hooks_describe returns. */
void hook_say(struct hooks *h, const char *text);

#endif
