/*
 * First values: what variables have before the program gives them one, which no
 * sensor sees. They count of variables that sensors have seen; of others they
 * are all there is, and the range says so. Elements of arrays begin with what
 * they are given: the array as a whole is looked at.
 */
#include <stdlib.h>

#include "supervisor/monitor/range-private.h"

/* The linker may still have to put an address there. */
static bool may_be_relocated(const struct range_unit *u, uint64_t addr,
			     const struct var_type *t)
{
	return t->width == sizeof(taddr_t) && range_plan_in_file(u->plan, addr);
}

int range_firsts_find(struct range_unit *u)
{
	const struct variables *v = u->vars;
	u->firsts = calloc(v->nr_vars + 1, sizeof(*u->firsts));
	if (!u->firsts)
		return SMCO_NOMEM;
	for (size_t k = 0; u->plan && k < u->nr_kept; k++) {
		uint32_t i = u->kept[k];
		const struct variable *var = &v->vars[i];
		if (u->is_polled[i / 8] & 1 << i % 8 || var->type.nr_dims ||
		    var->flags & VAR_ELEMENT)
			continue;
		uint64_t addr = (uint64_t)v->places[var->first_place].offset;
		if (data_export_find(&u->slots, addr) ||
		    may_be_relocated(u, addr, &var->type))
			continue;
		u->firsts[u->nr_firsts] = (struct range_poll){
			.var = i,
			.addr = addr,
			.len = var->type.width,
			.at = u->nr_firsts,
		};
		u->nr_firsts++;
	}
	free(u->kept);
	u->kept = NULL;
	u->nr_kept = 0;
	range_polls_sort(u->firsts, u->nr_firsts);
	return 0;
}

static void see(struct range_part *rp, const struct range_poll *p,
		const uint8_t *now)
{
	rp->first[p->at] = (struct range_first){
		range_value_at(&rp->unit->vars->vars[p->var].type, now), true};
}

void range_firsts_look(struct range_monitor *m, struct range_part *rp)
{
	const struct range_unit *u = rp->unit;
	range_polls_read(rp, u->firsts, u->nr_firsts, see, m->buf);
}

void range_firsts_collect(struct range_part *rp)
{
	const struct range_unit *u = rp->unit;
	for (size_t i = 0; i < u->nr_firsts; i++) {
		uint32_t var = u->firsts[i].var;
		const struct range_first *f = &rp->first[u->firsts[i].at];
		if (f->is_known && rp->value[var].flags & RANGE_SENSED)
			range_value_add(&rp->value[var],
					&u->vars->vars[var].type, f->value,
					f->value, RANGE_SENSED);
	}
}

void range_firsts_settle(struct range_part *rp)
{
	const struct range_unit *u = rp->unit;
	for (size_t i = 0; i < u->nr_firsts; i++) {
		uint32_t var = u->firsts[i].var;
		const struct range_first *f = &rp->first[u->firsts[i].at];
		if (f->is_known && !rp->value[var].flags)
			range_value_add(&rp->value[var],
					&u->vars->vars[var].type, f->value,
					f->value, RANGE_INITIAL);
	}
}
