#include "reports/schema-file.h"

#include <stdlib.h>
#include <string.h>

#include "reports/array.h"

#define NAME_MAX_BYTES 64

static void put_text(struct bbuf *b, const char *s)
{
	bbuf_varint(b, strlen(s));
	bbuf_put(b, s, strlen(s));
}

uint32_t schema_write(struct bbuf *out)
{
	uint32_t nr = 0;
	for (uint32_t id = 1; id < EV_NR; id++) {
		const struct schema_event *e = schema_event(id);
		if (!e)
			continue;
		bbuf_varint(out, id);
		put_text(out, e->name);
		put_text(out, e->param);
		bbuf_varint(out, e->size);
		bbuf_varint(out, e->nr_fields);
		bbuf_varint(out, e->time_unit);
		for (size_t i = 0; i < e->nr_fields; i++) {
			const struct schema_field *f = &e->field[i];
			put_text(out, f->name);
			bbuf_varint(out, f->offset);
			bbuf_varint(out,
				    (uint64_t)f->width << 1 | f->is_signed);
			bbuf_varint(out, f->coding);
			bbuf_varint(out, f->a);
			bbuf_varint(out, f->b);
			bbuf_varint(out, f->unit);
		}
		nr++;
	}
	return nr;
}

/* @len bytes at @c to *to, with a NUL. */
static bool take_name(struct cursor *c, char **to, char *end, const char **ret)
{
	uint64_t len;
	const uint8_t *bytes;
	if (!cursor_varint(c, &len) || len > NAME_MAX_BYTES ||
	    !cursor_bytes(c, len, &bytes) || (size_t)(end - *to) <= len ||
	    memchr(bytes, '\0', len))
		return false;
	memcpy(*to, bytes, len);
	(*to)[len] = '\0';
	*ret = *to;
	*to += len + 1;
	return true;
}

static bool needs_a(enum coding c)
{
	return c == CODE_UNTIL_TIME || c == CODE_BETWEEN || c == CODE_RATE;
}

/* One for a schema without them. */
static bool take_unit(struct cursor *c, bool has_units, uint32_t *ret)
{
	*ret = 1;
	return !has_units || (cursor_varint32(c, ret) && *ret);
}

static bool take_field(struct cursor *c, bool has_units, size_t nr, size_t size,
		       struct schema_field *f, char **to, char *end)
{
	uint32_t offset, width, coding, a, b;
	if (!take_name(c, to, end, &f->name) || !cursor_varint32(c, &offset) ||
	    !cursor_varint32(c, &width) || !cursor_varint32(c, &coding) ||
	    !cursor_varint32(c, &a) || !cursor_varint32(c, &b) ||
	    !take_unit(c, has_units, &f->unit))
		return false;
	f->is_signed = width & 1;
	width >>= 1;
	if ((width != 4 && width != 8) || size < width ||
	    offset > size - width || coding >= CODE_NR)
		return false;
	f->offset = (uint16_t)offset;
	f->width = (uint8_t)width;
	f->coding = (enum coding)coding;
	if (needs_a(f->coding) && (a >= nr || b >= nr))
		return false;
	f->a = (uint8_t)a;
	f->b = (uint8_t)b;
	return true;
}

static int take_event(struct cursor *c, bool has_units, struct schema_entry *e)
{
	uint32_t size, nr;
	const size_t room = (SCHEMA_MAX_FIELDS + 2) * (NAME_MAX_BYTES + 1);
	char *to = e->names = malloc(room);
	e->field = calloc(SCHEMA_MAX_FIELDS, sizeof(*e->field));
	if (!e->names || !e->field)
		return SMCO_NOMEM;
	char *end = to + room;
	if (!cursor_varint32(c, &e->id) || !e->id ||
	    !take_name(c, &to, end, &e->event.name) ||
	    !take_name(c, &to, end, &e->event.param) ||
	    !cursor_varint32(c, &size) || size > SCHEMA_MAX_SIZE ||
	    !cursor_varint32(c, &nr) || !nr || nr > SCHEMA_MAX_FIELDS ||
	    !take_unit(c, has_units, &e->event.time_unit))
		return SMCO_FORMAT;
	if (!has_units)
		e->event.time_unit = 0;
	for (size_t i = 0; i < nr; i++)
		if (!take_field(c, has_units, i, size, &e->field[i], &to, end))
			return SMCO_FORMAT;
	e->event.size = size;
	e->event.field = e->field;
	e->event.nr_fields = nr;
	return SMCO_OK;
}

int schema_read(struct schema_table *t, bool has_units, uint32_t nr_items,
		struct cursor *c)
{
	for (uint32_t i = 0; i < nr_items; i++) {
		struct schema_entry e = {0};
		int rc = take_event(c, has_units, &e);
		if (!rc && t->nr >= SCHEMA_MAX_EVENTS)
			rc = SMCO_FORMAT;
		if (!rc && !ARRAY_ROOM(t->entry, t->nr, t->cap))
			rc = SMCO_NOMEM;
		if (rc) {
			free(e.names);
			free(e.field);
			return rc;
		}
		t->entry[t->nr++] = e;
	}
	return SMCO_OK;
}

void schema_table_free(struct schema_table *t)
{
	for (size_t i = 0; i < t->nr; i++) {
		free(t->entry[i].names);
		free(t->entry[i].field);
	}
	free(t->entry);
	*t = (struct schema_table){0};
}

const struct schema_event *schema_of(const struct schema_table *t,
				     uint32_t event)
{
	for (size_t i = t->nr; i--;)
		if (t->entry[i].id == event)
			return &t->entry[i].event;
	return NULL;
}
