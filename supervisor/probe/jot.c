#include "supervisor/probe/jot.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "supervisor/probe/bpfload.h"

extern const char jot_object_start[], jot_object_end[];

#define SLOTS_BYTES (JOT_MAX_THREADS * sizeof(struct jot_slot))

struct jot {
	struct bpf_object *obj;
	struct bpf_link *switches, *ticks;
	/* Owned by obj. */
	int threads_fd, slots_fd, rings_fd, direct_fd, find_fd;
	volatile struct jot_slot *slots;  /* NULL = not mapped */
	size_t nr_rings[JOT_MAX_THREADS]; /* by slot */
	int free_slot[JOT_MAX_THREADS];
	size_t nr_free;
	/* Some slot has or had events that need no ring, or is tallied. */
	bool has_direct;
};

static int begin(struct jot *j, const struct jot_grid *grid,
		 struct smco_err *err)
{
	__u32 zero = 0;
	j->threads_fd = bpf_object__find_map_fd_by_name(j->obj, "threads");
	j->slots_fd = bpf_object__find_map_fd_by_name(j->obj, "slots");
	j->rings_fd = bpf_object__find_map_fd_by_name(j->obj, "rings");
	j->direct_fd = bpf_object__find_map_fd_by_name(j->obj, "direct");
	j->find_fd = bpfload_prog(j->obj, "jot_find");
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

int jot_open(uint64_t start_ns, uint64_t interval_ns, const struct tally *tally,
	     struct jot **ret, struct smco_err *err)
{
	const struct bpfload_map tallies = {
		.name = "tallies",
		.nr = tally ? 0 : 1,
		.fd = tally ? tally_map(tally) : -1,
	};
	const struct jot_grid grid = {start_ns, interval_ns};
	if (!bpfload_has_kernels_numbers())
		return smco_fail(err, SMCO_UNSUPPORTED, 0,
				 "counts by the kernel: not in a container");
	struct jot *j = calloc(1, sizeof(*j));
	if (!j)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	for (int i = JOT_MAX_THREADS; i > 0; i--)
		j->free_slot[j->nr_free++] = i - 1;
	int rc = bpfload_with(jot_object_start, jot_object_end,
			      "counts by the kernel",
			      "BPF in sched_switch and local_timer_entry",
			      &tallies, &j->obj, err);
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

int jot_renew(const struct jot *j, int slot, const struct jot_events *ev,
	      struct smco_err *err)
{
	struct jot_ask ask = {.slot = (__u32)slot};
	struct jot_direct d = {
		.beside = (__u64)ev->ring[0],
		.nr_wanted = ev->nr_direct,
		.nr_groups = ev->nr_direct_groups,
		.tallied = (__u64)(ev->place + 1),
	};
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = &ask,
		    .ctx_size_in = sizeof(ask));
	if (ev->nr_direct > JOT_MAX_DIRECT ||
	    ev->nr_direct_groups > JOT_MAX_GROUPS)
		return smco_fail(err, SMCO_UNSUPPORTED, 0, "too many events");
	for (size_t i = 0; i < ev->nr_direct; i++)
		d.event[i] = (__u64)ev->direct[i];
	for (size_t i = 0; i < ev->nr_direct_groups; i++)
		d.leader[i] = (__u64)ev->direct_leader[i];
	if (bpf_map_update_elem(j->direct_fd, &ask.slot, &d, BPF_ANY) ||
	    bpf_prog_test_run_opts(j->find_fd, &run) || run.retval)
		return smco_fail(err, SMCO_UNSUPPORTED, 0,
				 "counts by the kernel: where events count");
	return 0;
}

static int fill(struct jot *j, __u32 slot, const struct jot_events *ev,
		struct smco_err *err)
{
	j->slots[slot] = (struct jot_slot){0}; /* nobody looks at it yet */
	j->nr_rings[slot] = ev->nr_rings;
	for (__u32 i = 0; i < ev->nr_rings; i++) {
		__u32 place = slot * JOT_MAX_GROUPS + i;
		if (bpf_map_update_elem(j->rings_fd, &place, &ev->ring[i],
					BPF_ANY))
			return smco_fail(err, SMCO_SYS, errno,
					 "a thread's counts");
	}
	bool needs = j->has_direct || ev->nr_direct || ev->place >= 0;
	return needs ? jot_renew(j, (int)slot, ev, err) : 0;
}

int jot_add(struct jot *j, pid_t tid, const struct jot_events *ev,
	    struct smco_err *err)
{
	if (!j->nr_free || !ev->nr_rings || ev->nr_rings > JOT_MAX_GROUPS)
		return smco_fail(err, SMCO_UNSUPPORTED, 0, "too many %s",
				 j->nr_free ? "groups" : "threads");
	__u32 slot = (__u32)j->free_slot[j->nr_free - 1];
	int rc = fill(j, slot, ev, err);
	if (!rc && bpf_map_update_elem(j->threads_fd, &tid, &slot, BPF_ANY))
		rc = smco_fail(err, SMCO_SYS, errno, "a thread's counts");
	if (rc) {
		forget_rings(j, slot);
		return rc;
	}
	j->has_direct |= ev->nr_direct > 0 || ev->place >= 0;
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
