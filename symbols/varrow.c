/* Rows of the line table, see struct var_row. */
#include "symbols/varbuild.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/dwarfdie.h"

static uint64_t addr_of(Dwarf_Lines *lines, size_t i)
{
	Dwarf_Addr addr;
	return dwarf_lineaddr(dwarf_onesrcline(lines, i), &addr) ? 0 : addr;
}

/* The last row at or before @addr; 0 if there is none. */
static size_t row_before(Dwarf_Lines *lines, size_t nr, uint64_t addr)
{
	size_t a = 0, b = nr;
	while (a < b) {
		size_t mid = a + (b - a) / 2;
		if (addr_of(lines, mid) <= addr)
			a = mid + 1;
		else
			b = mid;
	}
	return a ? a - 1 : 0;
}

static void add(struct var_build *b, struct var_row row)
{
	struct variables *v = b->v;
	struct var_row *last = v->nr_rows ? &v->rows[v->nr_rows - 1] : NULL;
	if (last && last->function == row.function && last->addr >= row.addr) {
		/* Several at one address: of the instruction the last. */
		if (last->addr == row.addr)
			*last = row;
		return;
	}
	if (v->nr_rows >= VAR_MAX_PLACES)
		v->cut_short = true;
	else if (var_grow(b, (void **)&v->rows, v->nr_rows, &b->cap_rows,
			  sizeof(*v->rows)))
		v->rows[v->nr_rows++] = row;
}

void var_add_rows(struct var_build *b, const struct var_scope *sc,
		  Dwarf_Die *die)
{
	Dwarf_Die cu;
	Dwarf_Lines *lines;
	size_t nr;
	const char *file = die_decl_file(die);
	/* Of the parts of a function each is elsewhere. */
	if (sc->function == VAR_NO_FUNCTION || sc->nr_ranges != 1 || !file ||
	    !dwarf_diecu(die, &cu, NULL, NULL) ||
	    dwarf_getsrclines(&cu, &lines, &nr))
		return;
	const struct var_range *r = sc->ranges;
	for (size_t i = row_before(lines, nr, r->lo);
	     i < nr && addr_of(lines, i) < r->hi && var_step(b); i++) {
		Dwarf_Line *line = dwarf_onesrcline(lines, i);
		const char *of = dwarf_linesrc(line, NULL, NULL);
		bool end;
		int n;
		if (addr_of(lines, i) < r->lo ||
		    dwarf_lineendsequence(line, &end) || end)
			continue;
		bool known = of && !strcmp(of, file) &&
			     !dwarf_lineno(line, &n) && n > 0;
		add(b, (struct var_row){.addr = addr_of(lines, i),
					.function = sc->function,
					.line = known ? (uint32_t)n : 0});
	}
}

static int compare(const void *pa, const void *pb)
{
	const struct var_row *a = pa, *b = pb;
	if (a->function != b->function)
		return a->function < b->function ? -1 : 1;
	return a->addr < b->addr ? -1 : a->addr > b->addr;
}

void var_sort_rows(struct variables *v)
{
	if (v->nr_rows)
		qsort(v->rows, v->nr_rows, sizeof(*v->rows), compare);
}

const struct var_row *variables_rows(const struct variables *v,
				     uint32_t function, size_t *nr_ret)
{
	size_t a = 0, b = v->nr_rows;
	while (a < b) {
		size_t mid = a + (b - a) / 2;
		if (v->rows[mid].function < function)
			a = mid + 1;
		else
			b = mid;
	}
	for (b = a; b < v->nr_rows && v->rows[b].function == function;)
		b++;
	*nr_ret = b - a;
	return *nr_ret ? v->rows + a : NULL;
}
