#include <string.h>

#include "reports/codec-private.h"
#include "reports/schema-file.h"

static void took_param(struct codec_slot *slot, uint32_t param)
{
	if (param == slot->param)
		return;
	slot->follower[hash_param(slot->param)] = param;
	slot->stride = param - slot->param;
	slot->param = param;
}

static uint64_t field_value(const struct schema_field *f, uint64_t code,
			    uint64_t want)
{
	uint64_t difference = (uint64_t)unzigzag(code);
	if (is_plain(f->coding))
		return code;
	return is_down(f->coding) ? want - difference : want + difference;
}

int codec_reader_begin(struct codec_reader *r, struct cursor c, uint32_t nr,
		       const struct schema_table *schema)
{
	uint64_t first_ns, len[COLUMN_NR] = {nr, nr};
	if (!cursor_varint(&c, &r->nr_dropped) || !cursor_varint(&c, &first_ns))
		return SMCO_FORMAT;
	for (int i = COLUMN_TIME1; i <= COLUMN_VALUE; i++)
		if (!cursor_varint(&c, &len[i]))
			return SMCO_FORMAT;
	for (int i = COLUMN_HEAD; i <= COLUMN_VALUE; i++) {
		const uint8_t *bytes;
		if (!cursor_bytes(&c, len[i], &bytes))
			return SMCO_FORMAT;
		r->column[i] = (struct cursor){bytes, len[i], 0};
	}
	r->column[COLUMN_PAYLOAD] =
		(struct cursor){c.base + c.pos, c.len - c.pos, 0};
	r->schema = schema;
	restart(&r->state, first_ns);
	return SMCO_OK;
}

void codec_reader_free(struct codec_reader *r)
{
	bbuf_free(&r->payload);
}

static bool next_byte(struct cursor *c, uint8_t *ret)
{
	if (c->pos >= c->len)
		return false;
	*ret = c->base[c->pos++];
	return true;
}

static bool take_time(struct codec_reader *r, uint64_t *ret)
{
	uint8_t byte;
	uint64_t rest;
	if (!next_byte(&r->column[COLUMN_TIME0], &byte))
		return false;
	*ret = byte & 0x7f;
	if (!(byte & 0x80))
		return true;
	if (!next_byte(&r->column[COLUMN_TIME1], &byte))
		return false;
	*ret |= (uint64_t)(byte & 0x7f) << 7;
	if (!(byte & 0x80))
		return true;
	if (!cursor_varint(&r->column[COLUMN_TIME2], &rest) || rest >> 50)
		return false;
	*ret |= rest << 14;
	return true;
}

/* Fields @visit and those that are present, of a payload that has what it has
 * of all others already. */
static bool take_fields(struct codec_reader *r, struct codec_slot *slot,
			uint64_t visit, struct codec_image *image,
			uint8_t *payload)
{
	const struct schema_event *e = slot->schema;
	struct cursor c = r->column[COLUMN_PAYLOAD];
	uint64_t present;
	if (!cursor_varint(&c, &present) || present >> e->nr_fields)
		return false;
	for (visit |= present; visit; visit &= visit - 1) {
		unsigned i = (unsigned)__builtin_ctzll(visit);
		const struct schema_field *f = &e->field[i];
		uint64_t code = 0;
		if (present >> i & 1 && !cursor_varint(&c, &code))
			return false;
		if (f->width == 4 && code > UINT32_MAX)
			return false;
		uint64_t v =
			field_value(f, code,
				    expected(f, slot->field, slot->field[i],
					     r->state.time_ns, slot->param));
		slot->field[i] = f->width == 8 ? v : (uint32_t)v;
		schema_store(f, v, payload);
	}
	if (image)
		image->not_zero = present & image->plain;
	r->column[COLUMN_PAYLOAD] = c;
	return true;
}

/* Of a slot that a new event has taken. */
static void start_image(struct codec_image *image,
			const struct codec_slot *slot)
{
	const struct schema_event *e = slot->schema;
	memset(image, 0, sizeof(*image));
	if (!e)
		return;
	image->size = payload_size(slot->event, e);
	for (size_t i = 0; i < e->nr_fields; i++) {
		enum coding coding = e->field[i].coding;
		if (is_plain(coding))
			image->plain |= UINT64_C(1) << i;
		else if (coding != CODE_DELTA && coding != CODE_NEIGHBOUR)
			image->computed |= UINT64_C(1) << i;
	}
}

