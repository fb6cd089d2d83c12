/*
 * The supervisor is killed while guards are armed, and another one comes at
 * once, while the first one's helper is still there for threads that may have
 * met a guard: the two are not in each other's way. The program's handler and
 * mask are its own afterwards, and nothing of either stays.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGES 16
#include "supervisor/probe/guard.h"
#include "t/unit/pages.h"
#include "t/unit/traced.h"

static void on_segv(int sig)
{
	_exit(sig);
}

static long act_handle(long unused1, long unused2)
{
	(void)unused1, (void)unused2;
	struct sigaction sa = {.sa_handler = on_segv};
	return sigaction(SIGSEGV, &sa, NULL);
}

/* Bit 0: blocked, bit 1: the handler is not its own. */
static long act_look(long unused1, long unused2)
{
	(void)unused1, (void)unused2;
	sigset_t set;
	struct sigaction sa;
	sigaction(SIGSEGV, NULL, &sa);
	sigprocmask(SIG_BLOCK, NULL, &set);
	return sigismember(&set, SIGSEGV) | (sa.sa_handler != on_segv) << 1;
}

/* Attach and guard all pages; a guard is refused for as long as another's
 * helper is there. The access, or NULL. */
static struct access *guard_all(struct tracer *tr, struct tproc **proc_ret)
{
	struct smco_err err = {0};
	struct access *a = NULL;
	struct tproc *proc = traced_attach(tr, pup.pid, &err);
	if (!proc || access_mprotect.open(proc, &a, &err))
		return NULL;
	tproc_resume_new(proc);
	uint64_t end = smco_now_ns() + 60 * NSEC_PER_SEC;
	struct page_range all = range_at(mem, PAGES);
	while (access_mprotect.arm(a, &all, 1) == SMCO_BUSY &&
	       smco_now_ns() < end) {
		struct tevent ev;
		if (tracer_next(tr, smco_now_ns() + NSEC_PER_MSEC, &ev) > 0 &&
		    ev.task)
			tracer_resume(tr, ev.task, 0);
	}
	*proc_ret = proc;
	return all.nr_reset == PAGES ? a : NULL;
}

/* Guards all pages and is killed; the number of its helper. */
static pid_t first_supervisor(void)
{
	pid_t helper = -1;
	int p[2];
	if (pipe(p))
		exit(2);
	pid_t pid = fork();
	if (pid == 0) {
		struct tracer *tr = NULL;
		struct tproc *proc;
		struct access *a = NULL;
		if (!tracer_create(&tr, NULL, NULL))
			a = guard_all(tr, &proc);
		if (a)
			helper = warden_table(((struct guard *)a)->w)->pid;
		if (write(p[1], &helper, sizeof(helper)) > 0)
			raise(SIGKILL);
		_exit(1);
	}
	close(p[1]);
	check_int(read(p[0], &helper, sizeof(helper)), sizeof(helper));
	close(p[0]);
	waitpid(pid, NULL, 0);
	return helper;
}

static bool is_there(pid_t pid)
{
	char path[64], line[256] = "";
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	bool there = fgets(line, sizeof(line), f) && !strstr(line, ") Z ");
	fclose(f);
	return there;
}

static int nr_mappings_of_ours(void)
{
	struct tmaps maps;
	int nr = 0;
	if (tmaps_read(pup.pid, &maps, NULL))
		return -1;
	for (size_t i = 0; i < maps.nr; i++)
		nr += strstr(maps.maps[i].path, "memfd:smco") != NULL;
	tmaps_deinit(&maps);
	return nr;
}

/* The puppet touches every page. */
static void meet_guards(struct tracer *tr, struct access *a)
{
	struct tevent ev;
	unsigned hits = 0;
	puppet_begin(&pup, act_store, 0, 1);
	struct pollfd fd = {.fd = pup.answer, .events = POLLIN};
	while (poll(&fd, 1, 0) <= 0) {
		struct access_hit hit;
		uint64_t soon = smco_now_ns() + NSEC_PER_MSEC;
		if (tracer_next(tr, soon, &ev) < 1 || !ev.task)
			continue;
		bool ours = access_mprotect.on_event(a, &ev, &hit);
		hits += ours && ev.kind == TEV_FAULT;
		tracer_resume(tr, ev.task,
			      ev.kind == TEV_FAULT && !ours ? SIGSEGV : 0);
	}
	check_int(puppet_wait(&pup), 0);
	check_int(hits, 1);
}

int main(void)
{
	struct tracer *tr = NULL;
	struct smco_err err = {0};
	struct tproc *proc = NULL;

	start_with_pages();
	puppet_do(&pup, act_handle, 0, 0);
	pid_t helper = first_supervisor();
	if (!check_msg(helper > 0, "the first one's helper is %d", (int)helper))
		return tap_done();
	check_int(tracer_create(&tr, NULL, &err), 0);
	struct access *a = guard_all(tr, &proc);
	if (!check(a != NULL))
		return tap_done();
	uint64_t end = smco_now_ns() + 60 * NSEC_PER_SEC;
	while (is_there(helper) && smco_now_ns() < end)
		usleep(1000);
	check(!is_there(helper));
	/* Code and table of the second one. */
	check_int(nr_mappings_of_ours(), 2);
	meet_guards(tr, a);
	access_mprotect.close(a);
	check_int(tproc_detach(proc, &err), 0);
	check_int(nr_mappings_of_ours(), 0);
	check_int(puppet_do(&pup, act_look, 0, 0), 0);
	tracer_destroy(tr);
	puppet_end(&pup);
	return tap_done();
}
