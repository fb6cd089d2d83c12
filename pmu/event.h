/*
 * event.h - names of counters to what perf_event_open(2) takes. Understood:
 *
 *	task-clock, page-faults, ...	the kernel's own software counters
 *	NAME[:UMASK][:MODIFIER]...	every name libpfm4 knows, with or
 *without "PMU::" before it; "." works like ":" rHEX
 *a raw code of this CPU PMU/EVENT/, PMU/TERM=N,.../	what sysfs has:
 *msr/tsc/, power/energy-pkg/ SYSTEM:NAME			a tracepoint
 *
 * Modifiers are libpfm4's (":u", ":c=1") or perf's letters in one word: u user,
 * k kernel, h hypervisor, G guest, H host, p precise (up to three), D pinned,
 * e exclusive. Without u, k or h both levels count.
 *
 * Nothing is opened here but files of sysfs and tracefs; see open.h for
 * whether the machine has the event. Not thread-safe, because libpfm4 is not.
 */
#ifndef SMCO_PMU_EVENT_H
#define SMCO_PMU_EVENT_H

#include <linux/perf_event.h>

#include "reports/base.h"

#define PMU_NAME_MAX 160 /* bytes of an event's name, NUL included */
#define PMU_MAX_CPUS 64	 /* on which a machine-wide event is opened */
/* Kinds of system calls: each call is of exactly one (pmu_call_class). */
#define PMU_CALL_CLASSES 7

/* By whose numbers a system call is made: also in a program of 64 bits each
 * call may be one of 32. */
enum pmu_call_abi {
	PMU_CALL_NATIVE,
	PMU_CALL_I386,
	PMU_CALL_ABIS,
};

/* What an event is to those who derive something from it. */
enum pmu_role {
	PMU_OTHER,
	PMU_TASK_CLOCK, /* ns on a CPU */
	PMU_TSC,
	PMU_CYCLES,
	PMU_INSTRUCTIONS,
	PMU_BRANCHES,
	PMU_MISSES, /* of a cache, TLB or branch predictor */
	PMU_FAULTS,
	PMU_MINOR_FAULTS,
	PMU_MAJOR_FAULTS,
	PMU_SWITCHES,
	PMU_MIGRATIONS,
	PMU_NR_ROLES,
};
/* "task-clock", "misses", ...; as the trace has it. */
const char *pmu_role_name(enum pmu_role role);

struct pmu_event {
	char name[PMU_NAME_MAX]; /* as it was asked for */
	char full[PMU_NAME_MAX]; /* with everything that was filled in */
	struct perf_event_attr attr;
	enum pmu_role role;
	/* The count times this is in @unit; 1 and "" for plain events, 1 and
	 * "ns" for clocks, 2.3e-10 and "Joules" for energy. */
	double scale;
	char unit[16];
	/* Happens when a system call begins, and nowhere else. */
	bool is_call_entry;
	/* Of one that counts such of some classes, whatever else they are: bit
	 * pmu_call_class for each; 0 = other events. */
	uint32_t call_classes;
	/* The only one that it counts, of native ones; 0 = it is not so, or
	 * which that is is not known, as of those that are newer than us. */
	int call_plus_1;
	/* Somebody else counts them: counter_tally_events, counter_tally_hits.
	 * As the sum of what columns: counter_plan_tally. */
	bool is_tallied;
	uint32_t columns;
	bool is_hit; /* then: of a tracepoint that is no call's */
	/* Belongs to the machine, not to a thread: opened on these CPUs. */
	bool is_machine_wide;
	uint16_t cpu[PMU_MAX_CPUS];
	size_t nr_cpus;
	/* Counted by the kernel itself: there always, never multiplexed. */
	bool is_software;
	/* Of a tracepoint: which of its events count, as the kernel's filters
	 * are written; pmu_set_filter. NULL = all; never freed. */
	const char *filter;
	/* The same, but where the kernel does not take it all count: leaves out
	 * what it does for our BPF programs in whatever runs at the moment. */
	const char *not_ours;
	/* Not 0: it is counted together with those of the same number, or not
	 * at all; @is_weak: or each by itself. pmu_event_parse_list */
	unsigned group;
	bool is_weak;
	/* Nobody has asked for it: a group in braces takes it in, too. With
	 * @is_with_creator it stands with those that a new thread's creator
	 * counts for it (counter_plan_inherit), in the first group, where
	 * other hidden ones are in none of them, or nowhere. */
	bool is_hidden, is_with_creator;
	/* One of a set: left out where it is not here. */
	bool is_optional;
	/* Not "": it is known, but not here, and why. Only in a list;
	 * pmu_try says so. */
	char absent[300];
};

/*
 * SMCO_NOTFOUND: no such event; the message has the names nearest to it.
 * SMCO_UNSUPPORTED: other machines have it, as another model of CPU.
 * SMCO_PERM: whether there is such a tracepoint may not be looked up.
 * SMCO_FORMAT: the event is there, but not that unit mask or modifier, and the
 * message has those that are; or the text is no event at all. *ret is
 * untouched on failure.
 */
int pmu_event_parse(const char *name, struct pmu_event *ret,
		    struct smco_err *err);

/*
 * A list as on the command line: commas between events, but not inside
 * "PMU/.../". At least one, at most PMU_MAX_EVENTS, each once. What
 * pmu_event_parse calls unsupported or not permitted is in it, too (absent).
 * "{A,B}" is a group, as perf has it; modifiers behind it, "{A,B}:u", are added
 * to those of each event; D and e are the group's as a whole, and its first
 * event's alone; W: weak. An event may be in several groups. "os" is a set:
 * what the operating system does for the program (switches, faults, system
 * calls, block and network requests; is_optional). What is in it and named
 * besides is there once. The array is the caller's to free().
 */
#define PMU_MAX_EVENTS 64
int pmu_event_parse_list(const char *list, struct pmu_event **ret,
			 size_t *nr_ret, struct smco_err *err);

/* The class of system call @nr, which may be any number: one that nobody knows
 * is of the last. Below PMU_CALL_CLASSES. */
unsigned pmu_call_class(long nr);
/* Does @ev, of which that is known, count call @nr? Those of 32 bits are of the
 * class of what they do. */
bool pmu_counts_call(const struct pmu_event *ev, enum pmu_call_abi abi,
		     long nr);

/*
 * Below what the sysfs and tracefs files lie: "" and the real ones as a rule,
 * tests have their own. The string is kept, not copied.
 */
void pmu_set_root(const char *root);

#endif
