#include "supervisor/events-page.h"

#include <string.h>

#include "pmu/list.h"

#define MAX_REASONS 16
#define DESC_MAX    200

struct page {
	FILE *out;
	struct reason {
		char kind[48];
		char why[320];
	} reason[MAX_REASONS];
	size_t nr_reasons;
};

static void note_reason(struct page *p, const struct pmu_listed *l)
{
	for (size_t i = 0; i < p->nr_reasons; i++)
		if (!strcmp(p->reason[i].kind, l->kind) ||
		    !strcmp(p->reason[i].why, l->why->msg))
			return;
	if (p->nr_reasons == MAX_REASONS)
		return;
	struct reason *r = &p->reason[p->nr_reasons++];
	snprintf(r->kind, sizeof(r->kind), "%s", l->kind);
	snprintf(r->why, sizeof(r->why), "%s", l->why->msg);
}

static void print_one(void *ctx, const struct pmu_listed *l)
{
	struct page *p = ctx;
	fprintf(p->out, "%-3s  %-44s  %s%s%.*s\n", l->is_here ? "yes" : "no",
		l->name, l->kind, *l->desc ? ": " : "", DESC_MAX, l->desc);
	if (!l->is_here)
		note_reason(p, l);
}

size_t events_print(FILE *out, const char *glob)
{
	struct page p = {.out = out};
	size_t nr = pmu_list(glob, print_one, &p);
	for (size_t i = 0; i < p.nr_reasons; i++)
		fprintf(out, "%s# %s: %s\n", i ? "" : "\n", p.reason[i].kind,
			p.reason[i].why);
	return nr;
}
