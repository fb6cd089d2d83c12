#include "reports/pack.h"

#include <stdlib.h>
#include <string.h>

#include "reports/codec.h"
#include "reports/field.h"
#include "reports/schema-file.h"

#define PAST	  16384 /* records remembered by their parameter, of a slot */
#define PAST_BITS 14
#define PACES	  16 /* threads whose times are foretold, of a slot */

#define NEAR 16 /* parameters so little above the last one */

/* What fields that are not foretold are coded from. */
enum number_from { FROM_WANTED, FROM_PAST, FROM_NEIGHBOUR, FROM_NR };

/* What numbers there are of a slot. */
enum number_kind {
	NUMBER_EVENT,
	NUMBER_CPU,
	NUMBER_THREAD,
	NUMBER_TIME,
	NUMBER_BELOW, /* before format 7: parameters up to the largest */
	NUMBER_ABOVE,
	NUMBER_NEAR,	 /* from the last one */
	NUMBER_TIME_ODD, /* of what is no multiple of the unit */
	NUMBER_FIELDS,	 /* of each field as enum number_from */
	NUMBER_FIELDS_ODD = NUMBER_FIELDS + FROM_NR * SCHEMA_MAX_FIELDS,
	NUMBER_NR = NUMBER_FIELDS_ODD + SCHEMA_MAX_FIELDS,
};

/* What parameters and fields may be; none of it: the last of them. */
enum param_guess { PARAM_NEXT, PARAM_STEP, PARAM_FOLLOWS, PARAM_LAST, PARAMS };
enum field_guess { FIELD_WANT, FIELD_PAST, FIELD_STEP, FIELD_SINCE, FIELDS };

/* When the next record of a thread is expected. */
struct pace {
	bool used;
	uint8_t nr_missed; /* one after the other */
	uint64_t last, distance;
};

/* Of an event. Its numbers' models are there once they are needed. */
struct pack_slot {
	uint32_t event;
	const struct schema_event *schema;
	uint32_t cpu, tid;
	uint32_t param, stride, most; /* last, its step, largest */
	uint32_t follower[CODEC_FOLLOWERS];
	unsigned param_came; /* enum param_guess of the last one */
	uint64_t field[SCHEMA_MAX_FIELDS];
	uint64_t step[SCHEMA_MAX_FIELDS];
	uint8_t came[SCHEMA_MAX_FIELDS]; /* enum field_guess */
	struct pace pace[PACES];
	uint8_t *past; /* PAST of struct past, each with its fields */
	bool was_near; /* the last one that was not foretold */
	struct bit_model who, above, near[2];
	struct bit_model even_time, even[SCHEMA_MAX_FIELDS];
	struct bit_model same_time[2];
	struct bit_model params[PARAMS + 1][PARAMS];
	struct bit_model fields[SCHEMA_MAX_FIELDS][2][FIELDS + 1][2][FIELDS];
	struct number_model *number[NUMBER_NR];
	struct known_model *params_known; /* up to the largest */
};

struct past {
	bool used;
	uint32_t param, tid;
	uint64_t time_ns;
	uint64_t field[];
};

struct pack_records {
	const struct schema_table *schema;
	bool is_old; /* before format 7 */
	uint64_t time_ns;
	unsigned last_slot, nr_slots; /* in use, beside [0] */
	struct pack_slot *slot[CODEC_SLOTS];
	struct bit_model slots[CODEC_SLOTS][CODEC_SLOTS];
	struct bbuf payload;
	bool no_memory;
};

struct pack_records *pack_records_create(const struct schema_table *schema)
{
	struct pack_records *p = calloc(1, sizeof(*p));
	if (p)
		p->schema = schema;
	return p;
}

void pack_records_reset(struct pack_records *p, bool is_old)
{
	struct bbuf payload = p->payload;
	const struct schema_table *schema = p->schema;
	for (size_t i = 0; i < CODEC_SLOTS; i++) {
		struct pack_slot *s = p->slot[i];
		for (size_t j = 0; s && j < NUMBER_NR; j++)
			free(s->number[j]);
		if (s) {
			free(s->past);
			free(s->params_known);
		}
		free(s);
	}
	*p = (struct pack_records){
		.schema = schema, .is_old = is_old, .payload = payload};
}

