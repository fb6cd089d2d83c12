/* Numbers of 64 bits without a sign have all their digits in what is written,
 * and texts that look like what stands for one stay texts. */
#include "t/unit/tap.h"

#include <stdlib.h>

#include "reports/json-values.h"

/* Of @v, which is dropped. */
static char *written(json_t *v, size_t flags)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	check_int(json_write(v, f, flags | JSON_ENCODE_ANY), 0);
	fclose(f);
	json_decref(v);
	return text;
}

static void check_written(json_t *v, const char *expected)
{
	char *text = written(v, JSON_COMPACT);
	check_str(text, expected);
	free(text);
}

int main(void)
{
	check_written(json_of_u64(0), "0");
	check_written(json_of_u64(INT64_MAX), "9223372036854775807");
	check_written(json_of_u64(1ULL << 63), "9223372036854775808");
	check_written(json_of_u64(UINT64_MAX), "18446744073709551615");
	check_written(json_of_u64(16167311985727847140u),
		      "16167311985727847140");
	check_written(json_integer(-1), "-1");
	check_written(json_of_text(""), "\"\"");
	check_written(json_of_text("\\u00001\""), "\"\\\\u00001\\\"\"");
	check_written(json_of_text("\"\\u00001\""), "\"\\\"\\\\u00001\\\"\"");
	check_written(json_of_text("\x01"), "\"\\u0001\"");
	check_written(JSON_OBJECT_OF({"a", json_of_u64(UINT64_MAX)},
				     {"b", json_of_text("")},
				     {"c", json_of_u64(UINT64_MAX - 1)}),
		      "{\"a\":18446744073709551615,\"b\":\"\","
		      "\"c\":18446744073709551614}");
	FILE *full = fopen("/dev/full", "w");
	json_t *v = json_of_u64(UINT64_MAX);
	setvbuf(full, NULL, _IONBF, 0);
	check_int(json_write(v, full, JSON_ENCODE_ANY), -1);
	json_decref(v);
	fclose(full);
	return tap_done();
}
