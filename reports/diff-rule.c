#include "reports/diff-rule.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/diff-words.h"
#include "reports/quantity.h"
#include "reports/source.h"

#define PPB 1e9

void diff_rules_free(struct diff_rules *rules)
{
	free(rules->rule);
	*rules = (struct diff_rules){0};
}

/* -------------------------------------------------------------- parsing --- */

static bool find_metric(const char *name, size_t len, enum diff_kind kind,
			enum diff_metric *ret)
{
	for (size_t i = 0; i < DIFF_NR_METRICS; i++)
		if (diff_metric[i].kinds & 1u << kind &&
		    strlen(diff_metric[i].id) == len &&
		    !memcmp(diff_metric[i].id, name, len)) {
			*ret = (enum diff_metric)i;
			return true;
		}
	return false;
}

static bool find_verdict(const char *name, size_t len, enum diff_verdict *ret)
{
	for (size_t i = VERDICT_SAME + 1; i < VERDICT_NR; i++) {
		const char *known = diff_verdict_name((enum diff_verdict)i);
		if (strlen(known) == len && !memcmp(known, name, len)) {
			*ret = (enum diff_verdict)i;
			return true;
		}
	}
	return false;
}

static bool has_prefix(const char *s, size_t len, const char *prefix)
{
	size_t n = strlen(prefix);
	return len > n && !memcmp(s, prefix, n);
}

/* "sites.new": how many of a kind. */
static bool parse_counted(struct diff_rule *r, const char *s, size_t len)
{
	static const enum diff_kind kind[] = {DIFF_SITE, DIFF_PHASE,
					      DIFF_MISTAKE, DIFF_VARIABLE};
	for (size_t i = 0; i < ARRAY_SIZE(kind); i++) {
		const char *name = diff_kind_name(kind[i]);
		size_t n = strlen(name) + 1;
		if (!has_prefix(s, len, name) || len <= n || s[n - 1] != '.')
			continue;
		r->scope = RULE_COUNT;
		r->counted = kind[i];
		return find_verdict(s + n, len - n, &r->verdict);
	}
	return false;
}

static bool parse_subject(struct diff_rule *r, const char *s, size_t len)
{
	if (parse_counted(r, s, len))
		return true;
	if (has_prefix(s, len, "site.")) {
		r->scope = RULE_SITE;
		return find_metric(s + 5, len - 5, DIFF_SITE, &r->metric);
	}
	if (has_prefix(s, len, "phase.")) {
		r->scope = RULE_PHASE;
		return find_metric(s, len, DIFF_PHASE, &r->metric);
	}
	if (has_prefix(s, len, "counter.")) {
		r->scope = RULE_COUNTER;
		r->metric = DIFF_COUNT;
		r->name = s + 8;
		r->name_len = len - 8;
		return true;
	}
	r->scope = RULE_WHOLE;
	return find_metric(s, len, DIFF_RUN, &r->metric);
}

static const char *parse_cmp(struct diff_rule *r, const char *s)
{
	static const struct {
		const char *text;
		enum rule_cmp cmp;
	} known[] = {{">=", RULE_GE},
		     {"<=", RULE_LE},
		     {">", RULE_GT},
		     {"<", RULE_LT}};
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		size_t n = strlen(known[i].text);
		if (strncmp(s, known[i].text, n))
			continue;
		r->cmp = known[i].cmp;
		return s + n + strspn(s + n, " ");
	}
	return NULL;
}

static int parse_count(const char *s, double *ret, struct smco_err *err)
{
	char *end;
	*ret = strtod(s, &end);
	if (*s < '0' || *s > '9' || *end || s[1] == 'x' || !isfinite(*ret))
		return smco_fail(err, SMCO_FORMAT, 0, "'%.40s' is not a number",
				 s);
	return SMCO_OK;
}

static int parse_share(const char *s, double *ret, struct smco_err *err)
{
	int64_t ppb;
	int rc = quantity_percent(s, 1000000, &ppb, err);
	if (!rc)
		*ret = (double)ppb / PPB;
	return rc;
}

/* An overhead, in parts per billion; @s ends with @unit, if not a bare number.
 */
