#include "reports/nap-json.h"

#include <jansson.h>
#include <string.h>

#include "reports/names.h"

static void put(struct bbuf *b, const char *s)
{
	bbuf_put(b, s, strlen(s));
}

static void put_key(struct bbuf *b, const char *key)
{
	put(b, b->data[b->len - 1] == '{' ? "\"" : ",\"");
	put(b, key);
	put(b, "\":");
}

/* As jansson writes them: integers are signed, only a forged trace has larger
 * ones. */
static void put_number(struct bbuf *b, const char *key, uint64_t v)
{
	char digits[40];
	size_t at = sizeof(digits);
	put_key(b, key);
	if (v > INT64_MAX) {
		json_t *real = json_real((double)v);
		size_t n = json_dumpb(real, digits, sizeof(digits),
				      JSON_ENCODE_ANY);
		json_decref(real);
		bbuf_put(b, digits, n < sizeof(digits) ? n : 0);
		return;
	}
	do {
		digits[--at] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	bbuf_put(b, digits + at, sizeof(digits) - at);
}

static void put_or_null(struct bbuf *b, const char *key, uint64_t v)
{
	if (v) {
		put_number(b, key, v);
		return;
	}
	put_key(b, key);
	put(b, "null");
}

static void put_address(struct bbuf *b, const char *key, uint64_t v)
{
	char hex[20];
	size_t at = sizeof(hex);
	do {
		hex[--at] = "0123456789abcdef"[v % 16];
		v /= 16;
	} while (v);
	put_key(b, key);
	put(b, "\"0x");
	bbuf_put(b, hex + at, sizeof(hex) - at);
	put(b, "\"");
}

/* @word needs no escapes. */
static void put_word(struct bbuf *b, const char *key, const char *word)
{
	put_key(b, key);
	put(b, "\"");
	put(b, word);
	put(b, "\"");
}

static void put_flag(struct bbuf *b, const char *key, bool v)
{
	put_key(b, key);
	put(b, v ? "true" : "false");
}

void nap_json(struct bbuf *b, const struct model_nap *m)
{
	const struct ev_nap *n = &m->nap;
	char name[NAMES_MAX];
	put(b, "{");
	if (b->failed)
		return;
	put_number(b, "file", m->file);
	put_number(b, "object", m->object);
	put_number(b, "pid", n->pid);
	put_address(b, "addr", n->addr);
	put_number(b, "size", n->size);
	put_number(b, "start_ns", n->start_ns);
	put_number(b, "length_ns", n->length_ns);
	put_number(b, "error_ns", n->error_ns);
	put_or_null(b, "alloc_ns", n->alloc_ns);
	put_or_null(b, "alloc_stack", n->alloc_stack);
	put_or_null(b, "last_stack", n->last_stack);
	put_or_null(b, "ended_stack", n->ended_stack);
	put_word(b, "ended", model_nap_end_name(model_nap_end(n)));
	if (n->ended_syscall < 0)
		put_or_null(b, "syscall", 0);
	else
		put_word(b, "syscall", names_syscall(n->ended_syscall, name));
	put_flag(b, "never_accessed", n->flags & NAP_NEVER_ACCESSED);
	put_flag(b, "writes_only", n->flags & NAP_WRITES_ONLY);
	put_flag(b, "head_unseen", n->flags & NAP_HEAD_UNSEEN);
	put_flag(b, "seen_nearby", n->flags & NAP_END_NEARBY);
	put(b, "}");
}
