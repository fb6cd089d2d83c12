#include "reports/codec.h"

#include <stdlib.h>
#include <string.h>

#include "reports/codec-private.h"

/* Room that one record can need in a column, at most. It is there for all of
 * them, so that nothing has to be checked; what is not needed is not touched.
 */
#define TIME2_MOST   8
#define VALUE_MOST   21
#define FIELDS_MOST  (10 + 10 * SCHEMA_MAX_FIELDS)
#define PAYLOAD_FULL (256u << 10)

/*
 * Where coding stands, held in registers: a byte that is stored could otherwise
 * be part of what was loaded before it, as far as the compiler knows. It is
 * never passed to a function that is not inlined.
 */
struct lane {
	uint8_t *head, *time0, *time1, *time2, *value;
	uint64_t time_ns, latest_ns;
	uint32_t cpu, tid;
};
#define IN_LANE __attribute__((always_inline)) static inline

IN_LANE struct lane enter_lane(const struct codec_writer *w)
{
	return (struct lane){
		w->at[COLUMN_HEAD],  w->at[COLUMN_TIME0], w->at[COLUMN_TIME1],
		w->at[COLUMN_TIME2], w->at[COLUMN_VALUE], w->state.time_ns,
		w->latest_ns,	     w->state.cpu,	  w->state.tid};
}

IN_LANE void leave_lane(struct codec_writer *w, const struct lane *l)
{
	w->at[COLUMN_HEAD] = l->head;
	w->at[COLUMN_TIME0] = l->time0;
	w->at[COLUMN_TIME1] = l->time1;
	w->at[COLUMN_TIME2] = l->time2;
	w->at[COLUMN_VALUE] = l->value;
	w->state.time_ns = l->time_ns;
	w->latest_ns = l->latest_ns;
	w->state.cpu = l->cpu;
	w->state.tid = l->tid;
}

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

/* ---------------------------------------------------------------- columns ---
 */

