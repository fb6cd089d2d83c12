/*
 * diff-rule.h - what a pipeline fails on: "nap.bytes_seconds > +10%".
 *
 *	rule       = subject comparator amount
 *	subject    = METRIC               of the run as a whole
 *	           | "site." METRIC       of any single allocation site
 *	           | METRIC               of any phase: those are called phase.
 *	           | "counter." NAME      what an event came to
 *	           | THINGS "." VERDICT   how many are new, gone, grown, shrunk,
 *	                                  unsure
 *	THINGS     = "sites" | "phases" | "mistakes" | "variables"
 *	comparator = ">" | ">=" | "<" | "<="
 *	amount     = NUMBER [UNIT]        the new value itself
 *	           | SIGN NUMBER [UNIT]   the change from base to new
 *	           | SIGN NUMBER "%"      that, as a share of the base
 *
 * Blanks may stand between the parts. UNIT is one of the metric: K, M, G, ...
 * for bytes and byte seconds, ms, s, m, h for times, also of events that count
 * time, "%" for an overhead, "pp" (percentage points) for its change. METRIC is
 *an id of diff_metric[].
 */
#ifndef SMCO_DIFF_RULE_H
#define SMCO_DIFF_RULE_H

#include "reports/diff.h"

enum rule_scope {
	RULE_WHOLE,
	RULE_SITE,
	RULE_PHASE,
	RULE_COUNTER,
	RULE_COUNT,
};
enum rule_mode { RULE_VALUE, RULE_CHANGE, RULE_SHARE };
enum rule_cmp { RULE_GT, RULE_GE, RULE_LT, RULE_LE };

struct diff_rule {
	const char *text; /* the caller's */
	enum rule_scope scope;
	enum diff_metric metric; /* not RULE_COUNT */
	const char *name;	 /* RULE_COUNTER: the event, in text */
	size_t name_len;
	enum diff_verdict verdict; /* RULE_COUNT */
	enum diff_kind counted;	   /* RULE_COUNT: of which things */
	enum rule_cmp cmp;
	enum rule_mode mode;
	double amount;	 /* in the metric's unit; 0.1 for 10 % */
	bool is_of_time; /* RULE_COUNTER: it was told in ms or the like */
	/* set by diff_rules_apply: */
	bool is_known, is_crossed;
	double value; /* what was compared to amount; of several the worst */
	enum diff_unit unit; /* of it, or of the sum that it is a share of */
	const struct diff_change *at; /* RULE_SITE, RULE_PHASE: that one */
};

/* Zero-initialise, diff_rules_free at the end. */
struct diff_rules {
	struct diff_rule *rule;
	size_t nr;
};

/* Adds the rule that @text is. SMCO_FORMAT: it is none, the message says what
 * is wrong and what there is. */
int diff_rules_add(struct diff_rules *rules, const char *text,
		   struct smco_err *err);
void diff_rules_free(struct diff_rules *rules);

/* Were all runs of @d made with what each rule is about? SMCO_NOTFOUND: one
 * was not, so that the rule would never be crossed; the message says which, and
 * what to do. Runs that are damaged may be without. */
int diff_rules_check(const struct diff_rules *rules, const struct diff *d,
		     struct smco_err *err);

/*
 * Is any rule crossed? A rule about a change is crossed if the mean changed
 * by that much and, with repeated runs, the change is significant at 5 % by
 * itself. Sites whose coverage leaves them in doubt cross nothing.
 */
bool diff_rules_apply(struct diff_rules *rules, const struct diff *d);

/* "crossed: nap.bytes_seconds > +10%: it is +23 %". Returns @buf. */
char *diff_rule_outcome(const struct diff_rule *r, bool ascii, char *buf,
			size_t size);

#endif