static int parse_overhead(const char *s, const char *unit, double *ret,
			  struct smco_err *err)
{
	char number[64];
	size_t n = strlen(s), u = strlen(unit);
	if (n > u && !strcmp(s + n - u, unit))
		n -= u;
	snprintf(number, sizeof(number), "%.*s", (int)(n < 63 ? n : 63), s);
	int rc = parse_count(number, ret, err);
	*ret *= 1e7;
	return rc;
}

/* A time, with its unit: without one it is a count. */
static bool is_time(const char *s, uint64_t *ret)
{
	return s[strspn(s, "0123456789.")] && !quantity_time(s, ret, NULL);
}

static int parse_amount(struct diff_rule *r, const char *s,
			struct smco_err *err)
{
	uint64_t v = 0;
	double sign = *s == '-' ? -1 : 1;
	bool is_signed = *s == '-' || *s == '+';
	enum diff_unit unit = r->scope == RULE_COUNT
				      ? UNIT_COUNT
				      : diff_metric[r->metric].unit;
	int rc;
	s += is_signed;
	bool percent = *s && s[strlen(s) - 1] == '%';
	r->mode = is_signed ? percent ? RULE_SHARE : RULE_CHANGE : RULE_VALUE;
	if (r->scope == RULE_COUNT && is_signed)
		return smco_fail(err, SMCO_FORMAT, 0,
				 "a number of %s has no sign",
				 diff_kind_name(r->counted));
	if (percent && !is_signed && unit != UNIT_PPB)
		return smco_fail(err, SMCO_FORMAT, 0,
				 "%.40s of what? A change is +%.40s or -%.40s",
				 s, s, s);
	r->is_of_time = r->scope == RULE_COUNTER && is_time(s, &v);
	if (r->is_of_time)
		rc = SMCO_OK;
	else if (r->mode == RULE_SHARE)
		rc = parse_share(s, &r->amount, err);
	else if (unit == UNIT_PPB)
		rc = parse_overhead(s, is_signed ? "pp" : "%", &r->amount, err);
	else if (unit == UNIT_COUNT)
		rc = parse_count(s, &r->amount, err);
	else if (unit == UNIT_NS)
		rc = quantity_time(s, &v, err);
	else
		rc = quantity_size(s, &v, err);
	if (v)
		r->amount = (double)v;
	r->amount *= sign;
	return rc;
}

static int parse(struct diff_rule *r, const char *text, struct smco_err *err)
{
	struct smco_err why = {0};
	const char *s = text + strspn(text, " ");
	size_t len = strcspn(s, " <>=");
	char quote[80];
	*r = (struct diff_rule){.text = text};
	quantity_quote(text, quote, sizeof(quote));
	if (!parse_subject(r, s, len))
		return smco_fail(
			err, SMCO_FORMAT, 0,
			"'%s': there is no '%.*s'; there are "
			"nap.bytes_seconds, nap.unused_bytes, nap.longest, "
			"alloc.count, alloc.bytes, overhead, duration, "
			"site.nap.bytes_seconds, ..., sites.new, ..., "
			"phase.mean, phase.count, phases.grown, ..., "
			"variables.grown, ..., counter.NAME",
			quote, (int)(len < 30 ? len : 30), s);
	s = parse_cmp(r, s + len + strspn(s + len, " "));
	if (!s)
		return smco_fail(err, SMCO_FORMAT, 0,
				 "'%s': wants one of > >= < <= behind the "
				 "metric",
				 quote);
	/* A number and its unit; blanks at the end are nothing. */
	char amount[64];
	size_t n = strlen(s);
	while (n && s[n - 1] == ' ')
		n--;
	snprintf(amount, sizeof(amount), "%.*s", (int)(n < 63 ? n : 63), s);
	if (parse_amount(r, amount, &why))
		return smco_fail(err, SMCO_FORMAT, 0, "'%s': %.150s", quote,
				 why.msg);
	return SMCO_OK;
}

int diff_rules_add(struct diff_rules *rules, const char *text,
		   struct smco_err *err)
{
	struct diff_rule *grown =
		reallocarray(rules->rule, rules->nr + 1, sizeof(*grown));
	if (!grown)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	rules->rule = grown;
	int rc = parse(&rules->rule[rules->nr], text, err);
	if (!rc)
		rules->nr++;
	return rc;
}

