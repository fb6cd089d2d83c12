/*
 * What the kernel says of its PMUs: type numbers, terms and the bits they fill,
 * named events, which CPUs a machine-wide one is counted on.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pmu/event-private.h"
#include "pmu/event.h"

#define DEVICES "/sys/bus/event_source/devices"

static const char *root = "";

void pmu_set_root(const char *path)
{
	root = path;
}

const char *pmu_root(void)
{
	return root;
}

/* A small file's first line. */
static bool read_line(const char *pmu, const char *file, char *buf, size_t size)
{
	char path[512];
	snprintf(path, sizeof(path), "%s" DEVICES "/%s/%s", root, pmu, file);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);
	if (n <= 0)
		return false;
	buf[n] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return true;
}

static bool is_file_name(const char *s)
{
	return *s && *s != '.' && !strchr(s, '/');
}

bool sysfs_has_pmu(const char *pmu)
{
	char text[32];
	return is_file_name(pmu) && read_line(pmu, "type", text, sizeof(text));
}

/* Put @value's bits where "config1:0-7,32-35" says, low ones first. */
static bool place_bits(const char *format, uint64_t value,
		       struct perf_event_attr *attr)
{
	uint64_t word = 0, whole = value;
	const char *p = strchr(format, ':');
	unsigned taken = 0;
	if (!p)
		return false;
	do {
		char *end;
		unsigned long lo = strtoul(p + 1, &end, 10), hi = lo;
		if (end == p + 1)
			return false;
		if (*end == '-')
			hi = strtoul(end + 1, &end, 10);
		if (hi > 63 || lo > hi)
			return false;
		for (unsigned long bit = lo; bit <= hi && taken < 64;
		     bit++, taken++) {
			word |= (value & 1) << bit;
			value >>= 1;
		}
		p = end;
	} while (*p == ',');
	if (value && whole)
		return false; /* more than there is room for */
	size_t len = strcspn(format, ":");
	if (len == 6 && !memcmp(format, "config", 6))
		attr->config |= word;
	else if (len == 7 && !memcmp(format, "config1", 7))
		attr->config1 |= word;
	else if (len == 7 && !memcmp(format, "config2", 7))
		attr->config2 |= word;
	else
		return false;
	return true;
}

/* The entries of a PMU's directory @sub as one line; false: none there. */
static bool list_dir(const char *pmu, const char *sub, char *buf, size_t size)
{
	char path[512];
	size_t len = 0;
	struct dirent *e;
	snprintf(path, sizeof(path), "%s" DEVICES "/%s/%s", root, pmu, sub);
	DIR *dir = opendir(path);
	if (!dir)
		return false;
	while ((e = readdir(dir)) && len < size)
		if (e->d_name[0] != '.' && !strchr(e->d_name, '.'))
			len += (size_t)snprintf(buf + len, size - len, "%s%s",
						len ? ", " : "", e->d_name);
	closedir(dir);
	return len > 0;
}

/* "event", "event=2", "umask=0x10" */
static int take_term(const char *pmu, const char *term, struct pmu_event *ev,
		     struct smco_err *err)
{
	char name[64], file[96], format[128], known[160];
	size_t len = strcspn(term, "=");
	uint64_t value = 1;
	snprintf(name, sizeof(name), "%.*s", (int)len, term);
	if (term[len]) {
		char *end;
		errno = 0;
		value = strtoull(term + len + 1, &end, 0);
		if (errno || *end || end == term + len + 1)
			return smco_fail(err, SMCO_FORMAT, 0,
					 "'%.40s' is not a number",
					 term + len + 1);
	}
	if (!strncmp(name, "config", 6) && (!name[6] || !name[7])) {
		if (!name[6])
			ev->attr.config = value;
		else if (name[6] == '1')
			ev->attr.config1 = value;
		else
			ev->attr.config2 = value;
		return 0;
	}
	snprintf(file, sizeof(file), "format/%s", name);
	if (!is_file_name(name) ||
	    !read_line(pmu, file, format, sizeof(format))) {
		if (!list_dir(pmu, "format", known, sizeof(known)))
			snprintf(known, sizeof(known), "config");
		return smco_fail(err, SMCO_FORMAT, 0,
				 "%s has no term '%.40s'; it has %s", pmu, name,
				 known);
	}
	if (!place_bits(format, value, &ev->attr))
		return smco_fail(err, SMCO_FORMAT, 0,
				 "%.40s: %#jx does not fit into %s", name,
				 (uintmax_t)value, format);
	return 0;
}

