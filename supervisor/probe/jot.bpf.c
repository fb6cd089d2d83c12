/*
 * Counts of threads, written down by the kernel: when a thread leaves its CPU,
 * and by the scheduler's tick when one runs on from one interval into the next.
 * Both are moments in which the CPU is at this thread anyway. What its events
 * count the kernel puts into the ring of one of them, all of a group at once.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "supervisor/probe/jot-bpf.h"
#include "supervisor/probe/tally-map.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* So often in an interval each time, then no more than PER_INTERVAL times. */
#define FREE_TIMES   2
#define PER_INTERVAL 4
/* A tick comes just before a thread has to leave its CPU as a rule, where this
 * is cheaper: it waits for so large a part of an interval. */
#define LATE_PART 4

struct file {
	void *private_data;
} __attribute__((preserve_access_index));

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
} __attribute__((preserve_access_index));

struct files_struct {
	struct fdtable *fdt;
} __attribute__((preserve_access_index));

struct task_struct {
	int pid;
	struct files_struct *files;
} __attribute__((preserve_access_index));

typedef struct {
	long counter;
} atomic64_t;
typedef struct {
	atomic64_t a;
} local_t;
typedef struct {
	local_t a;
} local64_t;

struct perf_event_context;

struct perf_event {
	local64_t count;
	atomic64_t child_count;
	__u64 total_time_enabled, tstamp;
	atomic64_t child_total_time_enabled;
	struct perf_event_context *ctx;
} __attribute__((preserve_access_index));

/* Which slot has the thread of that number, of the initial namespace? */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, JOT_MAX_THREADS);
	__type(key, int);
	__type(value, __u32);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, JOT_MAX_THREADS);
	__type(key, __u32);
	__type(value, struct jot_slot);
} slots SEC(".maps");

/* The events whose rings they go to: JOT_MAX_GROUPS of each slot. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, JOT_MAX_THREADS *JOT_MAX_GROUPS);
	__type(key, __u32);
	__type(value, __u32);
} rings SEC(".maps");

/* Of each slot, what is read where it counts. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, JOT_MAX_THREADS);
	__type(key, __u32);
	__type(value, struct jot_direct);
} direct SEC(".maps");

/* Where a note is made that is too long for the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct jot_long_note);
} long_note SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct jot_grid);
} grid SEC(".maps");

static __always_inline struct jot_grid *get_grid(void)
{
	__u32 zero = 0;
	struct jot_grid *g = bpf_map_lookup_elem(&grid, &zero);
	return g && g->interval_ns ? g : 0;
}

static __always_inline struct jot_slot *find(int pid, __u32 *nr_ret)
{
	__u32 *nr = bpf_map_lookup_elem(&threads, &pid);
	if (!nr)
		return 0;
	*nr_ret = *nr;
	return bpf_map_lookup_elem(&slots, nr);
}

#define READ(event, member)                                                    \
	({                                                                     \
		__u64 value = 0;                                               \
		bpf_core_read(&value, sizeof(value), &(event)->member);        \
		value;                                                         \
	})

/* How far its time is on behind its context's. */
static __always_inline __u64 time_of(const struct perf_event *e)
{
	return READ(e, total_time_enabled) + READ(e, child_total_time_enabled) -
	       READ(e, tstamp);
}

/* What the events of @d have counted. The kernel counts each such event at
 * once, and these of a task that is on this CPU nobody changes meanwhile. */
static __always_inline void read_direct(const struct jot_direct *d,
					struct jot_long_note *ret)
{
	__u64 beside_ns = time_of((void *)d->beside);
	for (__u32 i = 0; i < JOT_MAX_GROUPS && i < d->nr_groups; i++)
		ret->ahead_ns[i] = time_of((void *)d->leader[i]) - beside_ns;
	for (__u32 i = 0; i < JOT_MAX_DIRECT && i < d->nr; i++) {
		const struct perf_event *e = (void *)d->event[i];
		ret->count[i] = READ(e, count) + READ(e, child_count);
	}
}

static __always_inline void read_tally(const struct jot_direct *d,
				       struct jot_long_note *ret)
{
	__u32 place = d->tallied - 1;
	const struct tally_counts *t =
		d->tallied ? bpf_map_lookup_elem(&tallies, &place) : 0;
	for (__u32 i = 0; i < TALLY_COLUMNS; i++)
		ret->tally[i] = t ? t->nr[i] : 0;
}

/* With what is read where it counts, for the first ring. */
static __always_inline long write_first(void *ctx, __u32 nr,
					const struct jot_note *note)
{
	__u32 zero = 0;
	struct jot_long_note *all = bpf_map_lookup_elem(&long_note, &zero);
	const struct jot_direct *d = bpf_map_lookup_elem(&direct, &nr);
	if (!all || !d || (!d->nr && !d->tallied))
		return bpf_perf_event_output(ctx, &rings, nr * JOT_MAX_GROUPS,
					     (void *)note, sizeof(*note));
	all->note = *note;
	read_tally(d, all);
	if (d->nr)
		read_direct(d, all);
	__u64 bytes = d->nr * sizeof(__u64);
	if (bytes > sizeof(all->count))
		return -1;
	return bpf_perf_event_output(
		ctx, &rings, nr * JOT_MAX_GROUPS, all,
		__builtin_offsetof(struct jot_long_note, count) + bytes);
}

