/*
 * Groups of events, "{A,B}:u": what they are in a list, what they make of a
 * plan, and that hostile ones are refused.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pmu/counter.h"
#include "pmu/open.h"
#include "t/unit/tap.h"

static struct pmu_event *event;
static size_t nr;
static struct smco_err err;

static int parse(const char *list)
{
	free(event);
	event = NULL;
	nr = 0;
	err.msg[0] = '\0';
	return pmu_event_parse_list(list, &event, &nr, &err);
}

/* Their names, each with its group's number before it. */
static const char *names(void)
{
	static char text[1000];
	size_t len = 0;
	text[0] = '\0';
	for (size_t i = 0; i < nr; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"%s%u %s", i ? ", " : "",
					event[i].group, event[i].name);
	return text;
}

static void refuse(const char *list, const char *why)
{
	if (!check_int(parse(list), SMCO_FORMAT) || !strstr(err.msg, why))
		check_str(err.msg, why);
}

static void test_groups(void)
{
	check_int(parse("cs,{faults,task-clock},migrations,{cs}"), 0);
	check_str(names(), "0 cs, 1 faults, 1 task-clock, 0 migrations, 2 cs");
	check_int(parse("{faults,cs},{cs,faults},cs"), 0);
	check_str(names(), "1 faults, 1 cs, 2 cs, 2 faults, 0 cs");
	/* Slashes hide commas and braces. */
	check_int(parse("{msr/tsc/,cs}") && parse("{cs,faults}"), 0);
	check_int(parse("{cs,absent/a={1,2}/}"), SMCO_NOTFOUND);
}

static size_t nr_optional(void)
{
	size_t ret = 0;
	for (size_t i = 0; i < nr; i++)
		ret += event[i].is_optional;
	return ret;
}

/* A set among others: what is named besides is there once, and has to be. */
static void test_set(void)
{
	check_int(parse("os"), 0);
	size_t all = nr;
	check(all > 10 && nr_optional() == all);
	check_str(event[0].name, "task-clock");
	check_int(parse("os,faults,task-clock"), 0);
	check(nr == all + 1 && nr_optional() == all - 1);
	check_int(parse("task-clock,{task-clock,cs},os"), 0);
	check(nr == all + 2 && nr_optional() == all - 1);
	check_int(parse("os,os"), 0);
	check(nr == all && nr_optional() == all);
	refuse("{cs,os}", "stands in no group");
	refuse("os,faults,faults", "is there twice");
}

static void test_modifiers(void)
{
	check_int(parse("{faults,cs:k,faults:u}:u,minor-faults"), 0);
	check_str(names(),
		  "1 faults:u, 1 cs:k:u, 1 faults:u:u, 0 minor-faults");
	if (nr != 4)
		return;
	check(event[0].attr.exclude_kernel && !event[0].attr.exclude_user);
	/* As with perf what it has of its own stays. */
	check(!event[1].attr.exclude_kernel && !event[1].attr.exclude_user);
	check(event[2].attr.exclude_kernel && !event[2].attr.exclude_user);
	check(!event[3].attr.exclude_kernel && !event[3].attr.exclude_user);
	check(!event[0].is_weak);

	/* Only leaders can be pinned or exclusive. */
	check_int(parse("{faults,cs,minor-faults}:DkeW"), 0);
	check_str(names(), "1 faults:Dke, 1 cs:k, 1 minor-faults:k");
	for (size_t i = 0; i < nr; i++) {
		check_int(event[i].attr.pinned, i == 0);
		check_int(event[i].attr.exclusive, i == 0);
		check(event[i].attr.exclude_user && event[i].is_weak);
	}
	check_int(parse("{faults:D,cs},cs"), 0);
	check(nr == 3 && event[0].attr.pinned && !event[1].attr.pinned);
	check_int(parse("{r1:p,r2}:pp,{r1:ppp,r2:G}:H"), 0);
	if (nr != 4)
		return;
	check_int(event[0].attr.precise_ip, 2);
	check_int(event[2].attr.precise_ip, 3);
	check(!event[3].attr.exclude_host && !event[3].attr.exclude_guest);
	check(event[2].attr.exclude_guest && !event[2].attr.exclude_host);
}

