/*
 * The books kept from the events against the fixture's own account, for one
 * thread and for eight: every block once, none missing, none too many.
 */
#include "t/unit/hook-run.h"
#include "t/unit/scratch.h"

#define JEMALLOC "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"

static void run_live(const char *prog, const char *threads, const char *steps)
{
	static struct run r;
	const char *path = scratch_path("live");
	char *argv[] = {(char *)prog, (char *)path, (char *)threads,
			(char *)steps, NULL};

	memset(&r, 0, sizeof(r));
	r.cutoff = 8192;
	r.tokens = 1u << 29;
	printf("# %s, %s threads\n", prog, threads);
	if (!check(run_to_end(&r, argv)))
		return;
	printf("# %s; %u events, %u traps, %lu recorded, %lu lost\n", r.text,
	       r.nr_events, r.nr_traps, (long)r.stats.nr_recorded,
	       (long)r.stats.nr_lost);
	check_int(r.exit_status, 0);
	check(run_live_set_is_exact(&r, path));
	check_int(r.double_allocs, 0);
	check_int(r.free_unknown, 0);
	check_int(r.stats.nr_lost, 0);
	check_int(r.stats.nr_skipped, 0);
	check_int(r.nr_events, r.stats.nr_recorded);
	check(r.nr_kind[HEAP_REALLOC] > 0);
	check_int(r.nr_no_stack, 0);
	check(r.nr_traps < 300);
}

int main(void)
{
	char prog[512];
	snprintf(prog, sizeof(prog), "%s", fixture("hook-live"));
	run_live(prog, "1", "20000");
	run_live(prog, "8", "5000");
	/* Not glibc's: blocks are taken as they come. */
	if (access(JEMALLOC, R_OK)) {
		tap_skip("no jemalloc here");
	} else {
		setenv("LD_PRELOAD", JEMALLOC, 1);
		run_live(prog, "8", "5000");
		unsetenv("LD_PRELOAD");
	}
	snprintf(prog, sizeof(prog), "%s", fixture("hook-live-static"));
	run_live(prog, "8", "5000");
	return tap_done();
}
