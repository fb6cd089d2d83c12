#include "reports/json-values.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "reports/bytes.h"
#include "reports/command.h"
#include "reports/line.h"
#include "reports/shortage.h"

json_t *json_of_text(const char *s)
{
	struct bbuf b = {0};
	bool ok;
	for (size_t n; (n = line_char(s, &ok)) != 0; s += n) {
		if (ok || (n == 1 && (unsigned char)*s < 0x80) || n > 1)
			bbuf_put(&b, s, n);
		else
			bbuf_put(&b, "\xef\xbf\xbd", 3);
	}
	json_t *v = b.failed
			    ? NULL
			    : json_stringn(b.data ? (char *)b.data : "", b.len);
	bbuf_free(&b);
	return v;
}

/*
 * jansson's integers are signed and its other numbers have 53 bits, so a large
 * one is a string that begins with a character that no text has, until it is
 * written.
 */
#define NUMBER "\"\\u0000" /* what jansson makes of that */

json_t *json_of_u64(uint64_t v)
{
	char buf[24] = {'\0'};
	if (v <= INT64_MAX)
		return json_integer((json_int_t)v);
	int n = snprintf(buf + 1, sizeof(buf) - 1, "%" PRIu64, v);
	return json_stringn(buf, (size_t)n + 1);
}

/* Where in what is written we are. */
struct writing {
	FILE *out;
	size_t matched; /* of NUMBER, not written yet */
	bool in_number;
};

static void write_char(struct writing *w, char c)
{
	if (w->in_number) {
		w->in_number = c != '"';
		if (w->in_number)
			putc_unlocked(c, w->out);
		return;
	}
	if (c != NUMBER[w->matched]) {
		fwrite(NUMBER, 1, w->matched, w->out);
		w->matched = 0;
	}
	if (c != NUMBER[w->matched])
		putc_unlocked(c, w->out);
	else if (++w->matched == strlen(NUMBER))
		w->in_number = !(w->matched = 0);
}

static int write_chars(const char *s, size_t len, void *ctx)
{
	for (size_t i = 0; i < len; i++)
		write_char(ctx, s[i]);
	return 0;
}

int json_write(const json_t *v, FILE *out, size_t flags)
{
	struct writing w = {.out = out};
	int rc = json_dump_callback(v, write_chars, &w, flags);
	fwrite(NUMBER, 1, w.matched, out); /* the last quotation mark */
	return rc || ferror(out) ? -1 : 0;
}

json_t *json_of_address(uint64_t v)
{
	char buf[24];
	snprintf(buf, sizeof(buf), "0x%" PRIx64, v);
	return json_string(buf);
}

json_t *json_of_double(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

json_t *json_of_pairs(const struct json_pair *pairs, size_t nr)
{
	json_t *o = json_object();
	for (size_t i = 0; i < nr; i++) {
		if (!o)
			json_decref(pairs[i].value);
		else if (json_object_set_new(o, pairs[i].key, pairs[i].value)) {
			json_decref(o);
			o = NULL;
		}
	}
	return o;
}
json_t *json_of_frames(const struct trace_frame *f, size_t nr)
{
	json_t *a = json_array();
	for (size_t i = 0; a && i < nr; i++) {
		json_t *o = JSON_OBJECT_OF(
			{"function", json_of_text(f[i].function)},
			{"file", json_of_text(f[i].file)},
			{"line", json_integer(f[i].line)},
			{"module", json_of_text(f[i].module)},
			{"build_id", json_of_text(f[i].build_id)},
			{"offset", json_of_address(f[i].offset)},
			{"inlined", json_boolean(f[i].inlined)});
		if (json_array_append_new(a, o)) {
			json_decref(a);
			a = NULL;
		}
	}
	return a;
}

json_t *json_append(json_t *array, json_t *value)
{
	if (!array || json_array_append_new(array, value)) {
		if (!array)
			json_decref(value);
		json_decref(array);
		return NULL;
	}
	return array;
}

json_t *json_of_words(char *const *words)
{
	if (!words)
		return json_null();
	json_t *array = json_array();
	for (; *words; words++)
		array = json_append(array, json_of_text(*words));
	return array;
}

json_t *json_of_command(struct trace_reader *r)
{
	_cleanup_free_ char **words = command_words(r);
	return json_of_words(words);
}

int json_print(json_t *doc, FILE *out, struct smco_err *err)
{
	if (!doc || shortage_any()) {
		json_decref(doc);
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory for JSON");
	}
	int rc = json_write(doc, out, JSON_INDENT(1));
	json_decref(doc);
	fputc('\n', out);
	if (rc || ferror(out))
		return smco_fail(err, SMCO_SYS, errno, "cannot write JSON");
	return SMCO_OK;
}
