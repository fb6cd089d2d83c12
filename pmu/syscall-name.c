/* Numbers of system calls, as those call them who name or make them. */
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmu/event-private.h"

/* The kernel has functions of older names for some calls, and names its
 * tracepoints as them. */
static const struct {
	const char *function, *call;
} renamed[] = {
	{"newstat", "stat"},	    {"newfstat", "fstat"},
	{"newlstat", "lstat"},	    {"newuname", "uname"},
	{"sendfile64", "sendfile"}, {"umount", "umount2"},
};

static int number(const char *name)
{
	int nr = seccomp_syscall_resolve_name_arch(SCMP_ARCH_X86_64, name);
	return nr >= 0 ? nr : -1; /* below: another architecture's */
}

int syscall_number(const char *function)
{
	for (size_t i = 0; i < ARRAY_SIZE(renamed); i++)
		if (!strcmp(function, renamed[i].function))
			return number(renamed[i].call);
	return number(function);
}

/* "fstat64", "mmap2", "clock_gettime64", "futex_time64", ... do what those
 * without do here. */
static const char *const wider[] = {"_time64", "64", "32", "2"};

int syscall_of_i386(int nr)
{
	_cleanup_free_ char *name =
		seccomp_syscall_resolve_num_arch(SCMP_ARCH_X86, nr);
	int ret = name ? number(name) : -1;
	for (size_t i = 0; name && ret < 0 && i < ARRAY_SIZE(wider); i++) {
		char shorter[64];
		size_t len = strlen(name), cut = strlen(wider[i]);
		if (len <= cut || strcmp(name + len - cut, wider[i]) != 0)
			continue;
		snprintf(shorter, sizeof(shorter), "%.*s", (int)(len - cut),
			 name);
		ret = number(shorter);
	}
	return ret;
}
