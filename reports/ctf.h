/*
 * ctf.h - a trace in the Common Trace Format 1.8, which babeltrace2, Trace
 * Compass and others read: a directory with "metadata", one or more streams
 * "records_N" that together have every record, each an event of its name with
 * its fields, and "names": a frame event for each frame of each stack.
 */
#ifndef SMCO_CTF_H
#define SMCO_CTF_H

#include "reports/select.h"
#include "reports/summary.h"

/*
 * Make the directory @path, which must not exist. SMCO_SYS, SMCO_PERM: it
 * cannot be made.
 */
int ctf_begin(const char *path, struct smco_err *err);
/*
 * Write the selected records of @input, whose reader is at its start, into the
 * directory that ctf_begin made. Events of a CTF stream are in the order of
 * time, those of a trace need not be: where one goes back in time another
 * stream is begun. SMCO_SYS, SMCO_NOMEM; SMCO_UNSUPPORTED: that would take more
 * streams than can be open. ctf_abandon is the caller's then.
 */
int ctf_write(const struct summary_input *input, const struct select *select,
	      const char *path, struct smco_err *err);
/* Undo ctf_begin and remove what is in @path of an export. */
void ctf_abandon(const char *path);

#endif
