#include "supervisor/monitor/phase-name.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/symbols.h"

/* Names have no colon by itself, and begin like none of our options. */
static bool is_function_name(const char *s)
{
	if (!isalpha((unsigned char)*s) && !strchr("_$<({~", *s))
		return false;
	for (; *s; s++) {
		if (iscntrl((unsigned char)*s))
			return false;
		if (*s == ':' && *++s != ':')
			return false;
	}
	return true;
}

bool phase_name_split(const char *name, struct phase_name *ret)
{
	*ret = (struct phase_name){.function = NULL};
	if (strncmp(name, "sdt:", 4) != 0) {
		ret->function = name;
		return *name && is_function_name(name);
	}
	const char *provider = name + 4, *colon = strchr(provider, ':');
	if (!colon || colon == provider || !colon[1] ||
	    strchr(colon + 1, ':') ||
	    (size_t)(colon - provider) >= sizeof(ret->provider) ||
	    strlen(colon + 1) >= sizeof(ret->name))
		return false;
	memcpy(ret->provider, provider, (size_t)(colon - provider));
	ret->provider[colon - provider] = '\0';
	memcpy(ret->name, colon + 1, strlen(colon + 1) + 1);
	return true;
}

/* What @probe is by its name; *len_ret: characters of its name without the
 * ending.
 */
static enum mark_kind kind_of(const struct sdt_probe *probe, size_t *len_ret)
{
	static const struct {
		const char *ending;
		enum mark_kind kind;
	} endings[] = {
		{"__begin", MARK_BEGIN},
		{"__end", MARK_END},
		{"__entry", MARK_BEGIN},
		{"__return", MARK_END},
	};
	size_t len = strlen(probe->name);
	*len_ret = len;
	for (size_t i = 0; i < ARRAY_SIZE(endings); i++) {
		size_t n = strlen(endings[i].ending);
		if (len <= n ||
		    strcmp(probe->name + len - n, endings[i].ending) != 0)
			continue;
		*len_ret = len - n;
		return endings[i].kind;
	}
	return MARK_POINT;
}

enum mark_kind phase_name_matches(const struct phase_name *n,
				  const struct sdt_probe *probe)
{
	size_t len;
	enum mark_kind kind = kind_of(probe, &len);
	if (strcmp(n->provider, probe->provider) != 0)
		return MARK_NONE;
	if (!strcmp(n->name, probe->name)) /* asked for by its whole name */
		return MARK_POINT;
	return strlen(n->name) == len && !memcmp(n->name, probe->name, len)
		       ? kind
		       : MARK_NONE;
}

void phase_name_offer(struct nearest *n, const struct sdt_probe *probe)
{
	char name[256];
	size_t len;
	kind_of(probe, &len);
	snprintf(name, sizeof(name), "sdt:%s:%.*s", probe->provider, (int)len,
		 probe->name);
	nearest_offer(n, name);
}

/* --- functions --- */

/* Length of @symbol without what compilers append for copies of it. */
static size_t base_length(const char *symbol)
{
	static const char *const copies[] = {".isra", ".constprop", ".lto_priv",
					     ".llvm"};
	size_t len = strlen(symbol);
	for (size_t i = 0; i < ARRAY_SIZE(copies); i++) {
		const char *at = strstr(symbol, copies[i]);
		size_t n = strlen(copies[i]);
		if (at && at > symbol && at[n] == '.' &&
		    (size_t)(at - symbol) < len)
			len = (size_t)(at - symbol);
	}
	return len;
}

static bool has_ending(const char *symbol, const char *ending)
{
	const char *at = strstr(symbol, ending);
	size_t n = strlen(ending);
	return at && at > symbol && (!at[n] || at[n] == '.');
}

bool phase_name_is_part(const char *symbol)
{
	return has_ending(symbol, ".cold");
}

/* Behind a group of @open and @close; @s if there is none. */
static const char *past_group(const char *s, char open, char close)
{
	int depth = 0;
	for (const char *at = s; *at == open || depth; at++) {
		if (!*at)
			return s;
		depth += (*at == open) - (*at == close);
		if (!depth)
			return at + 1;
	}
	return s;
}

/* Arguments of a template, parameters, what may follow: nothing else. */
static bool only_parameters(const char *s)
{
	static const char *const behind[] = {" const", " volatile", " &&",
					     " &"};
	s = past_group(s, '<', '>');
	s = past_group(s, '(', ')');
	for (size_t i = 0; i < ARRAY_SIZE(behind); i++)
		if (!strncmp(s, behind[i], strlen(behind[i])))
			s += strlen(behind[i]);
	return !*s;
}

/* The last word of @name must be in the mangled one, too: few are read. */
static bool may_be(const char *name, const char *symbol)
{
	char word[64];
	size_t end = strcspn(name, "<("), begin;
	while (end && !isalnum((unsigned char)name[end - 1]) &&
	       name[end - 1] != '_')
		end--;
	for (begin = end; begin; begin--)
		if (!isalnum((unsigned char)name[begin - 1]) &&
		    name[begin - 1] != '_')
			break;
	if (begin == end || strstr(name, "operator"))
		return true;
	snprintf(word, sizeof(word), "%.*s", (int)(end - begin), name + begin);
	return strstr(symbol, word);
}

static bool is_readable(const char *name, const char *readable)
{
	for (const char *at = readable; (at = strstr(at, name)); at++)
		if ((at == readable || at[-1] == ' ') &&
		    only_parameters(at + strlen(name)))
			return true;
	return false;
}

bool phase_name_is_function(const struct phase_name *n, const char *symbol)
{
	if (!n->function || phase_name_is_part(symbol) ||
	    has_ending(symbol, ".part"))
		return false;
	size_t len = base_length(symbol);
	if (strlen(n->function) == len && !memcmp(n->function, symbol, len))
		return true;
	if (symbol[0] != '_' || !may_be(n->function, symbol))
		return false;
	_cleanup_free_ char *base = strndup(symbol, len);
	_cleanup_free_ char *readable = base ? sym_readable(base) : NULL;
	return readable && is_readable(n->function, readable);
}

void phase_name_offer_function(struct nearest *n, const char *symbol)
{
	_cleanup_free_ char *readable =
		symbol[0] == '_' ? sym_readable(symbol) : NULL;
	if (readable &&
	    *past_group(readable + strcspn(readable, "("), '(', ')') == '\0')
		readable[strcspn(readable, "(")] = '\0';
	nearest_offer(n, readable ? readable : symbol);
}
