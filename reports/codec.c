#include "reports/codec.h"

#include <stdlib.h>
#include <string.h>

#include "reports/schema-file.h"

/* First byte of a record. */
enum head_bits {
	HEAD_SLOT = 0x0f,    /* slot of the event; 0: the event follows */
	HEAD_WHO = 1 << 4,   /* cpu and thread follow */
	HEAD_PARAM = 3 << 5, /* enum param_mode */
	HEAD_MORE = 1 << 7,  /* a byte of enum more_bits follows */
	HEAD_PARAM_SHIFT = 5,
};

enum param_mode { /* of the event's last parameter */
		  PARAM_SAME,
		  PARAM_FOLLOWER, /* what followed it last time */
		  PARAM_STRIDE,	  /* the last step once more */
		  PARAM_OTHER,	  /* the difference follows */
};

enum more_bits {
	MORE_EARLIER = 1 << 0, /* time is before that of the last record */
	MORE_RAW = 1 << 1,     /* payload as it is: length, bytes */
	MORE_KNOWN = MORE_EARLIER | MORE_RAW,
};

/* Room that one record can need in a column, at most. It is there for all of
 * them, so that nothing has to be checked; what is not needed is not touched.
 */
#define TIME2_MOST   8
#define VALUE_MOST   21
#define FIELDS_MOST  (10 + 10 * SCHEMA_MAX_FIELDS)
#define PAYLOAD_FULL (256u << 10)

/* What few records need is kept out of the way of the others. */
#define RARE __attribute__((noinline, cold))

static unsigned hash_param(uint32_t param)
{
	return (param * 2654435761u) >> 24;
}

/* ------------------------------------------------------- slots and fields ---
 */

static void start_slot(struct codec_slot *slot, uint32_t event,
		       const struct schema_event *schema)
{
	memset(slot, 0, sizeof(*slot));
	slot->event = event;
	slot->schema = schema;
}

/* The slot that has @event; 0 if none has. */
RARE static uint32_t search_slot(struct codec *s, uint32_t event)
{
	for (uint32_t i = 1; i <= s->nr_slots; i++)
		if (s->slot[i].event == event) {
			s->slot_of[event & 255] = (uint8_t)i;
			return i;
		}
	return 0;
}

static uint32_t find_slot(struct codec *s, uint32_t event)
{
	uint32_t guess = s->slot_of[event & 255];
	if (__builtin_expect(guess - 1 < s->nr_slots &&
				     s->slot[guess].event == event,
			     1))
		return guess;
	return search_slot(s, event);
}

/* Of an event that has none: the next one, or that of all others. */
RARE static struct codec_slot *new_slot(struct codec *s, uint32_t event,
					const struct schema_event *schema)
{
	uint32_t i = 0;
	if (s->nr_slots < CODEC_SLOTS - 1)
		i = ++s->nr_slots;
	if (i)
		start_slot(&s->slot[i], event, schema);
	s->slot[i].schema = schema;
	return &s->slot[i];
}

static void restart(struct codec *s, uint64_t time_ns)
{
	s->time_ns = time_ns;
	s->cpu = UINT32_MAX;
	s->tid = 0;
	s->nr_slots = 0;
	start_slot(&s->slot[0], 0, NULL);
}

static void took_param(struct codec_slot *slot, uint32_t param)
{
	if (param == slot->param)
		return;
	slot->follower[hash_param(slot->param)] = param;
	slot->stride = param - slot->param;
	slot->param = param;
}

/* zigzag in the field's width, so that 32-bit fields wrap at 32 bits. */
static uint64_t fold(const struct schema_field *f, uint64_t difference)
{
	return f->width == 8 ? zigzag((int64_t)difference)
			     : zigzag((int32_t)(uint32_t)difference);
}

/* What field @f of the record is expected to be, to the sign that its coding
 * has. */
