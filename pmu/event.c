#include "pmu/event.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmu/event-private.h"

const struct software_event software_events[] = {
	{"cpu-clock", NULL, PERF_COUNT_SW_CPU_CLOCK, PMU_OTHER,
	 "time on a CPU, by the clock of that CPU"},
	{"task-clock", NULL, PERF_COUNT_SW_TASK_CLOCK, PMU_TASK_CLOCK,
	 "time on a CPU"},
	{"page-faults", "faults", PERF_COUNT_SW_PAGE_FAULTS, PMU_FAULTS,
	 "page faults of both kinds"},
	{"minor-faults", NULL, PERF_COUNT_SW_PAGE_FAULTS_MIN, PMU_MINOR_FAULTS,
	 "page faults that needed no input or output"},
	{"major-faults", NULL, PERF_COUNT_SW_PAGE_FAULTS_MAJ, PMU_MAJOR_FAULTS,
	 "page faults that waited for input"},
	{"context-switches", "cs", PERF_COUNT_SW_CONTEXT_SWITCHES, PMU_SWITCHES,
	 "how often it left a CPU"},
	{"cpu-migrations", "migrations", PERF_COUNT_SW_CPU_MIGRATIONS,
	 PMU_MIGRATIONS, "how often it went to another CPU"},
	{"alignment-faults", NULL, PERF_COUNT_SW_ALIGNMENT_FAULTS, PMU_OTHER,
	 "unaligned accesses that the kernel mended"},
	{"emulation-faults", NULL, PERF_COUNT_SW_EMULATION_FAULTS, PMU_OTHER,
	 "instructions that the kernel emulated"},
	{"cgroup-switches", NULL, PERF_COUNT_SW_CGROUP_SWITCHES, PMU_OTHER,
	 "context switches to a task of another cgroup"},
	{NULL, NULL, 0, 0, NULL},
};

const char *pmu_role_name(enum pmu_role role)
{
	static const char *const name[PMU_NR_ROLES] = {
		[PMU_OTHER] = "other",
		[PMU_TASK_CLOCK] = "task-clock",
		[PMU_TSC] = "tsc",
		[PMU_CYCLES] = "cycles",
		[PMU_INSTRUCTIONS] = "instructions",
		[PMU_BRANCHES] = "branches",
		[PMU_MISSES] = "misses",
		[PMU_FAULTS] = "faults",
		[PMU_MINOR_FAULTS] = "minor-faults",
		[PMU_MAJOR_FAULTS] = "major-faults",
		[PMU_SWITCHES] = "switches",
		[PMU_MIGRATIONS] = "migrations",
	};
	return role < PMU_NR_ROLES ? name[role] : "other";
}

/* ------------------------------------------------------------ modifiers --- */

bool event_apply_letters(const char *letters, struct perf_event_attr *attr)
{
	bool user = false, kernel = false, hv = false, guest = false,
	     host = false;
	struct perf_event_attr a = *attr;
	unsigned precise = 0;
	for (const char *p = letters; *p; p++) {
		switch (*p) {
		case 'u':
			user = true;
			break;
		case 'k':
			kernel = true;
			break;
		case 'h':
			hv = true;
			break;
		case 'G':
			guest = true;
			break;
		case 'H':
			host = true;
			break;
		case 'p':
			precise++;
			break;
		case 'D':
			a.pinned = 1;
			break;
		case 'e':
			a.exclusive = 1;
			break;
		default:
			return false;
		}
	}
	if (precise > 3)
		return false;
	if (precise)
		a.precise_ip = precise & 3;
	if (user || kernel || hv) {
		a.exclude_user = !user;
		a.exclude_kernel = !kernel;
		a.exclude_hv = !hv;
	}
	if (guest || host) {
		a.exclude_guest = !guest;
		a.exclude_host = !host;
	}
	*attr = a;
	return true;
}

/* Takes ":" and letters, or nothing. */
static int apply_tail(const char *tail, struct pmu_event *ev,
		      struct smco_err *err)
{
	if (!*tail)
		return 0;
	const char *letters = tail[0] == ':' ? tail + 1 : tail;
	if (*letters && event_apply_letters(letters, &ev->attr))
		return 0;
	return smco_fail(err, SMCO_FORMAT, 0,
			 "unknown modifier '%.40s'; there are u, k, h, G, H, "
			 "p, D, e",
			 letters);
}

/* ---------------------------------------------------------------- kinds --- */

static size_t plain_len(const char *name)
{
	return strcspn(name, ":");
}

static const struct software_event *find_software(const char *name)
{
	size_t len = plain_len(name);
	for (const struct software_event *s = software_events; s->name; s++)
		if ((!strncmp(s->name, name, len) && !s->name[len]) ||
		    (s->alias && !strncmp(s->alias, name, len) &&
		     !s->alias[len]))
			return s;
	return NULL;
}