/* What the current thread has counted, now. */
static __always_inline void write_down(void *ctx, struct jot_slot *s, __u32 nr,
				       __u64 now_ns, int leaves)
{
	struct jot_note note = {
		.at_ns = now_ns,
		.first_ns = s->first_ns,
		.leaves = leaves,
		.arrived_ns = s->arrived_ns,
	};
	/* A group that does not count, or is not there, refuses. */
	int any = !write_first(ctx, nr, &note);
	for (__u32 i = 1; i < JOT_MAX_GROUPS; i++)
		if (!bpf_perf_event_output(ctx, &rings, nr * JOT_MAX_GROUPS + i,
					   &note, sizeof(note)))
			any = 1;
	if (!any)
		return;
	s->written_ns = now_ns;
	s->nr_written++;
	s->first_ns = leaves ? 0 : now_ns;
}

/* It is on this CPU. Not each switch is told of: where the kernel hides a
 * thread, nobody hears whom it gives its CPU to. A thread that has left and not
 * come back is here since now, as far as is known. */
static __always_inline void is_here(struct jot_slot *s, __u64 now_ns)
{
	if (!s->left_ns || s->arrived_ns > s->left_ns)
		return;
	s->arrived_ns = now_ns;
	if (!s->first_ns)
		s->first_ns = now_ns;
}

static __always_inline void leaves(void *ctx, const struct jot_grid *g,
				   struct jot_slot *s, __u32 nr, __u64 now_ns)
{
	is_here(s, now_ns);
	if (s->written_ns < jot_edge(g, now_ns))
		s->nr_written = 0;
	if (s->nr_written < FREE_TIMES ||
	    now_ns - s->written_ns >= g->interval_ns / PER_INTERVAL)
		write_down(ctx, s, nr, now_ns, 1);
	s->left_ns = now_ns;
}

SEC("tp_btf/sched_switch")
int jot_switch(unsigned long long *ctx)
{
	struct task_struct *prev = (struct task_struct *)ctx[1];
	struct task_struct *next = (struct task_struct *)ctx[2];
	__u64 now_ns = bpf_ktime_get_ns();
	struct jot_grid *g = get_grid();
	__u32 nr;
	if (!g)
		return 0;
	struct jot_slot *s = find(prev->pid, &nr);
	if (s) {
		leaves(ctx, g, s, nr, now_ns);
		s->cost_ns += bpf_ktime_get_ns() - now_ns;
	}
	s = find(next->pid, &nr);
	if (s) {
		__u64 at_ns = bpf_ktime_get_ns();
		s->arrived_ns = at_ns;
		if (!s->first_ns)
			s->first_ns = at_ns;
		/* Where prev had none, what came before is its, too. */
		s->cost_ns += at_ns - now_ns;
	}
	return 0;
}

SEC("tp_btf/local_timer_entry")
int jot_tick(unsigned long long *ctx)
{
	int pid = (int)bpf_get_current_pid_tgid();
	__u32 nr;
	if (!pid)
		return 0;
	__u64 now_ns = bpf_ktime_get_ns();
	struct jot_grid *g = get_grid();
	struct jot_slot *s = g ? find(pid, &nr) : 0;
	if (!s)
		return 0;
	__u64 edge_ns = jot_edge(g, now_ns);
	is_here(s, now_ns);
	if (s->written_ns < edge_ns && s->arrived_ns < edge_ns &&
	    now_ns - edge_ns >= g->interval_ns / LATE_PART) {
		s->nr_written = 0;
		write_down(ctx, s, nr, now_ns, 0);
	}
	s->cost_ns += bpf_ktime_get_ns() - now_ns;
	return 0;
}

/* Which event is descriptor @fd of the task that asks? It has nothing else
 * there. */
static __always_inline __u64 event_of(const struct fdtable *table, __u64 fd)
{
	struct file **at = 0, *file = 0;
	void *event = 0;
	if (fd >= BPF_CORE_READ(table, max_fds))
		return 0;
	bpf_core_read(&at, sizeof(at), &table->fd);
	bpf_probe_read_kernel(&file, sizeof(file), at + fd);
	bpf_core_read(&event, sizeof(event), &file->private_data);
	return (__u64)event;
}

static __always_inline __u64 context_of(const struct perf_event *e)
{
	return READ(e, ctx);
}

SEC("syscall")
int jot_find(struct jot_ask *ask)
{
	struct task_struct *self = (void *)bpf_get_current_task();
	struct fdtable *table = BPF_CORE_READ(self, files, fdt);
	__u32 slot = ask->slot;
	struct jot_direct *d = bpf_map_lookup_elem(&direct, &slot);
	if (!d)
		return -1;
	d->beside = event_of(table, d->beside);
	__u64 ctx = context_of((void *)d->beside);
	for (__u32 i = 0; i < JOT_MAX_DIRECT && i < d->nr_wanted; i++) {
		d->event[i] = event_of(table, d->event[i]);
		/* Times of two contexts cannot be compared. */
		if (!ctx || context_of((void *)d->event[i]) != ctx)
			return -1;
	}
	for (__u32 i = 0; i < JOT_MAX_GROUPS && i < d->nr_groups; i++)
		d->leader[i] = event_of(table, d->leader[i]);
	d->nr = d->nr_wanted;
	return 0;
}
