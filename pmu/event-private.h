/*
 * event-private.h - what the files behind event.h share. The parts that know
 * libpfm4 cannot include <linux/perf_event.h>, of which it has its own.
 */
#ifndef SMCO_PMU_EVENT_PRIVATE_H
#define SMCO_PMU_EVENT_PRIVATE_H

#include "reports/base.h"
#include "pmu/nearest.h"

struct perf_event_attr;
struct pmu_event;

/* ---- pfm.c: libpfm4 ---- */

/*
 * Fill the first @attr_size bytes of a perf_event_attr and the full name.
 * SMCO_NOTFOUND: no such event. SMCO_FORMAT: it does not take what follows; the
 * message says what it takes.
 */
int pfm_encode(const char *name, void *attr, size_t attr_size, char *full,
	       size_t full_size, struct smco_err *err);
/* Every event and every unit mask of the PMUs that this machine has, or of
 * @pmu ("skl") only. @name is what can be typed; until @each returns false. */
typedef bool pfm_each_fn(void *ctx, const char *pmu, const char *name,
			 const char *desc);
void pfm_for_each(const char *pmu, bool with_masks, pfm_each_fn *each,
		  void *ctx);

/* The same of all that it has not. */
void pfm_for_each_absent(bool with_masks, pfm_each_fn *each, void *ctx);

/* Is @word, of @len bytes, a unit mask or modifier of @event, which is one of
 * @pmu's? */
bool pfm_takes(const char *pmu, const char *event, const char *word,
	       size_t len);
/* The names of all PMUs that are known, here or not. */
void pfm_for_each_pmu(void (*each)(void *ctx, const char *pmu), void *ctx);

/* ---- elsewhere.c: right, but of other machines ---- */

/* Is @name, which is not known here, known on other machines? Then @why begins
 * with it and says where. */
bool event_is_elsewhere(const char *name, char *why, size_t size);
/* What an event of a PMU of the kernel's is, "msr/tsc/"; "" if that is not
 * known. */
const char *sysfs_describe(const char *name);

/* ---- sysfs.c: PMU/.../ ---- */

int sysfs_parse(const char *name, size_t len, struct pmu_event *ret,
		struct smco_err *err);
typedef bool sysfs_each_fn(void *ctx, const char *name);
void sysfs_for_each(sysfs_each_fn *each, void *ctx);
/* Is there such a directory among the kernel's PMUs? */
bool sysfs_has_pmu(const char *pmu);
const char *pmu_root(void);

/* ---- tracefs.c: tracepoints ---- */

/* Are there tracepoints of @sys, as far as may be looked up? */
bool tracefs_has(const char *sys);
/* The number of tracepoint @sys:@name. SMCO_NOTFOUND, or SMCO_PERM and
 * SMCO_UNSUPPORTED where tracefs cannot be read at all. */
int tracefs_id(const char *sys, const char *name, uint64_t *id_ret,
	       struct smco_err *err);
typedef bool tracefs_each_fn(void *ctx, const char *name);
int tracefs_for_each(tracefs_each_fn *each, void *ctx, struct smco_err *err);
/* What a tracepoint's records have, "prev_comm, prev_pid, ..."; "" if that may
 * not be read. Returns @buf. */
const char *tracefs_fields(const char *name, char *buf, size_t size);

/* ---- syscall-class.c: system calls of one kind ---- */

/* "syscalls-io" and the like: SMCO_NOTFOUND if @name is none; errors of
 * tracefs_id. */
int syscall_class_parse(const char *name, struct pmu_event *ret,
			struct smco_err *err);
/* The @i-th's name and what it is; NULL behind the last. */
const char *syscall_class_name(size_t i, const char **desc_ret);

/* ---- syscall-name.c ---- */

/* The number of the call that tracepoint syscalls:sys_enter_@function is hit
 * by; -1: not known. */
int syscall_number(const char *function);
/* The number of the call of 64 bits that does what @nr of i386 does; -1: there
 * is none, or it is not known. */
int syscall_of_i386(int nr);

/* ---- event.c ---- */

/* perf's letters; false if one is unknown, and nothing is changed then. */
bool event_apply_letters(const char *letters, struct perf_event_attr *attr);

struct software_event {
	const char *name;
	const char *alias; /* or NULL */
	uint32_t config;
	int role; /* enum pmu_role */
	const char *desc;
};
/* Ends with a NULL name. */
extern const struct software_event software_events[];

#endif
