/*
 * Why attaching fails, in one sentence a person can act on: the cause, its
 * present value, the fix. The kernel says EPERM to all of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "reports/procfs.h"
#include "supervisor/tracee/internal.h"

#define CAP_SYS_PTRACE_BIT 19

static void comm_of(pid_t pid, char *buf, size_t size)
{
	char path[PROCFS_PATH];
	procfs_path(path, sizeof(path), pid, "comm");
	if (smco_slurp(path, buf, size) > 0)
		buf[strcspn(buf, "\n")] = '\0';
	else
		snprintf(buf, size, "?");
}

/* -1 without Yama. */
static int yama_scope(void)
{
	char buf[8];
	if (smco_slurp("/proc/sys/kernel/yama/ptrace_scope", buf,
		       sizeof(buf)) <= 0)
		return -1;
	return atoi(buf);
}

static bool have_ptrace_cap(void)
{
	uint64_t eff = 0;
	return proc_status_u64(getpid(), "CapEff", 16, &eff) &&
	       (eff >> CAP_SYS_PTRACE_BIT & 1);
}

/* Then our capabilities end where that does. */
static bool in_user_namespace(void)
{
	char map[64];
	unsigned inside, outside, nr;
	return smco_slurp("/proc/self/uid_map", map, sizeof(map)) > 0 &&
	       sscanf(map, "%u %u %u", &inside, &outside, &nr) == 3 &&
	       (outside || nr != UINT32_MAX);
}

static char state_of(pid_t pid)
{
	const struct task t = {.tid = pid, .tgid = pid};
	return task_proc_state(&t);
}

/* What the target itself is decides; true if that was it. */
static bool explain_target(pid_t pid, struct smco_err *err)
{
	char state = state_of(pid);
	uint64_t v;

	if (!state && kill(pid, 0) < 0 && errno == ESRCH) {
		smco_fail(err, SMCO_GONE, 0, "no process %d", pid);
		return true;
	}
	if (state == 'Z' || state == 'X') {
		smco_fail(err, SMCO_GONE, 0,
			  "process %d has ended already (a zombie: its parent "
			  "has not waited for it)",
			  pid);
		return true;
	}
	if (state && !proc_status_u64(pid, "VmSize", 10, &v)) {
		smco_fail(err, SMCO_UNSUPPORTED, 0,
			  "process %d is a kernel thread; it has no memory of "
			  "its own to look at",
			  pid);
		return true;
	}
	if (proc_is_32bit(pid)) {
		smco_fail(err, SMCO_UNSUPPORTED, 0,
			  "process %d runs a 32-bit program; only 64-bit ones "
			  "can be supervised",
			  pid);
		return true;
	}
	if (proc_status_u64(pid, "TracerPid", 10, &v) && v) {
		char comm[64];
		comm_of((pid_t)v, comm, sizeof(comm));
		smco_fail(err, SMCO_BUSY, 0,
			  "process %d is traced by process %d (%s) already; "
			  "only one tracer is possible, end that one first",
			  pid, (int)v, comm);
		return true;
	}
	return false;
}

/* Then who we are. */
static bool explain_rights(pid_t pid, struct smco_err *err)
{
	uint64_t uid = 0;
	bool known = proc_status_u64(pid, "Uid", 10, &uid);

	/* Not to be told: said otherwise. */
	if (proc_shares_namespace(pid, "user") == 0 && !have_ptrace_cap()) {
		smco_fail(err, SMCO_PERM, 0,
			  "process %d runs in another user namespace (a "
			  "container); run smco-trace inside it, or as root "
			  "outside",
			  pid);
		return true;
	}
	if (have_ptrace_cap() && in_user_namespace()) {
		smco_fail(err, SMCO_PERM, 0,
			  "process %d runs outside of the user namespace (a "
			  "container) that we are in; run smco-trace outside "
			  "as root",
			  pid);
		return true;
	}
	if (have_ptrace_cap())
		return false;
	if (known && uid != geteuid()) {
		smco_fail(err, SMCO_PERM, 0,
			  "process %d belongs to user %u, we are %u without "
			  "CAP_SYS_PTRACE; run as that user or as root",
			  pid, (unsigned)uid, (unsigned)geteuid());
		return true;
	}
	char path[PROCFS_PATH];
	struct stat st;
	/* Not its directory, which is the user's always. */
	procfs_path(path, sizeof(path), procfs_holder(pid), "fd");
	if (known && stat(path, &st) == 0 && st.st_uid != (uid_t)uid) {
		smco_fail(err, SMCO_PERM, 0,
			  "process %d is protected (not dumpable: a setuid "
			  "program, file capabilities, or by its own wish); "
			  "run as root",
			  pid);
		return true;
	}
	switch (yama_scope()) {
	case 1:
		smco_fail(err, SMCO_PERM, 0,
			  "kernel.yama.ptrace_scope is 1: only descendants may "
			  "be traced; run as root, start the program with "
			  "smco-trace -- CMD, or sysctl "
			  "kernel.yama.ptrace_scope=0");
		return true;
	case 2:
		smco_fail(err, SMCO_PERM, 0,
			  "kernel.yama.ptrace_scope is 2: only root may trace; "
			  "run as root, or sysctl kernel.yama.ptrace_scope=0");
		return true;
	}
	return false;
}