void pack_records_destroy(struct pack_records *p)
{
	if (!p)
		return;
	pack_records_reset(p, false);
	bbuf_free(&p->payload);
	free(p);
}

static struct number_model *number(struct pack_records *p, struct pack_slot *s,
				   unsigned kind)
{
	static struct number_model none;
	if (!s->number[kind])
		s->number[kind] = calloc(1, sizeof(*s->number[kind]));
	if (s->number[kind])
		return s->number[kind];
	p->no_memory = true; /* what is coded now is thrown away */
	return &none;
}

static struct known_model *params_known(struct pack_records *p,
					struct pack_slot *s)
{
	static struct known_model none;
	if (!s->params_known)
		s->params_known = calloc(1, sizeof(*s->params_known));
	if (s->params_known)
		return s->params_known;
	p->no_memory = true;
	return &none;
}

/* ------------------------------------------------------------------ slots ---
 */

static struct pack_slot *slot_at(struct pack_records *p, unsigned nr)
{
	if (p->slot[nr])
		return p->slot[nr];
	p->slot[nr] = calloc(1, sizeof(*p->slot[nr]));
	if (p->slot[nr])
		p->slot[nr]->cpu = UINT32_MAX;
	else
		p->no_memory = true;
	return p->slot[nr];
}

static unsigned slot_of(const struct pack_records *p, uint32_t event)
{
	for (unsigned i = 1; i <= p->nr_slots; i++)
		if (p->slot[i]->event == event)
			return i;
	return 0;
}

/* NULL: malformed, or out of memory. */
static struct pack_slot *code_slot(struct pack_records *p, struct bitcoder *c,
				   uint32_t *event, unsigned *nr_ret)
{
	unsigned nr = bitcoder_decodes(c) ? 0 : slot_of(p, *event);
	nr = code_bits(c, p->slots[p->last_slot], 4, nr) - CODEC_SLOTS;
	if (nr > p->nr_slots) {
		bitcoder_fail(c);
		return NULL;
	}
	struct pack_slot *s = slot_at(p, nr);
	if (!s)
		return NULL;
	*nr_ret = nr;
	if (nr) {
		*event = s->event;
		return s;
	}
	*event = code_number32(c, number(p, s, NUMBER_EVENT), *event);
	if (p->nr_slots < CODEC_SLOTS - 1) {
		*nr_ret = ++p->nr_slots;
		s = slot_at(p, *nr_ret);
	}
	if (!s)
		return NULL;
	s->event = *event;
	s->schema =
		p->schema ? schema_of(p->schema, *event) : schema_event(*event);
	return s;
}

/* ------------------------------------------------- thread, time, parameter ---
 */

static void code_who(struct pack_records *p, struct bitcoder *c,
		     struct pack_slot *s, struct record *r)
{
	bool other = r->cpu != s->cpu || r->tid != s->tid;
	if (code_bit(c, &s->who, other)) {
		uint32_t step = (uint32_t)zigzag((int32_t)(r->tid - s->tid));
		s->cpu = code_number32(c, number(p, s, NUMBER_CPU),
				       r->cpu + 1u) -
			 1u;
		step = code_number32(c, number(p, s, NUMBER_THREAD), step);
		s->tid += (uint32_t)unzigzag(step);
	}
	r->cpu = s->cpu;
	r->tid = s->tid;
}

static uint64_t magnitude(int64_t v)
{
	return v < 0 ? -(uint64_t)v : (uint64_t)v;
}

/* A distance much unlike those before counts once it comes for the third time
 * in a row; the others draw the expected one a little. */
