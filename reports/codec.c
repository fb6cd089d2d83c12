#include "reports/codec.h"

#include <assert.h>
#include <string.h>

/* First byte of a record. */
enum head_bits {
	HEAD_EVENT = 0x07,     /* event id 1..7; 0: a varint follows */
	HEAD_CPU = 1 << 3,     /* cpu differs from the record before */
	HEAD_TID = 1 << 4,     /* tid differs */
	HEAD_PARAM = 1 << 5,   /* param differs from the last of this event */
	HEAD_RAW = 1 << 6,     /* payload as it is: length, bytes */
	HEAD_EARLIER = 1 << 7, /* time is before the record before */
};

enum coding {
	PLAIN,	   /* the value */
	DELTA,	   /* zigzag of the difference to the last of this event */
	FROM_TIME, /* zigzag of record time - value */
	OR_NONE,   /* zigzag of value + 1: -1 costs nothing */
};

struct field {
	uint16_t offset;
	uint8_t width; /* bytes: 4 or 8 */
	uint8_t coding;
};

#define F(type, member, how)                                                   \
	{                                                                      \
		offsetof(struct type, member),                                 \
			sizeof(((struct type *)0)->member), how,               \
	}

/*
 * The fields of each event in the order of their presence bits. Append only:
 * readers skip bits they do not know and take missing ones as "coded 0".
 */
static const struct field nap_fields[] = {
	F(ev_nap, addr, DELTA),
	F(ev_nap, size, PLAIN),
	F(ev_nap, start_ns, FROM_TIME),
	F(ev_nap, length_ns, PLAIN),
	F(ev_nap, error_ns, DELTA),
	F(ev_nap, alloc_ns, FROM_TIME),
	F(ev_nap, pid, DELTA),
	F(ev_nap, alloc_stack, DELTA),
	F(ev_nap, ended_stack, DELTA),
	F(ev_nap, last_stack, DELTA),
	F(ev_nap, ended_syscall, OR_NONE),
	F(ev_nap, flags, PLAIN),
};
static_assert(sizeof(struct ev_nap) == 72, "ev_nap: fields above, FORMAT.md");

static const struct field site_fields[] = {
	F(ev_site, nr_allocs, PLAIN),  F(ev_site, bytes, PLAIN),
	F(ev_site, live_bytes, PLAIN), F(ev_site, nr_live, PLAIN),
	F(ev_site, nr_watched, PLAIN), F(ev_site, nr_naps, PLAIN),
	F(ev_site, stack, DELTA),      F(ev_site, pad, PLAIN),
};
static_assert(sizeof(struct ev_site) == 56, "ev_site: fields above, FORMAT.md");

static const struct field ledger_fields[] = {
	F(ev_ledger, run_ns, DELTA),	       F(ev_ledger, spent_ns, DELTA),
	F(ev_ledger, mech_ns[0], DELTA),       F(ev_ledger, mech_ns[1], DELTA),
	F(ev_ledger, mech_ns[2], DELTA),       F(ev_ledger, mech_ns[3], DELTA),
	F(ev_ledger, mech_ns[4], DELTA),       F(ev_ledger, mech_ns[5], DELTA),
	F(ev_ledger, nr_known, DELTA),	       F(ev_ledger, nr_armed, DELTA),
	F(ev_ledger, nr_naps, DELTA),	       F(ev_ledger, recent_ppb, DELTA),
	F(ev_ledger, worst_window_ppb, DELTA), F(ev_ledger, nr_stops, DELTA),
	F(ev_ledger, longest_stop_ns, DELTA),
};
static_assert(sizeof(struct ev_ledger) == 120,
	      "ev_ledger: fields above, FORMAT.md");

static const struct field coverage_fields[] = {
	F(ev_coverage, nr_objects, PLAIN),
	F(ev_coverage, bytes, PLAIN),
};
static_assert(sizeof(struct ev_coverage) == 16,
	      "ev_coverage: fields above, FORMAT.md");

static const struct field process_fields[] = {
	F(ev_process, pid, PLAIN),
	F(ev_process, ppid, PLAIN),
	F(ev_process, exit_status, OR_NONE),
	F(ev_process, why, PLAIN),
};
static_assert(sizeof(struct ev_process) == 16,
	      "ev_process: fields above, FORMAT.md");

