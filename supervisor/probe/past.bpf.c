/* What the kernel counts of each thread by itself, told at once, where /proc
 * has it in three files. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "supervisor/probe/past-bpf.h"

char LICENSE[] SEC("license") = "GPL";

struct sched_entity {
	__u64 sum_exec_runtime;
} __attribute__((preserve_access_index));

struct task_struct {
	struct sched_entity se;
	unsigned long nvcsw, nivcsw, min_flt, maj_flt;
} __attribute__((preserve_access_index));

extern struct task_struct *bpf_task_from_pid(int pid) __ksym;
extern void bpf_task_release(struct task_struct *p) __ksym;

SEC("syscall")
int past_read(struct past *p)
{
	struct task_struct *t = bpf_task_from_pid(p->tid);
	if (!t)
		return -1;
	p->minor_faults = t->min_flt;
	p->major_faults = t->maj_flt;
	p->switches = t->nvcsw + t->nivcsw;
	p->run_ns = t->se.sum_exec_runtime;
	bpf_task_release(t);
	return 0;
}
