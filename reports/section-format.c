/* Rows of a section as text, CSV and JSON, see section-printer.h. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "reports/json-values.h"
#include "reports/model.h"
#include "reports/section-printer.h"
#include "reports/units.h"

#define CONTINUATION 4	/* columns that a row's further lines are indented */
#define LEAST_TEXT   20 /* of a long text at a row's end */

void printer_get(const struct printer *p, const void *item, size_t column,
		 struct value *ret)
{
	ret->known = false;
	ret->text = ret->shown = NULL;
	p->section->get(p->src, item, column, ret);
}

/* What is to be shown of a text: no control characters, valid UTF-8. */
static void put_clean(struct bbuf *b, const char *s, bool double_quotes)
{
	bool ok;
	for (size_t n; (n = line_char(s, &ok)) != 0; s += n) {
		if (double_quotes && *s == '"')
			bbuf_put(b, "\"", 1);
		bbuf_put(b, ok ? s : "?", ok ? n : 1);
	}
}

static void put_integer(struct bbuf *b, long double v, bool hex)
{
	char buf[32];
	if (v < 0)
		snprintf(buf, sizeof(buf), "%" PRId64, (int64_t)v);
	else
		snprintf(buf, sizeof(buf), hex ? "0x%" PRIx64 : "%" PRIu64,
			 (uint64_t)v);
	bbuf_put(b, buf, strlen(buf));
}

/* For programs: numbers in the unit that the column's key says. */
static void put_raw_number(struct bbuf *b, const struct column *c,
			   const struct value *v)
{
	char buf[40];
	if (c->kind != KIND_BYTE_SECONDS && c->kind != KIND_FACTOR) {
		put_integer(b, v->number, c->kind == KIND_ADDRESS);
		return;
	}
	/* All that decimals tell: two more digits only show how sums were
	 * rounded. */
	snprintf(buf, sizeof(buf), "%.15g", (double)v->number);
	bbuf_put(b, buf, strlen(buf));
}

/* For people. @buf has UNITS_MAX bytes. */
static const char *shown(const struct printer *p, const struct column *c,
			 const struct value *v, char *buf)
{
	if (!v->known)
		return "-";
	if (v->shown)
		return v->shown;
	switch (c->kind) {
	case KIND_TEXT:
		return v->text;
	case KIND_BYTES:
		return units_bytes((uint64_t)v->number, buf);
	case KIND_TIME:
		return units_duration((uint64_t)v->number, buf);
	case KIND_SHARE:
		return units_percent((int64_t)v->number, buf);
	case KIND_BYTE_SECONDS:
		return units_byte_seconds((double)v->number, p->page->ascii,
					  buf);
	case KIND_ADDRESS:
		snprintf(buf, UNITS_MAX, "0x%" PRIx64, (uint64_t)v->number);
		return buf;
	case KIND_FLAG:
		return v->number != 0 ? "yes" : "no";
	case KIND_FACTOR:
		snprintf(buf, UNITS_MAX, "%.6g", (double)v->number);
		return buf;
	case KIND_COUNT:
		break;
	}
	if (v->number < 0)
		snprintf(buf, UNITS_MAX, "%" PRId64, (int64_t)v->number);
	else
		snprintf(buf, UNITS_MAX, "%" PRIu64, (uint64_t)v->number);
	return buf;
}

/* --------------------------------------------------------------- formats ---
 */

void printer_lay_out(struct layout *t, const struct section *section,
		     unsigned width)
{
	unsigned line = 0, next = 0, page = width ? width : UINT_MAX;
	size_t last = section->nr_columns;
	while (!section->column[last - 1].width)
		last--;
	for (size_t i = 0; i < last && t->nr < MOST_SHOWN; i++) {
		const struct column *c = &section->column[i];
		unsigned least = c->width;
		if (!least)
			continue;
		if (i + 1 == last && c->kind == KIND_TEXT && least > LEAST_TEXT)
			least = LEAST_TEXT;
		if (next && (next > page || least > page - next)) {
			line++;
			next = least + CONTINUATION <= page ? CONTINUATION
			       : least < page		    ? page - least
							    : 0;
		}
		t->cell[t->nr].column = i;
		t->cell[t->nr].line = line;
		t->cell[t->nr].at = next;
		t->cell[t->nr++].width = least;
		next += c->width + 2;
	}
}