static const struct layout {
	const struct field *fields;
	size_t nr;
	size_t size;
} layouts[EV_NR] = {
#define LAYOUT(fields, type)                                                   \
	{                                                                      \
		fields, ARRAY_SIZE(fields), sizeof(struct type)                \
	}
	[EV_NAP] = LAYOUT(nap_fields, ev_nap),
	[EV_SITE] = LAYOUT(site_fields, ev_site),
	[EV_LEDGER] = LAYOUT(ledger_fields, ev_ledger),
	[EV_COVERAGE] = LAYOUT(coverage_fields, ev_coverage),
	[EV_PROCESS] = LAYOUT(process_fields, ev_process),
};
static_assert(ARRAY_SIZE(ledger_fields) <= CODEC_MAX_FIELDS,
	      "more fields than the codec remembers");

static const struct layout *layout_of(uint32_t event)
{
	if (event >= EV_NR || !layouts[event].nr)
		return NULL;
	return &layouts[event];
}

size_t codec_payload_size(uint32_t event)
{
	const struct layout *l = layout_of(event);
	return l ? l->size : 0;
}

static uint64_t load(const struct field *f, const void *payload)
{
	const uint8_t *p = (const uint8_t *)payload + f->offset;
	if (f->width == 8) {
		uint64_t v;
		memcpy(&v, p, 8);
		return v;
	}
	uint32_t v;
	memcpy(&v, p, 4);
	return v;
}

static void store(const struct field *f, uint64_t v, void *payload)
{
	uint8_t *p = (uint8_t *)payload + f->offset;
	uint32_t v32 = (uint32_t)v;
	if (f->width == 8)
		memcpy(p, &v, 8);
	else
		memcpy(p, &v32, 4);
}

/* zigzag in the field's width, so that 32-bit fields wrap at 32 bits. */
static uint64_t fold(const struct field *f, uint64_t difference)
{
	return f->width == 8 ? zigzag((int64_t)difference)
			     : zigzag((int32_t)(uint32_t)difference);
}

static uint64_t field_code(const struct codec *s, const struct field *f,
			   uint64_t value, uint64_t last)
{
	switch ((enum coding)f->coding) {
	case PLAIN:
		return value;
	case DELTA:
		return fold(f, value - last);
	case FROM_TIME:
		return fold(f, s->time_ns - value);
	case OR_NONE:
		return fold(f, value + 1);
	}
	return 0;
}

static uint64_t field_value(const struct codec *s, const struct field *f,
			    uint64_t code, uint64_t last)
{
	switch ((enum coding)f->coding) {
	case PLAIN:
		return code;
	case DELTA:
		return last + (uint64_t)unzigzag(code);
	case FROM_TIME:
		return s->time_ns - (uint64_t)unzigzag(code);
	case OR_NONE:
		return (uint64_t)unzigzag(code) - 1;
	}
	return 0;
}

static void encode_fields(struct codec *s, uint32_t event,
			  const struct layout *l, const void *payload,
			  struct bbuf *out)
{
	uint64_t code[CODEC_MAX_FIELDS];
	uint64_t present = 0;
	for (size_t i = 0; i < l->nr; i++) {
		uint64_t v = load(&l->fields[i], payload);
		code[i] = field_code(s, &l->fields[i], v, s->field[event][i]);
		s->field[event][i] = v;
		if (code[i])
			present |= 1ULL << i;
	}
	bbuf_varint(out, present);
	for (size_t i = 0; i < l->nr; i++)
		if (code[i])
			bbuf_varint(out, code[i]);
}

static bool decode_fields(struct codec *s, uint32_t event,
			  const struct layout *l, struct cursor *c,
			  void *payload)
{
	uint64_t present;
	if (!cursor_varint(c, &present))
		return false;
	for (size_t i = 0; i < 64; i++) {
		uint64_t code = 0;
		if (present >> i & 1 && !cursor_varint(c, &code))
			return false;
		if (i >= l->nr)
			continue; /* of a newer writer */
		const struct field *f = &l->fields[i];
		if (f->width == 4 && code > UINT32_MAX)
			return false;
		uint64_t v = field_value(s, f, code, s->field[event][i]);
		store(f, v, payload);
		s->field[event][i] = load(f, payload);
	}
	return true;
}

