/*
 * A fork under the sensors: the child gets a ring of its own, both keep exact
 * books, also of blocks allocated before; and a child that is not followed
 * writes nothing into its parent's ring, nor one that sleeps. Woken, it keeps
 * exact books of what it has allocated since.
 */
#include "supervisor/probe/hook-private.h"
#include "t/unit/hook-run.h"
#include "t/unit/scratch.h"

static struct run r, child;

static void run_fork_fixture(bool follow)
{
	char prog[512];
	const char *p1 = scratch_path("parent"), *p2 = scratch_path("child");
	snprintf(prog, sizeof(prog), "%s", fixture("hook-fork"));
	char *argv[] = {prog, (char *)p1, (char *)p2, NULL};

	memset(&r, 0, sizeof(r));
	memset(&child, 0, sizeof(child));
	child.exit_status = -1;
	r.cutoff = 8192;
	r.tokens = 1u << 29;
	if (follow)
		r.child = &child;
	check(run_to_end(&r, argv));
	check_int(r.exit_status, 0);
	check(run_live_set_is_exact(&r, p1));
	check_int(r.double_allocs + r.free_unknown, 0);
	check_int(r.nr_events, r.stats.nr_recorded);
	if (!follow)
		return;
	hooks_drain(child.h, run_hear, &child);
	hooks_get_stats(child.h, &child.stats);
	hooks_destroy(child.h);
	printf("# child: %u events\n", child.nr_events);
	check_int(child.exit_status, 0);
	check(run_live_set_is_exact(&child, p2));
	check_int(child.double_allocs + child.free_unknown, 0);
	check_int(child.nr_events, child.stats.nr_recorded);
	check(child.nr_events > 1000);
}

static enum sleeper { SLEEPS, WAKES, HAS_NONE } sleeper;

/* Its text is as it was before the sensors were planted. */
static void take_text_back(struct tproc *p)
{
	for (unsigned i = 0; i < r.h->plan.nr_sites; i++) {
		const struct stub *s = &r.h->plan.sites[i].stub;
		if (r.h->plan.sites[i].planted)
			check_int(tmem_write(p, s->patch, s->old,
					     STUB_JUMP_BYTES),
				  0);
	}
}

static void put_to_sleep(struct run *run, struct tproc *p)
{
	struct smco_err err = {0};
	hooks_drain(run->h, run_hear, run);
	child.p = p;
	child.tr = run->tr;
	if (sleeper == HAS_NONE)
		take_text_back(p);
	int rc = hooks_copy(run->h, p, &child.h, &err);
	check_int(rc, sleeper == HAS_NONE ? SMCO_NOTFOUND : 0);
	if (sleeper != WAKES || rc)
		return;
	check_int(hooks_wake(child.h, &err), 0);
	hooks_set_tokens(child.h, run->tokens);
	run->child = &child; /* for its requests of stacks and its end */
}

static void run_sleeper(enum sleeper what)
{
	char prog[512];
	const char *p1 = scratch_path("parent"), *p2 = scratch_path("child");
	snprintf(prog, sizeof(prog), "%s", fixture("hook-fork"));
	char *argv[] = {prog, (char *)p1, (char *)p2, NULL};

	memset(&r, 0, sizeof(r));
	memset(&child, 0, sizeof(child));
	child.exit_status = -1;
	r.cutoff = 8192;
	r.tokens = 1u << 29;
	r.forked = put_to_sleep;
	sleeper = what;
	check(run_to_end(&r, argv));
	check_int(r.exit_status, 0);
	check(run_live_set_is_exact(&r, p1));
	check_int(r.double_allocs + r.free_unknown, 0);
	check_int(r.nr_events, r.stats.nr_recorded);
	if (what == WAKES) {
		hooks_drain(child.h, run_hear, &child);
		hooks_get_stats(child.h, &child.stats);
		check_int(child.exit_status, 0);
		/* All that it had from before it has freed. */
		check(run_live_set_is_exact(&child, p2));
		check_int(child.double_allocs, 0);
		check_int(child.nr_events, child.stats.nr_recorded);
		check(child.nr_events > 1000);
	}
	hooks_destroy(child.h);
}

int main(void)
{
	run_fork_fixture(true);
	run_fork_fixture(false);
	run_sleeper(SLEEPS);
	run_sleeper(WAKES);
	run_sleeper(HAS_NONE);
	return tap_done();
}
