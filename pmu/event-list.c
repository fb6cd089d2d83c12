/* Lists of events, some of them in groups. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmu/event-private.h"
#include "pmu/event.h"
#include "reports/quantity.h"

/* The end of the first event of @list: a comma or brace, but not one between
 * slashes. */
static size_t event_len(const char *list)
{
	bool in_terms = false;
	size_t i;
	for (i = 0; list[i] && (in_terms || !strchr(",{}", list[i])); i++)
		if (list[i] == '/')
			in_terms = !in_terms;
	return i;
}

static void set_absent(struct pmu_event *ret, const char *name,
		       const struct smco_err *why)
{
	*ret = (struct pmu_event){.scale = 1};
	snprintf(ret->name, sizeof(ret->name), "%.159s", name);
	snprintf(ret->full, sizeof(ret->full), "%.159s", name);
	snprintf(ret->absent, sizeof(ret->absent), "%.299s", why->msg);
}

/* What is a right name, but not one of this machine or not for us, pmu_try
 * refuses. */
static int parse_or_absent(const char *name, struct pmu_event *ret,
			   struct smco_err *err)
{
	struct smco_err why = {0};
	int rc = pmu_event_parse(name, ret, &why);
	if (rc == SMCO_UNSUPPORTED || rc == SMCO_PERM) {
		set_absent(ret, name, &why);
		return 0;
	}
	if (rc && err)
		*err = why;
	return rc;
}

struct list {
	struct pmu_event *event; /* PMU_MAX_EVENTS */
	size_t nr;
	unsigned nr_groups;
};

/* What the operating system does for the program. */
static const char *const os_set[] = {
	"task-clock",	     "context-switches",
	"cpu-migrations",    "minor-faults",
	"major-faults",	     "raw_syscalls:sys_enter",
	"syscalls-io",	     "syscalls-file",
	"syscalls-memory",   "syscalls-network",
	"syscalls-wait",     "syscalls-process",
	"syscalls-other",    "block:block_rq_issue",
	"net:net_dev_queue", "net:netif_receive_skb",
};

static struct pmu_event *find(const struct list *l, const char *name,
			      unsigned group)
{
	for (size_t i = 0; i < l->nr; i++)
		if (l->event[i].group == group &&
		    !strcmp(l->event[i].name, name))
			return &l->event[i];
	return NULL;
}

static int too_many(struct smco_err *err)
{
	return smco_fail(err, SMCO_FORMAT, 0, "more than %d events",
			 PMU_MAX_EVENTS);
}

/* What of it is not known, as its directory may not be read or the kernel was
 * built without, is absent. */
static int take_set(struct list *l, unsigned group, struct smco_err *err)
{
	if (group)
		return smco_fail(err, SMCO_FORMAT, 0,
				 "'os' is a set of events, each of which is "
				 "counted by itself, and stands in no group");
	for (size_t i = 0; i < ARRAY_SIZE(os_set); i++) {
		struct smco_err why = {0};
		if (find(l, os_set[i], 0))
			continue;
		if (l->nr == PMU_MAX_EVENTS)
			return too_many(err);
		struct pmu_event *ev = &l->event[l->nr++];
		int rc = parse_or_absent(os_set[i], ev, &why);
		if (rc)
			set_absent(ev, os_set[i], &why);
		ev->is_optional = true;
	}
	return 0;
}

static int take_named(struct list *l, const char *name, unsigned group,
		      struct smco_err *err)
{
	struct pmu_event *twice = find(l, name, group);
	if (twice && twice->is_optional) {
		twice->is_optional = false;
		return 0;
	}
	if (l->nr == PMU_MAX_EVENTS)
		return too_many(err);
	int rc = parse_or_absent(name, &l->event[l->nr], err);
	if (rc)
		return rc;
	if (twice)
		return smco_fail(err, SMCO_FORMAT, 0,
				 "event '%.60s' is there twice%s", name,
				 group ? " in one group" : "");
	l->event[l->nr++].group = group;
	return 0;
}

/* One event, or a set of them, at *p, which is moved behind it. */
static int take_event(struct list *l, const char **p, unsigned group,
		      struct smco_err *err)
{
	char name[PMU_NAME_MAX + 1];
	size_t len = event_len(*p);
	snprintf(name, sizeof(name), "%.*s",
		 (int)(len < PMU_NAME_MAX ? len : PMU_NAME_MAX), *p);
	int rc = strcmp(name, "os") ? take_named(l, name, group, err)
				    : take_set(l, group, err);
	if (!rc)
		*p += len;
	return rc;
}

/* The kernel has only the leader pin or shut out. */
static int check_member(const struct pmu_event *ev, struct smco_err *err)
{
	if (!ev->attr.pinned && !ev->attr.exclusive)
		return 0;
	return smco_fail(err, SMCO_FORMAT, 0,
			 "event '%.60s': of a group only the first, or the "
			 "group as a whole, can have the modifiers D and e",
			 ev->name);
}