/* ------------------------------------------------------------- checking --- */

static enum diff_kind kind_of(const struct diff_rule *r)
{
	static const enum diff_kind kind[] = {
		[RULE_WHOLE] = DIFF_RUN,
		[RULE_SITE] = DIFF_SITE,
		[RULE_PHASE] = DIFF_PHASE,
		[RULE_COUNTER] = DIFF_COUNTER,
	};
	if (r->scope == RULE_COUNT)
		return r->counted;
	if (r->scope == RULE_WHOLE && diff_metric_is_of_blocks(r->metric))
		return DIFF_SITE;
	return kind[r->scope];
}

static bool is_named(const struct diff_rule *r, const struct diff_item *item)
{
	/* Behind the name of an event its unit may stand. */
	return !strncmp(item->name, r->name, r->name_len) &&
	       (!item->name[r->name_len] ||
		!strncmp(item->name + r->name_len, " (", 2));
}

static bool has_item(const struct diff_run *run, enum diff_kind kind,
		     const struct diff_rule *named)
{
	for (size_t i = 0; i < run->nr_items; i++)
		if (run->item[i].kind == kind &&
		    (!named || is_named(named, &run->item[i])))
			return !named || !named->is_of_time ||
			       run->item[i].is_ns;
	return false;
}

static bool has_subject(const struct diff_run *run, const struct diff_rule *r)
{
	switch (kind_of(r)) {
	case DIFF_SITE:
		return run->has_naps;
	case DIFF_PHASE:
		return has_item(run, DIFF_PHASE, NULL);
	case DIFF_COUNTER:
		return has_item(run, DIFF_COUNTER, r);
	case DIFF_MISTAKE:
	case DIFF_VARIABLE:
		return run->nr_declared;
	case DIFF_RUN:
	case DIFF_NR_KINDS:
		break;
	}
	return true;
}

static int fail_without(const struct diff_rule *r, const struct diff_run *run,
			struct smco_err *err)
{
	static const char *const lacks[DIFF_NR_KINDS] = {
		[DIFF_SITE] = "was made without smco-trace -m nap",
		[DIFF_PHASE] = "has no phases: smco-trace --phase",
		[DIFF_MISTAKE] = "has no variables: smco-trace -m range, of a "
				 "program with debug information",
		[DIFF_VARIABLE] = "has no variables: smco-trace -m range, of a "
				  "program with debug information",
	};
	char quote[80], counted[200] = "";
	size_t n = 0;
	quantity_quote(r->text, quote, sizeof(quote));
	if (r->scope != RULE_COUNTER)
		return smco_fail(err, SMCO_NOTFOUND, 0,
				 "--fail-on '%s': "
				 "%.120s %s",
				 quote, source_name(run->path),
				 lacks[kind_of(r)]);
	for (size_t i = 0; i < run->nr_items && n < sizeof(counted); i++)
		if (run->item[i].kind == DIFF_COUNTER)
			n += (size_t)snprintf(counted + n, sizeof(counted) - n,
					      "%s%.60s", n ? ", " : "",
					      run->item[i].name);
	return smco_fail(err, SMCO_NOTFOUND, 0,
			 "--fail-on '%s': %.120s does not count %s%.*s but %s",
			 quote, source_name(run->path),
			 r->is_of_time ? "time as " : "",
			 (int)(r->name_len < 60 ? r->name_len : 60), r->name,
			 n ? counted : "nothing");
}

int diff_rules_check(const struct diff_rules *rules, const struct diff *d,
		     struct smco_err *err)
{
	for (size_t i = 0; i < rules->nr; i++)
		for (int side = 0; side < DIFF_SIDES; side++)
			for (size_t k = 0; k < d->side[side].nr_runs; k++) {
				const struct diff_run *run =
					&d->side[side].run[k];
				if (!run->nr_damaged &&
				    !has_subject(run, &rules->rule[i]))
					return fail_without(&rules->rule[i],
							    run, err);
			}
	return SMCO_OK;
}

/* ------------------------------------------------------------- applying --- */

