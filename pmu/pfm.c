/* The only file that knows libpfm4. */
#include <perfmon/pfmlib_perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmu/event-private.h"

static bool is_ready(void)
{
	static int state; /* 0 = not tried */
	if (!state)
		state = pfm_initialize() == PFM_SUCCESS ? 1 : -1;
	return state > 0;
}

static bool get_pmu(int i, pfm_pmu_info_t *ret)
{
	*ret = (pfm_pmu_info_t){.size = sizeof(*ret)};
	return pfm_get_pmu_info((pfm_pmu_t)i, ret) == PFM_SUCCESS;
}

static bool get_event(int i, pfm_event_info_t *ret)
{
	*ret = (pfm_event_info_t){.size = sizeof(*ret)};
	return pfm_get_event_info(i, PFM_OS_PERF_EVENT_EXT, ret) == PFM_SUCCESS;
}

static bool get_mask(int event, int i, pfm_event_attr_info_t *ret)
{
	*ret = (pfm_event_attr_info_t){.size = sizeof(*ret)};
	return pfm_get_event_attr_info(event, i, PFM_OS_PERF_EVENT_EXT, ret) ==
	       PFM_SUCCESS;
}

/* Of what event @idx takes the nearest to the first word of @words, which
 * begins with ":" or ".", that it does not take. */
static size_t list_nearest(int idx, int nr, const char *words, char *buf,
			   size_t size)
{
	char word[96], list[160];
	bool takes = true;
	struct nearest n = {.nr = 0};
	while (takes && *words) {
		size_t len = strcspn(++words, ":.=");
		snprintf(word, sizeof(word), "%.*s", (int)len, words);
		nearest_init(&n, word);
		takes = false;
		for (int i = 0; i < nr; i++) {
			pfm_event_attr_info_t a;
			if (!get_mask(idx, i, &a))
				continue;
			takes |= !strcasecmp(a.name, word);
			nearest_offer(&n, a.name);
		}
		words += strcspn(words, ":.");
	}
	if (takes || !*nearest_list(&n, list, sizeof(list)))
		return 0;
	return (size_t)snprintf(buf, size, "; nearest: %s", list);
}

/* "; nearest: a, b; it takes :a :b :c" of the event before the first ":" or
 * "." of @name. */
static void list_attributes(const char *name, char *buf, size_t size)
{
	char event[128];
	const char *pmu_end = strstr(name, "::");
	const char *rest = pmu_end ? pmu_end + 2 : name;
	size_t len = (size_t)(rest - name) + strcspn(rest, ":.");
	pfm_event_info_t info;
	size_t used = 0;

	buf[0] = '\0';
	snprintf(event, sizeof(event), "%.*s", (int)len, name);
	int idx = pfm_find_event(event);
	if (idx < 0 || !get_event(idx, &info))
		return;
	used = list_nearest(idx, info.nattrs, name + len, buf, size);
	const char *before = "; it takes ";
	for (int i = 0; i < info.nattrs && used < size; i++) {
		pfm_event_attr_info_t a;
		if (!get_mask(idx, i, &a))
			continue;
		const char *value = a.type == PFM_ATTR_MOD_INTEGER ? "=N" : "";
		used += (size_t)snprintf(buf + used, size - used, "%s:%s%s",
					 before, a.name, value);
		before = " ";
	}
}

int pfm_encode(const char *name, void *attr, size_t attr_size, char *full,
	       size_t full_size, struct smco_err *err)
{
	struct perf_event_attr pa = {0};
	char *text = NULL, takes[240];
	pfm_perf_encode_arg_t arg = {
		.attr = &pa,
		.fstr = &text,
		.size = sizeof(arg),
	};
	if (!is_ready())
		return smco_fail(err, SMCO_NOTFOUND, 0,
				 "libpfm4 cannot be used");
	int rc = pfm_get_os_event_encoding(name, PFM_PLM0 | PFM_PLM3,
					   PFM_OS_PERF_EVENT_EXT, &arg);
	if (rc == PFM_ERR_NOTFOUND || rc == PFM_ERR_NOTSUPP ||
	    rc == PFM_ERR_NOINIT)
		return smco_fail(err, SMCO_NOTFOUND, 0, "no such event");
	if (rc != PFM_SUCCESS) {
		list_attributes(name, takes, sizeof(takes));
		return smco_fail(err, SMCO_FORMAT, 0, "%s%s", pfm_strerror(rc),
				 takes);
	}
	/* On x86 nothing counts there; whether libpfm4 excludes it depends on
	 * the CPU that it runs on, and some drivers refuse to. */
	pa.exclude_hv = 0;
	/* The structure only ever grows at its end. */
	memset(attr, 0, attr_size);
	memcpy(attr, &pa, attr_size < sizeof(pa) ? attr_size : sizeof(pa));
	snprintf(full, full_size, "%s", text ? text : name);
	free(text);
	return 0;
}

