/*
 * output.h - the file that a report is written to. It is there when the report
 * is whole, or it is what it was before.
 */
#ifndef SMCO_OUTPUT_H
#define SMCO_OUTPUT_H

#include <stdio.h>

#include "reports/base.h"

struct output {
	FILE *file;
	/* private: */
	char *path; /* owned */
	char *temp; /* owned; NULL: written in place (a device, a pipe) */
};

/* Find out whether @path can be written, and begin. On failure nothing has
 * changed. SMCO_PERM, SMCO_SYS. */
int output_open(struct output *o, const char *path, struct smco_err *err);
/* All was written: put it in place. SMCO_SYS if it could not be; then, as with
 * output_abandon, what was there before stays. Frees. */
int output_commit(struct output *o, struct smco_err *err);
/* Frees; nothing to do for one that is all 0. */
void output_abandon(struct output *o);

#endif
