/*
 * A thread gets no CPU to stop on, so the sensors of allocations cannot be
 * taken out: that is said, they stay as they are, and go at the next try, or
 * at detach, also if nobody has kept them until then.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/uio.h>

#include "t/unit/hog.h"
#include "t/unit/hook-copy.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

#define BYTES 3000
#define JUMP  5

static struct tracer *tr;
static taddr_t entry;
static int cpu[2];

static long act_malloc(long unused, long unused2)
{
	(void)unused;
	(void)unused2;
	char *volatile p = malloc(BYTES);
	return copy_uses(p, BYTES);
}

static bool is_changed(pid_t pid)
{
	uint8_t now[JUMP] = {0}, ours[JUMP];
	struct iovec to = {now, JUMP}, from = {(void *)(uintptr_t)entry, JUMP};
	memcpy(ours, (const void *)(uintptr_t)entry, JUMP);
	return process_vm_readv(pid, &to, 1, &from, 1, 0) != JUMP ||
	       memcmp(now, ours, JUMP);
}

static int plant(struct tproc *p, struct hooks **ret, struct smco_err *err)
{
	const struct hook_symbols syms = {.find = copy_find};
	return hooks_plant(p, &syms, 1000, ret, err);
}

static struct hooks *plant_again(struct tproc *p, struct hooks *old)
{
	struct hooks *h = NULL;
	hooks_destroy(old);
	while (tproc_stop(p, NULL) == SMCO_BUSY)
		;
	if (plant(p, &h, NULL))
		exit(1);
	tproc_cont(p);
	return h;
}

/* False where there is no real time. */
static bool leaves(bool tries_again)
{
	struct smco_err err = {0};
	struct hooks *h = NULL;
	struct puppet pup = puppet_start();
	struct tproc *p = traced_attach(tr, pup.pid, &err);
	if (!check_msg(p != NULL, "attached %s", err.msg))
		exit(tap_done());
	if (!check_int(plant(p, &h, &err), 0))
		exit(tap_done());
	tproc_resume_new(p);
	check(bind_lowly(pup.pid, cpu[1]));
	check(is_changed(pup.pid));
	/* It may get its turn all the same. */
	pid_t other = -1;
	int rc = 0;
	for (int i = 0; i < HOG_TRIES && rc == 0; i++) {
		other = hog_met(p, cpu[1]);
		if (other < 0)
			break;
		rc = hooks_remove(h, &err);
		if (rc == 0)
			h = plant_again(p, h);
		else
			check(is_changed(pup.pid));
		hog_end(other);
	}
	if (other > 0) {
		check_int(rc, SMCO_BUSY);
		check(strstr(err.msg, "does not stop") != NULL);
	}
	lift(pup.pid);
	rc = tries_again ? SMCO_BUSY : 0;
	while (rc == SMCO_BUSY)
		rc = hooks_remove(h, NULL);
	check_int(rc, 0);
	check_int(is_changed(pup.pid), !tries_again);
	check_int(copy_has_area(pup.pid), !tries_again);
	hooks_destroy(h);
	check_int(tproc_detach(p, &err), 0);
	check(!is_changed(pup.pid));
	check(!copy_has_area(pup.pid));
	check_int(puppet_do(&pup, act_malloc, 0, 0), BYTES);
	puppet_end(&pup);
	return other > 0;
}

int main(void)
{
	struct smco_err err = {0};
	entry = (taddr_t)(uintptr_t)dlsym(RTLD_DEFAULT, "malloc");
	hog_needs(cpu);
	if (!check_int(tracer_create(&tr, NULL, &err), 0))
		return tap_done();
	if (!leaves(true) || !leaves(false))
		tap_skip("no real time here");
	tracer_destroy(tr);
	return tap_done();
}
