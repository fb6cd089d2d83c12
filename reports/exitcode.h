/*
 * exitcode.h - exit statuses of the tools that read traces, beside those of
 * cli.h, one for each kind of bad input; smco-report.1 and the README document
 * them.
 */
#ifndef SMCO_EXITCODE_H
#define SMCO_EXITCODE_H

#include "reports/trace.h"

enum exit_code {
	EXITCODE_NO_TRACE = 3,
	EXITCODE_NEWER = 4,
	EXITCODE_EMPTY = 5,
	EXITCODE_FOREIGN = 6,
	EXITCODE_DIRECTORY = 7,
	EXITCODE_PERMISSION = 8,
	EXITCODE_NOT_FOUND = 9,
	/* What is whole was shown. */
	EXITCODE_NO_END = 10,
	EXITCODE_DAMAGED = 11,
};

/* CLI_FAILED or one of these, for an error of trace_reader_open or of what is
 * done with a trace. */
int exitcode_of(const struct smco_err *err);

/*
 * 0 if the trace of @r, which was read to its end, is whole; otherwise
 * EXITCODE_NO_END or EXITCODE_DAMAGED and one line about it in @buf.
 */
int exitcode_of_trace(const struct trace_reader *r, const char *name, char *buf,
		      size_t size);

#endif
