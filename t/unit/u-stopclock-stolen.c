/*
 * What a host takes of a CPU while the supervisor is on it, the program would
 * have lost without it, too: it is in no stop and no wait. While the supervisor
 * is on another CPU, the program would not. By the stop clock's own program, on
 * CPUs that are ours.
 */
#include "t/unit/bpfsim.h"

#include "supervisor/probe/stopclock.bpf.c"
#undef asm

#include "t/unit/tap.h"

#define NR_CPUS	 2
#define NR_TASKS 4
#define MS	 1000000ull
/* From the run queues' clock to ours. */
#define OFFSET_NS 5000ull
#define TRACER	  17

static struct stopclock_sum sum_of[NR_CPUS];
static struct stopclock_cpu cpu_of[NR_CPUS];
static struct stopclock_told told_value;
static struct {
	uint64_t key;
	struct kept value;
} task_of[NR_TASKS];

static struct kept *find_task(const void *key)
{
	for (int i = 0; i < NR_TASKS; i++)
		if (task_of[i].key == *(const uint64_t *)key)
			return &task_of[i].value;
	return NULL;
}

static void *bpfsim_lookup(void *map, const void *key)
{
	if (map == &sums)
		return &sum_of[bpfsim_cpu];
	if (map == &cpus)
		return &cpu_of[bpfsim_cpu];
	if (map == &told)
		return &told_value;
	return find_task(key);
}

static long bpfsim_update(void *map, const void *key, const void *value,
			  uint64_t flags)
{
	const uint64_t none = 0;
	struct kept *k = find_task(&none);
	(void)map, (void)flags;
	if (!k)
		return -1;
	*k = *(const struct kept *)value;
	for (int i = 0; i < NR_TASKS; i++)
		if (k == &task_of[i].value)
			task_of[i].key = *(const uint64_t *)key;
	return 0;
}

static long bpfsim_delete(void *map, const void *key)
{
	(void)map, (void)key;
	return -1;
}

static struct pt_regs___x86 no_call = {.orig_ax = -1ul};
static struct kernel_siginfo in_stop;
static struct task_struct idle = {.pid = 0};
static struct task_struct tracer, tracee;

/* As the kernel does: on @cpu, @next instead of @prev, who leaves in @state,
 * after which the queue's notes are made. */
static void put_on(uint32_t cpu, struct task_struct *prev,
		   struct task_struct *next, unsigned state, uint64_t at_ns)
{
	bpfsim_cpu = cpu;
	bpfsim_now_ns = at_ns;
	if (!state && prev != &idle) /* it could go on */
		prev->sched_info.last_queued = at_ns - OFFSET_NS;
	stopclock_switch(!state, prev, next, state);
	struct sched_info *in = &next->sched_info;
	if (in->last_queued)
		in->run_delay += at_ns - OFFSET_NS - in->last_queued;
	in->last_queued = 0;
	in->last_arrival = at_ns - OFFSET_NS;
	in->pcount++;
}

/* The tracer lets the tracee go. */
static void let_go(uint64_t at_ns)
{
	bpfsim_now_ns = at_ns;
	bpfsim_current = &tracer;
	stopclock_waking(&tracee);
	tracee.sched_info.last_queued = at_ns - OFFSET_NS;
}

/* The tracee computes on CPU 0 up to 10 ms. */
static void begin(void)
{
	struct stopclock_setup setup = {1};
	memset(sum_of, 0, sizeof(sum_of));
	memset(cpu_of, 0, sizeof(cpu_of));
	memset(task_of, 0, sizeof(task_of));
	memset(marks, 0, sizeof(marks));
	our_total_ns = our_arrival_ns = our_displaced_ns = 0;
	theirs_offset_ns = theirs_nr = nr_kept = 0;
	nr_standing = standing_since_ns = stood_before_ns = slept_total_ns = 0;
	told_value = (struct stopclock_told){.nr_cpus = NR_CPUS};
	tracer = (struct task_struct){.pid = TRACER, .tgid = TRACER};
	tracee = (struct task_struct){.last_siginfo = &in_stop,
				      .pid = 20,
				      .tgid = 20,
				      .ptrace = 1,
				      .parent = &tracer};
	bpfsim_pid_tgid = (uint64_t)TRACER << 32;
	bpfsim_regs = &no_call;
	stopclock_mine(&setup);
	put_on(0, &idle, &tracee, 0, 1 * MS);
	tracee.se.sum_exec_runtime = 9 * MS;
}

