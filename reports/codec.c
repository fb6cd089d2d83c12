#include "reports/codec.h"

/* First byte of a record. */
enum head_bits {
	HEAD_EVENT = 0x07,     /* event id 1..7; 0: a varint follows */
	HEAD_CPU = 1 << 3,     /* cpu differs from the record before */
	HEAD_TID = 1 << 4,     /* tid differs */
	HEAD_PARAM = 1 << 5,   /* param differs from the last of this event */
	HEAD_RAW = 1 << 6,     /* payload as it is: length, bytes */
	HEAD_EARLIER = 1 << 7, /* time is before the record before */
};

/* zigzag in the field's width, so that 32-bit fields wrap at 32 bits. */
static uint64_t fold(const struct schema_field *f, uint64_t difference)
{
	return f->width == 8 ? zigzag((int64_t)difference)
			     : zigzag((int32_t)(uint32_t)difference);
}

size_t codec_payload_size(uint32_t event)
{
	const struct schema_event *l = schema_event(event);
	return l ? l->size : 0;
}

/* Signs are not extended: a 32-bit field has 32-bit codes. */
static uint64_t load(const struct schema_field *f, const void *payload)
{
	uint64_t v = schema_load(f, payload);
	return f->width == 8 ? v : (uint32_t)v;
}

static uint64_t field_code(const struct codec *s, const struct schema_field *f,
			   uint64_t value, uint64_t last)
{
	switch (f->coding) {
	case CODE_PLAIN:
		return value;
	case CODE_DELTA:
		return fold(f, value - last);
	case CODE_FROM_TIME:
		return fold(f, s->time_ns - value);
	case CODE_OR_NONE:
		return fold(f, value + 1);
	}
	return 0;
}

static uint64_t field_value(const struct codec *s, const struct schema_field *f,
			    uint64_t code, uint64_t last)
{
	switch (f->coding) {
	case CODE_PLAIN:
		return code;
	case CODE_DELTA:
		return last + (uint64_t)unzigzag(code);
	case CODE_FROM_TIME:
		return s->time_ns - (uint64_t)unzigzag(code);
	case CODE_OR_NONE:
		return (uint64_t)unzigzag(code) - 1;
	}
	return 0;
}

static void encode_fields(struct codec *s, uint32_t event,
			  const struct schema_event *l, const void *payload,
			  struct bbuf *out)
{
	uint64_t code[SCHEMA_MAX_FIELDS];
	uint64_t present = 0;
	for (size_t i = 0; i < l->nr_fields; i++) {
		uint64_t v = load(&l->field[i], payload);
		code[i] = field_code(s, &l->field[i], v, s->field[event][i]);
		s->field[event][i] = v;
		if (code[i])
			present |= 1ULL << i;
	}
	bbuf_varint(out, present);
	for (size_t i = 0; i < l->nr_fields; i++)
		if (code[i])
			bbuf_varint(out, code[i]);
}

static bool decode_fields(struct codec *s, uint32_t event,
			  const struct schema_event *l, struct cursor *c,
			  void *payload)
{
	uint64_t present;
	if (!cursor_varint(c, &present))
		return false;
	for (size_t i = 0; i < 64; i++) {
		uint64_t code = 0;
		if (present >> i & 1 && !cursor_varint(c, &code))
			return false;
		if (i >= l->nr_fields)
			continue; /* of a newer writer */
		const struct schema_field *f = &l->field[i];
		if (f->width == 4 && code > UINT32_MAX)
			return false;
		uint64_t v = field_value(s, f, code, s->field[event][i]);
		schema_store(f, v, payload);
		s->field[event][i] = load(f, payload);
	}
	return true;
}

void codec_encode(struct codec *s, const struct record *r, struct bbuf *out)
{
	const struct schema_event *l = schema_event(r->event);
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
		const struct schema_event *l = schema_event(ret->event);
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
	uint32_t slot = schema_event(ret->event) ? ret->event : 0;
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
