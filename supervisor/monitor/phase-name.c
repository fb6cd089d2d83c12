#include "supervisor/monitor/phase-name.h"

#include <stdio.h>
#include <string.h>

bool phase_name_split(const char *name, struct phase_name *ret)
{
	if (strncmp(name, "sdt:", 4) != 0)
		return false;
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
