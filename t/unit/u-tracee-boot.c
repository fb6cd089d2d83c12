/*
 * The supervisor dies in the middle of the very first call that it has the
 * program make, from the end of the vdso: some microseconds, but for a call
 * that a seccomp filter holds up until we say so. The program goes on where it
 * was.
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "supervisor/tracee/internal.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

static struct puppet pup;

/* Executable memory is mapped when whoever holds the descriptor that this
 * returns lets it. */
static long act_filter(long unused1, long unused2)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {ARRAY_SIZE(code), code};
	(void)unused1, (void)unused2;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		       SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog);
}

static long act_add(long a, long b)
{
	return a + b;
}

/* As many filters as the puppet has: no calls are made in who has more. */
static void take_filter(void)
{
	struct sock_filter code = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog prog = {1, &code};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog))
		_exit(2);
}

/* Attaches and has a call made; it is to die in the middle of it. */
static pid_t start_supervisor(void)
{
	const uint64_t args[6] = {0};
	struct tracer *tr;
	int64_t ret;
	fflush(stdout);
	pid_t pid = fork();
	if (pid)
		return pid;
	take_filter();
	struct tproc *p = tracer_create(&tr, NULL, NULL)
				  ? NULL
				  : traced_attach(tr, pup.pid, NULL);
	if (p)
		tproc_syscall(p, SYS_getpid, args, &ret, NULL);
	_exit(1);
}

/* The program counter is in the vdso, as the kernel has it. */
static bool is_in_vdso(void)
{
	struct tmaps maps;
	unsigned long pc = 0;
	char path[64], line[256] = "";
	snprintf(path, sizeof(path), "/proc/%d/syscall", (int)pup.pid);
	const char *last = smco_slurp(path, line, sizeof(line)) > 0
				   ? strrchr(line, ' ')
				   : NULL;
	if (!last || sscanf(last, "%lx", &pc) != 1 ||
	    tmaps_read(pup.pid, &maps, NULL))
		return false;
	const struct tmap *m = tmaps_find(&maps, pc);
	bool is = m && !strcmp(m->path, "[vdso]");
	tmaps_deinit(&maps);
	return is;
}

int main(void)
{
	pup = puppet_start();
	int fd = (int)puppet_do(&pup, act_filter, 0, 0);
	int pidfd = (int)syscall(SYS_pidfd_open, pup.pid, 0);
	int listener = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	if (!check_msg(listener >= 0, "listener %d of %d", listener, fd))
		return tap_done();

	pid_t pid = start_supervisor();
	struct seccomp_notif n = {0};
	struct pollfd due = {.fd = listener, .events = POLLIN};
	check_int(poll(&due, 1, 60000), 1);
	check_int(ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &n), 0);
	check_int(n.data.nr, SYS_mmap);
	check(is_in_vdso());
	kill(pid, SIGKILL);
	int status = 0;
	check_int(waitpid(pid, &status, 0), pid);
	check(WIFSIGNALED(status));

	struct seccomp_notif_resp go = {
		.id = n.id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
	check_int(ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &go), 0);
	/* It was waiting for this. */
	puppet_begin(&pup, act_add, 40, 2);
	due = (struct pollfd){.fd = pup.answer, .events = POLLIN};
	check_int(poll(&due, 1, 60000), 1);
	if (check(due.revents & POLLIN))
		check_int(puppet_wait(&pup), 42);
	puppet_end(&pup);
	return tap_done();
}
