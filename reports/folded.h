/*
 * folded.h - folded stacks, as flamegraph.pl takes them: lines of
 * "command;outermost;...;innermost N", equal ones joined, in the order of the
 * texts. Functions of the kernel end with _[k], inlined ones with _[i]. What
 * would break a line is replaced.
 */
#ifndef SMCO_FOLDED_H
#define SMCO_FOLDED_H

#include <stdio.h>

#include "reports/summary.h"

/* Where threads were; N is samples. SMCO_NOMEM, SMCO_SYS (cannot write),
 * SMCO_NOTFOUND: none. */
int folded_print_samples(const struct summary *s, FILE *out,
			 struct smco_err *err);
/* Where blocks were allocated; N is for how long they were unused, in whole
 * byte seconds, of the naps that were selected. The same errors. */
int folded_print_naps(const struct summary *s, FILE *out, struct smco_err *err);

#endif