static void took_time(struct pace *e, uint64_t time_ns)
{
	uint64_t distance = time_ns - e->last;
	int64_t off = (int64_t)(distance - e->distance);
	if (!e->used) {
		e->used = true;
	} else if (!distance) {
		return;
	} else if (magnitude(off) <= magnitude((int64_t)e->distance) >> 2) {
		e->distance += (uint64_t)(off / 32);
		e->nr_missed = 0;
	} else if (!e->distance || e->nr_missed >= 2) {
		e->distance = distance;
		e->nr_missed = 0;
	} else {
		e->nr_missed++;
	}
	e->last = time_ns;
}

/* How a number that was not foretold is coded. */
struct measure {
	uint32_t unit;
	uint8_t width; /* bytes */
	bool is_whole; /* itself, not its difference to something */
	struct bit_model *is_even;
	unsigned number, odd; /* enum number_kind */
};

static int64_t signed_in(const struct measure *m, uint64_t v)
{
	return m->width == 8 ? (int64_t)v : (int32_t)(uint32_t)v;
}

/* @v by its difference to @base: in units, if that to the multiple of the unit
 * at or below @base is one, too. */
static uint64_t code_measure(struct pack_records *p, struct bitcoder *c,
			     struct pack_slot *s, const struct measure *m,
			     uint64_t base, uint64_t v)
{
	int64_t unit = m->unit > 1 ? m->unit : 1; /* 0: format 4 */
	unsigned kind = m->number;
	if (unit > 1) {
		uint64_t even = base - base % (uint64_t)unit;
		bool is_even = m->is_whole ? v % (uint64_t)unit == 0
					   : signed_in(m, v - even) % unit == 0;
		if (code_bit(c, m->is_even, is_even)) {
			base = even;
		} else {
			unit = 1;
			kind = m->odd;
		}
	}
	uint64_t code = m->is_whole ? v / (uint64_t)unit
				    : zigzag(signed_in(m, v - base) / unit);
	code = code_number(c, number(p, s, kind), code);
	if (m->width == 4 && code > UINT32_MAX)
		bitcoder_fail(c);
	if (m->is_whole)
		return code * (uint64_t)unit;
	return base + (uint64_t)unzigzag(code) * (uint64_t)unit;
}

static void code_time(struct pack_records *p, struct bitcoder *c,
		      struct pack_slot *s, unsigned nr, struct record *r)
{
	struct pace *e = &s->pace[r->tid % PACES];
	struct bit_model *same = &s->same_time[nr == p->last_slot];
	if (code_bit(c, same, r->time_ns == p->time_ns)) {
		r->time_ns = p->time_ns;
	} else {
		const struct measure m = {
			.unit = s->schema ? s->schema->time_unit : 1,
			.width = 8,
			.is_even = &s->even_time,
			.number = NUMBER_TIME,
			.odd = NUMBER_TIME_ODD,
		};
		uint64_t want = e->used ? e->last + e->distance : p->time_ns;
		r->time_ns = code_measure(p, c, s, &m, want, r->time_ns);
	}
	took_time(e, r->time_ns);
	p->time_ns = r->time_ns;
}

/* A parameter that was not foretold. */
static uint32_t code_other_param(struct pack_records *p, struct bitcoder *c,
				 struct pack_slot *s, uint32_t param)
{
	uint32_t off = param - s->param;
	if (s->schema && s->schema->time_unit) { /* not in format 4 */
		bool near = param <= s->most && off - 1 < NEAR;
		s->was_near = code_bit(c, &s->near[s->was_near], near);
		if (s->was_near)
			return s->param +
			       code_number32(c, number(p, s, NUMBER_NEAR), off);
	}
	bool above = code_bit(c, &s->above, param > s->most);
	if (!above && !p->is_old)
		return code_known32(c, params_known(p, s), param);
	off = above ? param - s->most : s->most - param;
	off = code_number32(
		c, number(p, s, above ? NUMBER_ABOVE : NUMBER_BELOW), off);
	return above ? s->most + off : s->most - off;
}

