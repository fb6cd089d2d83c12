#include "reports/suppress.h"

#include <stdlib.h>
#include <string.h>

#include "reports/array.h"
#include "reports/quantity.h"
#include "reports/source.h"

#define SUPPRESSIONS_MAX (16u << 20) /* bytes of a file */

struct suppress {
	char **pattern; /* each owned */
	size_t nr, cap;
};

bool suppress_pattern_matches(const char *pattern, const char *text)
{
	size_t len = strlen(pattern);
	bool from_start = len && pattern[0] == '^';
	if (from_start) {
		pattern++;
		len--;
	}
	bool to_end = len && pattern[len - 1] == '$';
	len -= to_end;
	if (!len)
		return from_start && to_end && !*text;
	/* Greedy, with one place to go back to, behind the last *: a later *
	 * makes all choices before it irrelevant. Without an anchor there is
	 * one in front. */
	const char *resume = from_start ? NULL : text;
	for (size_t i = 0, after = 0;;) {
		if (i < len && pattern[i] == '*') {
			after = ++i;
			resume = text;
		} else if (i == len && (!to_end || !*text)) {
			return true;
		} else if (i < len && *text && pattern[i] == *text) {
			i++;
			text++;
		} else if (resume && *resume) {
			text = ++resume;
			i = after;
		} else {
			return false;
		}
	}
}

bool suppress_matches(const struct suppress *s, const struct trace_frame *f,
		      size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		for (size_t j = 0; j < s->nr; j++)
			if (suppress_pattern_matches(s->pattern[j],
						     f[i].function) ||
			    suppress_pattern_matches(s->pattern[j],
						     f[i].file) ||
			    suppress_pattern_matches(s->pattern[j],
						     f[i].module))
				return true;
	return false;
}

static int take_line(struct suppress *s, const char *name, size_t nr,
		     const char *line, size_t len, struct smco_err *err)
{
	static const char kind[] = "leak:";
	const size_t n = sizeof(kind) - 1;
	char copy[64], quote[48];
	while (len && strchr(" \t\r", line[len - 1]))
		len--;
	while (len && strchr(" \t", *line)) {
		line++;
		len--;
	}
	if (!len || *line == '#')
		return SMCO_OK;
	if (len <= n || strncmp(line, kind, n) || memchr(line, '\0', len)) {
		size_t some = len < sizeof(copy) ? len : sizeof(copy) - 1;
		memcpy(copy, line, some);
		copy[some] = '\0';
		return smco_fail(err, SMCO_FORMAT, 0,
				 "%s:%zu: '%s' is no suppression (as "
				 "leak:PATTERN)",
				 name, nr,
				 quantity_quote(copy, quote, sizeof(quote)));
	}
	if (!ARRAY_ROOM(s->pattern, s->nr, s->cap) ||
	    !(s->pattern[s->nr] = strndup(line + n, len - n)))
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	s->nr++;
	return SMCO_OK;
}

int suppress_parse(const char *name, const char *text, size_t len,
		   struct suppress **ret, struct smco_err *err)
{
	struct suppress *s = calloc(1, sizeof(*s));
	int rc = SMCO_OK;
	if (!s)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	for (size_t nr = 1; len && !rc; nr++) {
		const char *end = memchr(text, '\n', len);
		size_t n = end ? (size_t)(end - text) : len;
		rc = take_line(s, name, nr, text, n, err);
		n += end != NULL;
		text += n;
		len -= n;
	}
	if (rc)
		suppress_free(s);
	else
		*ret = s;
	return rc;
}

int suppress_load(const char *path, struct suppress **ret, struct smco_err *err)
{
	struct source file;
	int rc = source_open(&file, path, err);
	char *text = NULL;
	if (!rc && file.size > SUPPRESSIONS_MAX)
		rc = smco_fail(err, SMCO_FORMAT, 0,
			       "%s is too large for suppressions (%u MiB at "
			       "most)",
			       path, SUPPRESSIONS_MAX >> 20);
	if (!rc && !(text = malloc(file.size + 1)))
		rc = smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	if (!rc && !source_read(&file, 0, text, file.size))
		rc = smco_fail(err, SMCO_SYS, 0, "cannot read %s", path);
	if (!rc)
		rc = suppress_parse(path, text, file.size, ret, err);
	free(text);
	source_close(&file);
	return rc;
}

void suppress_free(struct suppress *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->nr; i++)
		free(s->pattern[i]);
	free(s->pattern);
	free(s);
}
