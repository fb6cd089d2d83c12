#include "reports/pattern.h"

#include <string.h>

#define GROUPS_MAX 32	/* in one another */
#define NODES_MAX  4096 /* of the compiled expression */

/* Behind the bracket expression that begins at @s: "[a]", "[^]a]", or its end
 * where it has none. */
static const char *skip_brackets(const char *s)
{
	s++;
	s += *s == '^';
	s += *s == ']';
	return s + strcspn(s, "]") + (strchr(s, ']') != NULL);
}

/* The library copies what stands before a +, so that nested ones double it. */
static uint64_t repeat(const char **s, uint64_t nodes)
{
	for (; **s && strchr("*+?", **s); ++*s)
		nodes *= **s == '+' && nodes <= NODES_MAX ? 2 : 1;
	return nodes;
}

const char *pattern_problem(const char *pattern)
{
	uint64_t nodes[GROUPS_MAX + 1] = {0}; /* of each group that is open */
	unsigned depth = 0;
	if (strlen(pattern) > PATTERN_MAX)
		return "a regular expression has at most 256 bytes";
	for (const char *s = pattern; *s;) {
		uint64_t more = 1;
		if (*s == '\\' && s[1] >= '0' && s[1] <= '9')
			return "back-references are not known";
		if (*s == '{')
			return "counted repetitions {} are not known (write "
			       "\\{ for the character)";
		if (*s == '(') {
			if (++depth > GROUPS_MAX)
				return "too many groups in one another";
			nodes[depth] = 0;
			s++;
			continue;
		}
		if (*s == ')' && depth)
			more = nodes[depth--] + 1;
		if (*s == '[')
			s = skip_brackets(s);
		else
			s += *s == '\\' && s[1] ? 2 : 1;
		nodes[depth] += repeat(&s, more);
		if (nodes[depth] > NODES_MAX)
			return "too many repetitions in one another";
	}
	return NULL;
}
