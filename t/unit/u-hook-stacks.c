/*
 * Thousands of call stacks, most of whose frames are the same: each is asked
 * for once, and never taken for another.
 */
#include "t/unit/hook-run.h"

#define NR 4096

static uint32_t id_of_path[NR], path_of_id[4 * NR];
static unsigned wrong, visits;

static void hear(struct run *r, const struct heap_event *ev)
{
	(void)r;
	if (ev->kind != HEAP_ALLOC || ev->size < 10000 ||
	    ev->size >= 10000 + NR)
		return;
	uint32_t path = ev->size - 10000;
	visits++;
	if (!ev->stack || ev->stack >= 4 * NR)
		wrong++;
	else if (!id_of_path[path] && !path_of_id[ev->stack]) {
		id_of_path[path] = ev->stack;
		path_of_id[ev->stack] = path + 1;
	} else if (id_of_path[path] != ev->stack ||
		   path_of_id[ev->stack] != path + 1)
		wrong++;
}

int main(void)
{
	static struct run r;
	char prog[512];
	snprintf(prog, sizeof(prog), "%s", fixture("hook-stacks"));
	char *argv[] = {prog, NULL};
	r.cutoff = 8192;
	r.tokens = 1u << 29;
	r.hear = hear;
	check(run_to_end(&r, argv));
	printf("# %u visits, %u traps, %s\n", visits, r.nr_traps, r.text);
	check_int(visits, 3 * NR);
	check_int(wrong, 0);
	check(r.nr_traps >= NR && r.nr_traps < NR + 20);
	check_int(r.exit_status, 0);
	return tap_done();
}
