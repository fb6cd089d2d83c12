/*
 * Members behind pointers, as --watch has them: where they are changes while
 * the program runs, so the way there is followed again and again, and what is
 * seen counts only as long as it leads there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/monitor/range-private.h"

size_t range_unit_nr(const struct range_unit *u)
{
	return u->vars->nr_vars + u->most_subscripts + u->nr_pointees;
}

const struct pointee *range_pointee_at(const struct range_unit *u, uint32_t i)
{
	size_t first = u->vars->nr_vars + u->most_subscripts;
	return i < first ? NULL : &u->pointees[i - first];
}

const struct var_type *range_type_at(const struct range_unit *u, uint32_t i)
{
	const struct pointee *p = range_pointee_at(u, i);
	return p ? &p->type : &u->vars->vars[i].type;
}

int range_pointees_find(struct range_unit *u, const struct range_select *select,
			struct sym_space *space, struct smco_err *err)
{
	u->pointees = calloc(select->paths.nr + 1, sizeof(*u->pointees));
	if (!u->pointees)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	for (size_t i = 0; i < select->paths.nr; i++) {
		struct pointee *p = &u->pointees[u->nr_pointees];
		struct smco_err why = {0};
		int rc = pointee_find(space, 1, select->paths.glob[i], p, &why);
		if (rc == SMCO_NOMEM)
			return smco_fail(err, rc, 0, "%s", why.msg);
		if (rc) {
			/* It may be another file that has it. */
			u->why_not = why;
			continue;
		}
		u->found_paths |= 1ULL << i;
		u->nr_pointees++;
	}
	return 0;
}

void range_pointees_free(struct range_unit *u)
{
	for (size_t i = 0; i < u->nr_pointees; i++)
		pointee_deinit(&u->pointees[i]);
	free(u->pointees);
}

bool range_pointee_follow(const struct range_part *rp, const struct pointee *p,
			  struct watch_what *what)
{
	taddr_t at;
	if (!range_part_static(rp, p->root, &at))
		return false;
	at += p->offset[0];
	for (unsigned i = 0; i < p->nr_derefs; i++) {
		uint64_t to;
		if (tmem_read(rp->proc, at, &to, sizeof(to)) || !to)
			return false;
		what->pointer[what->nr_pointers++] =
			(struct watch_pointer){.addr = at, .value = to};
		at = to + p->offset[i + 1];
	}
	what->addr = at;
	return !(at % p->type.width);
}

void range_pointee_look(struct range_part *rp, uint32_t i,
			const struct watch_what *what)
{
	const struct pointee *p = range_pointee_at(rp->unit, i);
	struct watch_what again = {.addr = 0};
	uint64_t word = 0;
	unsigned unused = 64 - 8u * p->type.width;
	/* What was read counts if the way there was the same behind it. */
	if (tmem_read(rp->proc, what->addr, &word, p->type.width) ||
	    !range_loaded_still(rp) || !range_pointee_follow(rp, p, &again) ||
	    again.addr != what->addr)
		return;
	word <<= unused;
	int64_t value = p->type.is_signed ? (int64_t)word >> unused
					  : (int64_t)(word >> unused);
	rp->value[i].hits++;
	range_value_add(&rp->value[i], &p->type, value, value, RANGE_POLLED);
}

void range_pointees_poll(struct range_part *rp)
{
	size_t first = rp->unit->vars->nr_vars + rp->unit->most_subscripts;
	for (uint32_t i = 0; i < rp->unit->nr_pointees; i++) {
		struct watch_what what = {.addr = 0};
		if (range_pointee_follow(rp, &rp->unit->pointees[i], &what))
			range_pointee_look(rp, (uint32_t)first + i, &what);
	}
}
