/*
 * System calls by class: the tracepoint of all of them with a filter, which the
 * kernel evaluates, for those that do something of one kind. Each call is in
 * exactly one class: the last one has what is in no list, so that all classes
 * together are the tracepoint's own count.
 */
#include <limits.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "pmu/event-private.h"
#include "pmu/event.h"

static const short io[] = {
	SYS_read,
	SYS_write,
	SYS_pread64,
	SYS_pwrite64,
	SYS_readv,
	SYS_writev,
	SYS_preadv,
	SYS_pwritev,
	SYS_preadv2,
	SYS_pwritev2,
	SYS_sendfile,
	SYS_splice,
	SYS_tee,
	SYS_vmsplice,
	SYS_copy_file_range,
	SYS_lseek,
	SYS_ioctl,
	SYS_fsync,
	SYS_fdatasync,
	SYS_sync,
	SYS_syncfs,
	SYS_sync_file_range,
	SYS_readahead,
	SYS_fadvise64,
	SYS_fallocate,
	SYS_ftruncate,
	SYS_io_setup,
	SYS_io_destroy,
	SYS_io_submit,
	SYS_io_cancel,
	SYS_io_uring_setup,
	SYS_io_uring_enter,
	SYS_io_uring_register,
};
static const short file[] = {
	SYS_open,
	SYS_openat,
	SYS_openat2,
	SYS_creat,
	SYS_close,
	SYS_close_range,
	SYS_stat,
	SYS_fstat,
	SYS_lstat,
	SYS_newfstatat,
	SYS_statx,
	SYS_access,
	SYS_faccessat,
	SYS_faccessat2,
	SYS_pipe,
	SYS_pipe2,
	SYS_dup,
	SYS_dup2,
	SYS_dup3,
	SYS_fcntl,
	SYS_flock,
	SYS_truncate,
	SYS_getdents,
	SYS_getdents64,
	SYS_getcwd,
	SYS_chdir,
	SYS_fchdir,
	SYS_rename,
	SYS_renameat,
	SYS_renameat2,
	SYS_mkdir,
	SYS_mkdirat,
	SYS_rmdir,
	SYS_link,
	SYS_linkat,
	SYS_unlink,
	SYS_unlinkat,
	SYS_symlink,
	SYS_symlinkat,
	SYS_readlink,
	SYS_readlinkat,
	SYS_chmod,
	SYS_fchmod,
	SYS_fchmodat,
	SYS_chown,
	SYS_fchown,
	SYS_lchown,
	SYS_fchownat,
	SYS_umask,
	SYS_utime,
	SYS_utimes,
	SYS_futimesat,
	SYS_utimensat,
	SYS_mknod,
	SYS_mknodat,
	SYS_statfs,
	SYS_fstatfs,
	SYS_setxattr,
	SYS_lsetxattr,
	SYS_fsetxattr,
	SYS_getxattr,
	SYS_lgetxattr,
	SYS_fgetxattr,
	SYS_listxattr,
	SYS_llistxattr,
	SYS_flistxattr,
	SYS_removexattr,
	SYS_lremovexattr,
	SYS_fremovexattr,
	SYS_inotify_init,
	SYS_inotify_init1,
	SYS_inotify_add_watch,
	SYS_inotify_rm_watch,
	SYS_fanotify_init,
	SYS_fanotify_mark,
	SYS_name_to_handle_at,
	SYS_open_by_handle_at,
	SYS_eventfd,
	SYS_eventfd2,
	SYS_signalfd,
	SYS_signalfd4,
	SYS_timerfd_create,
	SYS_timerfd_settime,
	SYS_timerfd_gettime,
	SYS_epoll_create,
	SYS_epoll_create1,
	SYS_chroot,
	SYS_pivot_root,
	SYS_mount,
	SYS_umount2,
	SYS_open_tree,
	SYS_move_mount,
	SYS_fsopen,
	SYS_fsconfig,
	SYS_fsmount,
	SYS_fspick,
	SYS_mount_setattr,
};
static const short memory[] = {
	SYS_mmap,
	SYS_munmap,
	SYS_mprotect,
	SYS_mremap,
	SYS_brk,
	SYS_msync,
	SYS_mincore,
	SYS_madvise,
	SYS_process_madvise,
	SYS_mlock,
	SYS_mlock2,
	SYS_munlock,
	SYS_mlockall,
	SYS_munlockall,
	SYS_remap_file_pages,
	SYS_shmget,
	SYS_shmat,
	SYS_shmctl,
	SYS_shmdt,
	SYS_memfd_create,
	SYS_mbind,
	SYS_set_mempolicy,
	SYS_get_mempolicy,
	SYS_migrate_pages,
	SYS_move_pages,
	SYS_pkey_mprotect,
	SYS_pkey_alloc,
	SYS_pkey_free,
	SYS_userfaultfd,
	SYS_membarrier,
	SYS_memfd_secret,
	SYS_process_vm_readv,
	SYS_process_vm_writev,
	SYS_process_mrelease,
	SYS_set_mempolicy_home_node,
};
static const short network[] = {
	SYS_socket,	SYS_socketpair, SYS_connect,	 SYS_accept,
	SYS_accept4,	SYS_bind,	SYS_listen,	 SYS_sendto,
	SYS_recvfrom,	SYS_sendmsg,	SYS_recvmsg,	 SYS_sendmmsg,
	SYS_recvmmsg,	SYS_shutdown,	SYS_getsockname, SYS_getpeername,
	SYS_setsockopt, SYS_getsockopt,
};
static const short wait[] = {
	SYS_poll,
	SYS_ppoll,
	SYS_select,
	SYS_pselect6,
	SYS_epoll_wait,
	SYS_epoll_pwait,
	SYS_epoll_pwait2,
	SYS_epoll_ctl,
	SYS_futex,
	SYS_futex_waitv,
	SYS_nanosleep,
	SYS_clock_nanosleep,
	SYS_pause,
	SYS_sched_yield,
	SYS_wait4,
	SYS_waitid,
	SYS_rt_sigtimedwait,
	SYS_rt_sigsuspend,
	SYS_semop,
	SYS_semtimedop,
	SYS_msgrcv,
	SYS_mq_timedreceive,
	SYS_io_getevents,
	SYS_io_pgetevents,
	SYS_restart_syscall,
};
static const short process[] = {
	SYS_fork,
	SYS_vfork,
	SYS_clone,
	SYS_clone3,
	SYS_execve,
	SYS_execveat,
	SYS_exit,
	SYS_exit_group,
	SYS_kill,
	SYS_tkill,
	SYS_tgkill,
	SYS_rt_sigaction,
	SYS_rt_sigprocmask,
	SYS_rt_sigreturn,
	SYS_rt_sigpending,
	SYS_rt_sigqueueinfo,
	SYS_rt_tgsigqueueinfo,
	SYS_sigaltstack,
	SYS_pidfd_open,
	SYS_pidfd_send_signal,
	SYS_setpgid,
	SYS_setsid,
	SYS_prctl,
	SYS_arch_prctl,
	SYS_set_tid_address,
	SYS_set_robust_list,
	SYS_rseq,
	SYS_ptrace,
	SYS_getpid,
	SYS_gettid,
	SYS_getppid,
	SYS_getpgid,
	SYS_getpgrp,
	SYS_getsid,
	SYS_getuid,
	SYS_geteuid,
	SYS_getgid,
	SYS_getegid,
	SYS_getresuid,
	SYS_getresgid,
	SYS_getgroups,
	SYS_setuid,
	SYS_setgid,
	SYS_setreuid,
	SYS_setregid,
	SYS_setresuid,
	SYS_setresgid,
	SYS_setfsuid,
	SYS_setfsgid,
	SYS_setgroups,
	SYS_capget,
	SYS_capset,
	SYS_getrlimit,
	SYS_setrlimit,
	SYS_prlimit64,
	SYS_getrusage,
	SYS_getpriority,
	SYS_setpriority,
	SYS_ioprio_get,
	SYS_ioprio_set,
	SYS_sched_setparam,
	SYS_sched_getparam,
	SYS_sched_setscheduler,
	SYS_sched_getscheduler,
	SYS_sched_get_priority_max,
	SYS_sched_get_priority_min,
	SYS_sched_rr_get_interval,
	SYS_sched_setaffinity,
	SYS_sched_getaffinity,
	SYS_sched_setattr,
	SYS_sched_getattr,
	SYS_getcpu,
	SYS_get_robust_list,
	SYS_set_thread_area,
	SYS_get_thread_area,
	SYS_modify_ldt,
	SYS_personality,
	SYS_seccomp,
	SYS_unshare,
	SYS_setns,
	SYS_kcmp,
	SYS_pidfd_getfd,
	SYS_landlock_create_ruleset,
	SYS_landlock_add_rule,
	SYS_landlock_restrict_self,
};