static int parse_software(const struct software_event *s, const char *name,
			  struct pmu_event *ev, struct smco_err *err)
{
	ev->attr.type = PERF_TYPE_SOFTWARE;
	ev->attr.config = s->config;
	snprintf(ev->full, sizeof(ev->full), "%s%.60s", s->name,
		 name + plain_len(name));
	return apply_tail(name + plain_len(name), ev, err);
}

/* rHEX, but not a name like "ref" that happens to begin so. */
static bool is_raw(const char *name)
{
	size_t len = plain_len(name);
	if (name[0] != 'r' || len < 2 || len > 17)
		return false;
	for (size_t i = 1; i < len; i++)
		if (!isxdigit((unsigned char)name[i]))
			return false;
	return true;
}

static int parse_raw(const char *name, struct pmu_event *ev,
		     struct smco_err *err)
{
	ev->attr.type = PERF_TYPE_RAW;
	ev->attr.config = strtoull(name + 1, NULL, 16);
	return apply_tail(name + plain_len(name), ev, err);
}

static int parse_sysfs(const char *name, struct pmu_event *ev,
		       struct smco_err *err)
{
	size_t len = (size_t)(strrchr(name, '/') - name) + 1;
	int rc = sysfs_parse(name, len, ev, err);
	return rc ? rc : apply_tail(name + len, ev, err);
}

/* SYSTEM:NAME, perhaps with letters behind it. */
/* The memory of BPF maps is filled up by an interrupt, 96 times in a program of
 * 7200 allocations; Linux 6.4 has names in filters. */
static const char *not_ours(const char *sys, const char *event)
{
	return !strcmp(sys, "kmem") && !strcmp(event, "kmalloc")
		       ? "call_site.function != alloc_bulk"
		       : NULL;
}

static int parse_tracepoint(const char *name, struct pmu_event *ev,
			    struct smco_err *err)
{
	char sys[64], event[96];
	const char *colon = strchr(name, ':');
	if (!colon || colon == name || colon[1] == ':')
		return SMCO_NOTFOUND;
	size_t len = strcspn(colon + 1, ":");
	if ((size_t)(colon - name) >= sizeof(sys) || len >= sizeof(event))
		return SMCO_NOTFOUND;
	snprintf(sys, sizeof(sys), "%.*s", (int)(colon - name), name);
	snprintf(event, sizeof(event), "%.*s", (int)len, colon + 1);
	uint64_t id;
	int rc = tracefs_id(sys, event, &id, err);
	if (rc)
		return rc;
	ev->attr.type = PERF_TYPE_TRACEPOINT;
	ev->attr.config = id;
	ev->not_ours = not_ours(sys, event);
	bool is_any_call =
		!strcmp(sys, "raw_syscalls") && !strcmp(event, "sys_enter");
	ev->is_call_entry = is_any_call || (!strcmp(sys, "syscalls") &&
					    !strncmp(event, "sys_enter_", 10));
	ev->call_classes = is_any_call ? (1u << PMU_CALL_CLASSES) - 1 : 0;
	if (ev->is_call_entry && !is_any_call)
		ev->call_plus_1 = syscall_number(event + 10) + 1;
	return apply_tail(colon + 1 + len, ev, err);
}

/* With libpfm4's own modifiers, then with perf's letters. */
static int parse_pfm(const char *name, struct pmu_event *ev,
		     struct smco_err *err)
{
	struct smco_err first = {0};
	char head[PMU_NAME_MAX];
	int rc = pfm_encode(name, &ev->attr, sizeof(ev->attr), ev->full,
			    sizeof(ev->full), &first);
	const char *tail = strrchr(name, ':');
	if (rc == SMCO_FORMAT && tail && tail > name && tail[-1] != ':') {
		struct perf_event_attr probe = {0};
		snprintf(head, sizeof(head), "%.*s", (int)(tail - name), name);
		if (tail[1] && event_apply_letters(tail + 1, &probe) &&
		    !pfm_encode(head, &ev->attr, sizeof(ev->attr), ev->full,
				sizeof(ev->full), NULL))
			return apply_tail(tail, ev, err);
	}
	if (rc && err)
		*err = first;
	return rc;
}

/* ----------------------------------------------------------------- role --- */

static enum pmu_role generic_role(uint64_t config)
{
	switch (config) {
	case PERF_COUNT_HW_CPU_CYCLES:
		return PMU_CYCLES;
	case PERF_COUNT_HW_INSTRUCTIONS:
		return PMU_INSTRUCTIONS;
	case PERF_COUNT_HW_BRANCH_INSTRUCTIONS:
		return PMU_BRANCHES;
	case PERF_COUNT_HW_CACHE_MISSES:
	case PERF_COUNT_HW_BRANCH_MISSES:
		return PMU_MISSES;
	default:
		return PMU_OTHER;
	}
}

