#include "reports/exitcode.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "reports/cli.h"
#include "reports/source.h"

int exitcode_of(const struct smco_err *err)
{
	switch (err->code) {
	case SMCO_FORMAT:
		return EXITCODE_NO_TRACE;
	case SMCO_NEWER:
		return EXITCODE_NEWER;
	case SMCO_EMPTY:
		return EXITCODE_EMPTY;
	case SMCO_FOREIGN:
		return EXITCODE_FOREIGN;
	case SMCO_PERM:
		return EXITCODE_PERMISSION;
	case SMCO_NOTFOUND:
		return EXITCODE_NOT_FOUND;
	case SMCO_SYS:
		return err->sys_errno == EISDIR ? EXITCODE_DIRECTORY
						: CLI_FAILED;
	default:
		return CLI_FAILED;
	}
}

int exitcode_of_trace(const struct trace_reader *r, const char *name, char *buf,
		      size_t size)
{
	uint64_t damaged = trace_nr_damaged(r), lost = trace_nr_lost(r);
	if (damaged) {
		snprintf(buf, size,
			 "%s is damaged: %" PRIu64 " part%s skipped, %" PRIu64
			 " record%s lost; the rest was shown",
			 source_name(name), damaged, damaged == 1 ? "" : "s",
			 lost, lost == 1 ? "" : "s");
		return EXITCODE_DAMAGED;
	}
	if (trace_is_truncated(r)) {
		snprintf(buf, size,
			 "%s has no end: smco-trace was killed, the disk was "
			 "full, or it still runs; what is there was shown",
			 source_name(name));
		return EXITCODE_NO_END;
	}
	return 0;
}