void codec_encode(struct codec *s, const struct record *r, struct bbuf *out)
{
	const struct layout *l = layout_of(r->event);
	uint32_t slot = l ? r->event : 0;
	bool raw = !l || r->payload_len != l->size;
	bool earlier = r->time_ns < s->time_ns;
	bool short_event = r->event >= 1 && r->event <= HEAD_EVENT;

	uint8_t head =
		(uint8_t)((short_event ? r->event : 0) |
			  (r->cpu != s->cpu ? HEAD_CPU : 0) |
			  (r->tid != s->tid ? HEAD_TID : 0) |
			  (r->param != s->param[slot] ? HEAD_PARAM : 0) |
			  (raw ? HEAD_RAW : 0) | (earlier ? HEAD_EARLIER : 0));
	bbuf_put(out, &head, 1);
	if (!short_event)
		bbuf_varint(out, r->event);
	bbuf_varint(out, earlier ? s->time_ns - r->time_ns
				 : r->time_ns - s->time_ns);
	if (head & HEAD_CPU)
		bbuf_varint(out, r->cpu + 1u); /* unknown is 0 */
	if (head & HEAD_TID)
		bbuf_varint(out, zigzag((int32_t)(r->tid - s->tid)));
	if (head & HEAD_PARAM)
		bbuf_varint(out, zigzag((int32_t)(r->param - s->param[slot])));
	s->time_ns = r->time_ns;
	s->cpu = r->cpu;
	s->tid = r->tid;
	s->param[slot] = r->param;

	if (raw) {
		bbuf_varint(out, r->payload_len);
		bbuf_put(out, r->payload, r->payload_len);
	} else {
		encode_fields(s, r->event, l, r->payload, out);
	}
}

static int decode_payload(struct codec *s, struct cursor *c, bool raw,
			  struct bbuf *payload, struct record *ret)
{
	bbuf_reset(payload);
	if (raw) {
		uint64_t len;
		const uint8_t *bytes;
		if (!cursor_varint(c, &len) || len > CODEC_MAX_PAYLOAD ||
		    !cursor_bytes(c, len, &bytes))
			return SMCO_FORMAT;
		bbuf_put(payload, bytes, len);
	} else {
		const struct layout *l = layout_of(ret->event);
		if (!l)
			return SMCO_FORMAT;
		uint8_t *to = bbuf_reserve(payload, l->size);
		if (!to)
			return SMCO_NOMEM;
		payload->len = l->size;
		if (!decode_fields(s, ret->event, l, c, to))
			return SMCO_FORMAT;
	}
	if (payload->failed)
		return SMCO_NOMEM;
	ret->payload_len = (uint32_t)payload->len;
	ret->payload = payload->len ? payload->data : NULL;
	return SMCO_OK;
}

int codec_decode(struct codec *s, struct cursor *c, struct bbuf *payload,
		 struct record *ret)
{
	const uint8_t *head;
	uint64_t delta;
	uint32_t v;

	if (!cursor_bytes(c, 1, &head))
		return SMCO_FORMAT;
	ret->event = *head & HEAD_EVENT;
	if (!ret->event && !cursor_varint32(c, &ret->event))
		return SMCO_FORMAT;
	uint32_t slot = layout_of(ret->event) ? ret->event : 0;
	if (!cursor_varint(c, &delta))
		return SMCO_FORMAT;
	s->time_ns += *head & HEAD_EARLIER ? -delta : delta;
	if (*head & HEAD_CPU) {
		if (!cursor_varint32(c, &v))
			return SMCO_FORMAT;
		s->cpu = v - 1;
	}
	if (*head & HEAD_TID) {
		if (!cursor_varint32(c, &v))
			return SMCO_FORMAT;
		s->tid += (uint32_t)unzigzag(v);
	}
	if (*head & HEAD_PARAM) {
		if (!cursor_varint32(c, &v))
			return SMCO_FORMAT;
		s->param[slot] += (uint32_t)unzigzag(v);
	}
	ret->time_ns = s->time_ns;
	ret->cpu = s->cpu;
	ret->tid = s->tid;
	ret->param = s->param[slot];
	return decode_payload(s, c, *head & HEAD_RAW, payload, ret);
}