static uint64_t expected(const struct codec *s, const struct codec_slot *slot,
			 const struct schema_field *f, uint64_t last)
{
	switch (f->coding) {
	case CODE_DELTA:
		return last;
	case CODE_FROM_TIME:
		return s->time_ns;
	case CODE_OR_NONE:
		return UINT64_MAX;
	case CODE_FROM_PARAM:
		return slot->param;
	case CODE_UNTIL_TIME:
		return s->time_ns - slot->field[f->a];
	case CODE_BETWEEN:
		return slot->field[f->a] - slot->field[f->b];
	case CODE_PLAIN:
	case CODE_NR:
		break;
	}
	return 0;
}

/* Is the code that of expected - value rather than of value - expected? */
static bool is_down(enum coding c)
{
	return c == CODE_FROM_TIME || c == CODE_UNTIL_TIME || c == CODE_BETWEEN;
}

static uint64_t field_code(const struct schema_field *f, uint64_t value,
			   uint64_t want)
{
	if (f->coding == CODE_PLAIN)
		return value;
	return fold(f, is_down(f->coding) ? want - value : value - want);
}

static uint64_t field_value(const struct schema_field *f, uint64_t code,
			    uint64_t want)
{
	uint64_t difference = (uint64_t)unzigzag(code);
	if (f->coding == CODE_PLAIN)
		return code;
	return is_down(f->coding) ? want - difference : want + difference;
}

/* Signs are not extended: a 32-bit field has 32-bit codes. */
static uint64_t load(const struct schema_field *f, const void *payload)
{
	uint64_t v = schema_load(f, payload);
	return f->width == 8 ? v : (uint32_t)v;
}

/* -------------------------------------------------------------- encoding ---
 */

int codec_writer_init(struct codec_writer *w)
{
	static const size_t most[COLUMN_PAYLOAD] = {
		[COLUMN_HEAD] = 1,	     [COLUMN_TIME0] = 1,
		[COLUMN_TIME1] = 1,	     [COLUMN_TIME2] = TIME2_MOST,
		[COLUMN_VALUE] = VALUE_MOST,
	};
	size_t sum = 0;
	*w = (struct codec_writer){.room = CODEC_MAX_RECORDS};
	for (size_t i = 0; i < ARRAY_SIZE(most); i++)
		sum += most[i] * CODEC_MAX_RECORDS;
	/* A byte more: the last of TIME1 may be written in vain. */
	w->mem = malloc(sum + 1);
	if (!w->mem)
		return SMCO_NOMEM;
	sum = 0;
	for (size_t i = 0; i < ARRAY_SIZE(most); i++) {
		w->start[i] = w->at[i] = w->mem + sum;
		sum += most[i] * CODEC_MAX_RECORDS;
	}
	return SMCO_OK;
}

void codec_writer_free(struct codec_writer *w)
{
	free(w->mem);
	bbuf_free(&w->payload);
	*w = (struct codec_writer){0};
}

