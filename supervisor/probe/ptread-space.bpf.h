/*
 * ptread-space.bpf.h - for ptread.bpf.c: the address space that an open
 * /proc/PID/pagemap is about, and who runs in it now.
 */
#ifndef SMCO_PTREAD_SPACE_H
#define SMCO_PTREAD_SPACE_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "supervisor/probe/ptread-bpf.h"

#define MAX_THREADS 1024

#define KERNEL_TYPE __attribute__((preserve_access_index))
struct file {
	void *private_data;
} KERNEL_TYPE;
struct fdtable {
	unsigned int max_fds;
	struct file **fd;
} KERNEL_TYPE;
struct files_struct {
	struct fdtable *fdt;
} KERNEL_TYPE;
struct atomic_counter {
	int counter;
};
struct mm_struct {
	struct atomic_counter mm_users;
	void *pgd;
	unsigned long task_size;
	struct task_struct *owner; /* CONFIG_MEMCG */
	unsigned long cpu_bitmap[1];
} KERNEL_TYPE;
struct list_head {
	struct list_head *next;
} KERNEL_TYPE;
struct signal_struct {
	struct list_head thread_head;
} KERNEL_TYPE;
struct thread_info {
	__u32 cpu;
} KERNEL_TYPE;
struct task_struct {
	struct thread_info thread_info;
	struct files_struct *files;
	struct signal_struct *signal;
	struct list_head thread_node;
	int prio;
	int on_cpu, on_rq;
	int pid;
} KERNEL_TYPE;

struct crowd {
	struct list_head *pos;
	struct list_head *head;
	__u32 self_cpu;
	__u32 nr_running;
	__s32 cpu; /* of one that runs elsewhere; -1 = none */
	__s32 prio;
	__s32 tid;
	__s32 displaced;
	__u32 is_displaced;
};

/* Ready to run, on a CPU that somebody else has. */
static __always_inline int waits(struct task_struct *t)
{
	return bpf_core_field_exists(t->on_rq) && BPF_CORE_READ(t, on_rq) == 1;
}

static long count_thread(__u32 i, struct crowd *c)
{
	struct list_head *pos = c->pos;
	if (!pos || pos == c->head)
		return 1;
	struct task_struct *t =
		(void *)pos -
		bpf_core_field_offset(struct task_struct, thread_node);
	__u32 cpu = BPF_CORE_READ(t, thread_info.cpu);
	__s32 tid = BPF_CORE_READ(t, pid);
	if (BPF_CORE_READ(t, on_cpu) && cpu != c->self_cpu) {
		c->nr_running++;
		c->cpu = (__s32)cpu;
		c->prio = BPF_CORE_READ(t, prio);
		c->tid = tid;
	} else if (tid == c->displaced && cpu == c->self_cpu) {
		c->is_displaced = waits(t);
	}
	c->pos = BPF_CORE_READ(pos, next);
	return 0;
}

/*
 * How many of the address space's threads run on other CPUs now: those are
 * interrupted when its pages are reset. A kernel without mm->owner: the CPUs
 * in its mask, which may be too many.
 */
static __always_inline void count_running(struct ptread_arg *a,
					  struct mm_struct *mm, __u64 mask)
{
	struct crowd c = {.self_cpu = bpf_get_smp_processor_id(),
			  .cpu = -1,
			  .displaced = a->displaced};

	a->nr_running = 0;
	a->running_cpu = -1;
	a->running_tid = 0;
	a->is_displaced = 0;

	if (!bpf_core_field_exists(mm->owner) ||
	    !bpf_core_field_exists(((struct task_struct *)0)->on_cpu)) {
		for (__u32 i = 0; i < 64; i++)
			a->nr_running += i != c.self_cpu && mask >> i & 1;
		return;
	}
	struct signal_struct *sig = BPF_CORE_READ(mm, owner, signal);
	if (!sig)
		return;
	c.head = (void *)sig +
		 bpf_core_field_offset(struct signal_struct, thread_head);
	struct list_head *head = c.head;
	c.pos = BPF_CORE_READ(head, next);
	bpf_loop(MAX_THREADS, count_thread, &c, 0);
	a->nr_running = c.nr_running;
	a->running_cpu = c.cpu;
	a->running_prio = c.prio;
	a->running_tid = c.tid;
	a->is_displaced = c.is_displaced;
}

/* What the file behind descriptor a->fd of the calling process is about. */
static __always_inline void *private_data_of(struct ptread_arg *a)
{
	struct task_struct *t = (void *)bpf_get_current_task();
	struct fdtable *fdt = BPF_CORE_READ(t, files, fdt);
	struct file *f = NULL;

	a->status = PTREAD_NO_FILE;
	if (a->fd < 0 || (__u32)a->fd >= BPF_CORE_READ(fdt, max_fds))
		return NULL;
	a->status = PTREAD_NO_MM;
	struct file **fds = BPF_CORE_READ(fdt, fd);
	bpf_probe_read_kernel(&f, sizeof(f), fds + a->fd);
	return f ? BPF_CORE_READ(f, private_data) : NULL;
}

/* Fills what every program says about the address space. 0 = none. */
static __always_inline __u64 pgd_of(struct ptread_arg *a)
{
	struct mm_struct *mm = private_data_of(a);

	if (!mm || BPF_CORE_READ(mm, mm_users.counter) <= 0)
		return 0;
	a->task_size = BPF_CORE_READ(mm, task_size);
	unsigned long mask = 0;
	bpf_probe_read_kernel(
		&mask, sizeof(mask),
		(void *)mm +
			bpf_core_field_offset(struct mm_struct, cpu_bitmap));
	a->cpu_mask = mask;
	if (a->want_running)
		count_running(a, mm, mask);
	a->status = PTREAD_OK;
	return (__u64)BPF_CORE_READ(mm, pgd);
}

#endif
