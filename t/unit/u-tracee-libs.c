/*
 * When the linker has mapped the libraries we are told, once, and nothing of
 * ours is in the program then; whichever way it was begun, and whatever it
 * blocks. Left before that, it goes on as if nobody had been there; one in a
 * sandbox is not touched.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "supervisor/tracee/internal.h"
#include "t/fixtures/forbid.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

#define R_STATE 24 /* in struct r_debug */

static const char *const plain[] = {"/bin/sh", "-c", "exit 7", NULL};
static const char *const alone[] = {"/lib64/ld-linux-x86-64.so.2", "/bin/sh",
				    "-c", "exit 7", NULL};

static bool has_library(struct tproc *p, const char *name)
{
	struct tmaps maps;
	bool found = false;
	if (tmaps_read(tproc_pid(p), &maps, NULL))
		return false;
	for (size_t i = 0; i < maps.nr; i++)
		found |= strstr(maps.maps[i].path, name) != NULL;
	tmaps_deinit(&maps);
	return found;
}

/* All is there and nothing has run yet, nor is anything of ours left. */
static void check_libs(struct tproc *p, struct task *t)
{
	struct user_regs_struct regs;
	struct tmaps maps;
	int state = 1;
	check(has_library(p, "/libc.so"));
	check(!tproc_has_left_call(p));
	check_int(
		tmem_read(p, tproc_r_debug(p) + R_STATE, &state, sizeof(state)),
		0);
	check_int(state, 0); /* RT_CONSISTENT */
	check_int(task_get_regs(t, &regs), 0);
	if (tmaps_read(tproc_pid(p), &maps, NULL))
		return;
	const struct tmap *m = tmaps_find(&maps, arch.pc(&regs));
	check(m && strstr(m->path, "/ld-linux"));
	tmaps_deinit(&maps);
}

/* To the end of the only process; how often TEV_LIBS came. */
static int run(struct tracer *tr, int *status_ret)
{
	struct tevent ev;
	int nr = 0;
	while (tracer_next(tr, smco_now_ns() + 60 * NSEC_PER_SEC, &ev) > 0 &&
	       ev.kind != TEV_NONE) {
		if (ev.kind == TEV_PROC_GONE)
			*status_ret = ev.exit_status;
		else if (ev.kind == TEV_PROC_NEW)
			tproc_resume_new(ev.proc);
		else if (ev.kind == TEV_LIBS && ++nr)
			check_libs(ev.proc, ev.task);
		if (ev.kind == TEV_LIBS)
			tracer_resume(tr, ev.task, 0);
	}
	return nr;
}

/* What is launched has our mask; @nr_blocked of the signals are in it. */
static void check_launch(const char *const *argv, unsigned nr_blocked)
{
	static const int signals[] = {SIGURG, SIGWINCH, SIGCHLD};
	struct tracer *tr = NULL;
	struct smco_err err = {0};
	int status = 0;
	sigset_t set, was;
	pid_t pid;
	sigemptyset(&set);
	for (unsigned i = 0; i < nr_blocked; i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, &was);
	check_int(tracer_create(&tr, NULL, &err), 0);
	check_int(tracer_launch(tr, (char **)argv, &pid, &err), 0);
	check_int(run(tr, &status), nr_blocked < ARRAY_SIZE(signals));
	check(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	tracer_destroy(tr);
	sigprocmask(SIG_SETMASK, &was, NULL);
}

/* --- left while the linker works --- */

static void check_left(void)
{
	static const char library[] = "u-tracee-libs.pipe";
	struct tracer *tr = NULL;
	struct smco_err err = {0};
	struct tevent ev;
	struct tproc *p = NULL;
	int status = 0;
	pid_t pid;
	unlink(library);
	if (!check_int(mkfifo(library, 0600), 0))
		return;
	check_int(tracer_create(&tr, NULL, &err), 0);
	setenv("LD_PRELOAD", "./u-tracee-libs.pipe", 1);
	check_int(tracer_launch(tr, (char **)plain, &pid, &err), 0);
	unsetenv("LD_PRELOAD");
	while (tracer_next(tr, smco_now_ns() + NSEC_PER_SEC, &ev) > 0 &&
	       (ev.kind != TEV_NONE || !p))
		if (ev.kind == TEV_PROC_NEW) {
			p = ev.proc;
			tproc_resume_new(p);
		}
	check_int(ev.kind, TEV_NONE); /* it waits for the pipe */
	if (!check(p != NULL))
		return;
	check(tproc_has_left_call(p));
	const taddr_t at = p->libs.at, slot = p->libs.raise.slot;
	uint8_t code[ARCH_RAISE_MAX], zeros[ARCH_RAISE_MAX] = {0};
	taddr_t to = at;
	char path[64];
	check_int(tproc_detach(p, &err), 0);
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	_cleanup_close_ int mem = open(path, O_RDONLY | O_CLOEXEC);
	check_int(pread(mem, code, sizeof(code), (off_t)at), sizeof(code));
	check(!memcmp(code, zeros, sizeof(code)));
	check_int(pread(mem, &to, sizeof(to), (off_t)slot), sizeof(to));
	check(to != at);
	close(open(library, O_WRONLY | O_CLOEXEC));
	check_int(waitpid(pid, &status, 0), pid);
	check(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	unlink(library);
	tracer_destroy(tr);
}

/* --- in a sandbox --- */

static long act_exec(long unused1, long unused2)
{
	static const unsigned ours[] = {SYS_gettid, SYS_tkill};
	(void)unused1, (void)unused2;
	if (forbid(ours, ARRAY_SIZE(ours)))
		return -1;
	return execv(plain[0], (char **)plain);
}

static void check_sandbox(void)
{
	struct puppet pup = puppet_start();
	struct tracer *tr = NULL;
	struct smco_err err = {0};
	int status = 0;
	check_int(tracer_create(&tr, NULL, &err), 0);
	struct tproc *p = traced_attach(tr, pup.pid, &err);
	if (!check_msg(p != NULL, "attached %s", err.msg))
		return;
	tproc_resume_new(p);
	puppet_begin(&pup, act_exec, 0, 0);
	check_int(run(tr, &status), 0);
	check(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	tracer_destroy(tr);
}

int main(void)
{
	check_launch(plain, 0);
	check_launch(alone, 0);
	check_launch(plain, 2);
	check_launch(plain, 3);
	check_left();
	check_sandbox();
	return tap_done();
}
