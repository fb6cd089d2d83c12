#include "supervisor/probe/stopclock.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "supervisor/probe/bpfload.h"
#include "supervisor/probe/stopclock-bpf.h"

extern const char stopclock_object_start[], stopclock_object_end[];

struct stopclock {
	struct bpf_object *obj;
	uint32_t nr_tasks; /* there is room for */
	struct bpf_link *switches, *wakings;
	int sums_fd;		     /* owned by obj */
	struct stopclock_told *told; /* its map; NULL = not to be had */
	int nr_cpus;
	struct stopclock_sum *sums; /* one per CPU, for reading */
};

static int attach(struct stopclock *c, uint32_t nr_tasks, struct smco_err *err)
{
	struct stopclock_setup setup = {nr_tasks / 2};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &setup,
		    .ctx_size_in = sizeof(setup));
	int r = bpf_prog_test_run_opts(bpfload_prog(c->obj, "stopclock_mine"),
				       &opts);
	if (r < 0)
		return smco_fail(err, SMCO_UNSUPPORTED, -r,
				 "stop clock: running a BPF program");
	c->switches = bpf_program__attach(
		bpf_object__find_program_by_name(c->obj, "stopclock_switch"));
	c->wakings = bpf_program__attach(
		bpf_object__find_program_by_name(c->obj, "stopclock_waking"));
	if (!c->switches || !c->wakings)
		return smco_fail(err, SMCO_UNSUPPORTED, errno,
				 "stop clock: attaching to sched_%s",
				 c->switches ? "waking" : "switch");
	c->sums_fd = bpf_object__find_map_fd_by_name(c->obj, "sums");
	void *told = mmap(NULL, TPAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
			  bpf_object__find_map_fd_by_name(c->obj, "told"), 0);
	c->told = told == MAP_FAILED ? NULL : told;
	long nr_online = sysconf(_SC_NPROCESSORS_ONLN);
	if (c->told && nr_online > 0)
		c->told->nr_cpus = (uint32_t)nr_online;
	c->nr_cpus = libbpf_num_possible_cpus();
	if (c->nr_cpus < 1)
		return smco_fail(err, SMCO_SYS, -c->nr_cpus,
				 "stop clock: cannot count the CPUs");
	c->sums = calloc((size_t)c->nr_cpus, sizeof(*c->sums));
	if (!c->sums)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	return 0;
}

static int load(struct stopclock **ret, uint32_t nr_tasks, struct smco_err *err)
{
	struct stopclock *c = calloc(1, sizeof(*c));
	if (!c)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	c->nr_tasks = nr_tasks;
	int r = bpfload_with(
		stopclock_object_start, stopclock_object_end, "stop clock",
		"BPF in sched_switch that tells states, Linux 5.18",
		&(struct bpfload_map){"tasks", nr_tasks, -1}, &c->obj, err);
	if (r)
		stopclock_close(c);
	else
		*ret = c;
	return r;
}

int stopclock_load(struct stopclock **ret, struct smco_err *err)
{
	return load(ret, STOPCLOCK_MAX_TASKS, err);
}

int stopclock_begin(struct stopclock *c, struct smco_err *err)
{
	int r = attach(c, c->nr_tasks, err);
	if (r)
		stopclock_close(c);
	return r;
}

int stopclock_open(struct stopclock **ret, struct smco_err *err)
{
	return stopclock_open_sized(ret, STOPCLOCK_MAX_TASKS, err);
}

int stopclock_open_sized(struct stopclock **ret, uint32_t nr_tasks,
			 struct smco_err *err)
{
	struct stopclock *c;
	int r = load(&c, nr_tasks, err);
	if (!r)
		r = stopclock_begin(c, err);
	if (!r)
		*ret = c;
	return r;
}

int stopclock_read(struct stopclock *c, struct stopclock_reading *ret)
{
	__u32 zero = 0;
	if (bpf_map_lookup_elem(c->sums_fd, &zero, c->sums))
		return SMCO_SYS;
	*ret = (struct stopclock_reading){0};
	for (int i = 0; i < c->nr_cpus; i++) {
		const struct stopclock_sum *s = &c->sums[i];
		ret->stop_ns += s->stop_ns;
		ret->nr_stops += s->nr_stops;
		ret->nr_unseen += s->nr_unseen;
		ret->displaced_ns += s->displaced_ns;
		ret->nr_displaced += s->nr_displaced;
		ret->waited_ns += s->waited_ns;
		ret->strange_ns += s->strange_ns;
		if (s->longest_ns > ret->longest_ns)
			ret->longest_ns = s->longest_ns;
	}
	return 0;
}

int stopclock_choose(const struct stopclock_sum *sums, int nr, int here,
		     const cpu_set_t *may)
{
	int idle = -1;
	if (here < 0 || here >= nr)
		return -1;
	if (!sums[here].took)
		return here;
	for (int i = 0; i < nr && i < CPU_SETSIZE; i++) {
		if (i != here && sums[i].runs == sums[here].took)
			return here;
		if (i != here && sums[i].runs == STOPCLOCK_IDLE &&
		    CPU_ISSET((unsigned)i, may))
			idle = i;
	}
	return idle;
}

int stopclock_idle_cpu(const struct stopclock *c, int here,
		       const cpu_set_t *may)
{
	return stopclock_choose(c->sums, c->nr_cpus, here, may);
}

int stopclock_has_cpu(const struct stopclock_sum *sums, int nr, int here,
		      pid_t own, pid_t tid)
{
	if (here < 0 || here >= nr || sums[here].runs != (uint32_t)own)
		return -1;
	for (int i = 0; i < nr; i++)
		if (sums[i].runs == (uint32_t)tid)
			return 1;
	return sums[here].took == (uint32_t)tid;
}

int stopclock_computes(const struct stopclock *c, int here, pid_t tid)
{
	return stopclock_has_cpu(c->sums, c->nr_cpus, here, gettid(), tid);
}

uint32_t *stopclock_lending(struct stopclock *c)
{
	return c->told ? &c->told->is_lent : NULL;
}

int stopclock_where(const void *clock, pid_t tid)
{
	const struct stopclock *c = clock;
	const struct stopclock_told *told = c->told;
	int cpu = -1;
	uint64_t latest = 0;
	if (!told)
		return -1;
	for (int i = 0; i < c->nr_cpus && i < STOPCLOCK_STOP_CPUS; i++) {
		uint64_t ns =
			__atomic_load_n(&told->stopped_ns[i], __ATOMIC_RELAXED);
		if (told->stopped[i] != (uint32_t)tid || ns <= latest)
			continue;
		latest = ns;
		cpu = i;
	}
	return cpu;
}

void stopclock_set_own(struct stopclock *c, uint64_t ns)
{
	if (c->told)
		c->told->own_ns = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}

void stopclock_close(struct stopclock *c)
{
	if (!c)
		return;
	bpf_link__destroy(c->switches);
	bpf_link__destroy(c->wakings);
	bpf_object__close(c->obj);
	if (c->told)
		munmap(c->told, TPAGE_SIZE);
	free(c->sums);
	free(c);
}