static int take_raw(struct codec_reader *r, struct record *ret)
{
	struct cursor *c = &r->column[COLUMN_PAYLOAD];
	uint64_t len;
	const uint8_t *bytes;
	bbuf_reset(&r->payload);
	if (!cursor_varint(c, &len) || len > CODEC_MAX_PAYLOAD ||
	    !cursor_bytes(c, len, &bytes))
		return SMCO_FORMAT;
	bbuf_put(&r->payload, bytes, len);
	if (r->payload.failed)
		return SMCO_NOMEM;
	ret->payload_len = (uint32_t)len;
	ret->payload = len ? r->payload.data : NULL;
	return SMCO_OK;
}

/* Of slot 0, which many events share. */
static int take_shared(struct codec_reader *r, struct codec_slot *slot,
		       struct record *ret)
{
	const struct schema_event *e = slot->schema;
	bbuf_reset(&r->payload);
	uint8_t *to = bbuf_reserve(&r->payload, SCHEMA_MAX_SIZE);
	if (!to)
		return SMCO_NOMEM;
	memset(to, 0, SCHEMA_MAX_SIZE);
	if (!take_fields(r, slot, (UINT64_C(1) << e->nr_fields) - 1, NULL, to))
		return SMCO_FORMAT;
	ret->payload_len = payload_size(ret->event, e);
	ret->payload = ret->payload_len ? to : NULL;
	return SMCO_OK;
}

static int take_payload(struct codec_reader *r, uint32_t nr,
			struct codec_slot *slot, struct record *ret)
{
	struct codec_image *image = &r->image[nr];
	if (!slot->schema)
		return SMCO_OK;
	if (!nr)
		return take_shared(r, slot, ret);
	if (!take_fields(r, slot, image->computed | image->not_zero, image,
			 image->bytes))
		return SMCO_FORMAT;
	ret->payload_len = image->size;
	ret->payload = image->size ? image->bytes : NULL;
	return SMCO_OK;
}

static bool take_param(struct codec_slot *slot, enum param_mode mode,
		       struct cursor *value)
{
	uint32_t param = slot->param, code;
	switch (mode) {
	case PARAM_SAME:
		return true;
	case PARAM_FOLLOWER:
		param = slot->follower[hash_param(param)];
		break;
	case PARAM_STRIDE:
		param += slot->stride;
		break;
	case PARAM_OTHER:
		if (!cursor_varint32(value, &code))
			return false;
		param += (uint32_t)unzigzag(code);
		break;
	}
	took_param(slot, param);
	return true;
}

static bool take_who(struct codec *s, struct cursor *value)
{
	uint32_t cpu, tid;
	if (!cursor_varint32(value, &cpu) || !cursor_varint32(value, &tid))
		return false;
	s->cpu = cpu - 1;
	s->tid += (uint32_t)unzigzag(tid);
	return true;
}

int codec_decode(struct codec_reader *r, struct record *ret)
{
	struct codec *s = &r->state;
	struct cursor *value = &r->column[COLUMN_VALUE];
	uint8_t head, more = 0;
	uint64_t delta;
	if (!next_byte(&r->column[COLUMN_HEAD], &head))
		return SMCO_FORMAT;
	uint32_t nr = head & HEAD_SLOT;
	struct codec_slot *slot = &s->slot[nr];
	if (nr > s->nr_slots)
		return SMCO_FORMAT;
	ret->event = slot->event;
	if (!nr) {
		if (!cursor_varint32(value, &ret->event))
			return SMCO_FORMAT;
		slot = new_slot(s, ret->event,
				schema_of(r->schema, ret->event));
		nr = (uint32_t)(slot - s->slot);
		if (nr)
			start_image(&r->image[nr], slot);
	}
	if (head & HEAD_MORE &&
	    (!next_byte(value, &more) || more & ~MORE_KNOWN))
		return SMCO_FORMAT;
	if (head & HEAD_WHO && !take_who(s, value))
		return SMCO_FORMAT;
	if (!take_param(slot, (head & HEAD_PARAM) >> HEAD_PARAM_SHIFT, value) ||
	    !take_time(r, &delta))
		return SMCO_FORMAT;
	s->time_ns += more & MORE_EARLIER ? -delta : delta;
	ret->time_ns = s->time_ns;
	ret->cpu = s->cpu;
	ret->tid = s->tid;
	ret->param = slot->param;
	ret->payload_len = 0;
	ret->payload = NULL;
	return more & MORE_RAW ? take_raw(r, ret)
			       : take_payload(r, nr, slot, ret);
}
