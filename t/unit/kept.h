/*
 * kept.h - what the kernel keeps of each thread by itself, as /proc has it.
 */
#ifndef T_UNIT_KEPT_H
#define T_UNIT_KEPT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/base.h"
#include "t/unit/puppet.h"
#include "t/unit/tap.h"

/* As long as it does, nothing changes. */
static inline void kept_let_sleep(pid_t pid)
{
	while (puppet_state(pid) != 'S')
		;
}

static inline uint64_t kept_number(const char *text, const char *key)
{
	const char *p = strstr(text, key);
	return p ? strtoull(p + strlen(key), NULL, 10) : 0;
}

/* /proc/PID/task/PID/@name */
static inline void kept_read(pid_t pid, const char *name, char *text,
			     size_t size)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)pid,
		 name);
	check(smco_slurp(path, text, size) > 0);
}

static inline uint64_t kept_switches(pid_t pid)
{
	char text[4096] = "";
	kept_read(pid, "status", text, sizeof(text));
	return kept_number(text, "\nvoluntary_ctxt_switches:") +
	       kept_number(text, "\nnonvoluntary_ctxt_switches:");
}

struct kept_faults {
	long minor, major;
};

static inline struct kept_faults kept_faults(pid_t pid)
{
	struct kept_faults ret = {0};
	char text[1024] = "";
	kept_read(pid, "stat", text, sizeof(text));
	check_int(sscanf(strrchr(text, ')'),
			 ") %*c %*d %*d %*d %*d %*d %*u %ld %*u %ld",
			 &ret.minor, &ret.major),
		  2);
	return ret;
}

#endif
