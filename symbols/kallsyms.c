#include "symbols/kallsyms.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct symbol {
	taddr_t addr;
	uint32_t name, module; /* offsets in text; module 0 = the kernel's own
				*/
};

struct kallsyms {
	struct symbol *symbol; /* by address */
	size_t nr, cap;
	char *text;
	size_t len, room;
};

static const char kernel[] = "[kernel]";

/* Offset of a copy of @s, UINT32_MAX if memory is out. */
static uint32_t keep(struct kallsyms *k, const char *s)
{
	size_t n = strlen(s) + 1;
	if (k->len + n > k->room) {
		size_t room = (k->room + n) * 2;
		char *more = room < UINT32_MAX ? realloc(k->text, room) : NULL;
		if (!more)
			return UINT32_MAX;
		k->text = more;
		k->room = room;
	}
	memcpy(k->text + k->len, s, n);
	k->len += n;
	return (uint32_t)(k->len - n);
}

static bool add(struct kallsyms *k, taddr_t addr, const char *name,
		const char *module)
{
	if (k->nr == k->cap) {
		size_t cap = k->cap ? k->cap * 2 : 4096;
		struct symbol *more =
			realloc(k->symbol, cap * sizeof(*k->symbol));
		if (!more)
			return false;
		k->symbol = more;
		k->cap = cap;
	}
	struct symbol s = {.addr = addr, .name = keep(k, name)};
	s.module = *module ? keep(k, module) : 0;
	if (s.name == UINT32_MAX || s.module == UINT32_MAX)
		return false;
	k->symbol[k->nr++] = s;
	return true;
}

static int by_address(const void *va, const void *vb)
{
	const struct symbol *a = va, *b = vb;
	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	return a->name < b->name ? -1 : a->name > b->name;
}

/* "ffffffff81000000 T name	[module]": code only. False if memory is out. */
static bool take_line(struct kallsyms *k, char *line, bool *hidden)
{
	char *rest, *save = NULL;
	errno = 0;
	taddr_t addr = strtoull(line, &rest, 16);
	if (errno || rest == line || rest[0] != ' ' ||
	    !strchr("tTwW", rest[1]) || !rest[1] || rest[2] != ' ')
		return true;
	const char *name = strtok_r(rest + 3, " \t\n", &save);
	const char *module = name ? strtok_r(NULL, " \t\n", &save) : NULL;
	if (!name)
		return true;
	if (!addr) {
		*hidden = true;
		return true;
	}
	return add(k, addr, name, module ? module : "");
}

int kallsyms_load(const char *path, struct kallsyms **ret, struct smco_err *err)
{
	if (!path)
		path = "/proc/kallsyms";
	FILE *f = fopen(path, "re");
	if (!f)
		return smco_fail(err, SMCO_SYS, errno, "%s", path);
	struct kallsyms *k = calloc(1, sizeof(*k));
	bool ok = k && keep(k, "") != UINT32_MAX, hidden = false;
	char line[1024];
	while (ok && fgets(line, sizeof(line), f))
		ok = take_line(k, line, &hidden);
	fclose(f);
	int rc = !ok	  ? smco_fail(err, SMCO_NOMEM, 0, "out of memory")
		 : k->nr  ? 0
		 : hidden ? smco_fail(err, SMCO_PERM, 0,
				      "%s hides addresses: run as root, or: "
				      "sysctl kernel.kptr_restrict=0",
				      path)
			  : smco_fail(err, SMCO_FORMAT, 0,
				      "%s holds no function", path);
	if (rc) {
		kallsyms_destroy(k);
		return rc;
	}
	qsort(k->symbol, k->nr, sizeof(*k->symbol), by_address);
	*ret = k;
	return 0;
}

void kallsyms_destroy(struct kallsyms *k)
{
	if (!k)
		return;
	free(k->symbol);
	free(k->text);
	free(k);
}

struct kallsyms_name kallsyms_find(const struct kallsyms *k, taddr_t addr)
{
	size_t lo = 0, hi = k->nr;
	while (lo < hi) { /* the last one that is not above it */
		size_t mid = lo + (hi - lo) / 2;
		if (k->symbol[mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return (struct kallsyms_name){"", kernel, 0};
	/* Of several names for one place the first. */
	const struct symbol *s = &k->symbol[lo - 1];
	while (s > k->symbol && s[-1].addr == s->addr)
		s--;
	return (struct kallsyms_name){
		.function = k->text + s->name,
		.module = s->module ? k->text + s->module : kernel,
		.offset = addr - s->addr,
	};
}