static int take_terms(const char *pmu, char *terms, struct pmu_event *ev,
		      struct smco_err *err)
{
	char *save;
	for (char *t = strtok_r(terms, ",", &save); t;
	     t = strtok_r(NULL, ",", &save)) {
		int rc = take_term(pmu, t, ev, err);
		if (rc)
			return rc;
	}
	return 0;
}

/* A named event of the PMU: its terms, unit and scale. */
static int take_named(const char *pmu, const char *event, struct pmu_event *ev,
		      bool *found_ret, struct smco_err *err)
{
	char file[128], terms[256], text[64];
	snprintf(file, sizeof(file), "events/%s", event);
	*found_ret = is_file_name(event) &&
		     read_line(pmu, file, terms, sizeof(terms));
	if (!*found_ret)
		return 0;
	snprintf(file, sizeof(file), "events/%s.scale", event);
	if (read_line(pmu, file, text, sizeof(text))) {
		double scale = strtod(text, NULL);
		if (scale > 0)
			ev->scale = scale;
	}
	snprintf(file, sizeof(file), "events/%s.unit", event);
	if (read_line(pmu, file, text, sizeof(text)))
		snprintf(ev->unit, sizeof(ev->unit), "%.15s", text);
	return take_terms(pmu, terms, ev, err);
}

/* "0,18", "0-3": a PMU with such a file does not count for a thread. */
static void take_cpus(const char *pmu, struct pmu_event *ev)
{
	char text[256];
	if (!read_line(pmu, "cpumask", text, sizeof(text)))
		return;
	ev->is_machine_wide = true;
	for (char *p = text; *p;) {
		char *end;
		unsigned long lo = strtoul(p, &end, 10), hi = lo;
		if (end == p)
			break;
		if (*end == '-')
			hi = strtoul(end + 1, &end, 10);
		for (;
		     lo <= hi && lo <= UINT16_MAX && ev->nr_cpus < PMU_MAX_CPUS;
		     lo++)
			ev->cpu[ev->nr_cpus++] = (uint16_t)lo;
		p = *end == ',' ? end + 1 : end;
		if (*end && *end != ',')
			break;
	}
}

int sysfs_parse(const char *name, size_t len, struct pmu_event *ret,
		struct smco_err *err)
{
	char copy[PMU_NAME_MAX], type[32];
	snprintf(copy, sizeof(copy), "%.*s", (int)len, name);
	char *slash = strchr(copy, '/');
	*slash = '\0';
	char *event = slash + 1;
	size_t event_len = strlen(event);
	if (!event_len || event[event_len - 1] != '/')
		return smco_fail(err, SMCO_FORMAT, 0, "it must end with a /");
	event[event_len - 1] = '\0';
	if (!is_file_name(copy) ||
	    !read_line(copy, "type", type, sizeof(type))) {
		char known[160] = "none";
		list_dir("", ".", known, sizeof(known));
		return smco_fail(err, SMCO_NOTFOUND, 0,
				 "the kernel has no PMU '%.40s'; it has %s",
				 copy, known);
	}
	ret->attr.type = (uint32_t)strtoul(type, NULL, 10);
	take_cpus(copy, ret);
	bool found;
	int rc = take_named(copy, event, ret, &found, err);
	if (rc || found)
		return rc;
	char terms[PMU_NAME_MAX], known[160];
	memcpy(terms, event, strlen(event) + 1);
	if (strchr(terms, '=') || !*terms)
		return take_terms(copy, terms, ret, err);
	if (!list_dir(copy, "events", known, sizeof(known)))
		snprintf(known, sizeof(known), "no named events");
	return smco_fail(err, SMCO_NOTFOUND, 0,
			 "%s has no event '%.40s'; "
			 "it has %s",
			 copy, terms, known);
}

void sysfs_for_each(sysfs_each_fn *each, void *ctx)
{
	char path[512];
	struct dirent *p, *e;
	snprintf(path, sizeof(path), "%s" DEVICES, root);
	DIR *pmus = opendir(path);
	bool go_on = true;
	while (pmus && go_on && (p = readdir(pmus))) {
		char sub[800], name[600];
		snprintf(sub, sizeof(sub), "%s/%s/events", path, p->d_name);
		DIR *events = p->d_name[0] == '.' ? NULL : opendir(sub);
		while (events && go_on && (e = readdir(events))) {
			if (strchr(e->d_name, '.'))
				continue; /* itself, .scale, .unit */
			snprintf(name, sizeof(name), "%s/%s/", p->d_name,
				 e->d_name);
			go_on = each(ctx, name);
		}
		if (events)
			closedir(events);
	}
	if (pmus)
		closedir(pmus);
}
