/*
 * A copy that was made before its parent got sensors, and is told of after
 * that, has none of them: nothing is taken out of it, nobody is waited for, and
 * it gets its own.
 */
#include <stdlib.h>

#include "t/unit/hook-copy.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

#define BYTES 3000

static struct tracer *tr;

static long act_malloc(long unused, long unused2)
{
	(void)unused;
	(void)unused2;
	char *volatile p = malloc(BYTES);
	return copy_uses(p, BYTES);
}

static struct tproc *attach(struct puppet *pup)
{
	*pup = puppet_start();
	return traced_must_attach(tr, pup->pid);
}

static void leave(struct puppet *pup, struct tproc *p, struct hooks *h)
{
	check_int(tproc_detach(p, NULL), 0); /* takes them out */
	hooks_destroy(h);
	check(!copy_has_area(pup->pid));
	check_int(puppet_do(pup, act_malloc, 0, 0), BYTES);
	puppet_end(pup);
}

int main(void)
{
	const struct hook_symbols syms = {.find = copy_find};
	struct smco_err err = {0};
	struct hooks *of_parent = NULL, *of_copy = NULL;
	struct puppet parent, copy;

	if (!check_int(tracer_create(&tr, NULL, &err), 0))
		return tap_done();
	/* Copies of one program: at the same addresses. */
	struct tproc *p = attach(&parent), *c = attach(&copy);
	if (!check_int(hooks_plant(p, &syms, 1000, &of_parent, &err), 0))
		return tap_done();
	tproc_resume_new(p);
	check(copy_has_area(parent.pid) && !copy_has_area(copy.pid));

	check_int(hooks_fork(of_parent, c, &of_copy, &err), SMCO_NOTFOUND);
	check(of_copy == NULL);
	check_int(hooks_plant(c, &syms, 1000, &of_copy, &err), 0);
	tproc_resume_new(c);
	check(copy_has_area(copy.pid));

	check_int(puppet_do(&copy, act_malloc, 0, 0), BYTES);
	leave(&parent, p, of_parent);
	leave(&copy, c, of_copy);
	tracer_destroy(tr);
	return tap_done();
}
