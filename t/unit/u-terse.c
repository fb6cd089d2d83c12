/*
 * JSON as the page has it: any document is, read again, what it was; no '<' is
 * in it; texts and keys are there once; what cannot be written is an error.
 */
#include <stdlib.h>

#include "reports/terse.h"
#include "t/unit/tap.h"
#include "t/unit/terse-read.h"

static uint32_t roll(uint32_t below)
{
	static uint64_t seed = 1;
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)((seed >> 33) % below);
}

static json_t *random_text(void)
{
	static const char *const text[] = {
		"",
		"a",
		"<",
		"</script><script>",
		"\"",
		"\\",
		"\\\"",
		"a\nb\t\x01",
		"[1,2",
		"]",
		"}",
		"{\"a\": [1, \"b\"]}",
		",",
		": , :",
		"\u20ac\u2028",
		"$0",
	};
	return json_string(text[roll(sizeof(text) / sizeof(*text))]);
}

static json_t *random_value(unsigned depth)
{
	static const char *const key[] = {"a",	"b",	"c",  "__proto__", "",
					  "\"", "<!--", "$a", "\\"};
	unsigned kind = roll(depth ? 10 : 6);
	json_t *v = kind < 8 ? json_array() : json_object();
	if (kind == 0 || kind == 1) {
		json_decref(v);
		return random_text();
	}
	if (kind < 6) {
		json_decref(v);
		return kind == 2   ? json_null()
		       : kind == 3 ? json_boolean(roll(2))
		       : kind == 4 ? json_real((double)roll(1000) / 7 - 60)
				   : json_integer((json_int_t)roll(1000) - 500);
	}
	for (unsigned i = roll(6); i > 0; i--)
		if (kind < 8)
			json_array_append_new(v, random_value(depth - 1));
		else
			json_object_set_new(v, key[roll(9)],
					    random_value(depth - 1));
	return v;
}

/* Written in pieces of @size bytes. */
static char *terse_of(json_t *doc, size_t flags, size_t size)
{
	char *text = json_dumps(doc, flags), *page = NULL;
	size_t len = 0, all = strlen(text);
	FILE *out = open_memstream(&page, &len), *in = terse_open(out);
	setvbuf(in, NULL, _IONBF, 0);
	for (size_t i = 0; i < all; i += size)
		fwrite(text + i, 1, all - i < size ? all - i : size, in);
	bool ok = !ferror(in);
	ok &= !fclose(in);
	fclose(out);
	free(text);
	if (ok)
		return page;
	free(page);
	return NULL;
}

static void check_random(void)
{
	size_t nr_same = 0, nr_safe = 0, nr = 3000;
	for (size_t i = 0; i < nr; i++) {
		json_t *doc = json_object();
		char key[] = "a";
		for (; *key < 'a' + (char)(i % 4); key[0]++)
			json_object_set_new(doc, key, random_value(5));
		char *page = terse_of(
			doc, i % 2 ? JSON_COMPACT : JSON_INDENT(2), 1 + i % 7);
		json_t *got = page ? terse_read(page) : NULL;
		bool same = json_equal(got, doc), safe = page;
		/* Of its own only those around each part. */
		size_t less = 0;
		for (const char *s = page; s && *s; s++)
			less += *s == '<';
		safe = less == 2 * json_object_size(doc);
		nr_same += same;
		nr_safe += safe;
		if (!same)
			printf("# %s\n", page ? page : "an error");
		json_decref(got);
		json_decref(doc);
		free(page);
	}
	check_int(nr_same, nr);
	check_int(nr_safe, nr);
}

static size_t count(const char *text, const char *what)
{
	size_t nr = 0;
	for (; (text = strstr(text, what)) != NULL; text++)
		nr++;
	return nr;
}

static void check_once(void)
{
	json_t *row = json_pack("{s:s,s:i,s:[i,i]}", "name", "long name",
				"value", 7, "series", 1, 2);
	json_t *rows = json_array(), *doc = json_object();
	for (int i = 0; i < 50; i++)
		json_array_append(rows, row);
	json_object_set_new(doc, "rows", rows);
	char *page = terse_of(doc, JSON_COMPACT, 4096);
	check(page != NULL);
	check_int(count(page, "$name"), 1);
	check_int(count(page, "long name"), 1);
	check_int(count(page, "[0,7,\"[1,2]\",0]"), 50);
	json_decref(row);
	json_decref(doc);
	free(page);
}

static bool is_written(const char *text, const char *to)
{
	FILE *out = fopen(to, "w"), *in = terse_open(out);
	fputs(text, in);
	bool ok = !fclose(in);
	return !fclose(out) && ok;
}

static void check_errors(void)
{
	check(is_written("{\"a\": [1]}", "/dev/null"));
	check(is_written("{}", "/dev/null"));
	check(!is_written("{\"a\": [1]", "/dev/null"));
	check(!is_written("{\"a\": 1}}", "/dev/null"));
	check(!is_written("{\"a\": [1]}", "/dev/full"));
}

int main(void)
{
	check_random();
	check_once();
	check_errors();
	return tap_done();
}
