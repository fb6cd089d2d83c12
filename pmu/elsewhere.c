/* Names that are right, of events that other machines have. */
#include <ctype.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

#include "pmu/event-private.h"

#define MAX_MODELS 4 /* are named, others counted */

/* What Linux calls its PMUs, and some that only some CPUs have; a name that
 * ends with "_" has more behind it. */
static const char *const pmus[] = {
	"power",    "msr",     "cpu",	     "cpu_core",   "cpu_atom",
	"cstate_",  "uncore_", "ibs_",	     "amd_",	   "intel_bts",
	"intel_pt", "i915",    "breakpoint", "tracepoint", "kprobe",
	"uprobe",   "software"};

static const struct {
	const char *name, *desc;
} events[] = {
	{"msr/aperf/", "cycles while running, at the actual frequency"},
	{"msr/mperf/", "cycles while running, at the nominal frequency"},
	{"msr/pperf/", "productive cycles while running"},
	{"msr/smi/", "system management interrupts"},
	{"msr/tsc/", "time stamp counter"},
	{"msr/irperf/", "instructions retired"},
	{"msr/ptsc/", "performance time stamp counter"},
	{"msr/cpu_thermal_margin/", "degrees below the highest temperature"},
	{"power/energy-cores/", "energy of all cores"},
	{"power/energy-pkg/", "energy of the package"},
	{"power/energy-ram/", "energy of the memory"},
	{"power/energy-gpu/", "energy of the graphics processor"},
	{"power/energy-psys/", "energy of the platform"},
	{"power/energy-core/", "energy of a core"},
};

const char *sysfs_describe(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		if (!strcmp(events[i].name, name))
			return events[i].desc;
	return "";
}

static bool is_kernels(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(pmus); i++) {
		size_t n = strlen(pmus[i]);
		if (n <= len && !memcmp(pmus[i], name, n) &&
		    (n == len || pmus[i][n - 1] == '_'))
			return true;
	}
	return false;
}

static bool sysfs_elsewhere(const char *name, char *why, size_t size)
{
	size_t len = strcspn(name, "/");
	char pmu[64];
	snprintf(pmu, sizeof(pmu), "%.*s", (int)len, name);
	if (!is_kernels(name, len))
		return false;
	if (!sysfs_has_pmu(pmu)) {
		snprintf(
			why, size,
			"'%.60s' is not here: the kernel has no PMU '%.40s' on "
			"this machine",
			name, pmu);
		return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		if (strncmp(name, events[i].name, strlen(events[i].name)) != 0)
			continue;
		snprintf(why, size,
			 "'%.60s' is not here: this CPU does not have it",
			 name);
		return true;
	}
	return false;
}

struct models {
	const char *wanted;
	bool is_full; /* with its PMU before it */
	char list[120];
	size_t nr;
};

/* "." works like ":", and case is no matter. */
static char fold(char c)
{
	return c == '.' ? ':' : (char)tolower((unsigned char)c);
}

/* Does @event of @pmu take what follows its name, ":MASK:c=1:u"? */
static bool takes_rest(const char *pmu, const char *event, const char *rest)
{
	struct perf_event_attr probe = {0};
	while (*rest) {
		const char *word = rest + 1;
		size_t len = strcspn(word, ":.=");
		rest = word + strcspn(word, ":.");
		if (pfm_takes(pmu, event, word, len))
			continue;
		/* A mask as a number, and perf's letters at the end. */
		if (strncmp(word, "0x", 2) != 0 &&
		    (*rest || !len || !event_apply_letters(word, &probe)))
			return false;
	}
	return true;
}

/* Is @wanted event @name of @pmu, perhaps with modifiers? */
static bool is_event(const char *wanted, const char *pmu, const char *name)
{
	const char *event = name;
	for (; *name; name++, wanted++)
		if (fold(*wanted) != fold(*name))
			return false;
	const char *sep = strstr(event, "::");
	return (!*wanted || fold(*wanted) == ':') &&
	       takes_rest(pmu, sep ? sep + 2 : event, wanted);
}

static bool look(void *ctx, const char *pmu, const char *name, const char *desc)
{
	struct models *m = ctx;
	const char *event = strstr(name, "::");
	(void)desc;
	if (!event || !is_event(m->wanted, pmu, m->is_full ? name : event + 2))
		return true;
	size_t len = strlen(m->list);
	if (m->nr++ < MAX_MODELS)
		snprintf(m->list + len, sizeof(m->list) - len, "%s%s",
			 len ? ", " : "", pmu);
	return true;
}

bool event_is_elsewhere(const char *name, char *why, size_t size)
{
	struct models m = {.wanted = name};
	char more[32] = "", pmu[64];
	if (strchr(name, '/'))
		return sysfs_elsewhere(name, why, size);
	const char *sep = strstr(name, "::");
	if (sep) {
		snprintf(pmu, sizeof(pmu), "%.*s", (int)(sep - name), name);
		m.is_full = true;
		pfm_for_each(pmu, false, look, &m);
	} else {
		pfm_for_each_absent(false, look, &m);
	}
	if (!m.nr)
		return false;
	if (m.nr > MAX_MODELS)
		snprintf(more, sizeof(more), " and %zu more",
			 m.nr - MAX_MODELS);
	snprintf(why, size,
		 "'%.60s' is an event of other CPUs than this one: of %s%s",
		 name, m.list, more);
	return true;
}
