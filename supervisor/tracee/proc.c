/* The small facts that stand in /proc. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include "reports/procfs.h"
#include "supervisor/tracee/internal.h"

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif

const char *proc_stat_field(const char *buf, int nr)
{
	/* The name may hold anything, blanks and parentheses too. */
	const char *s = strrchr(buf, ')');
	for (int field = 2; s && field < nr; field++)
		s = strchr(s + 1, ' ');
	return s ? s + 1 : NULL;
}

char task_proc_place(const struct task *t, int *cpu_ret)
{
	char path[PROCFS_PATH], buf[1024];
	procfs_path(path, sizeof(path), t->tgid, "task/%d/stat", t->tid);
	*cpu_ret = -1;
	if (smco_slurp(path, buf, sizeof(buf)) <= 0)
		return 0;
	const char *state = proc_stat_field(buf, 3);
	const char *cpu = proc_stat_field(buf, 39);
	if (!cpu || sscanf(cpu, "%d", cpu_ret) != 1)
		*cpu_ret = -1;
	return state ? *state : 0;
}

char task_proc_state(const struct task *t)
{
	int cpu;
	return task_proc_place(t, &cpu);
}

/* -1 or a number and arguments, then stack pointer and program counter. */
int proc_place(const struct task *t, taddr_t *pc_ret, taddr_t *sp_ret)
{
	char path[PROCFS_PATH], buf[256];
	procfs_path(path, sizeof(path), t->tid, "syscall");
	if (smco_slurp(path, buf, sizeof(buf)) <= 0)
		return SMCO_BUSY;
	char *pc = strrchr(buf, ' ');
	if (!pc)
		return SMCO_BUSY; /* "running" */
	*pc++ = '\0';
	char *sp = strrchr(buf, ' ');
	if (!sp)
		return SMCO_BUSY;
	*pc_ret = strtoull(pc, NULL, 16);
	*sp_ret = strtoull(sp, NULL, 16);
	return 0;
}

int task_get_place(struct task *t, taddr_t *pc_ret, taddr_t *sp_ret)
{
	struct user_regs_struct regs;
	if (t->state == TASK_DEAD)
		return SMCO_GONE;
	if (t->state == TASK_STOPPED) {
		if (task_get_regs(t, &regs) < 0)
			return SMCO_GONE; /* killed */
		*pc_ret = arch.pc(&regs);
		*sp_ret = arch.sp(&regs);
		return 0;
	}
	char state = task_proc_state(t);
	if (!state || state == 'Z' || state == 'X')
		return SMCO_GONE;
	return proc_place(t, pc_ret, sp_ret);
}

/* -1: by that number none is to be had. */
static int take_fd(pid_t tid, unsigned flags, int fd)
{
	_cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, tid, flags);
	return pidfd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
}

int tproc_take_fd(struct tproc *p, int fd)
{
	int ret = take_fd(p->pid, 0, fd), why = errno;
	for (struct task *t = tproc_first_task(p); t && ret < 0;
	     t = task_next(t)) {
		char path[PROCFS_PATH];
		/* Its first thread has ended (Linux 6.9), or a kernel before
		 * 5.6: not every descriptor can be opened by its name. */
		ret = take_fd(t->tid, PIDFD_THREAD, fd);
		if (ret >= 0)
			break;
		procfs_path(path, sizeof(path), t->tid, "fd/%d", fd);
		ret = open(path, O_RDWR | O_CLOEXEC);
	}
	errno = why;
	return ret;
}

static int task_take_fd(const struct task *t, int fd)
{
	int copy = take_fd(t->tgid, 0, fd);
	return copy < 0 ? take_fd(t->tid, PIDFD_THREAD, fd) : copy;
}