static void append(char *to, size_t size, const char *letters)
{
	size_t len = strlen(to);
	snprintf(to + len, size - len, ":%s", letters);
}

/* As perf does: what an event has of its own it keeps. */
static void add_letters(struct pmu_event *ev, const char *letters,
			const struct perf_event_attr *more)
{
	struct perf_event_attr *a = &ev->attr;
	struct perf_event_attr old = *a;
	bool levels =
		more->exclude_user || more->exclude_kernel || more->exclude_hv;
	if (ev->absent[0])
		return;
	event_apply_letters(letters, a);
	if (levels &&
	    (old.exclude_user || old.exclude_kernel || old.exclude_hv)) {
		a->exclude_user &= old.exclude_user;
		a->exclude_kernel &= old.exclude_kernel;
		a->exclude_hv &= old.exclude_hv;
	}
	if ((more->exclude_guest || more->exclude_host) &&
	    (old.exclude_guest || old.exclude_host)) {
		a->exclude_guest &= old.exclude_guest;
		a->exclude_host &= old.exclude_host;
	}
	if (old.precise_ip > a->precise_ip)
		a->precise_ip = old.precise_ip;
	append(ev->name, sizeof(ev->name), letters);
	append(ev->full, sizeof(ev->full), letters);
}

static int bad_letters(const char *text, struct smco_err *err)
{
	char quote[48];
	quantity_quote(text, quote, sizeof(quote));
	return smco_fail(err, SMCO_FORMAT, 0,
			 "unknown modifier '%s' of a group; there are u, k, h, "
			 "G, H, p, D, e, W",
			 quote);
}

/* "uW" behind a group of the events from @first on. */
static int apply_to_group(struct list *l, size_t first, const char *text,
			  struct smco_err *err)
{
	char letters[20], each[20];
	struct perf_event_attr all = {0};
	size_t nr = 0, nr_each = 0;
	bool weak = false;
	for (size_t i = 0; text[i] && nr < sizeof(letters) - 1; i++) {
		weak |= text[i] == 'W';
		if (text[i] != 'W')
			letters[nr++] = text[i];
		if (!strchr("WDe", text[i]))
			each[nr_each++] = text[i];
	}
	letters[nr] = each[nr_each] = '\0';
	if (!*text || strlen(text) >= sizeof(letters) ||
	    !event_apply_letters(letters, &all))
		return bad_letters(text, err);
	for (size_t i = first; i < l->nr; i++) {
		const char *s = i == first ? letters : each;
		l->event[i].is_weak = weak;
		if (*s)
			add_letters(&l->event[i], s, &all);
		if (strlen(l->event[i].name) + 1 == PMU_NAME_MAX)
			return smco_fail(err, SMCO_FORMAT, 0,
					 "event '%.40s...' is too long",
					 l->event[i].name);
	}
	return 0;
}

/* "{A,B}:u" at *p, which is moved behind it. */
static int take_group(struct list *l, const char **p, struct smco_err *err)
{
	size_t first = l->nr;
	char text[PMU_NAME_MAX];
	unsigned group = ++l->nr_groups;
	do {
		++*p;
		int rc = **p == '{' ? smco_fail(err, SMCO_FORMAT, 0,
						"a group in a group of events")
				    : take_event(l, p, group, err);
		if (!rc && l->nr > first + 1)
			rc = check_member(&l->event[l->nr - 1], err);
		if (rc)
			return rc;
	} while (**p == ',');
	if (**p != '}')
		return smco_fail(err, SMCO_FORMAT, 0,
				 "a group of events begins with '{' and ends "
				 "with no '}'");
	++*p;
	if (**p != ':')
		return 0;
	++*p;
	size_t len = event_len(*p);
	snprintf(text, sizeof(text), "%.*s",
		 (int)(len < sizeof(text) ? len : sizeof(text) - 1), *p);
	*p += len;
	return apply_to_group(l, first, text, err);
}

int pmu_event_parse_list(const char *list, struct pmu_event **ret,
			 size_t *nr_ret, struct smco_err *err)
{
	_cleanup_free_ struct pmu_event *all =
		calloc(PMU_MAX_EVENTS, sizeof(*all));
	struct list l = {.event = all};
	if (!all)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	for (const char *p = list;; p++) {
		int rc = *p == '{' ? take_group(&l, &p, err)
				   : take_event(&l, &p, 0, err);
		if (rc)
			return rc;
		if (!*p)
			break;
		if (*p != ',')
			return smco_fail(err, SMCO_FORMAT, 0,
					 "'%c' behind an event or group: "
					 "commas stand between them, braces "
					 "around a group of them",
					 *p > ' ' && *p <= '~' ? *p : '?');
	}
	*ret = all;
	all = NULL;
	*nr_ret = l.nr;
	return 0;
}
