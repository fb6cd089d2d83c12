/*
 * In a program that has put itself into a sandbox no call is made and no code
 * run, which it might be killed for: that is refused, with what it is refused
 * for, from the first stop after it has done so. One whose filters are all ours
 * has its calls made.
 */
#include <string.h>
#include <sys/syscall.h>

#include "supervisor/tracee/internal.h"
#include "t/fixtures/forbid.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

/* All that is used for a call of ours. */
static const unsigned forbidden[] = {SYS_getppid, SYS_tgkill, SYS_mmap,
				     SYS_munmap, SYS_restart_syscall};

static struct tracer *tr;
static struct puppet pup;

static long act_forbid(long unused1, long unused2)
{
	(void)unused1, (void)unused2;
	return forbid(forbidden, ARRAY_SIZE(forbidden));
}

static long act_add(long a, long b)
{
	return a + b;
}

static void allow_all(void)
{
	struct sock_filter code = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog prog = {1, &code};
	check_int(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	check_int(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog), 0);
}

static int ask_parent(struct tproc *p, int64_t *ret, struct smco_err *err)
{
	const uint64_t args[6] = {0};
	*ret = 0;
	return tproc_syscall(p, SYS_getppid, args, ret, err);
}

/* While all of @p stand. */
static void check_calls_made(struct tproc *p)
{
	struct smco_err err = {0};
	int64_t ret;
	check_int(ask_parent(p, &ret, &err), 0);
	check_int(ret, getpid());
}

static void check_refused(int r, const struct smco_err *err)
{
	check_int(r, SMCO_UNSUPPORTED);
	check_msg(strstr(err->msg, "a seccomp filter of its own"), "said: %s",
		  err->msg);
}

static void check_calls_refused(struct tproc *p)
{
	struct smco_err call = {0}, batch = {0}, code = {0};
	struct tsyscall none = {0};
	struct user_regs_struct before, after;
	struct task *t = tproc_first_task(p);
	int64_t ret;

	check_int(task_get_regs(t, &before), 0);
	check_refused(ask_parent(p, &ret, &call), &call);
	check_int(ret, 0);
	check_refused(tproc_syscalls(p, &none, 0, &batch), &batch);
	struct task_run run = {.pc = arch.pc(&before), .sp = arch.sp(&before)};
	check_refused(task_run(t, &run, &code), &code);
	/* It has been led nowhere. */
	check_int(task_get_regs(t, &after), 0);
	check_int(memcmp(&before, &after, sizeof(before)), 0);
}

/* It is there, and has had no calls but its own. */
static void check_lives(void)
{
	check_int(traced_do(tr, &pup, act_add, 40, 2), 42);
}

int main(void)
{
	struct smco_err err = {0};

	allow_all(); /* and the puppet has this one, too */
	pup = puppet_start();
	if (!check_int(tracer_create(&tr, NULL, &err), 0))
		return tap_done();
	struct tproc *p = traced_must_attach(tr, pup.pid);
	check_calls_made(p);
	tproc_resume_new(p);
	check_int(traced_stop(p, &err), 0);
	check_calls_made(p);
	tproc_cont(p);

	check_int(traced_do(tr, &pup, act_forbid, 0, 0), 0);
	check_int(traced_stop(p, &err), 0);
	check_calls_refused(p);
	tproc_cont(p);
	check_lives();

	/* The stub of the first calls stays: nothing can be unmapped. */
	tracer_detach_all(tr, &err);
	tracer_destroy(tr);
	puppet_begin(&pup, act_add, 4, 3);
	check_int(puppet_wait(&pup), 7);

	/* Nor is one made in it that comes so. */
	if (!check_int(tracer_create(&tr, NULL, &err), 0))
		return tap_done();
	p = traced_must_attach(tr, pup.pid);
	check_calls_refused(p);
	tproc_resume_new(p);
	check_lives();
	check_int(tracer_detach_all(tr, &err), 0);
	tracer_destroy(tr);
	puppet_begin(&pup, act_add, 1, 2);
	check_int(puppet_wait(&pup), 3);
	puppet_end(&pup);
	return tap_done();
}
