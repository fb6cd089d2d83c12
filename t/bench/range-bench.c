/*
 * What range sensors cost: a command without, with all sensors in, and with
 * all sites but none in; processor time, hits, nanoseconds a hit, and the stop
 * in which all functions go in and out.
 *
 *	range-bench [-v VARIABLE,...] COMMAND ARGS...
 */
#include <fcntl.h>
#include <sys/resource.h>

#include "t/unit/range-run.h"

static struct range_run x;
static const char *only;

static double best_of(double a, double b)
{
	return a == 0 || b < a ? b : a;
}

static double child_seconds(void)
{
	static double before;
	struct rusage u;
	getrusage(RUSAGE_CHILDREN, &u);
	double now = (double)u.ru_utime.tv_sec + u.ru_utime.tv_usec / 1e6 +
		     (double)u.ru_stime.tv_sec + u.ru_stime.tv_usec / 1e6;
	double took = now - before;
	before = now;
	return took;
}

static double plain(char *const argv[])
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
		dup2(fd, 1);
		execvp(argv[0], argv);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
	return child_seconds();
}

#define TOGGLES 50
static uint64_t in_ns, out_ns, one_ns;
static bool toggled;

/* Some way into the run: all out and in again, and one function. */
static void toggle(struct run *run)
{
	uint32_t one = 0;
	uint64_t ns;
	if (!x.r || toggled || tproc_cpu_ns(run->p) < 100 * NSEC_PER_MSEC)
		return;
	toggled = true;
	for (uint32_t i = 0; i < x.nr; i++)
		if (range_plan_function(x.plan, i)->nr_windows >
		    range_plan_function(x.plan, one)->nr_windows)
			one = i;
	for (int i = 0; i < TOGGLES; i++) {
		ranges_set(x.r, x.all, x.nr, false, &ns, NULL);
		out_ns += ns / TOGGLES;
		ranges_set(x.r, x.all, x.nr, true, &ns, NULL);
		in_ns += ns / TOGGLES;
		ranges_set(x.r, &one, 1, false, &ns, NULL);
		one_ns += ns / TOGGLES / 2;
		ranges_set(x.r, &one, 1, true, &ns, NULL);
		one_ns += ns / TOGGLES / 2;
	}
}

static double watched(char *const argv[], bool in, bool toggles)
{
	range_run_free(&x);
	memset(&x, 0, sizeof(x));
	x.start_out = !in;
	x.only = only;
	x.run.tick = toggles ? toggle : NULL;
	range_run_to_end(&x, argv, "/dev/null");
	return child_seconds();
}

static void say_sites(void)
{
	uint64_t sites = 0, served = 0, windows = 0, refused = 0;
	for (uint32_t i = 0; i < x.nr; i++) {
		const struct range_function_info *f =
			range_plan_function(x.plan, i);
		sites += f->nr_sites;
		served += f->nr_served;
		windows += f->nr_windows;
		refused += f->refused != NULL;
	}
	printf("%zu variables, %zu functions (%ju left alone), %ju sites, "
	       "%ju served (%.1f %%) by %ju jumps\n",
	       x.vars->nr_vars, x.nr, (uintmax_t)refused, (uintmax_t)sites,
	       (uintmax_t)served, 100.0 * (double)served / (double)sites,
	       (uintmax_t)windows);
}

int main(int argc, char **argv)
{
	double without = 0, with = 0, out = 0;
	if (argc > 2 && !strcmp(argv[1], "-v")) {
		only = argv[2];
		argv += 2;
		argc -= 2;
	}
	if (argc < 2)
		return 2;
	for (int i = 0; i < 3; i++) {
		without = best_of(without, plain(argv + 1));
		out = best_of(out, watched(argv + 1, false, false));
		with = best_of(with, watched(argv + 1, true, false));
	}
	if (!x.r)
		return 1;
	uint64_t hits = 0, cost = 0;
	size_t nr = range_plan_nr_windows(x.plan);
	struct range_news *news = calloc(nr + 1, sizeof(*news));
	nr = news ? ranges_news(x.r, news) : 0;
	for (size_t i = 0; i < nr; i++) {
		hits += news[i].hits;
		cost += news[i].cost_ps;
	}
	free(news);
	say_sites();
	printf("alone %.3f s, none in %.3f s (%+.1f %%), all in %.3f s "
	       "(%+.1f %%)\n",
	       without, out, 100 * (out / without - 1), with,
	       100 * (with / without - 1));
	printf("%ju hits, %.2f ns a hit; by the model %.2f ns\n",
	       (uintmax_t)hits, (with - without) * 1e9 / (double)hits,
	       (double)cost / 1e3 / (double)hits);
	watched(argv + 1, true, true);
	printf("all in %.1f us, all out %.1f us, the largest function "
	       "%.1f us\n",
	       (double)in_ns / 1e3, (double)out_ns / 1e3, (double)one_ns / 1e3);
	range_run_free(&x);
	return 0;
}
