/*
 * What calls in a program take while it stands: how often its thread is let go
 * to make them, and what is read meanwhile.
 */
#include <sys/syscall.h>

#include "reports/procfs.h"
#include "supervisor/probe/near.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

#define BYTES (16 * TPAGE_SIZE)

static uint64_t number_in(const char *path, const char *field)
{
	char buf[4096];
	smco_slurp(path, buf, sizeof(buf));
	char *at = strstr(buf, field);
	return at ? strtoull(at + strlen(field), NULL, 10) : 0;
}

/* Calls of read and its kin that we made. */
static uint64_t nr_reads(void)
{
	return number_in("/proc/self/io", "syscr:");
}

/* Times that it went off its CPU by itself: once for each stop. */
static uint64_t nr_stops(pid_t pid)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	return number_in(path, "\nvoluntary_ctxt_switches:");
}

static uint64_t reads_of_call(struct tproc *p)
{
	int64_t ret;
	uint64_t before = nr_reads();
	check_int(tproc_syscall(p, SYS_getpid, (uint64_t[6]){0}, &ret, NULL),
		  0);
	uint64_t between = nr_reads();
	/* Asking is a part of it, too. */
	return between - before - (nr_reads() - between);
}

int main(void)
{
	struct tracer *tr = NULL;
	struct smco_err err = {0};
	struct puppet pup = puppet_start();
	taddr_t base = 0;

	check_int(tracer_create(&tr, NULL, &err), 0);
	struct tproc *p = traced_attach(tr, pup.pid, &err);
	if (!check_msg(p != NULL, "attached %s", err.msg))
		return tap_done();
	const struct tmaps *maps;
	check_int(tproc_get_maps(p, &maps, &err), 0);
	taddr_t start = maps->maps[0].start, end = maps->maps[0].end;
	/* The page for calls, its protection, the memory. */
	uint64_t stops = nr_stops(pup.pid);
	check_int(near_map(p, start, end, BYTES, &base, &err), 0);
	check_int(nr_stops(pup.pid) - stops, 3);
	/* No more than the result. */
	check_int(reads_of_call(p), 1);
	check_int(reads_of_call(p), 1);
	check_int(near_unmap(p, base, BYTES, &err), 0);
	tproc_resume_new(p);
	/* It may have a filter by now. */
	check_int(tproc_stop(p, &err), 0);
	check(reads_of_call(p) > 1);
	check_int(reads_of_call(p), 1);
	tproc_cont(p);
	check_int(tproc_detach(p, &err), 0);
	tracer_destroy(tr);
	puppet_end(&pup);
	return tap_done();
}
