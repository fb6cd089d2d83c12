/* Damerau's distance, and the few names with the smallest. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "pmu/event-private.h"

#define MAX_LEN 80

/* Case and separators are not what somebody means to say. */
static unsigned char fold(char c)
{
	if (c == '_' || c == '.' || c == ':' || c == '-')
		return '-';
	return (unsigned char)tolower((unsigned char)c);
}

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	unsigned m = a < b ? a : b;
	return m < c ? m : c;
}

/* Insertions, deletions, replacements and swaps of neighbours. */
static unsigned distance(const char *a, const char *b)
{
	size_t la = strnlen(a, MAX_LEN), lb = strnlen(b, MAX_LEN);
	unsigned row[3][MAX_LEN + 1];
	for (size_t j = 0; j <= lb; j++)
		row[0][j] = (unsigned)j;
	for (size_t i = 1; i <= la; i++) {
		unsigned *now = row[i % 3], *last = row[(i - 1) % 3];
		const unsigned *before = row[(i + 1) % 3];
		now[0] = (unsigned)i;
		for (size_t j = 1; j <= lb; j++) {
			unsigned char x = fold(a[i - 1]), y = fold(b[j - 1]);
			now[j] = min3(last[j] + 1, now[j - 1] + 1,
				      last[j - 1] + (x != y));
			if (i > 1 && j > 1 && x == fold(b[j - 2]) &&
			    y == fold(a[i - 2]) && before[j - 2] + 1 < now[j])
				now[j] = before[j - 2] + 1;
		}
	}
	return row[la % 3][lb];
}

void nearest_init(struct nearest *n, const char *wanted)
{
	*n = (struct nearest){.wanted = wanted};
}

void nearest_offer(struct nearest *n, const char *name)
{
	size_t len = strlen(n->wanted);
	unsigned most = len < 4 ? 1 : (unsigned)len / 3;
	unsigned d = distance(n->wanted, name);
	/* The beginning of a long name is near, too. */
	if (d > most && len >= 4 && strlen(name) > len) {
		char head[MAX_LEN + 1];
		snprintf(head, sizeof(head), "%.*s",
			 (int)(len < MAX_LEN ? len : MAX_LEN), name);
		if (distance(n->wanted, head) == 0)
			d = most;
	}
	if (d <= most)
		nearest_add(n, name, d);
}

void nearest_add(struct nearest *n, const char *name, unsigned d)
{
	size_t at = n->nr;
	for (size_t i = 0; i < n->nr; i++)
		if (!distance(n->name[i], name))
			return;
	while (at && n->distance[at - 1] > d)
		at--;
	if (at == NEAREST_NR)
		return;
	if (n->nr < NEAREST_NR)
		n->nr++;
	for (size_t i = n->nr - 1; i > at; i--) {
		memcpy(n->name[i], n->name[i - 1], sizeof(n->name[i]));
		n->distance[i] = n->distance[i - 1];
	}
	snprintf(n->name[at], sizeof(n->name[at]), "%s", name);
	n->distance[at] = d;
}

const char *nearest_list(const struct nearest *n, char *buf, size_t size)
{
	size_t len = 0;
	buf[0] = '\0';
	for (size_t i = 0; i < n->nr && len < size; i++)
		len += (size_t)snprintf(buf + len, size - len, "%s%s",
					i ? ", " : "", n->name[i]);
	return buf;
}
