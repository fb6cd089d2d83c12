/*
 * Where a phase begins or ends its sensor has the place of those of variables
 * (ranges_heed_others). Which ones those are is told.
 */
#include <stdio.h>
#include <stdlib.h>

#include "supervisor/monitor/range-private.h"

#define NAMED 4 /* at most */

void range_beside_take(struct range_part *rp)
{
	struct range_unit *u = rp->unit;
	size_t nr;
	const uint32_t *var =
		rp->ranges ? ranges_beside(rp->ranges, &nr) : NULL;
	if (!var || !nr)
		return;
	if (!u->beside)
		u->beside = calloc(u->vars->nr_vars / 8 + 1, 1);
	for (size_t i = 0; u->beside && i < nr; i++)
		u->beside[var[i] / 8] |= (uint8_t)(1 << var[i] % 8);
}

/* Behind @len bytes of @buf. */
static size_t name(const struct range_unit *u, uint32_t i, char *buf,
		   size_t size, size_t len)
{
	if (len >= size)
		return len;
	return len + (size_t)snprintf(buf + len, size - len, "%s%s",
				      len ? ", " : "",
				      u->vars->vars[i].qualified);
}

void range_beside_tell(struct range_monitor *m)
{
	char names[300] = "", text[440];
	size_t nr = 0, len = 0;
	for (struct range_part *rp = m->parts; rp; rp = rp->next)
		range_beside_take(rp);
	for (const struct range_unit *u = m->units; u; u = u->next)
		for (uint32_t i = 0; u->beside && i < u->vars->nr_vars; i++)
			if (u->beside[i / 8] & 1 << i % 8 && nr++ < NAMED)
				len = name(u, i, names, sizeof(names), len);
	if (!nr)
		return;
	snprintf(text, sizeof(text),
		 "not all that %s%s assigned is seen by sensors: phases begin "
		 "or end there",
		 names,
		 nr > NAMED ? " and others are"
		 : nr > 1   ? " are"
			    : " is");
	m->p.put_meta(m->p.ctx, "range.beside", text);
}