/* A stop from 10 to 50 ms that the tracer works on, on CPU @tracer_cpu, of
 * which it has @had_ns; from @let_go_ns on the tracee waits for CPU @back. */
static void stop(uint32_t tracer_cpu, uint64_t had_ns, uint64_t let_go_ns,
		 uint32_t back)
{
	bool is_same = tracer_cpu == 0;
	begin();
	put_on(0, &tracee, is_same ? &tracer : &idle, STATE_TRACED, 10 * MS);
	if (!is_same)
		put_on(tracer_cpu, &idle, &tracer, 0, 10 * MS);
	let_go(let_go_ns);
	tracer.se.sum_exec_runtime += had_ns;
	bool is_next = back == tracer_cpu;
	put_on(tracer_cpu, &tracer, is_next ? &tracee : &idle, STATE_SLEEPS,
	       50 * MS);
	if (!is_next)
		put_on(back, &idle, &tracee, 0, 50 * MS);
}

static uint64_t stop_ns(void)
{
	check_int(sum_of[0].nr_stops + sum_of[1].nr_stops, 1);
	check_int(sum_of[0].nr_unseen + sum_of[1].nr_unseen, 0);
	return sum_of[0].stop_ns + sum_of[1].stop_ns;
}

static void test_stops(void)
{
	stop(0, 40 * MS, 49 * MS, 0); /* nobody took anything */
	check_int(stop_ns(), 40 * MS);
	stop(0, 3 * MS, 49 * MS, 0);
	check_int(stop_ns(), 3 * MS);
	check_int(sum_of[0].longest_ns, 3 * MS);
	/* It had the CPU again, but for us, when that was taken away. */
	stop(0, 3 * MS, 11 * MS, 0);
	check_int(stop_ns(), 3 * MS);
	/* What clocks may differ is not a host's. */
	stop(0, 40 * MS - CLOCK_SLACK_NS, 49 * MS, 0);
	check_int(stop_ns(), 40 * MS);

	/* Its own CPU was there for it. */
	stop(1, 3 * MS, 49 * MS, 0);
	check_int(stop_ns(), 40 * MS);
	/* Nor is it known what the other one would have been. */
	stop(0, 3 * MS, 49 * MS, 1);
	check_int(stop_ns(), 40 * MS);
	stop(1, 3 * MS, 49 * MS, 1);
	check_int(stop_ns(), 40 * MS);
}

/* Before a stop, too: it counts from there on. */
static void test_before(void)
{
	begin();
	put_on(0, &tracee, &tracer, 0, 10 * MS);
	tracer.se.sum_exec_runtime += 2 * MS;
	put_on(0, &tracer, &tracee, STATE_SLEEPS, 20 * MS);
	check_int(sum_of[0].displaced_ns, 2 * MS);
	put_on(0, &tracee, &tracer, STATE_TRACED, 30 * MS);
	let_go(31 * MS);
	tracer.se.sum_exec_runtime += 2 * MS;
	put_on(0, &tracer, &tracee, STATE_SLEEPS, 32 * MS);
	check_int(stop_ns(), 2 * MS);
}

/* It waits from 10 to 50 ms behind the tracer, which has @had_ns meanwhile. */
static uint64_t wait_ns(uint64_t had_ns)
{
	begin();
	put_on(0, &tracee, &tracer, 0, 10 * MS);
	tracer.se.sum_exec_runtime += had_ns;
	put_on(0, &tracer, &tracee, STATE_SLEEPS, 50 * MS);
	check_int(sum_of[0].nr_displaced, 1);
	check_int(sum_of[0].stop_ns, 0);
	return sum_of[0].displaced_ns;
}

int main(void)
{
	test_stops();
	test_before();
	check_int(wait_ns(40 * MS), 40 * MS);
	check_int(wait_ns(3 * MS), 3 * MS);
	return tap_done();
}
