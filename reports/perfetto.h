/*
 * perfetto.h - a trace in the JSON form of the Trace Event Format, which
 * ui.perfetto.dev, its trace_processor and chrome://tracing open: naps as
 * asynchronous slices named for where the block was allocated, counters of
 * each thread and the overhead as counter tracks, samples with their stacks.
 */
#ifndef SMCO_PERFETTO_H
#define SMCO_PERFETTO_H

#include <stdio.h>

#include "reports/summary.h"

/* @s must be of one file; its records are read once more. SMCO_NOMEM, SMCO_SYS:
 * cannot write. */
int perfetto_print(const struct summary *s, FILE *out, struct smco_err *err);

#endif
