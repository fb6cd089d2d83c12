/*
 * A fork under the sensors: the child gets a ring of its own, both keep exact
 * books, also of blocks allocated before; and a child that is not followed
 * writes nothing into its parent's ring.
 */
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

int main(void)
{
	run_fork_fixture(true);
	run_fork_fixture(false);
	return tap_done();
}