void tracer_explain_attach(pid_t pid, int sys_errno, struct smco_err *err)
{
	if (!err)
		return;
	if (explain_target(pid, err)) {
		err->sys_errno = sys_errno;
		return;
	}
	if (yama_scope() == 3) {
		smco_fail(err, SMCO_PERM, 0,
			  "kernel.yama.ptrace_scope is 3: nobody may trace "
			  "until the next boot");
	} else if (!explain_rights(pid, err)) {
		uint64_t seccomp = 0;
		proc_status_u64(getpid(), "Seccomp", 10, &seccomp);
		if (seccomp)
			smco_fail(err, SMCO_PERM, sys_errno,
				  "cannot trace process %d: we run under a "
				  "seccomp filter, probably a container's; "
				  "start it with --cap-add=SYS_PTRACE",
				  pid);
		else if (!have_ptrace_cap())
			smco_fail(err, SMCO_PERM, sys_errno,
				  "cannot trace process %d: a security module "
				  "forbids it, or the process may do more than "
				  "we (capabilities); run as root",
				  pid);
		else
			smco_fail(
				err, SMCO_PERM, sys_errno,
				"cannot trace process %d although we have "
				"CAP_SYS_PTRACE: a security module (AppArmor, "
				"SELinux) forbids it, or it is ending",
				pid);
	}
	err->sys_errno = sys_errno;
}

/* --- privileges that exec does not give to a traced program --- */

/* The effective one, the second in its line of /proc/PID/status. */
static bool effective_id(pid_t pid, const char *field, unsigned *ret)
{
	char path[PROCFS_PATH], line[256];
	procfs_path(path, sizeof(path), pid, "status");
	FILE *f = fopen(path, "re");
	bool found = false;
	if (!f)
		return false;
	while (!found && fgets(line, sizeof(line), f))
		found = !strncmp(line, field, strlen(field)) &&
			sscanf(line + strlen(field), ": %*u %u", ret) == 1;
	fclose(f);
	return found;
}

static const char *privilege_of(pid_t pid, const char *exe)
{
	struct stat st;
	struct statvfs fs;
	uint64_t no_new = 0;
	unsigned uid, gid;

	if (stat(exe, &st) < 0 || !effective_id(pid, "Uid", &uid) ||
	    !effective_id(pid, "Gid", &gid))
		return NULL;
	/* Without us it would not have got them either. */
	if (statvfs(exe, &fs) < 0 || (fs.f_flag & ST_NOSUID) ||
	    (proc_status_u64(pid, "NoNewPrivs", 10, &no_new) && no_new))
		return NULL;
	if ((st.st_mode & S_ISUID) && st.st_uid != uid)
		return "is setuid";
	if ((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP) &&
	    st.st_gid != gid)
		return "is setgid";
	if (uid && getxattr(exe, "security.capability", NULL, 0) > 0)
		return "has capabilities";
	return NULL;
}

bool tproc_explain_privilege(struct tproc *p, struct smco_err *err)
{
	char exe[PROCFS_PATH], name[256];

	if (have_ptrace_cap())
		return false;
	procfs_path(exe, sizeof(exe), procfs_holder(p->pid), "exe");
	const char *what = privilege_of(p->pid, exe);
	if (!what)
		return false;
	ssize_t n = readlink(exe, name, sizeof(name) - 1);
	name[n > 0 ? n : 0] = '\0';
	smco_fail(err, SMCO_PERM, 0,
		  "%s %s, but runs without that privilege, as the kernel gives "
		  "none to a program that user %u traces; run smco-trace as "
		  "root",
		  name, what, (unsigned)geteuid());
	return true;
}