/* A CPU's own events, by what their full names say. */
static enum pmu_role named_role(const char *full)
{
	static const struct {
		const char *part;
		enum pmu_role role;
	} parts[] = {
		{"::UNHALTED_CORE_CYCLES", PMU_CYCLES},
		{"::CPU_CLK_UNHALTED:THREAD", PMU_CYCLES},
		{"::CPU_CLK_UNHALTED:CORE", PMU_CYCLES},
		{"::CYCLES_NOT_IN_HALT", PMU_CYCLES},
		{"::INSTRUCTION_RETIRED", PMU_INSTRUCTIONS},
		{"::INSTRUCTIONS_RETIRED", PMU_INSTRUCTIONS},
		{"::RETIRED_INSTRUCTIONS", PMU_INSTRUCTIONS},
		{"::INST_RETIRED:ANY", PMU_INSTRUCTIONS},
		{"::BR_INST_RETIRED:ALL_BRANCHES", PMU_BRANCHES},
		{"::L1D:REPLACEMENT", PMU_MISSES},
		{"MISP", PMU_MISSES},
		{"MISS", PMU_MISSES},
	};
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (strstr(full, parts[i].part))
			return parts[i].role;
	return PMU_OTHER;
}

static enum pmu_role role_of(const struct pmu_event *ev)
{
	const struct perf_event_attr *a = &ev->attr;
	switch (a->type) {
	case PERF_TYPE_SOFTWARE:
		for (const struct software_event *s = software_events; s->name;
		     s++)
			if (s->config == a->config)
				return (enum pmu_role)s->role;
		return PMU_OTHER;
	case PERF_TYPE_HARDWARE:
		return generic_role(a->config);
	case PERF_TYPE_HW_CACHE:
		return a->config >> 16 == PERF_COUNT_HW_CACHE_RESULT_MISS
			       ? PMU_MISSES
			       : PMU_OTHER;
	case PERF_TYPE_TRACEPOINT:
		return PMU_OTHER;
	default:
		if (!strncmp(ev->name, "msr/tsc/", 8))
			return PMU_TSC;
		return named_role(ev->full);
	}
}

/* ------------------------------------------------------------------ all --- */

static bool offer(void *ctx, const char *name)
{
	nearest_offer(ctx, name);
	return true;
}

static bool offer_pfm(void *ctx, const char *pmu, const char *name,
		      const char *desc)
{
	struct nearest *n = ctx;
	const char *bare = strstr(name, "::");
	(void)pmu;
	(void)desc;
	/* As it was typed, with the PMU or without. */
	nearest_offer(n, bare && !strstr(n->wanted, "::") ? bare + 2 : name);
	return true;
}

static void offer_pmu(void *ctx, const char *pmu)
{
	struct nearest *n = ctx;
	const char *last = strrchr(pmu, '_');
	struct nearest tail;
	nearest_init(&tail, n->wanted);
	if (last)
		nearest_offer(&tail, last + 1);
	/* "zen4" is how one calls amd64_fam19h_zen4. */
	if (tail.nr && strlen(last + 1) > 2)
		nearest_add(n, pmu, tail.distance[0]);
	else
		nearest_offer(n, pmu);
}

/* What was meant by an event of PMU @pmu, which libpfm4 does not know or which
 * has no such event; @list is of those that it has. */
static const char *of_pmu(const char *pmu, char *list, size_t size)
{
	char names[200];
	struct nearest n;
	if (*list)
		return list;
	nearest_init(&n, pmu);
	pfm_for_each_pmu(offer_pmu, &n);
	if (n.nr && !n.distance[0])
		snprintf(list, size, "see --list-events '%s::*'", n.name[0]);
	else if (n.nr)
		snprintf(list, size, "no PMU '%s'; nearest: %s", pmu,
			 nearest_list(&n, names, sizeof(names)));
	return list;
}

/* "nearest: a, b", or where to look. Returns @buf. */
static const char *what_is_near(const char *name, char *buf, size_t size)
{
	char pmu[64] = "", list[200];
	const char *class, *desc, *of_others = "";
	struct nearest n;
	nearest_init(&n, name);
	for (const struct software_event *s = software_events; s->name; s++)
		nearest_offer(&n, s->name);
	for (size_t i = 0; (class = syscall_class_name(i, &desc)); i++)
		nearest_offer(&n, class);
	sysfs_for_each(offer, &n);
	const char *sep = strstr(name, "::");
	size_t len = sep ? (size_t)(sep - name) : strcspn(name, ":");
	snprintf(pmu, sizeof(pmu), "%.*s", (int)(len < 63 ? len : 63), name);
	pfm_for_each(sep ? pmu : NULL, false, offer_pfm, &n);
	pfm_for_each(sep ? pmu : NULL, true, offer_pfm, &n);
	if (strchr(name, ':') && !sep)
		tracefs_for_each(offer, &n, NULL);
	if (!n.nr && !sep && !tracefs_has(pmu)) {
		pfm_for_each_absent(false, offer_pfm, &n);
		pfm_for_each_absent(true, offer_pfm, &n);
		of_others = " (of other CPUs)";
	}
	buf[0] = '\0';
	if (n.nr)
		snprintf(buf, size, "nearest: %s%s",
			 nearest_list(&n, list, sizeof(list)), of_others);
	else if (!sep && strchr(name, ':') && tracefs_has(pmu))
		snprintf(buf, size, "see --list-events '%s:*'", pmu);
	else if (sep)
		of_pmu(pmu, buf, size);
	if (!*buf)
		snprintf(buf, size, "see --list-events");
	return buf;
}