static bool each_mask(const pfm_event_info_t *info, int idx, const char *pmu,
		      const char *event, pfm_each_fn *each, void *ctx)
{
	char name[192], desc[512];
	for (int i = 0; i < info->nattrs; i++) {
		pfm_event_attr_info_t a;
		if (!get_mask(idx, i, &a) || a.type != PFM_ATTR_UMASK)
			continue;
		snprintf(name, sizeof(name), "%s:%s", event, a.name);
		snprintf(desc, sizeof(desc), "%s: %s", info->desc, a.desc);
		if (!each(ctx, pmu, name, desc))
			return false;
	}
	return true;
}

static bool has_masks(const pfm_event_info_t *info, int idx)
{
	for (int i = 0; i < info->nattrs; i++) {
		pfm_event_attr_info_t a;
		if (get_mask(idx, i, &a) && a.type == PFM_ATTR_UMASK)
			return true;
	}
	return false;
}

static bool each_of_pmu(const pfm_pmu_info_t *pmu, bool with_masks,
			pfm_each_fn *each, void *ctx)
{
	/* perf's generic events go by their bare names. */
	bool is_perf = !strcmp(pmu->name, "perf");
	for (int i = pmu->first_event; i != -1; i = pfm_get_event_next(i)) {
		pfm_event_info_t info;
		char name[128];
		if (!get_event(i, &info))
			continue;
		snprintf(name, sizeof(name), "%s%s%s", is_perf ? "" : pmu->name,
			 is_perf ? "" : "::", info.name);
		if (with_masks && !is_perf && has_masks(&info, i)) {
			if (!each_mask(&info, i, pmu->name, name, each, ctx))
				return false;
		} else if (!each(ctx, pmu->name, name, info.desc)) {
			return false;
		}
	}
	return true;
}

void pfm_for_each_absent(bool with_masks, pfm_each_fn *each, void *ctx)
{
	if (!is_ready())
		return;
	for (int i = 0; i < PFM_PMU_MAX; i++) {
		pfm_pmu_info_t info;
		if (!get_pmu(i, &info) || info.is_present ||
		    !strcmp(info.name, "perf_raw"))
			continue;
		if (!each_of_pmu(&info, with_masks, each, ctx))
			return;
	}
}

void pfm_for_each_pmu(void (*each)(void *ctx, const char *pmu), void *ctx)
{
	if (!is_ready())
		return;
	for (int i = 0; i < PFM_PMU_MAX; i++) {
		pfm_pmu_info_t info;
		if (get_pmu(i, &info) && strcmp(info.name, "perf_raw") != 0)
			each(ctx, info.name);
	}
}

static bool find_pmu(const char *name, pfm_pmu_info_t *ret)
{
	for (int i = 0; is_ready() && i < PFM_PMU_MAX; i++)
		if (get_pmu(i, ret) && !strcmp(ret->name, name))
			return true;
	return false;
}

bool pfm_takes(const char *pmu, const char *event, const char *word, size_t len)
{
	pfm_pmu_info_t p;
	pfm_event_info_t info;
	if (!find_pmu(pmu, &p))
		return false;
	/* pfm_find_event() knows those of PMUs that are here only. */
	int idx = p.first_event;
	while (idx != -1 &&
	       (!get_event(idx, &info) || strcmp(info.name, event) != 0))
		idx = pfm_get_event_next(idx);
	for (int i = 0; idx != -1 && i < info.nattrs; i++) {
		pfm_event_attr_info_t a;
		if (get_mask(idx, i, &a) && strlen(a.name) == len &&
		    !strncasecmp(a.name, word, len))
			return true;
	}
	return false;
}

void pfm_for_each(const char *pmu, bool with_masks, pfm_each_fn *each,
		  void *ctx)
{
	if (!is_ready())
		return;
	for (int i = 0; i < PFM_PMU_MAX; i++) {
		pfm_pmu_info_t info;
		if (!get_pmu(i, &info) || !strcmp(info.name, "perf_raw"))
			continue;
		if (pmu ? strcmp(info.name, pmu) != 0 : !info.is_present)
			continue;
		if (!each_of_pmu(&info, with_masks, each, ctx))
			return;
	}
}
