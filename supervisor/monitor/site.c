#include "supervisor/monitor/site.h"

#include <stdlib.h>
#include <string.h>

#define MAX_SITES (1u << 22) /* ids come from our own table; a sanity bound */

void sites_deinit(struct sites *s)
{
	free(s->site);
	free(s->dirty);
	memset(s, 0, sizeof(*s));
}

static bool grow(struct sites *s, uint32_t nr)
{
	uint32_t want = s->nr ? s->nr : 64;
	while (want < nr)
		want *= 2;
	struct ev_site *site = realloc(s->site, want * sizeof(*site));
	if (!site)
		return false;
	s->site = site;
	bool *dirty = realloc(s->dirty, want * sizeof(*dirty));
	if (!dirty)
		return false;
	s->dirty = dirty;
	memset(site + s->nr, 0, (want - s->nr) * sizeof(*site));
	memset(dirty + s->nr, 0, (want - s->nr) * sizeof(*dirty));
	s->nr = want;
	return true;
}

struct ev_site *sites_get(struct sites *s, uint32_t stack)
{
	if (stack >= MAX_SITES)
		stack = 0;
	if (stack >= s->nr && !grow(s, stack + 1))
		return NULL;
	s->site[stack].stack = stack;
	s->dirty[stack] = true;
	return &s->site[stack];
}

void sites_emit(struct sites *s, uint64_t time_ns,
		void (*emit)(void *ctx, const struct record *r), void *ctx)
{
	for (uint32_t i = 0; i < s->nr; i++) {
		if (!s->dirty[i])
			continue;
		s->dirty[i] = false;
		struct record r = {
			.event = EV_SITE,
			.time_ns = time_ns,
			.cpu = UINT32_MAX,
			.param = i,
			.payload_len = sizeof(s->site[i]),
			.payload = &s->site[i],
		};
		emit(ctx, &r);
	}
}