uint64_t task_terminal_timeout(const struct task *t, int fd)
{
	_cleanup_close_ int copy = task_take_fd(t, fd);
	struct termios tio;
	if (copy < 0 || tcgetattr(copy, &tio) || tio.c_lflag & ICANON ||
	    tio.c_cc[VMIN])
		return 0;
	return tio.c_cc[VTIME] * (NSEC_PER_SEC / 10);
}

int task_socket_option(const struct task *t, int fd, int option, void *ret,
		       socklen_t len)
{
	_cleanup_close_ int copy = task_take_fd(t, fd);
	if (copy < 0 || getsockopt(copy, SOL_SOCKET, option, ret, &len) < 0)
		return SMCO_UNSUPPORTED;
	return 0;
}

bool proc_field_u64(const char *buf, const char *field, int base, uint64_t *ret)
{
	size_t len = strlen(field);
	for (const char *line = buf; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, field, len) && line[len] == ':') {
			*ret = strtoull(line + len + 1, NULL, base);
			return true;
		}
	}
	return false;
}

bool proc_status_u64(pid_t tid, const char *field, int base, uint64_t *ret)
{
	char path[PROCFS_PATH], buf[4096];
	procfs_path(path, sizeof(path), tid, "status");
	return smco_slurp(path, buf, sizeof(buf)) > 0 &&
	       proc_field_u64(buf, field, base, ret);
}

static ssize_t read_status(struct tracer *tr, pid_t tid, char *buf, size_t size)
{
	if (tr->status_fd < 0 || tr->status_tid != tid)
		return -1;
	ssize_t n = pread(tr->status_fd, buf, size - 1, 0);
	if (n > 0)
		buf[n] = '\0';
	return n; /* ESRCH: another has its number now */
}

bool task_status_u64(const struct task *t, const char *field, int base,
		     uint64_t *ret)
{
	struct tracer *tr = t->tr;
	char path[PROCFS_PATH], buf[4096];
	if (read_status(tr, t->tid, buf, sizeof(buf)) <= 0) {
		smco_close_fd(&tr->status_fd);
		procfs_path(path, sizeof(path), t->tid, "status");
		tr->status_fd = open(path, O_RDONLY | O_CLOEXEC);
		tr->status_tid = t->tid;
		if (read_status(tr, t->tid, buf, sizeof(buf)) <= 0)
			return false;
	}
	return proc_field_u64(buf, field, base, ret);
}

bool proc_has_filter(pid_t tid)
{
	uint64_t seccomp = 0;
	return proc_status_u64(tid, "Seccomp", 10, &seccomp) && seccomp;
}

/* How many filters see its calls; strict mode counts as many more. */
static unsigned nr_filters(pid_t tid)
{
	char path[PROCFS_PATH], buf[4096];
	uint64_t mode = 0, nr = 0;
	procfs_path(path, sizeof(path), tid, "status");
	if (smco_slurp(path, buf, sizeof(buf)) <= 0 ||
	    !proc_field_u64(buf, "Seccomp", 10, &mode))
		return 0;
	if (!proc_field_u64(buf, "Seccomp_filters", 10, &nr))
		nr = mode == 2; /* a kernel that does not count them */
	return mode == 1 ? 1000 : (unsigned)nr;
}

bool proc_has_own_filter(pid_t tid)
{
	unsigned nr = nr_filters(tid);
	return nr && nr > nr_filters(getpid());
}

bool task_calls_compat(struct task *t)
{
	struct __ptrace_syscall_info info;
	struct user_regs_struct regs;
	return task_get_regs(t, &regs) == 0 && arch.may_be_compat_call(&regs) &&
	       ptrace(PTRACE_GET_SYSCALL_INFO, t->tid, sizeof(info), &info) >
		       0 &&
	       info.arch != arch.audit_arch;
}

/* Linux 6.4; not in all headers. */
#define GET_DISPATCH 0x4211 /* PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG */
struct dispatch {
	uint64_t mode; /* 0 = off */
	uint64_t selector, offset, len;
};

