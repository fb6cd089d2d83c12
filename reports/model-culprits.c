/* Who stands out among those who ended the naps of a site or used the blocks
 * before: counted by allocation stack while naps are added up. */
#include "reports/model.h"

#include <stdlib.h>

#include "reports/array.h"
#include "reports/names.h"

#define LAST_USED (-1) /* in the place of an enum nap_end */

#define MANY 4096 /* of a stack: then equal ones are joined */

struct model_tally {
	int32_t end; /* enum nap_end or LAST_USED */
	struct model_culprit who;
};

static int compare_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_culprits(const void *va, const void *vb)
{
	const struct model_culprit *a = va, *b = vb;
	int c = compare_u64(a->stack, b->stack);
	return c ? c : compare_u64((uint32_t)a->syscall, (uint32_t)b->syscall);
}

static void join(struct model_culprit *to, const struct model_culprit *from)
{
	to->nr += from->nr;
	to->nr_nearby += from->nr_nearby;
}

/* ------------------------------------------------------------- counting --- */

static int compare_tallies(const void *va, const void *vb)
{
	const struct model_tally *a = va, *b = vb;
	int c = compare_u64((uint32_t)a->end, (uint32_t)b->end);
	return c ? c : compare_culprits(&a->who, &b->who);
}

/* The last stack's equal ones as one. */
static void join_last(struct summary *s)
{
	struct model_stack *stack = &s->stack[s->tallied_stack];
	struct model_tally *t = s->tally + stack->first_tally;
	size_t kinds = 0;
	if (!stack->nr_tallies)
		return;
	qsort(t, stack->nr_tallies, sizeof(*t), compare_tallies);
	for (size_t i = 0; i < stack->nr_tallies; i++) {
		if (kinds && !compare_tallies(&t[kinds - 1], &t[i]))
			join(&t[kinds - 1].who, &t[i].who);
		else
			t[kinds++] = t[i];
	}
	s->nr_tallies -= stack->nr_tallies - kinds;
	stack->nr_tallies = kinds;
	s->many_tallies = kinds > MANY / 2 ? 2 * kinds : MANY;
}

static int count(struct summary *s, const struct model_tally *new)
{
	struct model_stack *stack = &s->stack[s->tallied_stack];
	if (stack->nr_tallies >= s->many_tallies)
		join_last(s);
	if (!ARRAY_ROOM(s->tally, s->nr_tallies, s->cap_tallies))
		return SMCO_NOMEM;
	if (!stack->nr_tallies++)
		stack->first_tally = s->nr_tallies;
	s->tally[s->nr_tallies++] = *new;
	return SMCO_OK;
}

/* Between stacks nothing but that of the last one changes. */
static void turn_to(struct summary *s, uint32_t stack)
{
	if (s->nr_tallies)
		join_last(s);
	s->tallied_stack = stack;
	s->many_tallies = MANY;
}

int model_culprits_take(struct summary *s, const struct model_nap *nap)
{
	const struct ev_nap *n = &nap->nap;
	struct model_tally used = {
		.end = LAST_USED,
		.who = {.stack = n->last_stack, .nr = 1, .syscall = -1},
	};
	struct model_tally ended = {
		.end = (int32_t)model_nap_end(n),
		.who = {.stack = n->ended_stack,
			.nr = 1,
			.nr_nearby = !!(n->flags & NAP_END_NEARBY),
			.syscall = -1},
	};
	if (ended.end == END_SYSCALL)
		ended.who.syscall = n->ended_syscall;
	if (nap->site != s->tallied_stack || !s->many_tallies)
		turn_to(s, nap->site);
	if (used.who.stack && count(s, &used))
		return SMCO_NOMEM;
	if ((ended.who.stack || ended.who.syscall >= 0) && count(s, &ended))
		return SMCO_NOMEM;
	return SMCO_OK;
}

void model_culprits_finish(struct summary *s)
{
	if (s->nr_tallies)
		join_last(s);
}

/* -------------------------------------------------------------- the most ---
 */

static int compare_counts(const void *va, const void *vb)
{
	const struct model_culprit *a = va, *b = vb;
	int c = -compare_u64(a->nr, b->nr);
	return c ? c : compare_culprits(va, vb);
}

static bool same_culprit(const struct summary *s, const struct model_culprit *a,
			 const struct model_culprit *b)
{
	size_t na = 0, nb = 0;
	if (a->syscall != b->syscall)
		return false;
	if (a->stack == b->stack)
		return true;
	const struct trace_frame *fa = model_frames(s, a->stack, &na);
	const struct trace_frame *fb = model_frames(s, b->stack, &nb);
	if (!fa || !fb || na != nb)
		return false;
	for (size_t i = 0; i < na; i++)
		if (!names_same_frame(&fa[i], &fb[i]))
			return false;
	return true;
}

/* The one of @c with most naps. Equal ids are joined first, then what looks
 * the same among those with most naps. */
static struct model_culprit most_of(const struct summary *s,
				    struct model_culprit *c, size_t nr)
{
	size_t kinds = 0;
	if (!nr)
		return (struct model_culprit){.syscall = -1};
	qsort(c, nr, sizeof(*c), compare_culprits);
	for (size_t i = 0; i < nr; i++) {
		if (kinds && !compare_culprits(&c[kinds - 1], &c[i]))
			join(&c[kinds - 1], &c[i]);
		else
			c[kinds++] = c[i];
	}
	qsort(c, kinds, sizeof(*c), compare_counts);
	size_t some = kinds < 64 ? kinds : 64, best = 0;
	for (size_t i = 0; i < some; i++)
		for (size_t j = 0; j < i; j++)
			if (c[j].nr && same_culprit(s, &c[j], &c[i])) {
				join(&c[j], &c[i]);
				c[i].nr = 0;
				break;
			}
	for (size_t i = 1; i < some; i++)
		if (c[i].nr > c[best].nr)
			best = i;
	return c[best];
}

static struct model_culprit culprit(const struct summary *s,
				    const struct model_site *site, int end)
{
	struct model_culprit best = {.syscall = -1};
	struct model_culprit *all = NULL;
	size_t nr = 0, cap = 0;
	for (size_t i = 0; i < site->nr_stacks; i++) {
		const struct model_stack *stack = &s->stack[site->member[i]];
		for (size_t j = 0; j < stack->nr_tallies; j++) {
			const struct model_tally *t =
				&s->tally[stack->first_tally + j];
			if (t->end != end)
				continue;
			if (!ARRAY_ROOM(all, nr, cap)) {
				free(all);
				return best;
			}
			all[nr++] = t->who;
		}
	}
	best = most_of(s, all, nr);
	free(all);
	return best;
}

struct model_culprit model_ended_by(const struct summary *s,
				    const struct model_site *site,
				    enum nap_end end)
{
	return culprit(s, site, (int)end);
}

struct model_culprit model_last_used_by(const struct summary *s,
					const struct model_site *site)
{
	return culprit(s, site, LAST_USED);
}
