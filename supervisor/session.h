/*
 * session.h - one run: what is monitored, under which budget, until when. Ties
 * the rooms together: a stop, a ring entry or a timer is classified by the
 * tracee room, goes to the probe it belongs to, from there to the monitor, and
 * the time it took to the ledger.
 */
#ifndef SMCO_SESSION_H
#define SMCO_SESSION_H

#include "supervisor/options.h"
#include "supervisor/status.h"

struct session;

enum session_end {
	SESSION_ENDED,	  /* the command (or every attached process) ended */
	SESSION_DETACHED, /* duration over or asked to leave */
};

struct session_result {
	enum session_end end;
	int wait_status;  /* of the command; 0 when attached */
	char *trace_path; /* owned by the session; NULL if it is gone */
	/* What was different for the program because of us, or NULL. Owned by
	 * the session. */
	const char *warning;
};

/*
 * Check everything that can be checked, open the trace, start or attach.
 * Errors: SMCO_NOTFOUND and SMCO_PERM for the command as exec says; message
 * for the user in @err. Nothing runs and nothing is left on failure. *ret is
 * there for session_interrupt() before a process is attached to, and NULL after
 * a failure.
 */
int session_create(const struct options *o, struct session **ret,
		   struct smco_err *err);
/* Until the end; shows @line (may be NULL) meanwhile. */
int session_run(struct session *s, struct status *line,
		struct session_result *ret, struct smco_err *err);
/* Async-signal-safe: leave as soon as possible / pass @sig to the command. */
void session_interrupt(struct session *s, int sig);
/* Async-signal-safe: SIGTSTP or the like came, for the command as well: stand
 * still when it does. Not for one who has attached: what stops for us would not
 * go on before we do. */
void session_suspend(struct session *s);
void session_destroy(struct session *s);

#endif
