/*
 * Watchpoints by ptrace: what a store says, or what is there while the thread
 * stands; as many hits as it may have and not one more; what they are charged;
 * nothing while pointers lead elsewhere.
 */
#include "t/unit/watching.h"

static volatile uint64_t words[3]; /* the puppet's */

static long act_many(long word, long nr)
{
	for (long i = 1; i <= nr; i++)
		words[word] = (uint64_t)i;
	return 0;
}

static long act_write(long word, long value)
{
	words[word] = (uint64_t)value;
	return 0;
}

static void run(puppet_fn fn, long word, long value)
{
	check_int(traced_do(tr, &pup, fn, word, value), 0);
}

static struct watch_what what_of_first(void)
{
	return (struct watch_what){
		.addr = (taddr_t)(uintptr_t)&words[0],
		.bytes = 8,
		.field = {{.bits = 64, .is_signed = true}},
		.nr_fields = 1,
	};
}

static void test_limit(void)
{
	const struct watch_what what = what_of_first();
	struct watchpoint *w = armed(&what, 10);
	run(act_many, 0, 9);
	check(watchpoint_spent_ns(w) == UINT64_MAX);
	check(watchpoint_refill(w, 5));
	run(act_many, 0, 1000);
	check_int(watchpoint_hits(w), 14);
	check(is_range(w, 0, 1, 9));
	check(watchpoint_spent_ns(w) <= smco_now_ns());
	check(!watchpoint_refill(w, 5));
	uint64_t nr, ns = watchpoint_take_cost_ns(w, &nr);
	check_int(nr, 14);
	check_int(ns, 14 * watchpoints_hit_ns(ws));
	check(watchpoints_untold_ns(ws) < watchpoints_hit_ns(ws));
	check_int(watchpoint_take_cost_ns(w, &nr), 0);
	watchpoint_disarm(w);
	run(act_many, 0, 10);
}

static void test_pointers(void)
{
	struct watch_what what = what_of_first();
	what.pointer[0] = (struct watch_pointer){
		.addr = (taddr_t)(uintptr_t)&words[1], .value = 40};
	what.nr_pointers = 1;
	run(act_write, 1, 40);
	struct watchpoint *w = armed(&what, INT64_MAX);
	run(act_write, 0, -5);
	run(act_write, 1, 41);
	run(act_write, 0, 7);
	check(is_range(w, 0, -5, -5));
	run(act_write, 1, 40);
	run(act_write, 0, 6);
	check(is_range(w, 0, -5, 6));
	check_int(watchpoint_hits(w), 3);
	watchpoint_disarm(w);
}

int main(void)
{
	struct smco_err err = {0};
	if (watchpoints_open_by_ptrace(&ws, &err)) {
		tap_skip(err.msg);
		return tap_done();
	}
	check(watchpoints_stop_threads(ws) && watchpoints_know_pointers(ws));
	check(!watchpoints_have_bpf(ws) && !watchpoints_see_kernel(ws));
	check(watchpoints_own_ns(ws) <= watchpoints_hit_ns(ws));
	if (!check_int(tracer_create(&tr, NULL, &err), 0))
		return tap_done();
	pup = puppet_start();
	proc = traced_must_attach(tr, pup.pid);
	tproc_resume_new(proc);
	test_limit();
	test_pointers();
	tracer_destroy(tr);
	check_int(puppet_do(&pup, act_many, 0, 10), 0);
	puppet_end(&pup);
	watchpoints_close(ws);
	return tap_done();
}
