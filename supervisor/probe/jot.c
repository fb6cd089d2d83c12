#include "supervisor/probe/jot.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "supervisor/probe/bpfload.h"

extern const char jot_object_start[], jot_object_end[];

/* The initial pid namespace's, in every kernel (PROC_PID_INIT_INO). */
#define INITIAL_PIDS 0xEFFFFFFCu

#define SLOTS_BYTES (JOT_MAX_THREADS * sizeof(struct jot_slot))

struct jot {
	struct bpf_object *obj;
	struct bpf_link *switches, *ticks;
	int threads_fd, slots_fd, rings_fd; /* owned by obj */
	volatile struct jot_slot *slots;    /* NULL = not mapped */
	size_t nr_rings[JOT_MAX_THREADS];   /* by slot */
	int free_slot[JOT_MAX_THREADS];
	size_t nr_free;
};

static bool has_kernels_numbers(void)
{
	struct stat st;
	return !stat("/proc/self/ns/pid", &st) && st.st_ino == INITIAL_PIDS;
}

static int begin(struct jot *j, const struct jot_grid *grid,
		 struct smco_err *err)
{
	__u32 zero = 0;
	j->threads_fd = bpf_object__find_map_fd_by_name(j->obj, "threads");
	j->slots_fd = bpf_object__find_map_fd_by_name(j->obj, "slots");
	j->rings_fd = bpf_object__find_map_fd_by_name(j->obj, "rings");
	int grid_fd = bpf_object__find_map_fd_by_name(j->obj, "grid");
	void *slots = mmap(NULL, SLOTS_BYTES, PROT_READ | PROT_WRITE,
			   MAP_SHARED, j->slots_fd, 0);
	if (slots == MAP_FAILED ||
	    bpf_map_update_elem(grid_fd, &zero, grid, BPF_ANY))
		return smco_fail(err, SMCO_UNSUPPORTED, errno,
				 "counts by the kernel: its maps");
	j->slots = slots;
	j->switches = bpf_program__attach(
		bpf_object__find_program_by_name(j->obj, "jot_switch"));
	j->ticks = bpf_program__attach(
		bpf_object__find_program_by_name(j->obj, "jot_tick"));
	if (!j->switches || !j->ticks)
		return smco_fail(err, SMCO_UNSUPPORTED, errno,
				 "counts by the kernel: attaching to %s",
				 j->switches ? "local_timer_entry"
					     : "sched_switch");
	return 0;
}

int jot_open(uint64_t start_ns, uint64_t interval_ns, struct jot **ret,
	     struct smco_err *err)
{
	const struct jot_grid grid = {start_ns, interval_ns};
	if (!has_kernels_numbers())
		return smco_fail(err, SMCO_UNSUPPORTED, 0,
				 "counts by the kernel: not in a container");
	struct jot *j = calloc(1, sizeof(*j));
	if (!j)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	for (int i = JOT_MAX_THREADS; i > 0; i--)
		j->free_slot[j->nr_free++] = i - 1;
	int rc = bpfload(
		jot_object_start, jot_object_end, "counts by the kernel",
		"BPF in sched_switch and local_timer_entry", &j->obj, err);
	if (!rc)
		rc = begin(j, &grid, err);
	if (rc)
		jot_close(j);
	else
		*ret = j;
	return rc;
}

static void forget_rings(const struct jot *j, __u32 slot)
{
	for (__u32 i = 0; i < j->nr_rings[slot]; i++) {
		__u32 place = slot * JOT_MAX_GROUPS + i;
		bpf_map_delete_elem(j->rings_fd, &place);
	}
}

int jot_add(struct jot *j, pid_t tid, const int *fd, size_t nr,
	    struct smco_err *err)
{
	bool ok = true;
	if (!j->nr_free || nr > JOT_MAX_GROUPS)
		return smco_fail(err, SMCO_UNSUPPORTED, 0, "too many %s",
				 j->nr_free ? "groups" : "threads");
	__u32 slot = (__u32)j->free_slot[j->nr_free - 1];
	j->slots[slot] = (struct jot_slot){0}; /* nobody looks at it yet */
	j->nr_rings[slot] = nr;
	for (__u32 i = 0; ok && i < nr; i++) {
		__u32 place = slot * JOT_MAX_GROUPS + i;
		ok = !bpf_map_update_elem(j->rings_fd, &place, &fd[i], BPF_ANY);
	}
	if (!ok || bpf_map_update_elem(j->threads_fd, &tid, &slot, BPF_ANY)) {
		int e = errno;
		forget_rings(j, slot);
		return smco_fail(err, SMCO_SYS, e, "a thread's counts");
	}
	j->nr_free--;
	return (int)slot;
}

void jot_remove(struct jot *j, int slot, pid_t tid)
{
	bpf_map_delete_elem(j->threads_fd, &tid);
	forget_rings(j, (__u32)slot);
	j->free_slot[j->nr_free++] = slot;
}

struct jot_slot jot_look(const struct jot *j, int slot)
{
	const volatile struct jot_slot *s = &j->slots[slot];
	struct jot_slot ret;
	/* Each number is whole; all are of after the same writing. */
	do {
		ret = (struct jot_slot){.written_ns = s->written_ns};
		ret.arrived_ns = s->arrived_ns;
		ret.left_ns = s->left_ns;
		ret.first_ns = s->first_ns;
		ret.cost_ns = s->cost_ns;
	} while (ret.written_ns != s->written_ns);
	return ret;
}

void jot_close(struct jot *j)
{
	if (!j)
		return;
	bpf_link__destroy(j->switches);
	bpf_link__destroy(j->ticks);
	if (j->slots)
		munmap((void *)(uintptr_t)j->slots, SLOTS_BYTES);
	bpf_object__close(j->obj);
	free(j);
}
