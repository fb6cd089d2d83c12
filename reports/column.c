#include "reports/column.h"

#include <stdio.h>
#include <string.h>

const char *column_key(const struct column *c, char buf[64])
{
	const char *unit = c->kind == KIND_TIME	   ? "_ns"
			   : c->kind == KIND_SHARE ? "_ppb"
						   : "";
	snprintf(buf, 64, "%s%s", c->name, unit);
	return buf;
}

int value_compare(const struct value *a, const struct value *b, enum kind kind)
{
	if (a->known != b->known)
		return a->known ? -1 : 1;
	if (!a->known)
		return 0;
	if (kind == KIND_TEXT) {
		int c = strcmp(a->text, b->text);
		return (c > 0) - (c < 0);
	}
	return (a->number > b->number) - (a->number < b->number);
}

size_t column_find(const struct column *c, size_t nr, const char *name,
		   size_t len)
{
	for (size_t i = 0; i < nr; i++)
		if (!strncmp(c[i].name, name, len) && !c[i].name[len])
			return i;
	return nr;
}

const char *column_names(const struct column *c, size_t nr, char *buf,
			 size_t size)
{
	size_t at = 0;
	buf[0] = '\0';
	for (size_t i = 0; i < nr && at < size; i++)
		at += (size_t)snprintf(buf + at, size - at, "%s%s",
				       i ? ", " : "", c[i].name);
	return buf;
}
