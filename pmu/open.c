#include "pmu/open.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pmu/event-private.h"

int pmu_open(const struct perf_event_attr *attr, pid_t pid, int cpu,
	     int group_fd)
{
	return (int)syscall(SYS_perf_event_open, attr, pid, cpu, group_fd,
			    PERF_FLAG_FD_CLOEXEC);
}

int pmu_set_filter(int fd, const struct pmu_event *ev)
{
	if (ev->not_ours)
		ioctl(fd, PERF_EVENT_IOC_SET_FILTER, ev->not_ours);
	return ev->filter ? ioctl(fd, PERF_EVENT_IOC_SET_FILTER, ev->filter)
			  : 0;
}

static bool read_int(const char *path, int *ret)
{
	char text[32];
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	*ret = atoi(text);
	return true;
}

int pmu_paranoid(void)
{
	int v;
	return read_int("/proc/sys/kernel/perf_event_paranoid", &v) ? v
								    : INT_MIN;
}

static bool is_virtual(void)
{
	unsigned a = 1, b, c = 0, d;
	__asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
	return c >> 31 & 1;
}

/* Counted by the CPU's own counters? */
static bool is_core(const struct pmu_event *ev)
{
	return ev->attr.type == PERF_TYPE_HARDWARE ||
	       ev->attr.type == PERF_TYPE_HW_CACHE ||
	       ev->attr.type == PERF_TYPE_RAW;
}

static int explain_missing(const struct pmu_event *ev, struct smco_err *err)
{
	if (is_core(ev) && !sysfs_has_pmu("cpu"))
		return smco_fail(
			err, SMCO_UNSUPPORTED, 0,
			"'%.60s' needs hardware counters, and there are none: "
			"%s",
			ev->name,
			is_virtual()
				? "this virtual machine has no PMU (its host "
				  "can give it one)"
				: "the kernel knows none of this CPU");
	return smco_fail(err, SMCO_UNSUPPORTED, 0,
			 "'%.60s' cannot be counted by this CPU and kernel",
			 ev->name);
}

static int explain_permission(const struct pmu_event *ev, struct smco_err *err)
{
	int paranoid = pmu_paranoid();
	int want = ev->attr.type == PERF_TYPE_TRACEPOINT ? -1
		   : ev->is_machine_wide		 ? 0
		   : ev->attr.exclude_kernel		 ? 2
							 : 1;
	if (paranoid > want && geteuid() != 0)
		return smco_fail(err, SMCO_PERM, 0,
				 "'%.60s' may not be counted: "
				 "kernel.perf_event_paranoid is %d; run as "
				 "root, or: sysctl kernel.perf_event_paranoid="
				 "%d",
				 ev->name, paranoid, want);
	return smco_fail(err, SMCO_PERM, 0,
			 "'%.60s' may not be counted here (a container's "
			 "seccomp filter, or the kernel is locked down); "
			 "CAP_PERFMON is needed",
			 ev->name);
}

static int explain_busy(const struct pmu_event *ev, struct smco_err *err)
{
	int watchdog = 0;
	read_int("/proc/sys/kernel/nmi_watchdog", &watchdog);
	return smco_fail(err, SMCO_BUSY, 0, "'%.60s': its counter is in use%s",
			 ev->name,
			 watchdog ? " (one is the NMI watchdog's: sysctl "
				    "kernel.nmi_watchdog=0)"
				  : " by another tool");
}

int pmu_explain(const struct pmu_event *ev, int sys_errno, struct smco_err *err)
{
	struct rlimit limit = {0};
	switch (sys_errno) {
	case ESRCH:
		return smco_fail(err, SMCO_GONE, 0, "the thread has ended");
	case ENOENT:
	case ENODEV:
	case ENXIO:
	case EOPNOTSUPP:
		return explain_missing(ev, err);
	case EACCES:
	case EPERM:
		return explain_permission(ev, err);
	case EBUSY:
		return explain_busy(ev, err);
	case ENOSYS:
		return smco_fail(err, SMCO_UNSUPPORTED, 0,
				 "'%.60s': this kernel has no performance "
				 "events, or a seccomp filter hides them",
				 ev->name);
	case EMFILE:
		getrlimit(RLIMIT_NOFILE, &limit);
		return smco_fail(err, SMCO_SYS, 0,
				 "'%.60s': no file descriptor is left (at most "
				 "%ju: ulimit -n)",
				 ev->name, (uintmax_t)limit.rlim_cur);
	case EINVAL:
		return smco_fail(err, SMCO_UNSUPPORTED, 0,
				 "'%.60s': the kernel refuses this "
				 "combination of event and modifiers",
				 ev->name);
	default:
		return smco_fail(err, SMCO_SYS, sys_errno, "'%.60s'", ev->name);
	}
}

/* What happens in the kernel only would be counted as never. */
static bool says_something_for_user(const struct pmu_event *ev)
{
	if (ev->attr.type == PERF_TYPE_TRACEPOINT)
		return false;
	return ev->role != PMU_SWITCHES && ev->role != PMU_MIGRATIONS;
}

static int try_once(const struct pmu_event *ev)
{
	struct perf_event_attr attr = ev->attr;
	attr.disabled = 1;
	bool wide = ev->is_machine_wide;
	int cpu = wide && ev->nr_cpus ? ev->cpu[0] : wide ? 0 : -1;
	int fd = pmu_open(&attr, wide ? -1 : 0, cpu, -1);
	int e = errno;
	if (fd < 0)
		return e;
	e = pmu_set_filter(fd, ev) ? errno : 0;
	close(fd);
	return e;
}

int pmu_try(struct pmu_event *ev, struct smco_err *err)
{
	if (ev->absent[0])
		return smco_fail(err, SMCO_UNSUPPORTED, 0, "%s", ev->absent);
	int e = try_once(ev);
	if ((e == EACCES || e == EPERM) && !ev->attr.exclude_kernel &&
	    !ev->attr.exclude_user && !ev->is_machine_wide &&
	    says_something_for_user(ev)) {
		struct pmu_event user = *ev;
		user.attr.exclude_kernel = 1;
		user.attr.exclude_hv = 1;
		if (!try_once(&user)) {
			*ev = user;
			return 0;
		}
	}
	return e ? pmu_explain(ev, e, err) : 0;
}
