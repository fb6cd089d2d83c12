/* The rules of --fail-on: what is one, and when it is crossed. */
#include "t/unit/tap.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "reports/diff-rule.h"
#include "t/unit/diff-sample.h"
#include "t/unit/scratch.h"

static const char *path;
static struct diff d;

static void bad(const char *text, const char *why)
{
	struct diff_rules rules = {0};
	struct smco_err err = {0};
	int rc = diff_rules_add(&rules, text, &err);
	if (!check_msg(rc == SMCO_FORMAT && strstr(err.msg, why) &&
			       !strchr(err.msg, '\n'),
		       "'%s' is none: %s", text, why))
		printf("# %d: %s\n", rc, err.msg);
	diff_rules_free(&rules);
}

static void amount(const char *text, enum rule_mode mode, double want)
{
	struct diff_rules rules = {0};
	struct smco_err err = {0};
	if (check_msg(!diff_rules_add(&rules, text, &err), "%s: %s", text,
		      err.msg)) {
		check_int(rules.rule[0].mode, mode);
		check_range(rules.rule[0].amount, want - 1e-9, want + 1e-9);
	}
	diff_rules_free(&rules);
}

static void grammar(void)
{
	bad("", "no ''");
	bad("nap", "there is no 'nap'");
	bad("nap.byte_seconds > 1", "nap.bytes_seconds");
	bad("site.overhead > 1", "there is no");
	bad("sites.same > 1", "there is no");
	bad("sites. > 1", "there is no");
	bad("nap.longest", "wants one of");
	bad("nap.longest = 3s", "wants one of");
	bad("nap.longest > ", "not a time");
	bad("nap.longest > 3MB", "not a time");
	bad("nap.longest > 3s 4", "not a time");
	bad("nap.unused_bytes > +3s", "not a size");
	bad("nap.unused_bytes > 10%", "of what?");
	bad("nap.unused_bytes > +x%", "not a percentage");
	bad("nap.unused_bytes > +-1K", "not a size");
	bad("alloc.count > 1e999", "not a number");
	bad("alloc.count > 0x10", "not a number");
	bad("alloc.count > nan", "not a number");
	bad("sites.new > +1", "no sign");
	bad("alloc.count > 3s", "not a number");
	bad("counter.x > 3x", "not a number");
	bad("overhead > 5pp", "not a number");
	bad("overhead > +5x", "not a number");
	bad("nap.longest >\x1b[31m 1", "?[31m");

	amount("nap.bytes_seconds>+10%", RULE_SHARE, 0.1);
	amount(" nap.bytes_seconds  >=  -2.5% ", RULE_SHARE, -0.025);
	amount("nap.bytes_seconds > 1G", RULE_VALUE, 1 << 30);
	amount("nap.unused_bytes < -1.5MiB", RULE_CHANGE, -1.5 * (1 << 20));
	amount("site.nap.longest <= +500ms", RULE_CHANGE, 5e8);
	amount("duration > 2m", RULE_VALUE, 120e9);
	amount("alloc.count > 1e3", RULE_VALUE, 1000);
	amount("counter.task-clock > 1.5s", RULE_VALUE, 1.5e9);
	amount("counter.task-clock > +100ms", RULE_CHANGE, 1e8);
	amount("counter.task-clock > 1000", RULE_VALUE, 1000);
	amount("overhead > 12%", RULE_VALUE, 12e7);
	amount("overhead > 12", RULE_VALUE, 12e7);
	amount("overhead > +2pp", RULE_CHANGE, 2e7);
	amount("overhead > +20%", RULE_SHARE, 0.2);
	amount("sites.new > 0", RULE_VALUE, 0);
}

static void expect(const char *text, bool crossed, const char *outcome)
{
	struct diff_rules rules = {0};
	char buf[512];
	check_int(diff_rules_add(&rules, text, NULL), 0);
	bool got = diff_rules_apply(&rules, &d);
	diff_rule_outcome(&rules.rule[0], true, buf, sizeof(buf));
	if (!check_msg(got == crossed && strstr(buf, outcome), "%s: %s", text,
		       outcome))
		printf("# %s\n", buf);
	diff_rules_free(&rules);
}