bool task_diverts_calls(const struct task *t)
{
	struct dispatch d = {0};
	return ptrace((enum __ptrace_request)GET_DISPATCH, t->tid, sizeof(d),
		      &d) == 0 &&
	       d.mode;
}

bool tproc_diverts_calls(struct tproc *p)
{
	for (const struct task *t = p->tasks; t; t = t->next)
		if (task_diverts_calls(t))
			return true;
	return false;
}

bool tproc_is_sandboxed(struct tproc *p)
{
	return proc_has_own_filter(procfs_holder(p->pid));
}

int proc_shares_namespace(pid_t pid, const char *kind)
{
	char path[PROCFS_PATH], theirs[64], mine[64];
	procfs_path(path, sizeof(path), procfs_holder(pid), "ns/%s", kind);
	ssize_t n = readlink(path, theirs, sizeof(theirs));
	snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
	ssize_t m = readlink(path, mine, sizeof(mine));
	if (n < 0 || m < 0)
		return -1;
	return n == m && !memcmp(theirs, mine, (size_t)n);
}

bool proc_fdinfo(pid_t tid, int fd, char *buf, size_t size)
{
	char path[PROCFS_PATH];
	procfs_path(path, sizeof(path), tid, "fdinfo/%d", fd);
	return smco_slurp(path, buf, size) > 0;
}

/* A number for each PID namespace, its own last; 0 = not there. */
static pid_t last_number(const char *buf, const char *field)
{
	char *line = strstr(buf, field);
	char *end = line ? strchr(line + 1, '\n') : NULL;
	char *last = end ? memrchr(line, '\t', (size_t)(end - line)) : NULL;
	return last ? (pid_t)atoi(last) : 0;
}

static void ask_own(pid_t tid, pid_t *tgid_ret, pid_t *tid_ret)
{
	char path[PROCFS_PATH], buf[4096];
	procfs_path(path, sizeof(path), tid, "status");
	*tgid_ret = *tid_ret = 0;
	if (smco_slurp(path, buf, sizeof(buf)) <= 0)
		return;
	*tgid_ret = last_number(buf, "\nNStgid:");
	*tid_ret = last_number(buf, "\nNSpid:");
}

pid_t proc_own_pid(pid_t pid)
{
	pid_t own, tid;
	ask_own(pid, &own, &tid);
	return own;
}

static void know_own(struct task *t)
{
	if (t->own_tid)
		return;
	ask_own(t->tid, &t->own_tgid, &t->own_tid);
	if (t->own_tid && t->own_tgid)
		return;
	/* A kernel that does not say. */
	t->own_tid = t->tid;
	t->own_tgid = t->tgid;
}

pid_t task_own_tid(struct task *t)
{
	know_own(t);
	return t->own_tid;
}

pid_t task_own_tgid(struct task *t)
{
	know_own(t);
	return t->own_tgid;
}

uint64_t proc_auxv(pid_t pid, uint64_t type)
{
	char path[PROCFS_PATH];
	union {
		char bytes[4096];
		Elf64_auxv_t auxv[4096 / sizeof(Elf64_auxv_t)];
	} u;
	procfs_path(path, sizeof(path), procfs_holder(pid), "auxv");
	ssize_t n = smco_slurp(path, u.bytes, sizeof(u.bytes));
	for (ssize_t i = 0; (i + 1) * (ssize_t)sizeof(Elf64_auxv_t) <= n; i++)
		if (u.auxv[i].a_type == type)
			return u.auxv[i].a_un.a_val;
	return 0;
}

bool proc_is_32bit(pid_t pid)
{
	char path[PROCFS_PATH];
	unsigned char ident[EI_NIDENT];
	procfs_path(path, sizeof(path), procfs_holder(pid), "exe");
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	return read(fd, ident, sizeof(ident)) == (ssize_t)sizeof(ident) &&
	       !memcmp(ident, ELFMAG, SELFMAG) && ident[EI_CLASS] == ELFCLASS32;
}