static void test_hostile(void)
{
	char many[600] = "{", longest[PMU_NAME_MAX + 20];
	refuse("{", "is empty");
	refuse("{}", "is empty");
	refuse("{}:u", "is empty");
	refuse("{,cs}", "is empty");
	refuse("{cs,}", "is empty");
	refuse("{cs}}", "'}' behind");
	refuse("{cs},", "is empty");
	refuse("{cs", "ends with no '}'");
	refuse("{cs,faults", "ends with no '}'");
	refuse("{cs:u", "ends with no '}'");
	refuse("{cs{faults}}", "ends with no '}'");
	refuse("{{cs}}", "in a group");
	refuse("{cs,{faults}}", "in a group");
	refuse("}", "is empty");
	refuse("cs}", "'}' behind");
	refuse("cs{faults}", "'{' behind");
	refuse("{cs}faults", "'f' behind");
	refuse("{cs}{faults}", "'{' behind");
	refuse("{cs}\x1b[2J", "'?' behind");
	refuse("{cs}:", "unknown modifier ''");
	refuse("{cs}:x", "unknown modifier 'x'");
	refuse("{cs}:u:k", "unknown modifier 'u:k'");
	refuse("{cs}:\x1b[2J", "unknown modifier '?[2J'");
	refuse("{cs}:pppp", "unknown modifier 'pppp'");
	refuse("{cs}:uuuuuuuuuuuuuuuuuuuuuuuuuuuuuu", "unknown modifier");
	refuse("{cs}:u}", "'}' behind");
	refuse("{cs,cs}", "event 'cs' is there twice in one group");
	refuse("{cs,faults:D}", "only the first");
	refuse("{cs,faults:e}:u", "only the first");
	for (int i = 0; i < 500; i++)
		strcat(many, "{");
	refuse(many, "in a group");
	/* A name that is as long as it may be, and then longer. */
	snprintf(longest, sizeof(longest), "{r%0*d}", PMU_NAME_MAX, 1);
	refuse(longest, "too long");
	check_int(parse("{cs,cycels}"), SMCO_NOTFOUND);
}

/* Whatever stands between: refused, or each group's are one after the other. */
static void test_any(void)
{
	static const char *const name[] = {"cs", "faults", "minor-faults:k"};
	static const char *const between[] = {
		",", ",{", "},", "},{", "}:u,", "}:W,{", ":k,",
		"{", "}",  ",,", "}:,", ":D,{", "}:uD,", "},{{",
	};
	unsigned seed = 1, nr_taken = 0;
	for (int i = 0; i < 4000; i++) {
		char text[200];
		seed = seed * 1103515245 + 12345;
		strcpy(text, seed >> 24 & 1 ? "{" : "");
		for (unsigned j = seed >> 16 & 3; j < 4; j++) {
			seed = seed * 1103515245 + 12345;
			strcat(text, name[(seed >> 16) % 3]);
			strcat(text, between[(seed >> 20) % 14]);
		}
		strcat(text, seed >> 28 & 1 ? "task-clock}" : "task-clock");
		if (parse(text))
			continue;
		nr_taken++;
		unsigned last = 0;
		bool is_right = nr > 0;
		for (size_t k = 0; k < nr; k++) {
			is_right &= !event[k].group || event[k].group == last ||
				    event[k].group == last + 1;
			last = event[k].group > last ? event[k].group : last;
		}
		if (!is_right)
			check_str(text, names());
	}
	check_range(nr_taken, 100, 3000);
}