/* Columns from the beginning of cell @i to the end of that line. */
static unsigned rest_of_line(const struct layout *t, size_t i)
{
	size_t end = i;
	while (end + 1 < t->nr && t->cell[end + 1].line == t->cell[i].line)
		end++;
	return t->cell[end].at + t->cell[end].width - t->cell[i].at;
}

/* Part of a text tells something, part of a number something else. */
static void text_cell(struct line *l, const struct column *c, unsigned at,
		      const char *text, unsigned n, enum ink ink)
{
	line_pad(l, at);
	if (c->kind != KIND_TEXT && n > line_left(l)) {
		line_add(l, INK_DIM, l->page->ascii ? "..." : "\u2026");
		return;
	}
	unsigned width = c->width < line_left(l) ? c->width : line_left(l);
	if (c->kind != KIND_TEXT && n < width)
		line_pad(l, at + width - n);
	line_add(l, ink, text);
}

/* What is longer than its column moves what follows, as long as that has room
 * on the line; on a line of its own it is under its head again. */
static void text_row(struct printer *p, const void *item)
{
	const struct layout *t = &p->layout;
	unsigned page = p->page->width ? p->page->width : UINT_MAX, line = 0;
	char buf[UNITS_MAX];
	struct value v;
	struct line l;
	line_begin(&l, p->page, 0, "", INK_NONE, 0);
	for (size_t i = 0; i < t->nr; i++) {
		const struct column *c = &p->section->column[t->cell[i].column];
		unsigned at = t->cell[i].at, room = rest_of_line(t, i);
		if (item)
			printer_get(p, item, t->cell[i].column, &v);
		const char *text = item ? shown(p, c, &v, buf) : c->name;
		unsigned n = line_columns(text);
		if (n > room && (c->kind != KIND_TEXT || n <= LEAST_TEXT))
			room = n;
		if (i && line_column(&l) + 2 > at)
			at = line_column(&l) + 2;
		if (t->cell[i].line != line ||
		    (i && (at > page || room > page - at))) {
			line_end(&l);
			line_begin(&l, p->page, 0, "", INK_NONE, 0);
			at = t->cell[i].at;
			if (room > page - at)
				at = room < page ? page - room : 0;
		}
		line = t->cell[i].line;
		text_cell(&l, c, at, text, n, item ? INK_NONE : INK_BOLD);
	}
	line_end(&l);
}

static void csv_head(struct printer *p)
{
	char key[64];
	for (size_t i = 0; i < p->section->nr_columns; i++)
		fprintf(p->out, "%s%s", i ? "," : "",
			column_key(&p->section->column[i], key));
	fputs("\r\n", p->out);
}

static int csv_row(struct printer *p, const void *item)
{
	struct bbuf b = {0};
	struct value v;
	for (size_t i = 0; i < p->section->nr_columns; i++) {
		const struct column *c = &p->section->column[i];
		printer_get(p, item, i, &v);
		bbuf_put(&b, ",", i ? 1 : 0);
		if (!v.known)
			continue;
		if (c->kind != KIND_TEXT) {
			put_raw_number(&b, c, &v);
		} else if (strpbrk(v.text, ",\"\r\n")) {
			bbuf_put(&b, "\"", 1);
			put_clean(&b, v.text, true);
			bbuf_put(&b, "\"", 1);
		} else {
			put_clean(&b, v.text, false);
		}
	}
	bbuf_put(&b, "\r\n", 2);
	int rc = b.failed ? SMCO_NOMEM : SMCO_OK;
	if (!rc)
		fwrite(b.data, 1, b.len, p->out);
	bbuf_free(&b);
	return rc;
}

static json_t *json_value(const struct column *c, const struct value *v)
{
	struct bbuf b = {0};
	json_t *ret;
	if (!v->known)
		return json_null();
	switch (c->kind) {
	case KIND_FLAG:
		return json_boolean(v->number != 0);
	case KIND_BYTE_SECONDS:
	case KIND_FACTOR:
		return json_real((double)v->number);
	case KIND_ADDRESS:
		put_integer(&b, v->number, true);
		break;
	case KIND_TEXT:
		put_clean(&b, v->text, false);
		break;
	case KIND_COUNT:
	case KIND_BYTES:
	case KIND_TIME:
	case KIND_SHARE:
		return v->number < 0 ? json_integer((json_int_t)v->number)
				     : json_of_u64((uint64_t)v->number);
	}
	ret = b.failed ? NULL
		       : json_stringn(b.data ? (char *)b.data : "", b.len);
	bbuf_free(&b);
	return ret;
}

