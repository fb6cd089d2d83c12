#include "pmu/list.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmu/event-private.h"
#include "pmu/open.h"

struct listing {
	char glob[PMU_NAME_MAX + 2];
	char colons[PMU_NAME_MAX + 2]; /* the same with ":" for "." */
	void (*each)(void *ctx, const struct pmu_listed *l);
	void *ctx;
	size_t nr;
	char **names; /* tracepoints, to be sorted */
	size_t nr_names, cap_names;
	char system[64]; /* the last one that was tried */
	bool system_is_here;
	struct smco_err system_why;
};

static bool matches(const struct listing *l, const char *name)
{
	return !fnmatch(l->glob, name, FNM_CASEFOLD) ||
	       !fnmatch(l->colons, name, FNM_CASEFOLD);
}

static void give(struct listing *l, struct pmu_listed *item)
{
	l->nr++;
	l->each(l->ctx, item);
}

static void try_and_give(struct listing *l, const char *name, const char *kind,
			 const char *desc)
{
	struct pmu_event ev;
	struct smco_err why = {0};
	int rc = pmu_event_parse(name, &ev, &why);
	if (!rc)
		rc = pmu_try(&ev, &why);
	give(l, &(struct pmu_listed){.name = name,
				     .kind = kind,
				     .desc = desc,
				     .is_here = !rc,
				     .why = &why});
}

/* Also without the name of its PMU, as it may be called where that is here. */
static bool matches_bare(const struct listing *l, const char *name)
{
	const char *bare = strstr(name, "::");
	return matches(l, name) || (bare && matches(l, bare + 2));
}

static bool on_sysfs(void *ctx, const char *name)
{
	struct listing *l = ctx;
	char kind[64];
	snprintf(kind, sizeof(kind), "%.*s", (int)strcspn(name, "/"), name);
	if (matches(l, name))
		try_and_give(l, name, kind, sysfs_describe(name));
	return true;
}

static bool on_pfm(void *ctx, const char *pmu, const char *name,
		   const char *desc)
{
	struct listing *l = ctx;
	bool is_perf = !strcmp(pmu, "perf");
	if (!matches_bare(l, name))
		return true;
	/* Those that the kernel counts itself were listed by our own table. */
	struct pmu_event ev;
	if (is_perf && (pmu_event_parse(name, &ev, NULL) ||
			ev.attr.type == PERF_TYPE_SOFTWARE))
		return true;
	try_and_give(l, name, is_perf ? "generic" : pmu, desc);
	return true;
}

/* Of a CPU that this machine has not; its name may be without its PMU. */
static bool on_absent(void *ctx, const char *pmu, const char *name,
		      const char *desc)
{
	struct listing *l = ctx;
	struct smco_err why = {0};
	if (!matches_bare(l, name))
		return true;
	smco_fail(&why, SMCO_UNSUPPORTED, 0,
		  "these are events of other CPUs than this one");
	give(l, &(struct pmu_listed){
			.name = name, .kind = pmu, .desc = desc, .why = &why});
	return true;
}

static bool on_tracepoint(void *ctx, const char *name)
{
	struct listing *l = ctx;
	if (!matches(l, name))
		return true;
	if (l->nr_names == l->cap_names) {
		size_t cap = l->cap_names ? l->cap_names * 2 : 256;
		char **more = reallocarray(l->names, cap, sizeof(*more));
		if (!more)
			return false;
		l->names = more;
		l->cap_names = cap;
	}
	char *copy = strdup(name);
	if (!copy)
		return false;
	l->names[l->nr_names++] = copy;
	return true;
}

static int compare_names(const void *va, const void *vb)
{
	char *const *a = va, *const *b = vb;
	return strcmp(*a, *b);
}

static void list_tracepoint(struct listing *l, const char *name)
{
	struct pmu_event ev;
	char system[64], fields[200];
	snprintf(system, sizeof(system), "%.*s", (int)strcspn(name, ":"), name);
	/* Only root may have it, whoever may have the others. */
	bool is_special = !strcmp(name, "ftrace:function");
	if (is_special)
		snprintf(system, sizeof(system), "%s", name);
	if (strcmp(system, l->system) != 0) {
		snprintf(l->system, sizeof(l->system), "%s", system);
		l->system_why = (struct smco_err){0};
		l->system_is_here =
			!pmu_event_parse(name, &ev, &l->system_why) &&
			!pmu_try(&ev, &l->system_why);
	}
	give(l, &(struct pmu_listed){
			.name = name,
			.kind = "tracepoint",
			.desc = tracefs_fields(name, fields, sizeof(fields)),
			.is_here = l->system_is_here,
			.why = &l->system_why});
}

static void give_no_tracepoints(struct listing *l, const struct smco_err *why)
{
	give(l, &(struct pmu_listed){.name = "SYSTEM:NAME",
				     .kind = "tracepoint",
				     .desc = "tracepoints",
				     .why = why});
}

/* *why_ret says why none of them is known, if so. */
static void list_tracepoints(struct listing *l, struct smco_err *why_ret)
{
	if (tracefs_for_each(on_tracepoint, l, why_ret)) {
		if (matches(l, "SYSTEM:NAME"))
			give_no_tracepoints(l, why_ret);
		return;
	}
	if (l->nr_names)
		qsort(l->names, l->nr_names, sizeof(*l->names), compare_names);
	for (size_t i = 0; i < l->nr_names; i++) {
		list_tracepoint(l, l->names[i]);
		free(l->names[i]);
	}
	free(l->names);
}

size_t pmu_list(const char *glob,
		void (*each)(void *ctx, const struct pmu_listed *l), void *ctx)
{
	struct listing l = {.each = each, .ctx = ctx};
	const char *text = glob && *glob ? glob : "*";
	const char *class, *desc;
	bool is_pattern = strpbrk(text, "*?[") != NULL;
	snprintf(l.glob, sizeof(l.glob), is_pattern ? "%.*s" : "*%.*s*",
		 PMU_NAME_MAX - 1, text);
	snprintf(l.colons, sizeof(l.colons), "%s", l.glob);
	for (char *p = l.colons; (p = strchr(p, '.')); p++)
		*p = ':';
	for (const struct software_event *s = software_events; s->name; s++)
		if (matches(&l, s->name))
			try_and_give(&l, s->name, "software", s->desc);
	for (size_t i = 0; (class = syscall_class_name(i, &desc)); i++)
		if (matches(&l, class))
			try_and_give(&l, class, "system calls", desc);
	sysfs_for_each(on_sysfs, &l);
	const char *sep = strstr(text, "::");
	char pmu[64];
	snprintf(pmu, sizeof(pmu), "%.*s",
		 sep && sep - text < 63 ? (int)(sep - text) : 0, text);
	pfm_for_each(*pmu ? pmu : NULL, true, on_pfm, &l);
	struct smco_err why = {0};
	list_tracepoints(&l, &why);
	if (!l.nr && !*pmu)
		pfm_for_each_absent(true, on_absent, &l);
	/* Who asks for one and finds nothing has to hear of that. */
	if (!l.nr && why.code && strchr(text, ':') && !strstr(text, "::"))
		give_no_tracepoints(&l, &why);
	return l.nr;
}