static void add(int side, unsigned ms, unsigned steady_ms)
{
	struct sample_site site[] = {
		{.stack = "f@a.c:1", .size = 1 << 20, .naps = 1, .nap_ms = ms},
		{.stack = "g@a.c:2",
		 .size = 1 << 20,
		 .naps = 4,
		 .nap_ms = steady_ms},
	};
	sample_session_write(path,
			     &(struct sample_session){.site = site, .nr = 2});
	if (diff_add_run(&d, side, path, NULL))
		abort();
}

static void compare(void)
{
	struct diff_config config = {.least_change = 0.05};
	check_int(diff_compare(&d, &config, NULL), 0);
}

static void single(void)
{
	add(DIFF_BASE, 4000, 5000); /* 24 MiB*s in all */
	add(DIFF_NEW, 8000, 5000);  /* 28 */
	compare();
	expect("nap.bytes_seconds > +10%", true, "crossed: ");
	expect("nap.bytes_seconds > +10%", true, ": +16.7 %");
	expect("nap.bytes_seconds > +17%", false, "kept: ");
	expect("nap.bytes_seconds > +4M", false, "+4 MiB*s");
	expect("nap.bytes_seconds >= +4M", true, "+4 MiB*s");
	expect("nap.bytes_seconds < 28M", false, "28 MiB*s");
	expect("nap.bytes_seconds <= 28M", true, "28 MiB*s");
	expect("nap.bytes_seconds < -1%", false, "+16.7 %");
	expect("site.nap.bytes_seconds > +50%", true, "+100 % at f");
	expect("site.nap.bytes_seconds > 10M", true, "20 MiB*s at g");
	expect("site.nap.longest < 5s", false, "5 s at g");
	expect("sites.grown > 0", true, "1");
	expect("sites.new > 0", false, "0");
	expect("alloc.count > +0", false, "+0");
	expect("overhead > 5%", false, "1.01 %");
	expect("overhead > 1%", true, "1.01 %");
	struct diff_rules two = {0};
	check_int(diff_rules_add(&two, "sites.grown > 0", NULL), 0);
	check_int(diff_rules_add(&two, "sites.new > 0", NULL), 0);
	check(diff_rules_apply(&two, &d));
	check(two.rule[0].is_crossed && !two.rule[1].is_crossed);
	diff_rules_free(&two);
	diff_deinit(&d);
}

/* A mean that moved by chance crosses nothing. */
static void repeated(void)
{
	for (unsigned i = 0; i < 4; i++) {
		add(DIFF_BASE, 4000 + 3000 * (i % 2), 5000);
		add(DIFF_NEW, 5000 + 4000 * (i % 2), 5000);
	}
	compare();
	check_range(diff_relative(&d.change[0].measure[DIFF_BYTE_SECONDS]),
		    0.05, 0.06);
	expect("nap.bytes_seconds > +2%", false, "kept: ");
	expect("nap.bytes_seconds > 20M", true, "27 MiB*s");
	diff_deinit(&d);
	for (unsigned i = 0; i < 4; i++) {
		add(DIFF_BASE, 4000 + 100 * (i % 2), 5000);
		add(DIFF_NEW, 8000 + 100 * (i % 2), 5000);
	}
	compare();
	expect("nap.bytes_seconds > +2%", true, "+16.6 %");
	diff_deinit(&d);
}

