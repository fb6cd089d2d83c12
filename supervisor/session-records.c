/* What goes into the trace. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "reports/command.h"
#include "supervisor/session-private.h"

void session_emit(void *ctx, const struct record *r)
{
	struct session *s = ctx;
	if (r->event == EV_NAP) {
		const struct ev_nap *nap = r->payload;
		stacks_want(s->stacks, nap->alloc_stack);
		stacks_want(s->stacks, nap->ended_stack);
		stacks_want(s->stacks, nap->last_stack);
	}
	if (r->event == EV_SAMPLE)
		stacks_want(s->stacks, r->param);
	if (r->event == EV_SITE) /* one that is not told unused is a result */
		stacks_want(s->stacks, r->param);
	/* What is dropped is counted by the trace. */
	int rc = SMCO_OK;
	if (!s->trace_failed && s->is_over)
		rc = trace_put_patiently(s->trace, r);
	else if (!s->trace_failed)
		rc = trace_put(s->trace, r);
	if (rc && rc != SMCO_BUSY)
		s->trace_failed = true;
}

void session_emit_process(struct session *s, pid_t pid, enum process_why why,
			  int exit_status)
{
	struct ev_process ev = {
		.pid = (uint32_t)pid,
		.exit_status = exit_status,
		.why = why,
	};
	struct record r = {
		.event = EV_PROCESS,
		.time_ns = in_units(smco_now_ns() - s->start_ns, 1000),
		.cpu = UINT32_MAX,
		.param = (uint32_t)pid,
		.payload_len = sizeof(ev),
		.payload = &ev,
	};
	session_emit(s, &r);
}

/* The local target that blocks are watched by, where it has one. */
static void emit_control(struct session *s, uint64_t now_ns)
{
	int64_t target_ppb = s->opt->target_ppb;
	if (!(s->opt->monitors & MONITOR_NAP) || target_ppb <= 0 ||
	    target_ppb == INT64_MAX || s->opt->controller == CONTROLLER_GLOBAL)
		return;
	uint64_t local = (uint64_t)control_local_target_ppb(s->control);
	struct ev_control ev = {
		.local_target_ppb = (int64_t)in_units(
			local, unit_for(local, LOCAL_UNIT_PPB)),
	};
	if (ev.local_target_ppb == s->told_local_ppb)
		return;
	s->told_local_ppb = ev.local_target_ppb;
	struct record r = {
		.event = EV_CONTROL,
		.time_ns = in_units(now_ns - s->start_ns, FLUSH_UNIT_NS),
		.cpu = UINT32_MAX,
		.param = NAP_MONITOR,
		.payload_len = sizeof(ev),
		.payload = &ev,
	};
	session_emit(s, &r);
}

static void emit_ledger(struct session *s, uint64_t now_ns)
{
	struct ledger_totals t;
	struct nap_stats st;
	emit_control(s, now_ns);
	ledger_get(s->ledger, &t);
	nap_get_stats(s->nap, &st);
	struct ev_ledger ev = {
		.run_ns = in_units(t.run_ns, LEDGER_UNIT_NS),
		.spent_ns = in_units(t.spent_ns, LEDGER_UNIT_NS),
		.nr_known = st.nr_known,
		.nr_armed = st.nr_armed,
		.nr_naps = st.nr_naps,
		.recent_ppb = t.recent_ppb / LEDGER_UNIT_PPB * LEDGER_UNIT_PPB,
		.worst_window_ppb =
			t.worst_window_ppb / LEDGER_UNIT_PPB * LEDGER_UNIT_PPB,
	};
	meter_get_stops(&s->meter, &ev.nr_stops, &ev.longest_stop_ns);
	ev.longest_stop_ns = in_units(ev.longest_stop_ns, LEDGER_UNIT_NS);
	_Static_assert(ARRAY_SIZE(ev.mech_ns) == LEDGER_NR, "same mechanisms");
	for (size_t i = 0; i < ARRAY_SIZE(ev.mech_ns); i++)
		ev.mech_ns[i] = in_units(t.mech_ns[i], LEDGER_UNIT_NS);
	struct record r = {
		.event = EV_LEDGER,
		.time_ns = in_units(now_ns - s->start_ns, FLUSH_UNIT_NS),
		.cpu = UINT32_MAX,
		.param = (uint32_t)st.nr_armed,
		.payload_len = sizeof(ev),
		.payload = &ev,
	};
	session_emit(s, &r);
}

void session_put_meta_u64(struct session *s, const char *key, uint64_t v)
{
	char buf[32];
	snprintf(buf, sizeof(buf), "%llu", (unsigned long long)v);
	trace_put_meta(s->trace, key, buf);
}

static void put_command(struct session *s)
{
	char line[256];
	if (s->opt->command)
		command_put(s->trace, s->opt->command);
	else if (s->nr_attached == 1 &&
		 session_read_command(s->attached[0], line))
		trace_put_meta(s->trace, "command", line);
}

static void put_attached(struct session *s)
{
	char line[1024];
	size_t len = 0;
	for (size_t i = 0; i < s->nr_attached && len < sizeof(line) - 1; i++)
		len += (size_t)snprintf(line + len, sizeof(line) - len, "%s%d",
					len ? " " : "", s->attached[i]);
	if (len)
		trace_put_meta(s->trace, "attached", line);
}

