/* Types of one number: integers, characters, bools and enums. */
#include "symbols/varbuild.h"

#include <dwarf.h>
#include <stdlib.h>

#include "symbols/dwarfdie.h"

static bool is_width(int size)
{
	return size == 1 || size == 2 || size == 4 || size == 8;
}

bool var_base_type(Dwarf_Die *die, struct var_type *t)
{
	uint64_t encoding;
	int size = dwarf_bytesize(die);
	if (!is_width(size) || !die_number(die, DW_AT_encoding, &encoding))
		return false;
	t->width = (uint8_t)size;
	switch (encoding) {
	case DW_ATE_signed:
		t->is_signed = true;
		break;
	case DW_ATE_unsigned:
		break;
	case DW_ATE_signed_char:
		t->is_signed = true;
		t->class_ = VAR_CHAR;
		break;
	case DW_ATE_unsigned_char:
	case DW_ATE_UTF:
		t->class_ = VAR_CHAR;
		break;
	case DW_ATE_boolean:
		t->class_ = VAR_BOOL;
		break;
	default:
		return false;
	}
	return true;
}

static int compare_enumerators(const void *pa, const void *pb)
{
	const struct var_enumerator *a = pa, *b = pb;
	return a->value < b->value ? -1 : a->value > b->value;
}

/* Read the enumerators of @die behind those known already. */
static void read_enumerators(struct var_build *b, Dwarf_Die *die,
			     struct enum_span *span)
{
	struct variables *v = b->v;
	Dwarf_Die child;
	span->first = (uint32_t)v->nr_enumerators;
	if (dwarf_child(die, &child))
		return;
	do {
		Dwarf_Attribute mem;
		int64_t value;
		const char *name = dwarf_diename(&child);
		if (dwarf_tag(&child) != DW_TAG_enumerator || !name ||
		    !dwarf_attr(&child, DW_AT_const_value, &mem) ||
		    !die_const_value(&mem, &value))
			continue;
		if (span->nr >= VAR_MAX_ENUMERATORS ||
		    v->nr_enumerators >= VAR_MAX_VARIABLES) {
			v->cut_short = true;
			break;
		}
		if (!var_grow(b, (void **)&v->enumerators, v->nr_enumerators,
			      &b->cap_enumerators, sizeof(*v->enumerators)))
			return;
		v->enumerators[v->nr_enumerators++] = (struct var_enumerator){
			.name = var_string(b, name), .value = value};
		span->nr++;
		span->is_signed |= value < 0 && mem.form == DW_FORM_sdata;
	} while (die_next(&child));
	if (span->nr)
		qsort(v->enumerators + span->first, span->nr,
		      sizeof(*v->enumerators), compare_enumerators);
}

/* To as many bits as the type has, which may change their order. */
static void fit_enumerators(struct var_build *b, const struct enum_span *span,
			    unsigned unused, bool is_signed)
{
	struct var_enumerator *e = b->v->enumerators + span->first;
	bool sorted = true;
	for (uint32_t i = 0; i < span->nr; i++) {
		uint64_t high = (uint64_t)e[i].value << unused;
		e[i].value = is_signed ? (int64_t)high >> unused
				       : (int64_t)(high >> unused);
		sorted &= !i || e[i].value >= e[i - 1].value;
	}
	if (!sorted)
		qsort(e, span->nr, sizeof(*e), compare_enumerators);
}

bool var_enum_type(struct var_build *b, Dwarf_Die *die, struct var_type *t)
{
	int size = dwarf_bytesize(die);
	if (!is_width(size))
		return false;
	uint32_t index;
	if (!diemap_get(&b->enum_of, die->addr, &index)) {
		struct enum_span span = {0};
		read_enumerators(b, die, &span);
		index = (uint32_t)b->nr_enums;
		if (!var_grow(b, (void **)&b->enums, b->nr_enums, &b->cap_enums,
			      sizeof(*b->enums)))
			return false;
		b->enums[b->nr_enums++] = span;
		if (!diemap_put(&b->enum_of, die->addr, index))
			b->no_memory = true;
	}
	const struct enum_span *span = &b->enums[index];
	struct var_type under = {0};
	struct var_qualified q;
	t->width = (uint8_t)size;
	t->class_ = VAR_ENUM;
	t->first_enumerator = span->first;
	t->nr_enumerators = span->nr;
	/* Compilers say which integer type it is, or that it has negatives. */
	if (var_type_of(b, die, &q) && dwarf_tag(&q.die) == DW_TAG_base_type &&
	    var_base_type(&q.die, &under))
		t->is_signed = under.is_signed;
	else
		t->is_signed = span->is_signed;
	/* Small constants may have been written without a sign. */
	if (size < 8)
		fit_enumerators(b, span, 64 - 8 * (unsigned)size, t->is_signed);
	return true;
}
