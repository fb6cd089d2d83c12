/* --events: every record, one after the other. Nothing is kept. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/records.h"
#include "reports/schema.h"
#include "reports/section.h"
#include "reports/select.h"

/* The longest payload of an event that is known. */
#define SHOWN_BYTES sizeof(struct ev_counts)
static_assert(SHOWN_BYTES >= sizeof(struct ev_ledger) &&
		      SHOWN_BYTES >= sizeof(struct ev_nap),
	      "the longest");

enum event_column {
	EVENT_FILE,
	EVENT_TIME,
	EVENT_ID,
	EVENT_NAME,
	EVENT_CPU,
	EVENT_THREAD,
	EVENT_PARAM,
	EVENT_PID,
	EVENT_BYTES,
	EVENT_PAYLOAD,
	EVENT_COLUMNS
};

static const struct column event_columns[EVENT_COLUMNS] = {
	[EVENT_FILE] = {"file", KIND_COUNT, 0, "which FILE, from 0"},
	[EVENT_TIME] = {"time", KIND_TIME, 9, "since the session's start"},
	[EVENT_ID] = {"id", KIND_COUNT, 0, "EventID"},
	[EVENT_NAME] = {"event", KIND_TEXT, 9, "its name; unknown: its id"},
	[EVENT_CPU] = {"cpu", KIND_COUNT, 4, "ProcessorID"},
	[EVENT_THREAD] = {"thread", KIND_COUNT, 8,
			  "ThreadID; 0 is smco-trace itself"},
	[EVENT_PARAM] = {"param", KIND_COUNT, 11, "Parameter"},
	[EVENT_PID] = {"pid", KIND_COUNT, 0, "the process, where one is named"},
	[EVENT_BYTES] = {"payload_bytes", KIND_COUNT, 0, "size of the payload"},
	[EVENT_PAYLOAD] = {"payload", KIND_TEXT, 40, "its fields"},
};

struct event {
	uint32_t file;
	struct record r; /* its payload NULL in a copy */
	/* Of a copy; of what is longer nothing is shown but its length. */
	uint64_t payload[SHOWN_BYTES / sizeof(uint64_t)];
};

static struct record record_of(const struct event *e)
{
	struct record r = e->r;
	if (!r.payload)
		r.payload = e->payload;
	return r;
}

static const struct schema_event *layout(const struct record *r)
{
	const struct schema_event *e = schema_event(r->event);
	return e && e->size == r->payload_len ? e : NULL;
}

static void payload_text(const struct record *r, struct value *ret)
{
	const struct schema_event *e = layout(r);
	size_t at = 0, size = sizeof(ret->buf);
	if (!e)
		return;
	ret->buf[0] = '\0';
	for (size_t i = 0; i < e->nr_fields && at < size; i++) {
		const struct schema_field *f = &e->field[i];
		uint64_t v = schema_load(f, r->payload);
		const char *blank = at ? " " : "";
		int n = 0;
		if (!v)
			continue;
		if (!strcmp(f->name, "addr"))
			n = snprintf(ret->buf + at, size - at,
				     "%s%s=0x%" PRIx64, blank, f->name, v);
		else if (f->is_signed)
			n = snprintf(ret->buf + at, size - at, "%s%s=%" PRId64,
				     blank, f->name, (int64_t)v);
		else
			n = snprintf(ret->buf + at, size - at, "%s%s=%" PRIu64,
				     blank, f->name, v);
		at += (size_t)n;
	}
	value_text(ret, ret->buf);
}

static void event_get(const void *ctx, const void *item, size_t column,
		      struct value *ret)
{
	const struct event *e = item;
	const struct record record = record_of(e), *r = &record;
	uint32_t pid;
	(void)ctx;
	switch ((enum event_column)column) {
	case EVENT_FILE:
		return value_number(ret, e->file);
	case EVENT_TIME:
		return value_number(ret, r->time_ns);
	case EVENT_ID:
		return value_number(ret, r->event);
	case EVENT_NAME:
		if (schema_event(r->event)) {
			value_text(ret, schema_event(r->event)->name);
		} else {
			snprintf(ret->buf, sizeof(ret->buf), "%" PRIu32,
				 r->event);
			value_text(ret, ret->buf);
		}
		return;
	case EVENT_CPU:
		if (r->cpu != UINT32_MAX)
			value_number(ret, r->cpu);
		return;
	case EVENT_THREAD:
		return value_number(ret, r->tid);
	case EVENT_PARAM:
		return value_number(ret, r->param);
	case EVENT_PID:
		if (record_process(r, &pid))
			value_number(ret, pid);
		return;
	case EVENT_BYTES:
		return value_number(ret, r->payload_len);
	case EVENT_PAYLOAD:
		return payload_text(r, ret);
	case EVENT_COLUMNS:
		return;
	}
}

static int event_each(const struct section_source *src, section_visit *visit,
		      void *ctx, struct smco_err *err)
{
	for (size_t i = 0; i < src->nr_inputs; i++) {
		struct event e = {.file = (uint32_t)i};
		struct trace_reader *r = src->input[i].reader;
		int rc;
		(void)err;
		select_narrow(src->select, r);
		while ((rc = trace_next(r, &e.r, NULL))) {
			if (rc < 0 || !select_record(src->select, &e.r))
				continue; /* damage is counted by the reader */
			rc = visit(ctx, &e);
			if (rc)
				return rc;
		}
	}
	return SMCO_OK;
}

static void event_copy(void *copy, const void *item)
{
	const struct event *e = item;
	struct event *to = copy;
	to->file = e->file;
	to->r = e->r;
	to->r.payload = NULL;
	if (e->r.payload_len && e->r.payload_len <= sizeof(to->payload))
		memcpy(to->payload, e->r.payload, e->r.payload_len);
}

const struct section event_section = {
	.name = "events",
	.about = "every record of the trace",
	.column = event_columns,
	.nr_columns = EVENT_COLUMNS,
	.streams = true,
	.get = event_get,
	.each = event_each,
	.item_bytes = sizeof(struct event),
	.copy = event_copy,
};
