/*
 * records.h - records as they are: which of them are selected, and all of them
 * in the plain form that other tools read.
 */
#ifndef SMCO_RECORDS_H
#define SMCO_RECORDS_H

#include <stdio.h>

#include "reports/select.h"
#include "reports/summary.h"

/* The process that a record's payload names; false if it names none. */
bool record_process(const struct record *r, uint32_t *pid_ret);
/* By time, thread and process; a record that names no process is of none. */
bool select_record(const struct select *s, const struct record *r);

/* Have the reader step over what this leaves out anyway. */
void select_narrow(const struct select *s, struct trace_reader *r);

/*
 * One line for each record, in file order: EventID, Timestamp, ProcessorID,
 * ThreadID and Parameter in decimal, the payload in hexadecimal or "-", with
 * blanks between them. Readers are at their start. SMCO_SYS: cannot write.
 */
int records_print_juwel(const struct summary_input *input, size_t nr,
			const struct select *select, FILE *out,
			struct smco_err *err);

#endif
