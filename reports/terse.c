#include "reports/terse.h"

#include <string.h>

#include "reports/array.h"
#include "reports/bytes.h"
#include "reports/hindex.h"

/* Texts, each once, as they are written. */
struct words {
	struct bbuf text;
	size_t *end; /* of each, in @text; owned */
	size_t nr, cap;
	struct hindex index;
};

struct level {
	bool is_object, is_empty;
	size_t keys; /* where its own begin */
};

enum { TOP = 1 }; /* levels that are open around a member of the document */

struct terse {
	FILE *out;
	struct words texts, shapes; /* of this part */
	struct level *level;	    /* what is open; owned */
	size_t nr, cap;
	struct bbuf keys; /* of all objects that are open */
	struct bbuf text; /* the one that is being read */
	size_t mark;	  /* of the last key, in @keys */
	size_t pending;	  /* arrays that may be a text of their own */
	size_t verbatim;  /* arrays that are open in one that is */
	bool in_text, is_escaped, wants_key, failed;
};

/* ------------------------------------------------------------- each once ---
 */

struct sought {
	const struct words *words;
	const uint8_t *text;
	size_t len;
};

static bool is_same(const void *ctx, uint32_t value)
{
	const struct sought *s = ctx;
	size_t start = value ? s->words->end[value - 1] : 0;
	return s->words->end[value] - start == s->len &&
	       (!s->len ||
		!memcmp(s->words->text.data + start, s->text, s->len));
}

/* The number of @text, a new one if it has none; false: out of memory. */
static bool number_of(struct words *w, const uint8_t *text, size_t len,
		      uint32_t *ret)
{
	struct sought sought = {w, text, len};
	uint64_t hash = hindex_hash(0, text, len);
	if (hindex_find(&w->index, hash, is_same, &sought, ret))
		return true;
	if (!ARRAY_ROOM(w->end, w->nr, w->cap))
		return false;
	bbuf_put(&w->text, text, len);
	w->end[w->nr] = w->text.len;
	*ret = (uint32_t)w->nr;
	if (w->text.failed || !hindex_add(&w->index, hash, *ret))
		return false;
	w->nr++;
	return true;
}

static void words_reset(struct words *w)
{
	bbuf_reset(&w->text);
	w->nr = 0;
	hindex_free(&w->index);
}

static void words_free(struct words *w)
{
	bbuf_free(&w->text);
	free(w->end);
	hindex_free(&w->index);
}

/* In JSON '<' is part of texts only, where it has an escape. */
static void put_safe(const uint8_t *text, size_t len, FILE *out)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] == '<')
			fputs("\\u003c", out);
		else
			putc_unlocked(text[i], out);
}

static void put_words(const struct words *w, const char *key, char open,
		      char close, FILE *out)
{
	size_t start = 0;
	fprintf(out, ",\n\"%s\":[", key);
	for (size_t i = 0; i < w->nr; start = w->end[i++]) {
		fputs(i ? ",\n" : "\n", out);
		putc_unlocked(open, out);
		if (w->end[i] > start)
			put_safe(w->text.data + start, w->end[i] - start, out);
		putc_unlocked(close, out);
	}
	fputs("\n]", out);
}

/* ----------------------------------------------------------- the document ---
 */

static void begin_part(struct terse *t)
{
	fprintf(t->out, "<script type=\"application/json\" id=\"data-");
	put_safe(t->text.data, t->text.len, t->out);
	fputs("\">{\"data\":", t->out);
	t->mark = SIZE_MAX;
}

static void end_part(struct terse *t)
{
	put_words(&t->shapes, "shapes", '[', ']', t->out);
	put_words(&t->texts, "texts", '"', '"', t->out);
	fputs("}</script>\n", t->out);
	words_reset(&t->shapes);
	words_reset(&t->texts);
}

static void open_level(struct terse *t, bool is_object)
{
	if (!ARRAY_ROOM(t->level, t->nr, t->cap)) {
		t->failed = true;
		return;
	}
	if (t->nr)
		putc_unlocked('[', t->out);
	t->level[t->nr++] = (struct level){is_object, true, t->keys.len};
	t->wants_key = is_object;
}

static void close_level(struct terse *t)
{
	uint32_t shape;
	if (!t->nr) {
		t->failed = true;
		return;
	}
	const struct level *l = &t->level[--t->nr];
	t->wants_key = false;
	if (!t->nr) {
		if (!l->is_empty)
			end_part(t);
		return;
	}
	if (!l->is_empty)
		putc_unlocked(',', t->out);
	if (!l->is_object) {
		fputs("-1]", t->out);
		return;
	}
	t->failed |=
		t->keys.failed || !number_of(&t->shapes, t->keys.data + l->keys,
					     t->keys.len - l->keys, &shape);
	if (t->failed)
		return;
	fprintf(t->out, "%u]", shape);
	t->keys.len = l->keys;
}

