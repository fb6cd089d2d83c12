#include "reports/diff-pool.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "reports/array.h"
#include "reports/names.h"

const char diff_pool_empty[] = "";

void diff_pool_free(struct diff_pool *p)
{
	for (size_t i = 0; i < p->nr; i++)
		free(p->text[i]);
	free(p->text);
	hindex_free(&p->index);
	*p = (struct diff_pool){0};
}

struct text_key {
	const struct diff_pool *pool;
	const char *text;
	size_t len;
};

static bool same_text(const void *ctx, uint32_t value)
{
	const struct text_key *k = ctx;
	const char *s = k->pool->text[value];
	return !strncmp(s, k->text, k->len) && !s[k->len];
}

const char *diff_pool_textn(struct diff_pool *p, const char *s, size_t n)
{
	struct text_key key = {p, s, n};
	uint64_t hash = hindex_hash(0, s, n);
	uint32_t found;
	if (!n)
		return diff_pool_empty;
	if (hindex_find(&p->index, hash, same_text, &key, &found))
		return p->text[found];
	char *copy = ARRAY_ROOM(p->text, p->nr, p->cap) ? strndup(s, n) : NULL;
	if (!copy || !hindex_add(&p->index, hash, (uint32_t)p->nr)) {
		free(copy);
		p->failed = true;
		return diff_pool_empty;
	}
	p->text[p->nr++] = copy;
	return copy;
}

const char *diff_pool_text(struct diff_pool *p, const char *s)
{
	return diff_pool_textn(p, s, strlen(s));
}

static bool is_digits(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isdigit((unsigned char)s[i]))
			return false;
	return n > 0;
}

/* Is [s, s + n) what stands behind a dot of a clone: a number or a word? */
static bool is_clone_part(const char *s, size_t n)
{
	static const char *const word[] = {
		"constprop", "isra",	   "part",  "cold",   "lto_priv",
		"llvm",	     "localalias", "clone", "__uniq", "warm",
	};
	if (is_digits(s, n))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(word); i++)
		if (strlen(word[i]) == n && !memcmp(word[i], s, n))
			return true;
	return false;
}

/* Length of "...::h0123456789abcdef" without Rust's hash of the crate. */
static size_t without_hash(const char *s, size_t n)
{
	if (n < 20 || memcmp(s + n - 19, "::h", 3))
		return n;
	for (size_t i = n - 16; i < n; i++)
		if (!isxdigit((unsigned char)s[i]))
			return n;
	return n - 19;
}

static const char *last_dot(const char *s, size_t n)
{
	return memrchr(s, '.', n);
}

const char *diff_pool_function(struct diff_pool *p, const char *function)
{
	size_t n = strlen(function);
	const char *at = strchr(function, '@');
	if (at && at > function) /* of an ELF symbol version, or @plt */
		n = (size_t)(at - function);
	for (;;) {
		static const char clone[] = " [clone ";
		const char *dot = last_dot(function, n);
		const char *space = n ? memrchr(function, '[', n) : NULL;
		if (space && function[n - 1] == ']' && space > function &&
		    !strncmp(space - 1, clone, sizeof(clone) - 1))
			n = (size_t)(space - 1 - function);
		else if (dot && dot > function &&
			 is_clone_part(dot + 1,
				       n - (size_t)(dot + 1 - function)))
			n = (size_t)(dot - function);
		else
			break;
	}
	return diff_pool_textn(p, function, without_hash(function, n));
}

const char *diff_pool_stem(struct diff_pool *p, const char *function)
{
	static const char anonymous[] = "(anonymous namespace)";
	char buf[NAMES_MAX];
	names_cut_templates(function, buf, sizeof(buf));
	char *paren = strchr(buf, '(');
	while (paren &&
	       (!strncmp(paren, anonymous, sizeof(anonymous) - 1) ||
		(paren - buf >= 8 && !strncmp(paren - 8, "operator", 8))))
		paren = strchr(paren + 1, '(');
	return diff_pool_textn(p, buf,
			       paren ? (size_t)(paren - buf) : strlen(buf));
}

const char *diff_pool_file(struct diff_pool *p, const char *path)
{
	return diff_pool_text(p, names_file(path));
}

const char *diff_pool_module(struct diff_pool *p, const char *path)
{
	const char *name = names_file(path);
	const char *so = strstr(name, ".so.");
	return diff_pool_textn(p, name,
			       so ? (size_t)(so + 3 - name) : strlen(name));
}