static void code_param(struct pack_records *p, struct bitcoder *c,
		       struct pack_slot *s, struct record *r)
{
	uint32_t *follower = &s->follower[hash_param(s->param)];
	const uint64_t guess[PARAMS] = {
		[PARAM_NEXT] = s->most + 1u,
		[PARAM_STEP] = s->param + s->stride,
		[PARAM_FOLLOWS] = *follower,
		[PARAM_LAST] = s->param,
	};
	uint64_t param = r->param;
	s->param_came = code_choice(c, s->params[s->param_came], guess, PARAMS,
				    ~0u, &param);
	if (s->param_came == PARAMS)
		param = code_other_param(p, c, s, r->param);
	r->param = (uint32_t)param;
	if (r->param == s->param)
		return;
	*follower = r->param;
	s->stride = r->param - s->param;
	s->param = r->param;
	if (r->param > s->most)
		s->most = r->param;
}

/* ---------------------------------------------------------------- payload ---
 */

/* Where the last record with this parameter and thread is remembered. NULL:
 * of slot 0 none are. */
static struct past *place_of(struct pack_records *p, struct pack_slot *s,
			     unsigned nr, uint32_t param, uint32_t tid)
{
	if (!nr)
		return NULL;
	size_t size =
		sizeof(struct past) + s->schema->nr_fields * sizeof(uint64_t);
	if (!s->past)
		s->past = calloc(PAST, size);
	if (!s->past) {
		p->no_memory = true;
		return NULL;
	}
	uint32_t hash = (param + 97 * tid) * 2654435761u;
	return (struct past *)(s->past + (hash >> (32 - PAST_BITS)) * size);
}

static const struct past *past_of(struct pack_records *p, struct pack_slot *s,
				  unsigned nr, uint32_t param, uint32_t tid)
{
	const struct past *past = place_of(p, s, nr, param, tid);
	return past && past->used && past->param == param && past->tid == tid
		       ? past
		       : NULL;
}

static uint64_t in_width(const struct schema_field *f, uint64_t v)
{
	return f->width == 8 ? v : (uint32_t)v;
}

/* What came before a record: with its parameter and thread, and of a new one
 * with the next parameter, lower or higher. NULL if there is none. */
struct before {
	const struct past *past, *neighbour;
};

/* What a field's difference is coded to. */
static uint64_t base_of(const struct pack_slot *s, size_t i, uint64_t want,
			const struct before *b, enum number_from *from_ret)
{
	const struct schema_field *f = &s->schema->field[i];
	const struct past *past = b->past;
	*from_ret = past ? FROM_PAST : FROM_WANTED;
	if (!past && b->neighbour && f->coding == CODE_NEIGHBOUR) {
		*from_ret = FROM_NEIGHBOUR;
		return b->neighbour->field[i];
	}
	if (!past || (f->coding != CODE_DELTA && f->coding != CODE_NEIGHBOUR &&
		      !is_plain(f->coding)))
		return want;
	/* field[a] is that of this record already */
	if (f->coding == CODE_RATE && past->field[f->a])
		return past->field[i] * s->field[f->a] / past->field[f->a];
	return past->field[i];
}

/* A field that was not foretold. */
static uint64_t code_other(struct pack_records *p, struct bitcoder *c,
			   struct pack_slot *s, size_t i, uint64_t want,
			   const struct before *b, uint64_t v)
{
	const struct schema_field *f = &s->schema->field[i];
	enum number_from from;
	uint64_t base = base_of(s, i, want, b, &from);
	const struct measure m = {
		.unit = f->unit,
		.width = f->width,
		.is_whole = !b->past && is_plain(f->coding),
		.is_even = &s->even[i],
		.number = NUMBER_FIELDS + FROM_NR * (unsigned)i + from,
		.odd = NUMBER_FIELDS_ODD + (unsigned)i,
	};
	return code_measure(p, c, s, &m, base, v);
}

/* Field @i; s->field has what was in the last record from @i on, and what is
 * in this one before. @after: whether the field before was as it was wanted. */