static bool holds(const struct diff_rule *r, double v)
{
	switch (r->cmp) {
	case RULE_GT:
		return v > r->amount;
	case RULE_GE:
		return v >= r->amount;
	case RULE_LT:
		return v < r->amount;
	case RULE_LE:
		return v <= r->amount;
	}
	return false;
}

static double value_of(const struct diff_rule *r, const struct diff_measure *m)
{
	switch (r->mode) {
	case RULE_VALUE:
		return m->side[DIFF_NEW].mean;
	case RULE_CHANGE:
		return m->test.change;
	case RULE_SHARE:
		return diff_relative(m);
	}
	return NAN;
}

/* Look at one thing; of several the worst is kept, and any that crosses before
 * all that do not. */
static void look_at(struct diff_rule *r, const struct diff_change *c)
{
	const struct diff_measure *m = &c->measure[r->metric];
	if (!m->is_known || c->verdict == VERDICT_UNSURE)
		return;
	double v = value_of(r, m);
	bool is_sure =
		r->mode == RULE_VALUE || isnan(m->test.p) || m->test.p <= 0.05;
	bool crossed = holds(r, v) && is_sure;
	bool upwards = r->cmp == RULE_GT || r->cmp == RULE_GE;
	bool worse = upwards ? v > r->value : v < r->value;
	if (r->is_known &&
	    (crossed < r->is_crossed || (crossed == r->is_crossed && !worse)))
		return;
	r->is_known = true;
	r->is_crossed = crossed;
	r->value = v;
	r->unit = diff_words_unit(c, r->metric);
	r->at = r->scope == RULE_SITE || r->scope == RULE_PHASE ? c : NULL;
}

static void apply(struct diff_rule *r, const struct diff *d)
{
	r->is_known = r->is_crossed = false;
	r->at = NULL;
	if (r->scope == RULE_COUNT) {
		r->value = (double)d->nr_by_verdict[r->counted][r->verdict];
		r->is_known = true;
		r->is_crossed = holds(r, r->value);
		return;
	}
	enum diff_kind kind = r->scope == RULE_WHOLE ? DIFF_RUN : kind_of(r);
	for (size_t i = 0; i < d->nr_changes; i++) {
		const struct diff_change *c = &d->change[i];
		const struct diff_item *item =
			c->item[c->item[DIFF_NEW] ? DIFF_NEW : DIFF_BASE];
		if (c->kind == kind &&
		    (r->scope != RULE_COUNTER || is_named(r, item)))
			look_at(r, c);
	}
}

bool diff_rules_apply(struct diff_rules *rules, const struct diff *d)
{
	bool any = false;
	for (size_t i = 0; i < rules->nr; i++) {
		apply(&rules->rule[i], d);
		any |= rules->rule[i].is_crossed;
	}
	return any;
}

char *diff_rule_outcome(const struct diff_rule *r, bool ascii, char *buf,
			size_t size)
{
	char value[WORDS_MAX] = "unknown", where[128] = "";
	if (r->is_known && r->scope == RULE_COUNT)
		snprintf(value, sizeof(value), "%.0f", r->value);
	else if (r->is_known && r->mode == RULE_VALUE)
		diff_words_value(r->unit, r->value, ascii, value);
	else if (r->is_known && r->mode == RULE_CHANGE)
		diff_words_delta(r->unit, r->value, ascii, value);
	else if (r->is_known && isinf(r->value))
		snprintf(value, sizeof(value), "from nothing");
	else if (r->is_known)
		snprintf(value, sizeof(value), "%+.3g %%", 100 * r->value);
	if (r->at) {
		const struct diff_item *item = r->at->item[DIFF_NEW]
						       ? r->at->item[DIFF_NEW]
						       : r->at->item[DIFF_BASE];
		if (item->nr_frames)
			snprintf(where, sizeof(where), " at %.100s",
				 item->frames[0].function);
		else if (*item->name)
			snprintf(where, sizeof(where), " of %.100s",
				 item->name);
	}
	snprintf(buf, size, "%s: %.200s: %s%s",
		 r->is_crossed ? "crossed" : "kept", r->text, value, where);
	return buf;
}