static void end_key(struct terse *t)
{
	bool is_first = t->level[t->nr - 1].keys == t->keys.len;
	t->wants_key = false;
	if (t->nr == TOP) {
		begin_part(t);
		return;
	}
	bbuf_put(&t->keys, is_first ? "\"." : ",\".", is_first ? 2 : 3);
	t->mark = t->keys.len - 1;
	bbuf_put(&t->keys, t->text.data, t->text.len);
	bbuf_put(&t->keys, "\"", 1);
}

/* Is what begins now the value of a key, in an object that is no document? */
static bool is_member(const struct terse *t)
{
	return t->nr > TOP && t->level[t->nr - 1].is_object && !t->keys.failed;
}

static void end_text(struct terse *t)
{
	uint32_t number;
	if (t->text.failed) {
		t->failed = true;
	} else if (t->wants_key) {
		end_key(t);
	} else if (!is_member(t)) {
		putc_unlocked('"', t->out);
		put_safe(t->text.data, t->text.len, t->out);
		putc_unlocked('"', t->out);
	} else if (number_of(&t->texts, t->text.data, t->text.len, &number)) {
		t->keys.data[t->mark] = '$';
		fprintf(t->out, "%u", number);
	} else {
		t->failed = true;
	}
	t->text.len = 0;
}

static void take_text(struct terse *t, char c)
{
	if (c == '"' && !t->is_escaped) {
		t->in_text = false;
		end_text(t);
		return;
	}
	t->is_escaped = c == '\\' && !t->is_escaped;
	bbuf_put(&t->text, &c, 1);
}

static void open_pending(struct terse *t)
{
	for (; t->pending && !t->failed; t->pending--) {
		if (t->nr)
			t->level[t->nr - 1].is_empty = false;
		open_level(t, false);
	}
}

static void begin_verbatim(struct terse *t)
{
	t->keys.data[t->mark] = '#';
	t->level[t->nr - 1].is_empty = false;
	putc_unlocked('"', t->out);
	for (; t->pending; t->pending--, t->verbatim++)
		putc_unlocked('[', t->out);
}

static void take_verbatim(struct terse *t, char c)
{
	if (c == '"' || c == '\\')
		putc_unlocked('\\', t->out);
	put_safe((const uint8_t *)&c, 1, t->out);
	if (c == '"' && !t->is_escaped)
		t->in_text = !t->in_text;
	t->is_escaped = t->in_text && c == '\\' && !t->is_escaped;
	if (t->in_text)
		return;
	t->verbatim += (c == '[') - (size_t)(c == ']');
	if (!t->verbatim)
		putc_unlocked('"', t->out);
}

static void take_other(struct terse *t, char c)
{
	if (c == '}' || c == ']') {
		close_level(t);
		return;
	}
	if (t->nr)
		t->level[t->nr - 1].is_empty = false;
	if (c == '"') {
		t->in_text = true;
	} else if (c == '{' || c == '[') {
		open_level(t, c == '{');
	} else if (c == ',' && t->nr == TOP) {
		end_part(t);
		t->wants_key = true;
	} else {
		putc_unlocked(c, t->out);
		t->wants_key =
			c == ',' && t->nr && t->level[t->nr - 1].is_object;
	}
}

static void take(struct terse *t, char c)
{
	if (t->in_text && !t->verbatim) {
		take_text(t, c);
	} else if (!t->in_text && strchr(" \n\t\r", c)) {
		return;
	} else if (t->verbatim) {
		take_verbatim(t, c);
	} else if (c == '[' && (t->pending || is_member(t))) {
		t->pending++;
	} else if (t->pending && (c == '-' || (c >= '0' && c <= '9'))) {
		begin_verbatim(t);
		take_verbatim(t, c);
	} else {
		open_pending(t);
		if (c != ':')
			take_other(t, c);
	}
}

/* ------------------------------------------------------------- the stream ---
 */

static ssize_t write_terse(void *cookie, const char *data, size_t size)
{
	struct terse *t = cookie;
	for (size_t i = 0; i < size && !t->failed; i++)
		take(t, data[i]);
	return t->failed || ferror(t->out) ? 0 : (ssize_t)size;
}

static void terse_free(struct terse *t)
{
	words_free(&t->texts);
	words_free(&t->shapes);
	bbuf_free(&t->keys);
	bbuf_free(&t->text);
	free(t->level);
	free(t);
}

static int close_terse(void *cookie)
{
	struct terse *t = cookie;
	int rc = t->failed || t->nr || ferror(t->out) ? -1 : 0;
	terse_free(t);
	return rc;
}

FILE *terse_open(FILE *out)
{
	cookie_io_functions_t io = {.write = write_terse, .close = close_terse};
	struct terse *t = calloc(1, sizeof(*t));
	FILE *f = NULL;
	if (t) {
		t->out = out;
		/* So that the place of nothing is one, too. */
		bbuf_reserve(&t->keys, 1);
		bbuf_reserve(&t->text, 1);
		f = fopencookie(t, "w", io);
	}
	if (!f) {
		if (t)
			terse_free(t);
		return NULL;
	}
	return f;
}