static uint64_t code_field(struct pack_records *p, struct bitcoder *c,
			   struct pack_slot *s, size_t i,
			   const struct record *r, const struct before *b,
			   bool after, uint64_t v)
{
	const struct past *past = b->past;
	const struct schema_field *f = &s->schema->field[i];
	uint64_t want = in_width(
		f, expected(f, s->field, s->field[i], r->time_ns, r->param));
	uint64_t guess[FIELDS] = {want, s->field[i], 0, 0};
	unsigned valid = 1 << FIELD_WANT | 1 << FIELD_PAST;
	if (past) {
		guess[FIELD_PAST] = past->field[i];
		guess[FIELD_STEP] = in_width(f, past->field[i] + s->step[i]);
		guess[FIELD_SINCE] = r->time_ns - past->time_ns;
		valid |= 1 << FIELD_STEP | (f->width == 8) << FIELD_SINCE;
	}
	s->came[i] =
		(uint8_t)code_choice(c, s->fields[i][!!past][s->came[i]][after],
				     guess, FIELDS, valid, &v);
	if (s->came[i] == FIELDS)
		v = in_width(f, code_other(p, c, s, i, want, b, v));
	if (past && v != past->field[i])
		s->step[i] = v - past->field[i];
	return v;
}

static uint64_t load(const struct schema_field *f, const void *payload)
{
	return in_width(f, schema_load(f, payload));
}

/* @from is read when encoding, @to is written when decoding. */
static void code_fields(struct pack_records *p, struct bitcoder *c,
			struct pack_slot *s, unsigned nr, struct record *r,
			uint8_t *to)
{
	const struct schema_event *e = s->schema;
	struct past *memory = place_of(p, s, nr, r->param, r->tid);
	struct before before = {past_of(p, s, nr, r->param, r->tid), NULL};
	if (!before.past)
		before.neighbour = past_of(p, s, nr, r->param - 1, r->tid);
	if (!before.past && !before.neighbour)
		before.neighbour = past_of(p, s, nr, r->param + 1, r->tid);
	bool after = true;
	for (size_t i = 0; i < e->nr_fields; i++) {
		const struct schema_field *f = &e->field[i];
		uint64_t v = to ? 0 : load(f, r->payload);
		v = code_field(p, c, s, i, r, &before, after, v);
		after = s->came[i] == FIELD_WANT;
		s->field[i] = v;
		if (to)
			schema_store(f, v, to);
	}
	if (!memory)
		return;
	*memory = (struct past){true, r->param, r->tid, r->time_ns};
	memcpy(memory->field, s->field, e->nr_fields * sizeof(*s->field));
}

static int code_payload(struct pack_records *p, struct bitcoder *c,
			struct pack_slot *s, unsigned nr, struct record *r)
{
	size_t size = s->schema ? s->schema->size : 0;
	if (!bitcoder_decodes(c)) {
		if (r->payload_len != size)
			return SMCO_UNSUPPORTED;
		if (s->schema)
			code_fields(p, c, s, nr, r, NULL);
		return SMCO_OK;
	}
	if (!s->schema)
		return SMCO_OK;
	bbuf_reset(&p->payload);
	uint8_t *to = bbuf_reserve(&p->payload, SCHEMA_MAX_SIZE);
	if (!to)
		return SMCO_NOMEM;
	r->payload_len = payload_size(r->event, s->schema);
	memset(to, 0, r->payload_len > size ? r->payload_len : size);
	code_fields(p, c, s, nr, r, to);
	r->payload = r->payload_len ? to : NULL;
	return SMCO_OK;
}

int pack_record(struct pack_records *p, struct bitcoder *c, struct record *r)
{
	unsigned nr;
	if (bitcoder_decodes(c))
		*r = (struct record){0};
	struct pack_slot *s = code_slot(p, c, &r->event, &nr);
	if (!s)
		return p->no_memory ? SMCO_NOMEM : SMCO_FORMAT;
	code_who(p, c, s, r);
	code_time(p, c, s, nr, r);
	code_param(p, c, s, r);
	int rc = code_payload(p, c, s, nr, r);
	p->last_slot = nr;
	if (rc)
		return rc;
	if (p->no_memory)
		return SMCO_NOMEM;
	return bitcoder_failed(c) ? SMCO_FORMAT : SMCO_OK;
}