/* Names of what each group counts, a bar between them. */
static const char *plan_of(const char *list, bool if_available,
			   const struct counter_every *every)
{
	static char text[1000];
	struct counter_plan p;
	size_t len = 0;
	text[0] = '\0';
	if (parse(list) ||
	    counter_plan_make(event, nr, if_available, every, &p, &err))
		return err.msg;
	for (size_t g = 0; g < p.nr_groups; g++)
		for (size_t i = 0; i < p.group[g].nr; i++)
			len += (size_t)snprintf(
				text + len, sizeof(text) - len, "%s%s",
				i   ? " "
				: g ? " | "
				    : "",
				p.event[p.group[g].first + i].name);
	counter_plan_deinit(&p);
	return text;
}

#define SEVENTEEN                                                              \
	"faults,faults:u,faults:uk,cs,cs:u,cs:uk,minor-faults,minor-faults:u," \
	"minor-faults:uk,major-faults,major-faults:u,major-faults:uk,"         \
	"migrations,migrations:u,migrations:uk,alignment-faults,task-clock"

static void test_plan(void)
{
	check_str(plan_of("faults,cs,minor-faults", false, NULL),
		  "faults cs minor-faults");
	/* What stands beside a group is none of it. */
	check_str(plan_of("faults,{cs},minor-faults", false, NULL),
		  "faults minor-faults | cs");
	check_str(plan_of("{faults,cs},minor-faults,{cs,task-clock},migrations",
			  false, NULL),
		  "faults cs | minor-faults migrations | cs task-clock");
	/* Of one kind or not, with a past or not: they are together. */
	check_str(plan_of("{page-faults:k,cs,cpu-clock}:D,faults", false, NULL),
		  "page-faults:k:D cs cpu-clock | faults");
	/* What is not here is left out of its group. */
	check_str(plan_of("{cs,uncore_none/nothing/,faults}", true, NULL),
		  "cs faults");
	check(!strncmp(plan_of("{" SEVENTEEN "}", false, NULL),
		       "the group of 'faults' has more than 16", 38));
	check(strncmp(plan_of("{" SEVENTEEN "}:W", false, NULL),
		      "faults faults:u ", 16) == 0);
	check(strstr(plan_of("{" SEVENTEEN "}:W", false, NULL),
		     " alignment-faults | task-clock") != NULL);
}

static void test_not_at_once(void)
{
	struct counter_plan p;
	if (!check_int(parse("{cs,faults},{cs,faults}:W"), 0))
		return;
	event[1].is_machine_wide = event[3].is_machine_wide = true;
	event[1].cpu[0] = event[3].cpu[0] = 0;
	event[1].nr_cpus = event[3].nr_cpus = 1;
	event[1].attr.type = event[3].attr.type = PERF_TYPE_SOFTWARE;
	if (pmu_try(&event[1], &err)) {
		check_msg(geteuid() != 0, "%s", err.msg);
		return;
	}
	check_int(counter_plan_make(event, nr, false, NULL, &p, &err),
		  SMCO_FORMAT);
	check(strstr(err.msg, "stands in no group") != NULL);
	/* The weak ones are each by itself. */
	check_int(counter_plan_make(event + 2, 2, false, NULL, &p, &err), 0);
	check_int(p.nr_groups, 2);
	counter_plan_deinit(&p);
}

/* What ends intervals stands in each group, as one of the 16. */
static void test_every(void)
{
	struct counter_every every = {.nr = 100};
	check_int(pmu_event_parse("minor-faults", &every.ev, NULL), 0);
	check_str(plan_of("{faults,cs},{cs:u}:e", false, &every),
		  "faults cs minor-faults | cs:u:e minor-faults");
	char list[600] = "{" SEVENTEEN;
	strcpy(strrchr(list, ','), "}");
	check(!strncmp(plan_of(list, false, &every),
		       "the group of 'faults' has more than 15", 38));
	check(!strncmp(plan_of(list, false, NULL), "faults faults:u", 15));
}

int main(void)
{
	test_groups();
	test_set();
	test_modifiers();
	test_hostile();
	test_any();
	test_plan();
	test_not_at_once();
	test_every();
	free(event);
	return tap_done();
}
