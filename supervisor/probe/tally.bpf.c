/* Counts the system calls of threads, by column, as they begin, and what else
 * they meet with: for others it is a look into a table. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "supervisor/probe/tally-map.bpf.h"

char LICENSE[] SEC("license") = "GPL";

struct thread_info {
	unsigned int status;
} __attribute__((preserve_access_index));

struct task_struct {
	struct thread_info thread_info;
	int pid;
} __attribute__((preserve_access_index));

#define TS_COMPAT 2 /* of thread_info.status: a call of 32 bits */

/* Which place has the thread of that number, of the initial namespace? */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TALLY_MAX_THREADS);
	__type(key, int);
	__type(value, __u32);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tally_columns);
} columns SEC(".maps");

SEC("tp_btf/sys_enter")
int tally_call(unsigned long long *ctx)
{
	struct task_struct *self = bpf_get_current_task_btf();
	__u64 call = ctx[1];
	__u32 zero = 0;
	int pid = self->pid;
	__u32 *place = bpf_map_lookup_elem(&threads, &pid);
	if (!place)
		return 0;
	struct tally_counts *t = bpf_map_lookup_elem(&tallies, place);
	struct tally_columns *c = bpf_map_lookup_elem(&columns, &zero);
	if (!t || !c)
		return 0;
	if (call >= TALLY_CALLS)
		call = TALLY_CALLS;
	__u32 column = self->thread_info.status & TS_COMPAT ? c->of[1][call]
							    : c->of[0][call];
	/* Nobody else writes here. */
	if (column < TALLY_CALL_COLUMNS)
		t->nr[column]++;
	return 0;
}

/* Interrupts hit some, too. */
static __always_inline int hit(__u32 column)
{
	int pid = (int)bpf_get_current_pid_tgid();
	__u32 *place = bpf_map_lookup_elem(&threads, &pid);
	if (!place)
		return 0;
	struct tally_counts *t = bpf_map_lookup_elem(&tallies, place);
	if (t)
		__sync_fetch_and_add(&t->nr[TALLY_CALL_COLUMNS + column], 1);
	return 0;
}

#define HIT(number)                                                            \
	SEC("raw_tp")                                                          \
	int tally_hit_##number(void *ctx)                                      \
	{                                                                      \
		return hit(number);                                            \
	}

HIT(0)
HIT(1)
HIT(2)
HIT(3)
HIT(4)
HIT(5)
HIT(6)
HIT(7)
