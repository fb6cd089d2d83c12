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
	u->next = p->undos;
	p->undos = u;
	return u;
}

void tproc_undo_drop(struct tproc *p, struct tundo *u)
{
	struct tundo **link = &p->undos;
	while (*link && *link != u)
		link = &(*link)->next;
	if (!*link)
		return;
	*link = u->next;
	free(u);
}

int undo_run_all(struct tproc *p, struct smco_err *err)
{
	int first = 0;

	/* An undo may drop others; one that calls may push one more. */
	while (p->undos) {
		struct tundo *u = p->undos;
		p->undos = u->next;
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
		p->undos = u->next;
		if (undo_is_patch(u))
			patch_forget(u);
		free(u);
	}
}