#define CLASS(name, desc)                                                      \
	{                                                                      \
		"syscalls-" #name, desc, name, ARRAY_SIZE(name)                \
	}
static const struct {
	const char *name, *desc;
	const short *call;
	size_t nr;
} classes[] = {
	CLASS(io, "system calls that read and write, by any descriptor"),
	CLASS(file, "system calls that open, find and change files"),
	CLASS(memory, "system calls for memory: mmap, brk, madvise"),
	CLASS(network, "system calls of sockets, but for read and write"),
	CLASS(wait, "system calls that wait: poll, futex, sleep, wait"),
	CLASS(process, "system calls for processes, threads, signals, users"),
	/* Without a list: what none of the others has. */
	{"syscalls-other", "system calls of no other class: clocks and such",
	 NULL, 0},
};

_Static_assert(ARRAY_SIZE(classes) == PMU_CALL_CLASSES,
	       "event.h says how many there are");

/* The lists have numbers below that only. */
#define MAX_CALLS  512
#define FILTER_MAX 4096 /* bytes: the kernel takes a page */

unsigned pmu_call_class(long nr)
{
	static uint8_t class_of[MAX_CALLS]; /* and 1; 0 = in no list */
	static bool is_filled;
	for (size_t c = 0; !is_filled && c < PMU_CALL_CLASSES; c++)
		for (size_t i = 0; i < classes[c].nr; i++)
			class_of[classes[c].call[i]] = (uint8_t)(c + 1);
	is_filled = true;
	return nr >= 0 && nr < MAX_CALLS && class_of[nr] ? class_of[nr] - 1u
							 : PMU_CALL_CLASSES - 1;
}

