/*
 * Functions and single windows are patched in and out, ten thousand times,
 * while eight threads run in them and signals interrupt them everywhere: the
 * program finds nothing wrong, and nothing is seen that was not there.
 */
#include "t/unit/symhelp.h"
#include <fcntl.h>
#include "supervisor/probe/range-live.h"
#include "supervisor/probe/sigframe.h"
#include "t/unit/range-run.h"

static struct range_run x;
static unsigned wanted = 10000; /* $SMCO_TEST_TOGGLES */
static unsigned seed = 1, nr_toggles, nr_stops, nr_busy;
static int gate = -1; /* closed, the program ends */

static unsigned nr_home, nr_lost;

/* Threads in stubs have the stacks that they would have without. */
static void look_home(struct run *run)
{
	if (tproc_stop(run->p, NULL))
		return;
	for (struct task *t = tproc_first_task(run->p); t; t = task_next(t)) {
		struct user_regs_struct u;
		taddr_t frames[40], slots[40];
		bool complete = false;
		if (task_get_regs(t, &u) || !ranges_home(x.r, &u))
			continue;
		/* In a handler that interrupted another stub: where it goes
		 * back to cannot be unwound. */
		if (sigframes_find(run->p, u.rsp, x.r->base,
				   x.r->base + x.r->bytes, NULL, NULL))
			continue;
		const struct sym_regs regs = {
			.reg = {u.rax, u.rdx, u.rcx, u.rbx, u.rsi, u.rdi, u.rbp,
				u.rsp, u.r8, u.r9, u.r10, u.r11, u.r12, u.r13,
				u.r14, u.r15, u.rip}};
		size_t n = sym_unwind(run->syms, &regs, frames, slots, 40,
				      &complete);
		nr_home++;
		nr_lost += !complete || n < 3;
	}
	tproc_cont(run->p);
}

/* Some windows here and there: how many were changed. */
static unsigned choose(uint64_t *ns_ret)
{
	size_t nr = range_plan_nr_windows(x.plan);
	bool *want = calloc(nr + 1, sizeof(*want));
	uint32_t *changed = calloc(nr + 1, sizeof(*changed));
	unsigned changes = 0;
	for (uint32_t i = 0; want && changed && i < nr; i++) {
		bool is = ranges_window_is_in(x.r, i);
		bool is_one = range_plan_function_of(x.plan, i) != UINT32_MAX;
		want[i] = is != (is_one && rand_r(&seed) >> 8 & 1);
		if (want[i] != is)
			changed[changes++] = i;
	}
	nr_busy += ranges_choose(x.r, changed, changes, want, ns_ret, NULL) ==
		   SMCO_BUSY;
	free(changed);
	free(want);
	return changes;
}

static void toggle(struct run *run)
{
	for (int n = 0; n < 20 && nr_toggles < wanted; n++) {
		uint32_t some[16];
		size_t nr = 0;
		uint64_t ns;
		bool in = rand_r(&seed) >> 8 & 1;
		if (n % 2 && x.r) {
			nr_toggles += choose(&ns) > 0;
			nr_stops++;
			x.set_ns += ns;
		}
		for (uint32_t i = 0; i < x.nr && nr < 16; i++)
			if (rand_r(&seed) >> 8 & 1 &&
			    range_plan_function(x.plan, i)->nr_windows &&
			    ranges_is_in(x.r, i) != in)
				some[nr++] = i;
		if (!nr)
			continue;
		int r = ranges_set(x.r, some, nr, in, &ns, NULL);
		if (r == SMCO_GONE)
			break;
		nr_busy += r == SMCO_BUSY;
		nr_toggles += nr;
		if (in && nr_stops % 8 == 0)
			look_home(run);
		nr_stops++;
		x.set_ns += ns;
	}
	if (nr_toggles >= wanted && gate >= 0) {
		close(gate);
		gate = -1;
	}
}

static void churn(const char *cc, const char *flags)
{
	char prog[256], out[256];
	int ends[2];
	memset(&x, 0, sizeof(x));
	nr_toggles = nr_stops = nr_busy = nr_home = nr_lost = 0;
	printf("# %s %s\n", cc, flags);
	if (run("%s %s -g -o $D/churn t/fixtures/range/churn.c -lpthread", cc,
		flags) ||
	    pipe2(ends, O_CLOEXEC) || dup2(ends[0], 0) < 0) {
		check_msg(false, "%s compiles it", cc);
		return;
	}
	close(ends[0]);
	gate = ends[1];
	x.run.tick = toggle;
	x.run.tick_ms = 1;
	snprintf(prog, sizeof(prog), "%s/churn", scratch);
	snprintf(out, sizeof(out), "%s/out", scratch);
	check(range_run_to_end(&x, (char *[]){prog, (char[]){"-"}, NULL}, out));
	check_int(x.run.exit_status, 0);
	check_int(run("grep -q '^0 wrong' $D/out"), 0);
	if (check(x.r != NULL)) {
		struct range_score s = range_run_score(&x, x.r, out);
		printf("# %u toggles in %u stops of %ju us, %u busy; all in "
		       "%ju us\n",
		       nr_toggles, nr_stops,
		       (uintmax_t)(x.set_ns / 1000 / (nr_stops + 1)), nr_busy,
		       (uintmax_t)(x.set_all_ns / 1000));
		check_int(s.wide, 0);
		check(s.exact >= 4);
		check(nr_toggles >= wanted);
		printf("# %u threads seen in stubs\n", nr_home);
		check(nr_home > 0);
		check_int(nr_lost, 0);
	}
	if (gate >= 0)
		close(gate);
	gate = -1;
	range_run_free(&x);
}

int main(void)
{
	const char *more = getenv("SMCO_TEST_TOGGLES");
	if (more)
		wanted = (unsigned)atoi(more);
	make_scratch();
	churn("gcc", "-O2");
	churn("clang", "-O1");
	return finish();
}
