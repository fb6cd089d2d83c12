/*
 * diff-judge.h - of things that were matched: how far each changed, whether
 * that is more than chance and more than the runs' own errors, and what that
 * makes of it. For diff_compare(); what it found is asked for by diff.h.
 */
#ifndef SMCO_DIFF_JUDGE_H
#define SMCO_DIFF_JUDGE_H

#include "reports/diff.h"

/* How well a side was watched. */
struct diff_quality diff_judge_quality(const struct diff_side *s);
/* Fills in measures and watched of all changes, whose entries, kind and item
 * are there; sides, least_change and is_judged are in force. SMCO_NOMEM. */
int diff_judge_measure(struct diff *d);
/* Of a change that was measured, quality being known: its verdict; sets its
 * by. */
enum diff_verdict diff_judge_verdict(const struct diff *d,
				     struct diff_change *c);
/*
 * Is it shown unless everything is, by its verdict? Not what stayed, no
 * variable only for being new or gone, and of one run a side no site whose
 * stack was cut in one of them: how many are is chance.
 */
bool diff_judge_is_told(const struct diff *d, const struct diff_change *c);

#endif