bool pmu_counts_call(const struct pmu_event *ev, enum pmu_call_abi abi, long nr)
{
	static short of_i386[MAX_CALLS]; /* number + 2; 0 = not asked yet */
	if (ev->call_plus_1)
		return abi == PMU_CALL_NATIVE && nr == ev->call_plus_1 - 1;
	if (abi == PMU_CALL_I386 && (nr < 0 || nr >= MAX_CALLS)) {
		nr = -1;
	} else if (abi == PMU_CALL_I386) {
		if (!of_i386[nr])
			of_i386[nr] = (short)(syscall_of_i386((int)nr) + 2);
		nr = of_i386[nr] - 2;
	}
	return ev->call_classes & 1u << pmu_call_class(nr);
}

struct run {
	int first, last; /* both are in it */
};

static void mark_calls(size_t class, bool is_in[MAX_CALLS])
{
	for (size_t i = 0; i < classes[class].nr; i++)
		if (classes[class].call[i] < MAX_CALLS)
			is_in[classes[class].call[i]] = true;
}

/*
 * What is beyond the lists is the last class's, too: a program may call by any
 * number. Room for @run: MAX_CALLS.
 */
static size_t runs_of(size_t class, struct run *run)
{
	bool is_in[MAX_CALLS] = {0}, is_rest = !classes[class].call;
	size_t nr = 0;
	for (size_t i = 0; i < ARRAY_SIZE(classes); i++)
		if (is_rest || i == class)
			mark_calls(i, is_in);
	for (int i = 0; i < MAX_CALLS; i++) {
		if (is_in[i] == is_rest)
			continue;
		if (!i || is_in[i - 1] == is_rest)
			run[nr++].first = i;
		run[nr - 1].last = i;
	}
	if (is_rest) {
		run[nr - 1].last = INT_MAX;
		memmove(run + 1, run, nr++ * sizeof(*run));
		run[0] = (struct run){INT_MIN, -1};
	}
	return nr;
}

/*
 * Halved again and again, so that a call is compared some ten times, whatever
 * the number of runs: this is done at each system call of the program. The
 * length, as snprintf would tell it.
 */
static size_t put_runs(char *buf, size_t size, const struct run *run, size_t nr)
{
	size_t at = 0, half = nr / 2;
	int n;
	if (nr == 1 && run->first == run->last) {
		n = snprintf(buf, size, "id==%d", run->first);
		return (size_t)n;
	}
	if (nr == 1) {
		n = snprintf(buf, size, "id>=%d&&id<=%d", run->first,
			     run->last);
		return (size_t)n;
	}
#define ROOM (at < size ? size - at : 0)
#define HERE (buf + (at < size ? at : size))
	at += (size_t)snprintf(HERE, ROOM, "(id<%d&&(", run[half].first);
	at += put_runs(HERE, ROOM, run, half);
	at += (size_t)snprintf(HERE, ROOM, "))||(id>=%d&&(", run[half].first);
	at += put_runs(HERE, ROOM, run + half, nr - half);
	at += (size_t)snprintf(HERE, ROOM, "))");
#undef ROOM
#undef HERE
	return at;
}

static const char *filter_of(size_t class)
{
	static char filter[ARRAY_SIZE(classes)][FILTER_MAX];
	struct run run[MAX_CALLS];
	char *text = filter[class];
	if (!*text &&
	    put_runs(text, FILTER_MAX, run, runs_of(class, run)) >= FILTER_MAX)
		*text = '\0';
	return text;
}

const char *syscall_class_name(size_t i, const char **desc_ret)
{
	if (i >= ARRAY_SIZE(classes))
		return NULL;
	*desc_ret = classes[i].desc;
	return classes[i].name;
}

int syscall_class_parse(const char *name, struct pmu_event *ret,
			struct smco_err *err)
{
	uint64_t id;
	for (size_t i = 0; i < ARRAY_SIZE(classes); i++) {
		if (strcmp(name, classes[i].name) != 0)
			continue;
		int rc = tracefs_id("raw_syscalls", "sys_enter", &id, err);
		if (rc)
			return rc;
		ret->attr.type = PERF_TYPE_TRACEPOINT;
		ret->attr.config = id;
		ret->is_call_entry = true;
		ret->call_classes = 1u << i;
		ret->filter = filter_of(i);
		snprintf(ret->full, sizeof(ret->full),
			 "raw_syscalls:sys_enter of class %s", name);
		return 0;
	}
	return SMCO_NOTFOUND;
}
