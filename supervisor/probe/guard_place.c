/*
 * Which memory may be guarded: private anonymous pages that the kernel does
 * not touch by itself. Not stacks and what lies around them (signal frames,
 * rseq, thread ids that are cleared), not alternate signal stacks, robust
 * lists, locked memory. A program that lets the kernel work on its memory
 * with no system call at all is not guarded.
 */
#include "reports/procfs.h"
#include "supervisor/probe/guard.h"
#include "supervisor/probe/place.h"
#include "supervisor/probe/uring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Below a stack pointer: the largest signal frame; above: what it belongs
 * to. Above a thread pointer: the C library's thread descriptor. */
#define STACK_BELOW (32 << 10)
#define STACK_ABOVE (4 << 10)

struct addr_range guard_stack_around(taddr_t addr)
{
	return (struct addr_range){
		.start = addr > STACK_BELOW ? addr - STACK_BELOW : 0,
		.end = addr + STACK_ABOVE,
	};
}

void guard_stack_add(struct guard *g, taddr_t addr)
{
	struct addr_range r = guard_stack_around(addr);
	addr_ranges_add(&g->stacks, r.start, r.end);
}

/* Stack and thread area in one mapping: the whole lower part is stack. */
static void look_at_thread(struct guard *g, struct task *t,
			   const struct tmaps *maps)
{
	struct user_regs_struct r;
	taddr_t rseq;
	uint64_t len;
	robust_list_add(g->base.proc, task_tid(t), &g->stacks);
	if (task_get_regs(t, &r))
		return; /* waits in the kernel; nothing is known */
	if (!task_get_rseq(t, &rseq, &len) && len)
		addr_ranges_add(&g->stacks, rseq, rseq + len);
	guard_stack_add(g, r.rsp);
	addr_ranges_add(&g->stacks, r.fs_base, r.fs_base + THREAD_AREA_BYTES);
	const struct tmap *m = tmaps_find(maps, r.rsp);
	if (m && r.fs_base > r.rsp && r.fs_base < m->end)
		addr_ranges_add(&g->stacks, m->start, r.fs_base);
}

static uint64_t locked_kib(pid_t pid)
{
	char path[PROCFS_PATH], line[256];
	unsigned long long v = 0;
	procfs_path(path, sizeof(path), procfs_holder(pid), "status");
	FILE *f = fopen(path, "re");
	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "VmLck: %llu", &v) == 1)
			break;
	fclose(f);
	return v;
}

/* Mappings with the flag "lo"; smaps is slow, so only if there are any. */
static void look_at_locked(struct guard *g)
{
	char path[PROCFS_PATH], line[512];
	pid_t pid = tproc_pid(g->base.proc);
	unsigned long long s, e, start = 0, end = 0;
	char perm;
	if (!locked_kib(pid))
		return;
	procfs_path(path, sizeof(path), procfs_holder(pid), "smaps");
	FILE *f = fopen(path, "re");
	if (!f) {
		guard_refuse(g, "it locks memory, and smaps cannot be read");
		return;
	}
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx-%llx %c", &s, &e, &perm) == 3) {
			start = s;
			end = e;
		} else if (!strncmp(line, "VmFlags:", 8) &&
			   strstr(line, " lo")) {
			addr_ranges_add(&g->kept, start, end);
		}
	}
	fclose(f);
}

int guard_place_look(struct guard *g, struct smco_err *err)
{
	struct tproc *p = g->base.proc;
	struct tmaps maps;
	int rc = tproc_read_maps(p, &maps, err);
	if (rc)
		return rc;
	g->stacks.nr = 0;
	for (size_t i = 0; i < maps.nr; i++) {
		const char *path = maps.maps[i].path;
		if (strstr(path, "[io_uring]") || !strncmp(path, "/[aio]", 6))
			guard_refuse(g, "it uses io_uring or kernel AIO, which "
					"touch memory with no system call");
	}
	for (struct task *t = tproc_first_task(p); t; t = task_next(t))
		look_at_thread(g, t, &maps);
	tmaps_deinit(&maps);
	if (uring_has_fd(tproc_pid(p)))
		guard_refuse(g, "it uses io_uring, which touches memory with "
				"no system call");
	look_at_locked(g);
	if (g->refusal[0])
		return smco_fail(err, SMCO_UNSUPPORTED, 0, "%s", g->refusal);
	return 0;
}

const char *guard_place_check(const struct guard *g, const struct tmaps *maps,
			      taddr_t start, taddr_t end, uint32_t *prot_ret)
{
	uint32_t any;
	const char *why = place_check(maps, start, end, &any, prot_ret);
	if (why)
		return why;
	if (any != *prot_ret)
		return "several protections";
	if (!(*prot_ret & PROT_READ))
		return "not readable";
	if (*prot_ret & PROT_EXEC)
		return "executable";
	if (addr_ranges_hit(&g->stacks, start, end))
		return "a thread's stack or thread area";
	if (addr_ranges_hit(&g->kept, start, end))
		return "the kernel touches it by itself, or it is locked";
	return NULL;
}