static uint8_t *put_varint(uint8_t *to, uint64_t v)
{
	while (v >= 0x80) {
		*to++ = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	*to++ = (uint8_t)v;
	return to;
}

/* Whether there is a second byte is hard to foretell, so do without a jump; a
 * third is rare. */
static void put_time(struct codec_writer *w, uint64_t v)
{
	uint8_t *second = w->at[COLUMN_TIME1];
	uint64_t rest = v >> 7;
	*w->at[COLUMN_TIME0]++ = (uint8_t)(v & 0x7f) | (uint8_t)(!!rest << 7);
	*second = (uint8_t)(rest & 0x7f) | (uint8_t)((rest > 0x7f) << 7);
	w->at[COLUMN_TIME1] = second + !!rest;
	if (__builtin_expect(rest > 0x7f, 0))
		w->at[COLUMN_TIME2] =
			put_varint(w->at[COLUMN_TIME2], rest >> 7);
}

static bool put_fields(struct codec_writer *w, struct codec_slot *slot,
		       const void *payload)
{
	const struct schema_event *e = slot->schema;
	uint64_t code[SCHEMA_MAX_FIELDS];
	uint64_t present = 0;
	uint8_t *to = bbuf_reserve(&w->payload, FIELDS_MOST);
	if (!to)
		return false;
	for (size_t i = 0; i < e->nr_fields; i++) {
		const struct schema_field *f = &e->field[i];
		uint64_t v = load(f, payload);
		code[i] = field_code(
			f, v, expected(&w->state, slot, f, slot->field[i]));
		slot->field[i] = v;
		present |= (uint64_t) !!code[i] << i;
	}
	to = put_varint(to, present);
	for (size_t i = 0; i < e->nr_fields; i++)
		if (code[i])
			to = put_varint(to, code[i]);
	w->payload.len = (size_t)(to - w->payload.data);
	return true;
}

/* The head's bits for the parameter; the value if it cannot be foretold. */
static uint8_t put_param(struct codec_slot *slot, uint32_t param, uint8_t **to)
{
	uint32_t last = slot->param;
	enum param_mode mode = PARAM_OTHER;
	if (param == last)
		return PARAM_SAME << HEAD_PARAM_SHIFT;
	if (param == slot->follower[hash_param(last)])
		mode = PARAM_FOLLOWER;
	else if (param == last + slot->stride)
		mode = PARAM_STRIDE;
	else
		*to = put_varint(*to, zigzag((int32_t)(param - last)));
	took_param(slot, param);
	return (uint8_t)(mode << HEAD_PARAM_SHIFT);
}

RARE static void begin_chunk(struct codec_writer *w, const struct record *r)
{
	restart(&w->state, r->time_ns);
	w->first_ns = w->earliest_ns = w->latest_ns = r->time_ns;
	w->threads = codec_thread_bit(r->tid);
}

__attribute__((noinline)) static bool put_payload(struct codec_writer *w,
						  struct codec_slot *slot,
						  bool raw,
						  const struct record *r)
{
	bool ok = true;
	if (raw) {
		bbuf_varint(&w->payload, r->payload_len);
		bbuf_put(&w->payload, r->payload, r->payload_len);
		ok = !w->payload.failed;
	} else if (slot->schema) {
		ok = put_fields(w, slot, r->payload);
	}
	if (w->payload.len >= PAYLOAD_FULL)
		w->room = 0;
	return ok;
}

__attribute__((noinline)) static uint8_t *
put_who(struct codec_writer *w, const struct record *r, uint8_t *to)
{
	struct codec *s = &w->state;
	to = put_varint(to, r->cpu + 1u);
	to = put_varint(to, zigzag((int32_t)(r->tid - s->tid)));
	s->cpu = r->cpu;
	s->tid = r->tid;
	w->threads |= codec_thread_bit(r->tid);
	return to;
}

bool codec_encode(struct codec_writer *w, const struct record *r)
{
	struct codec *s = &w->state;
	uint8_t *to = w->at[COLUMN_VALUE];
	if (!w->nr++)
		begin_chunk(w, r);
	w->room--;
	uint32_t nr = find_slot(s, r->event);
	struct codec_slot *slot = &s->slot[nr];
	if (__builtin_expect(!nr, 0)) {
		slot = new_slot(s, r->event, schema_event(r->event));
		to = put_varint(to, r->event);
	}
	uint8_t head = (uint8_t)nr, more = 0;
	uint64_t delta = r->time_ns - s->time_ns;
	size_t size = slot->schema ? slot->schema->size : 0;
	if (__builtin_expect(r->time_ns < s->time_ns, 0)) {
		more |= MORE_EARLIER;
		delta = -delta;
		if (r->time_ns < w->earliest_ns)
			w->earliest_ns = r->time_ns;
	} else if (r->time_ns > w->latest_ns) {
		w->latest_ns = r->time_ns;
	}
	s->time_ns = r->time_ns;
	if (__builtin_expect(r->payload_len != size, 0))
		more |= MORE_RAW;
	if (more) {
		head |= HEAD_MORE;
		*to++ = more;
	}
	if (r->cpu != s->cpu || r->tid != s->tid) {
		head |= HEAD_WHO;
		to = put_who(w, r, to);
	}
	head |= put_param(slot, r->param, &to);
	w->at[COLUMN_VALUE] = to;
	*w->at[COLUMN_HEAD]++ = head;
	put_time(w, delta);
	if (!size && !more)
		return true;
	return put_payload(w, slot, more & MORE_RAW, r);
}

void codec_finish(struct codec_writer *w, uint64_t nr_dropped, struct bbuf *out)
{
	bbuf_varint(out, nr_dropped);
	bbuf_varint(out, w->first_ns);
	for (int i = COLUMN_TIME1; i <= COLUMN_VALUE; i++)
		bbuf_varint(out, (uint64_t)(w->at[i] - w->start[i]));
	for (int i = COLUMN_HEAD; i <= COLUMN_VALUE; i++) {
		bbuf_put(out, w->start[i], (size_t)(w->at[i] - w->start[i]));
		w->at[i] = w->start[i];
	}
	bbuf_put(out, w->payload.data, w->payload.len);
	bbuf_reset(&w->payload);
	w->nr = 0;
	w->room = CODEC_MAX_RECORDS;
}

/* -------------------------------------------------------------- decoding ---
 */

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

static bool take_fields(struct codec_reader *r, struct codec_slot *slot,
			uint8_t *payload)
{
	const struct schema_event *e = slot->schema;
	struct cursor *c = &r->column[COLUMN_PAYLOAD];
	uint64_t present;
	if (!cursor_varint(c, &present) || present >> e->nr_fields)
		return false;
	memset(payload, 0, e->size);
	for (size_t i = 0; i < e->nr_fields; i++) {
		const struct schema_field *f = &e->field[i];
		uint64_t code = 0;
		if (present >> i & 1 && !cursor_varint(c, &code))
			return false;
		if (f->width == 4 && code > UINT32_MAX)
			return false;
		uint64_t v = field_value(
			f, code, expected(&r->state, slot, f, slot->field[i]));
		slot->field[i] = f->width == 8 ? v : (uint32_t)v;
		schema_store(f, v, payload);
	}
	return true;
}

static int take_payload(struct codec_reader *r, struct codec_slot *slot,
			bool raw, struct record *ret)
{
	struct cursor *c = &r->column[COLUMN_PAYLOAD];
	ret->payload_len = 0;
	ret->payload = NULL;
	if (!raw && !slot->schema)
		return SMCO_OK;
	bbuf_reset(&r->payload);
	if (raw) {
		uint64_t len;
		const uint8_t *bytes;
		if (!cursor_varint(c, &len) || len > CODEC_MAX_PAYLOAD ||
		    !cursor_bytes(c, len, &bytes))
			return SMCO_FORMAT;
		bbuf_put(&r->payload, bytes, len);
	} else {
		const struct schema_event *own = schema_event(ret->event);
		uint8_t *to = bbuf_reserve(&r->payload, SCHEMA_MAX_SIZE);
		if (!to)
			return SMCO_NOMEM;
		if (!take_fields(r, slot, to))
			return SMCO_FORMAT;
		/* Fields that one of us does not know stand at the end. */
		r->payload.len = own ? own->size : slot->schema->size;
		if (own && own->size > slot->schema->size)
			memset(to + slot->schema->size, 0,
			       own->size - slot->schema->size);
	}
	if (r->payload.failed)
		return SMCO_NOMEM;
	ret->payload_len = (uint32_t)r->payload.len;
	ret->payload = ret->payload_len ? r->payload.data : NULL;
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
	return take_payload(r, slot, more & MORE_RAW, ret);
}