__attribute__((noinline)) static uint8_t *put_varint(uint8_t *to, uint64_t v)
{
	while (v >= 0x80) {
		*to++ = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	*to++ = (uint8_t)v;
	return to;
}

/* 1 if @v is not 0, without a jump, which compilers would make of v != 0.
 * @v < 2^63. */
IN_LANE uint64_t is_some(uint64_t v)
{
	v = -v >> 63;
	__asm__("" : "+r"(v));
	return v;
}

/* Whether there is a second byte is hard to foretell, so do without a jump; a
 * third is rare. */
IN_LANE void put_time(struct lane *l, uint64_t v)
{
	uint64_t rest = v >> 7, more = is_some(rest);
	uint64_t most = is_some(rest >> 7);
	*l->time0++ = (uint8_t)((v & 0x7f) | more << 7);
	*l->time1 = (uint8_t)((rest & 0x7f) | most << 7);
	l->time1 += more;
	if (__builtin_expect(most, 0))
		l->time2 = put_varint(l->time2, rest >> 7);
}

/* The same for a value; the second byte may be written in vain. */
IN_LANE void put_value(struct lane *l, uint32_t v)
{
	uint64_t rest = v >> 7, more = is_some(rest);
	if (__builtin_expect(rest > 0x7f, 0)) {
		l->value = put_varint(l->value, v);
		return;
	}
	l->value[0] = (uint8_t)((v & 0x7f) | more << 7);
	l->value[1] = (uint8_t)rest;
	l->value += 1 + more;
}

/* The head's bits for the parameter; the value if it cannot be foretold. Only
 * whether it can be is a jump. */
IN_LANE uint8_t put_param(struct lane *l, struct codec_slot *slot,
			  uint32_t param)
{
	uint32_t last = slot->param, step = param - last;
	enum param_mode mode = PARAM_OTHER;
	if (!step)
		return PARAM_SAME << HEAD_PARAM_SHIFT;
	uint32_t *follower = &slot->follower[hash_param(last)];
	if (param == *follower)
		mode = PARAM_FOLLOWER;
	else if (step == slot->stride)
		mode = PARAM_STRIDE;
	else
		put_value(l, (uint32_t)zigzag((int32_t)step));
	*follower = param;
	slot->stride = step;
	slot->param = param;
	return (uint8_t)(mode << HEAD_PARAM_SHIFT);
}

__attribute__((noinline)) static uint8_t *put_who(struct codec_writer *w,
						  uint32_t cpu, uint32_t tid,
						  uint32_t last, uint8_t *to)
{
	to = put_varint(to, cpu + 1u);
	to = put_varint(to, zigzag((int32_t)(tid - last)));
	w->threads |= codec_thread_bit(tid);
	return to;
}

/* Of @r all but the event and the payload. @more: of enum more_bits what is
 * known already. */
IN_LANE void put_record(struct codec_writer *w, struct lane *l, uint32_t nr,
			struct codec_slot *slot, const struct codec_staged *r,
			uint8_t more)
{
	uint8_t head = (uint8_t)nr;
	uint64_t delta = r->time_ns - l->time_ns;
	if (__builtin_expect(r->time_ns < l->time_ns, 0)) {
		more |= MORE_EARLIER;
		delta = -delta;
		if (r->time_ns < w->earliest_ns)
			w->earliest_ns = r->time_ns;
	}
	l->latest_ns = r->time_ns > l->latest_ns ? r->time_ns : l->latest_ns;
	l->time_ns = r->time_ns;
	if (__builtin_expect(more, 0)) {
		head |= HEAD_MORE;
		*l->value++ = more;
	}
	if (__builtin_expect(r->cpu != l->cpu || r->tid != l->tid, 0)) {
		head |= HEAD_WHO;
		l->value = put_who(w, r->cpu, r->tid, l->tid, l->value);
		l->cpu = r->cpu;
		l->tid = r->tid;
	}
	head |= put_param(l, slot, r->param);
	*l->head++ = head;
	put_time(l, delta);
}

/* ------------------------------------------------------------------ slots ---
 */

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

/* The slot for @event, and its number for the head: 0 if it had none yet, and
 * the event follows in VALUE. */
IN_LANE struct codec_slot *put_event(struct codec *s, struct lane *l,
				     uint32_t event, uint32_t *nr_ret)
{
	uint32_t nr = s->slot_of[event & 255];
	if (__builtin_expect(
		    nr - 1 >= s->nr_slots || s->slot[nr].event != event, 0))
		nr = search_slot(s, event);
	*nr_ret = nr;
	if (__builtin_expect(nr, 1))
		return &s->slot[nr];
	l->value = put_varint(l->value, event);
	return new_slot(s, event, schema_event(event));
}

/* -------------------------------------------------------------- payloads ---
 */

static uint64_t field_code(const struct schema_field *f, uint64_t value,
			   uint64_t want)
{
	if (is_plain(f->coding))
		return value;
	return fold(f, is_down(f->coding) ? want - value : value - want);
}

/* Signs are not extended: a 32-bit field has 32-bit codes. */
static uint64_t load(const struct schema_field *f, const void *payload)
{
	uint64_t v = schema_load(f, payload);
	return f->width == 8 ? v : (uint32_t)v;
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
		code[i] = field_code(f, v,
				     expected(f, slot->field, slot->field[i],
					      w->state.time_ns, slot->param));
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

static bool put_payload(struct codec_writer *w, struct codec_slot *slot,
			bool raw, const struct record *r)
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

/* ---------------------------------------------------------------- records ---
 */

void codec_begin_chunk(struct codec_writer *w, const struct record *r)
{
	restart(&w->state, r->time_ns);
	w->first_ns = w->earliest_ns = w->latest_ns = r->time_ns;
	w->threads = codec_thread_bit(r->tid);
}

void codec_encode_staged(struct codec_writer *w)
{
	struct lane l = enter_lane(w);
	uint32_t nr_staged = w->nr_staged, nr;
	for (uint32_t i = 0; i < nr_staged; i++) {
		const struct codec_staged *r = &w->staged[i];
		struct codec_slot *slot =
			put_event(&w->state, &l, r->event, &nr);
		put_record(w, &l, nr, slot, r, 0);
	}
	leave_lane(w, &l);
	w->nr_staged = 0;
}

bool codec_encode_now(struct codec_writer *w, const struct record *r)
{
	if (w->nr_staged)
		codec_encode_staged(w);
	if (!w->nr++)
		codec_begin_chunk(w, r);
	w->room--;
	struct lane l = enter_lane(w);
	struct codec_staged staged = {r->event, r->cpu, r->tid, r->param,
				      r->time_ns};
	uint32_t nr;
	struct codec_slot *slot = put_event(&w->state, &l, r->event, &nr);
	size_t size = slot->schema ? slot->schema->size : 0;
	bool raw = r->payload_len != size;
	put_record(w, &l, nr, slot, &staged, raw ? MORE_RAW : 0);
	leave_lane(w, &l);
	return put_payload(w, slot, raw, r);
}

void codec_finish(struct codec_writer *w, uint64_t nr_dropped, struct bbuf *out)
{
	codec_encode_staged(w);
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
