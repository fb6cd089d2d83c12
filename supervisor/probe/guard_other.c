/*
 * Other processes that look into guarded memory: process_vm_readv fails there,
 * and who calls it would not without us. Where one is watched whose code
 * imports it, others are not guarded. Of any other caller that is guarded
 * itself the call is seen before it is made, and the guards of the process that
 * it names go for good. (/proc/PID/mem does not mind protections.)
 */
#include "reports/procfs.h"
#include "supervisor/probe/guard.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of the one thread that does all this. */
static struct guard *all;

void guard_others_add(struct guard *g)
{
	g->next = all;
	all = g;
}

void guard_others_remove(struct guard *g)
{
	for (struct guard **at = &all; *at; at = &(*at)->next) {
		if (*at != g)
			continue;
		*at = g->next;
		return;
	}
}

static bool pid_space(pid_t pid, char *buf, size_t size)
{
	char path[PROCFS_PATH];
	procfs_path(path, sizeof(path), procfs_holder(pid), "ns/pid");
	ssize_t n = readlink(path, buf, size - 1);
	if (n < 0)
		return false;
	buf[n] = '\0';
	return true;
}

/* May @nr, as @caller knows it, be a thread of @pid? Which one it is in another
 * space of process numbers is not looked for. */
static bool may_name(pid_t caller, int nr, pid_t pid)
{
	char path[PROCFS_PATH], his[64], ours[64], its[64];
	if (!pid_space(caller, his, sizeof(his)) ||
	    !pid_space(getpid(), ours, sizeof(ours)) ||
	    !pid_space(pid, its, sizeof(its)))
		return true;
	if (strcmp(his, ours) != 0)
		return strcmp(his, its) == 0;
	procfs_path(path, sizeof(path), pid, "task/%d", nr);
	return access(path, F_OK) == 0;
}

void guard_others_look(struct guard *g, long nr, const uint64_t args[6])
{
	struct tproc *p = g->base.proc;
	if (nr != SYS_process_vm_readv && nr != SYS_process_vm_writev)
		return;
	for (struct guard *o = all; o; o = o->next) {
		if (o == g || tproc_tracer(o->base.proc) != tproc_tracer(p) ||
		    !may_name(tproc_pid(p), (int)args[0],
			      tproc_pid(o->base.proc)))
			continue;
		guard_refuse(o, "another process works on its memory with %s",
			     nr == SYS_process_vm_readv ? "process_vm_readv"
							: "process_vm_writev");
		guard_off(o);
	}
}

static void beware(struct guard *g, const struct guard *peer)
{
	if (g == peer || g->refusal[0] ||
	    tproc_tracer(g->base.proc) != tproc_tracer(peer->base.proc))
		return;
	guard_refuse(g,
		     "process %d, which is watched, too, may work on its "
		     "memory with process_vm_readv or process_vm_writev",
		     (int)tproc_pid(peer->base.proc));
	guard_off(g);
}

void guard_others_beware(struct guard *g)
{
	for (struct guard *o = all; o; o = o->next) {
		if (o == g)
			continue;
		if (guard_peer_looks(o))
			beware(g, o);
		if (guard_peer_looks(g))
			beware(o, g);
	}
}