static void counters(void)
{
	for (uint64_t i = 0; i < 2; i++) {
		sample_session_write(
			path,
			&(struct sample_session){
				.instructions = 1000000000 + 200000000 * i});
		if (diff_add_run(&d, (int)i, path, NULL))
			abort();
	}
	compare();
	check_int(d.nr_by_verdict[DIFF_COUNTER][VERDICT_GROWN], 1);
	check_int(d.nr_by_verdict[DIFF_COUNTER][VERDICT_SAME], 1);
	check_str(d.change[1].item[DIFF_NEW]->name, "instructions");
	check_str(d.change[2].item[DIFF_NEW]->name, "task-clock (ns)");
	expect("counter.instructions > +5%", true, "+20 %");
	expect("counter.instructions > +20%", false, "+20 %");
	expect("counter.instructions > 1.1e9", true, "1 200 000 000");
	expect("counter.task-clock > +5%", false, "+0 %");
	expect("counter.task-clock > 900ms", true, "900ms: 1 s");
	expect("counter.task-clock > +1ms", false, "+1ms: +0 ns");
	expect("counter.task > 1", false, "unknown");
	expect("counter.cycles > 1", false, "unknown");
	expect("sites.grown > 0", false, "0");
	diff_deinit(&d);
}

/* What @text is about is in all runs, or why it is not. */
static void checked(const char *text, const char *why)
{
	struct diff_rules rules = {0};
	struct smco_err err = {0};
	check_int(diff_rules_add(&rules, text, NULL), 0);
	int rc = diff_rules_check(&rules, &d, &err);
	if (!check_msg(rc == (why ? SMCO_NOTFOUND : 0) &&
			       (!why || strstr(err.msg, why)),
		       "%s: %s", text, why ? why : "can be told"))
		printf("# %d: %s\n", rc, err.msg);
	diff_rules_free(&rules);
}

static void add_session(int side, const struct sample_session *s)
{
	sample_session_write(path, s);
	if (diff_add_run(&d, side, path, NULL))
		abort();
}

/* A rule about what was not looked for would be kept for ever. */
static void without(void)
{
	const struct sample_variable i = {.name = "f::i", .file = "a.c"};
	const struct sample_session naps = {.instructions = 1000,
					    .variable = &i,
					    .nr_variables = 1},
				    counters = {.instructions = 1000,
						.switches = 3,
						.monitors = "counters"};
	add_session(DIFF_BASE, &naps);
	add_session(DIFF_NEW, &naps);
	checked("nap.bytes_seconds > 0", NULL);
	checked("sites.new > 0", NULL);
	checked("mistakes.new > 0", NULL);
	checked("variables.grown > 0", NULL);
	checked("counter.instructions > 0", NULL);
	checked("counter.task-clock > 0", NULL);
	checked("counter.task > 0", "does not count task but instructions, "
				    "task-clock (ns)");
	checked("counter.task-clock > 1s", NULL);
	checked("counter.instructions > 1s",
		"does not count time as instructions but");
	checked("phase.mean > 0", "has no phases");
	checked("phases.new > 0", "has no phases");
	add_session(DIFF_NEW, &counters);
	checked("counter.instructions > 0", NULL);
	checked("counter.context-switches > 0",
		"does not count context-switches but instructions");
	checked("nap.bytes_seconds > +10%", "made without smco-trace -m nap");
	checked("site.alloc.count > 0", "without smco-trace -m nap");
	checked("sites.new > 0", "without smco-trace -m nap");
	checked("mistakes.new > 0", "has no variables");
	checked("variables.new > 0", "has no variables");
	checked("duration > 1s", NULL);
	checked("overhead > 5%", NULL);
	d.side[DIFF_NEW].run[1].nr_damaged = 1;
	checked("sites.new > 0", NULL);
	diff_deinit(&d);
}

static void unknown(void)
{
	add(DIFF_BASE, 1000, 1000);
	add(DIFF_NEW, 1000, 1000);
	d.side[DIFF_NEW].run[0].item[0].value[DIFF_OVERHEAD] = NAN;
	compare();
	expect("overhead > +1pp", false, "unknown");
	diff_deinit(&d);
}

int main(void)
{
	path = scratch_path("x.trace");
	grammar();
	single();
	repeated();
	counters();
	without();
	unknown();
	return tap_done();
}