static void put_monitors(struct session *s)
{
	char names[80];
	trace_put_meta(
		s->trace, "monitors",
		options_monitor_names(s->opt->monitors, names, sizeof(names)));
}

void session_put_meta(struct session *s)
{
	struct utsname u;
	put_command(s);
	put_attached(s);
	trace_put_meta(s->trace, "version", SMCO_VERSION);
	if (s->opt->is_unlimited)
		trace_put_meta(s->trace, "target_ppb", "unlimited");
	else
		session_put_meta_u64(s, "target_ppb",
				     (uint64_t)s->opt->target_ppb);
	put_monitors(s);
	if (s->opt->monitors & MONITOR_NAP) {
		session_put_meta_u64(s, "nap_ns", s->opt->nap_ns);
		session_put_meta_u64(s, "min_size", s->opt->min_size_bytes);
	}
	if (s->counters)
		counters_put_meta(s->counters);
	if (s->samples)
		samples_put_meta(s->samples);
	if (s->phases)
		phases_put_meta(s->phases);
	trace_put_meta(s->trace, "controller",
		       options_controller_name(s->opt->controller));
	if (!uname(&u)) {
		trace_put_meta(s->trace, "hostname", u.nodename);
		trace_put_meta(s->trace, "kernel", u.release);
	}
}

void session_flush(struct session *s, uint64_t now_ns)
{
	if (s->trace_failed)
		return;
	emit_ledger(s, now_ns);
	nap_emit_totals(s->nap, now_ns);
	if (s->range)
		range_emit(s->range, now_ns);
	if (s->phases)
		phases_emit(s->phases, now_ns);
	stacks_put(s->stacks, s->trace, false);
	if (trace_flush(s->trace, &s->trace_err))
		s->trace_failed = true;
}

static void emit_coverage(struct session *s)
{
	const struct {
		enum coverage_why why;
		const struct ev_coverage *c;
	} own[] = {
		{COVER_NOT_ADMITTED, &s->not_admitted},
		{COVER_LOST, &s->lost},
	};
	nap_emit_coverage(s->nap);
	for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
		if (!own[i].c->nr_objects)
			continue;
		struct record r = {
			.event = EV_COVERAGE,
			.cpu = UINT32_MAX,
			.param = own[i].why,
			.payload_len = sizeof(*own[i].c),
			.payload = own[i].c,
		};
		session_emit(s, &r);
	}
}

/* The program is gone or left alone: name what the trace refers to. */
static bool is_at(const char *path, const struct stat *file)
{
	struct stat now;
	return !stat(path, &now) && now.st_dev == file->st_dev &&
	       now.st_ino == file->st_ino;
}

/* Another smco-trace may have begun here meanwhile, with the same name. */
static void find_trace(struct session *s, const struct stat *file)
{
	char *old;
	if (is_at(s->trace_path, file) ||
	    asprintf(&old, "%s.old", s->trace_path) < 0)
		return;
	if (is_at(old, file)) {
		free(s->trace_path);
		s->trace_path = old;
		return;
	}
	free(old);
	if (!s->warning.code)
		smco_fail(&s->warning, SMCO_NOTFOUND, 0,
			  "the trace is not at %s any more: others have been "
			  "written there since (--output)",
			  s->trace_path);
	free(s->trace_path);
	s->trace_path = NULL;
}

int session_finish_trace(struct session *s, struct smco_err *err)
{
	uint64_t now = smco_now_ns();
	s->is_over = true;
	session_counters_finish(s);
	if (s->samples)
		samples_finish(s->samples);
	if (s->phases)
		phases_finish(s->phases, now);
	emit_ledger(s, now);
	nap_emit_totals(s->nap, now);
	if (s->opt->monitors & MONITOR_NAP)
		emit_coverage(s);
	if (s->range)
		range_finish(s->range, now);
	session_put_meta_u64(s, "elapsed_ns", now - s->start_ns);
	if (meter_longest_was(&s->meter))
		trace_put_meta(s->trace, "longest_stop",
			       meter_longest_was(&s->meter));
	session_put_meta_u64(s, "signal_stops", tracer_nr_signals(s->tracer));
	if (s->nr_unwatched)
		session_put_meta_u64(s, "unwatched_processes", s->nr_unwatched);
	if (session_births_nr_left(s))
		session_put_meta_u64(s, "unfollowed_processes",
				     session_births_nr_left(s));
	if (s->away.nr_times) {
		session_put_meta_u64(s, "let_go", s->away.nr_times);
		session_put_meta_u64(s, "let_go_ns", session_away_ns(s));
	}
	if (!s->trace_failed)
		stacks_put(s->stacks, s->trace, true);
	struct stat file;
	bool is_known = trace_writer_which(s->trace, &file);
	int rc = trace_writer_close(s->trace, err);
	s->trace = NULL;
	if (is_known && !rc && !s->trace_failed)
		find_trace(s, &file);
	if (s->trace_failed && s->trace_err.code) {
		if (err)
			*err = s->trace_err;
		return s->trace_err.code;
	}
	return rc;
}