static int json_cell(struct printer *p, const struct column *c,
		     const struct value *v)
{
	json_t *value = json_value(c, v);
	int rc = value ? SMCO_OK : SMCO_NOMEM;
	if (!rc && json_write(value, p->out, JSON_COMPACT | JSON_ENCODE_ANY) &&
	    !ferror(p->out))
		rc = SMCO_NOMEM;
	json_decref(value);
	return rc;
}

static int json_row(struct printer *p, const void *item)
{
	struct value v;
	char key[64];
	int rc = SMCO_OK;
	fputs(p->nr_shown ? ",\n" : "\n", p->out);
	for (size_t i = 0; i < p->section->nr_columns && !rc; i++) {
		const struct column *c = &p->section->column[i];
		printer_get(p, item, i, &v);
		fprintf(p->out, "%c\"%s\":", i ? ',' : '{', column_key(c, key));
		rc = json_cell(p, c, &v);
	}
	fputc('}', p->out);
	return rc;
}

/* Not before it is known that there is something to print. */
void printer_begin(struct printer *p)
{
	if (p->begun)
		return;
	p->begun = true;
	if (p->o->format == SECTION_TEXT)
		text_row(p, NULL);
	else if (p->o->format == SECTION_CSV)
		csv_head(p);
	else
		fprintf(p->out,
			"{\n\"schema\": 1,\n\"generator\": \"smco-report "
			"%s\",\n\"section\": \"%s\",\n\"rows\": [",
			SMCO_VERSION, p->section->name);
}

int printer_row(struct printer *p, const void *item)
{
	int rc = SMCO_OK;
	printer_begin(p);
	if (p->o->format == SECTION_TEXT)
		text_row(p, item);
	else if (p->o->format == SECTION_CSV)
		rc = csv_row(p, item);
	else
		rc = json_row(p, item);
	p->nr_shown++;
	if (!rc && ferror(p->out))
		rc = SMCO_SYS;
	return rc;
}

/* Behind the rows: of a trace that is read as they are printed it is not known
 * before. */
static void json_end(struct printer *p)
{
	uint64_t damaged = 0, lost = 0, dropped = 0;
	bool truncated = false;
	for (size_t i = 0; i < p->src->nr_inputs; i++) {
		const struct trace_reader *r = p->src->input[i].reader;
		truncated |= trace_is_truncated(r);
		damaged += trace_nr_damaged(r);
		lost += trace_nr_lost(r);
		dropped += trace_nr_dropped(r);
	}
	fprintf(p->out,
		"\n],\n\"truncated\": %s,\n\"damaged_chunks\": %" PRIu64
		",\n\"lost_records\": %" PRIu64
		",\n\"dropped_records\": %" PRIu64 "\n}\n",
		truncated ? "true" : "false", damaged, lost, dropped);
}

/* Where there were none to choose from; "" if nobody said. */
static const char *why_none(const struct printer *p)
{
	const char *key = p->section->why_none, *why = NULL;
	for (size_t i = 0; i < p->src->nr_inputs && key && !p->o->where; i++)
		if (!why)
			why = trace_meta(p->src->input[i].reader, key);
	return why ? why : "";
}

void printer_end(struct printer *p)
{
	struct line l;
	if (p->o->format == SECTION_JSON)
		json_end(p);
	if (p->o->format != SECTION_TEXT)
		return;
	if (p->nr_seen == p->nr_shown && p->nr_shown)
		return;
	line_begin(&l, p->page, 0, "", INK_NONE, 0);
	if (!p->nr_shown && *why_none(p)) {
		line_add(&l, INK_DIM, "none:");
		line_words(&l, INK_DIM, why_none(p));
	} else if (!p->nr_shown)
		line_add(&l, INK_DIM, "none");
	else
		line_addf(&l, INK_DIM, "%s %" PRIu64 " more (--top)",
			  p->page->ascii ? "..." : "\u2026",
			  p->nr_seen - p->nr_shown);
	line_end(&l);
}
