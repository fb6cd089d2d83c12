/* What must be undone before a process is left alone, newest first. */
#include <stdlib.h>

#include "supervisor/tracee/internal.h"

struct tundo *tproc_undo_push(struct tproc *p,
			      int (*undo)(struct tproc *p, void *arg),
			      void *arg)
{
	struct tundo *u = calloc(1, sizeof(*u));
	if (!u)
		return NULL;
	u->undo = undo;
	u->arg = arg;
	undo_link(p, u);
	return u;
}

void undo_link(struct tproc *p, struct tundo *u)
{
	u->next = p->undos;
	u->newer = NULL;
	if (u->next)
		u->next->newer = u;
	p->undos = u;
}

static void unlink_undo(struct tproc *p, struct tundo *u)
{
	if (u->next)
		u->next->newer = u->newer;
	if (u->newer)
		u->newer->next = u->next;
	else
		p->undos = u->next;
}

void undo_drop_known(struct tproc *p, struct tundo *u)
{
	unlink_undo(p, u);
	free(u);
}

void tproc_undo_drop(struct tproc *p, struct tundo *u)
{
	const struct tundo *known = p->undos;
	while (known && known != u)
		known = known->next;
	if (known)
		undo_drop_known(p, u);
}

int undo_run_all(struct tproc *p, struct smco_err *err)
{
	int first = 0;

	/* An undo may drop others; one that calls may push one more. */
	while (p->undos) {
		struct tundo *u = p->undos;
		unlink_undo(p, u);
		int r = u->undo(p, u->arg);
		free(u);
		if (r < 0 && r != SMCO_GONE && !first)
			first = smco_fail(err, (enum smco_code)r, 0,
					  "process %d: a change to it could "
					  "not be undone",
					  p->pid);
	}
	return first;
}

void undo_forget_all(struct tproc *p)
{
	while (p->undos) {
		struct tundo *u = p->undos;
		unlink_undo(p, u);
		if (undo_is_patch(u))
			patch_forget(p, u);
		free(u);
	}
}