static int unknown(const char *name, const struct smco_err *why,
		   struct smco_err *err)
{
	char near[280];
	if (why->code == SMCO_PERM || why->code == SMCO_UNSUPPORTED)
		return smco_fail(err, why->code, 0,
				 "unknown event '%.60s'; %.200s", name,
				 why->msg);
	return smco_fail(err, SMCO_NOTFOUND, 0, "unknown event '%.60s'; %s",
			 name, what_is_near(name, near, sizeof(near)));
}

/* "SYS:...", SYS being one of the kernel's. */
static bool is_of_tracepoints(const char *name)
{
	char sys[64];
	size_t len = strcspn(name, ":");
	if (name[len] != ':' || len >= sizeof(sys))
		return false;
	snprintf(sys, sizeof(sys), "%.*s", (int)len, name);
	return tracefs_has(sys);
}

static int parse_any(const char *name, struct pmu_event *ev,
		     struct smco_err *err)
{
	struct smco_err why = {0};
	const struct software_event *s = find_software(name);
	if (s)
		return parse_software(s, name, ev, err);
	if (is_raw(name))
		return parse_raw(name, ev, err);
	if (strchr(name, '/'))
		return parse_sysfs(name, ev, err);
	int rc = syscall_class_parse(name, ev, err);
	if (rc != SMCO_NOTFOUND)
		return rc;
	rc = parse_tracepoint(name, ev, &why);
	if (!rc || rc == SMCO_FORMAT) {
		if (rc && err)
			*err = why;
		return rc;
	}
	/* libpfm4 has tracepoints of its own, where debugfs is mounted, and
	 * takes the second half of the name for a unit mask. */
	struct smco_err pfm = {0};
	if (rc == SMCO_NOTFOUND && is_of_tracepoints(name))
		return unknown(name, &why, err);
	rc = parse_pfm(name, ev, &pfm);
	if (rc == SMCO_NOTFOUND)
		return unknown(name, &why, err);
	if (rc && err)
		*err = pfm;
	return rc;
}

int pmu_event_parse(const char *name, struct pmu_event *ret,
		    struct smco_err *err)
{
	struct pmu_event ev = {.scale = 1};
	struct smco_err why = {0};
	if (!*name)
		return smco_fail(err, SMCO_FORMAT, 0,
				 "an event's name is empty");
	if (strlen(name) >= PMU_NAME_MAX)
		return smco_fail(err, SMCO_FORMAT, 0,
				 "event '%.40s...' is too long", name);
	for (const char *p = name; *p; p++)
		if (*p <= ' ' || *p > '~')
			return smco_fail(err, SMCO_FORMAT, 0,
					 "an event's name has no blanks or "
					 "control characters");
	int rc = parse_any(name, &ev, &why);
	char where[sizeof(ev.absent)];
	if (rc == SMCO_NOTFOUND &&
	    event_is_elsewhere(name, where, sizeof(where)))
		return smco_fail(err, SMCO_UNSUPPORTED, 0, "%s", where);
	if (rc && !strncmp(why.msg, "unknown event", 13)) {
		if (err)
			*err = why;
		return rc;
	}
	if (rc)
		return smco_fail(err, rc, 0, "event '%.60s': %.240s", name,
				 why.msg);
	snprintf(ev.name, sizeof(ev.name), "%s", name);
	if (!ev.full[0])
		snprintf(ev.full, sizeof(ev.full), "%s", name);
	ev.attr.size = sizeof(ev.attr);
	ev.role = role_of(&ev);
	ev.is_software = ev.attr.type == PERF_TYPE_SOFTWARE ||
			 ev.attr.type == PERF_TYPE_TRACEPOINT ||
			 ev.role == PMU_TSC;
	if (ev.attr.type == PERF_TYPE_SOFTWARE &&
	    ev.attr.config <= PERF_COUNT_SW_TASK_CLOCK)
		snprintf(ev.unit, sizeof(ev.unit), "ns");
	*ret = ev;
	return 0;
}
