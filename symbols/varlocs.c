#include "symbols/varlocs.h"

#include <dwarf.h>
#include <gelf.h>

/* What follows an operation's code. */
enum operand {
	OTHER, /* libdw is to read it */
	NOTHING,
	U1,
	S1,
	U2,
	S2,
	U4,
	S4,
	U8,
	ULEB,
	SLEB,
	ULEB_SLEB,
	BLOCK,
};

static const uint8_t operand_of[256] = {
	[DW_OP_addr] = U8,
	[DW_OP_deref] = NOTHING,
	[DW_OP_const1u] = U1,
	[DW_OP_const1s] = S1,
	[DW_OP_const2u] = U2,
	[DW_OP_const2s] = S2,
	[DW_OP_const4u] = U4,
	[DW_OP_const4s] = S4,
	[DW_OP_const8u] = U8,
	[DW_OP_const8s] = U8,
	[DW_OP_constu] = ULEB,
	[DW_OP_consts] = SLEB,
	[DW_OP_dup] = NOTHING,
	[DW_OP_drop] = NOTHING,
	[DW_OP_over] = NOTHING,
	[DW_OP_pick] = U1,
	[DW_OP_swap] = NOTHING,
	[DW_OP_rot] = NOTHING,
	[DW_OP_abs... DW_OP_plus] = NOTHING,
	[DW_OP_plus_uconst] = ULEB,
	[DW_OP_shl] = NOTHING,
	[DW_OP_shr] = NOTHING,
	[DW_OP_shra] = NOTHING,
	[DW_OP_xor] = NOTHING,
	[DW_OP_eq... DW_OP_ne] = NOTHING,
	[DW_OP_lit0... DW_OP_reg31] = NOTHING,
	[DW_OP_breg0... DW_OP_breg31] = SLEB,
	[DW_OP_regx] = ULEB,
	[DW_OP_fbreg] = SLEB,
	[DW_OP_bregx] = ULEB_SLEB,
	[DW_OP_piece] = ULEB,
	[DW_OP_deref_size] = U1,
	[DW_OP_nop] = NOTHING,
	[DW_OP_form_tls_address] = NOTHING,
	[DW_OP_call_frame_cfa] = NOTHING,
	[DW_OP_stack_value] = NOTHING,
	[DW_OP_entry_value] = BLOCK,
	[DW_OP_GNU_push_tls_address] = NOTHING,
	[DW_OP_GNU_entry_value] = BLOCK,
};

/* What does not fit 63 bits is read in more ways than one. */
static uint64_t uleb(struct cursor *c)
{
	unsigned bits;
	uint64_t v = cursor_leb(c, &bits);
	c->bad |= bits > 63;
	return v;
}

static uint64_t sleb(struct cursor *c)
{
	unsigned bits;
	uint64_t v = cursor_leb(c, &bits);
	c->bad |= bits > 63;
	if (!c->bad && v >> (bits - 1) & 1)
		v |= ~0ULL << bits;
	return v;
}

static void read_operand(struct cursor *c, Dwarf_Op *op)
{
	static const uint8_t bytes[] = {[U1] = 1, [S1] = 1, [U2] = 2, [S2] = 2,
					[U4] = 4, [S4] = 4, [U8] = 8};
	enum operand what = operand_of[op->atom];
	switch (what) {
	case NOTHING:
		break;
	case U1:
	case U2:
	case U4:
	case U8:
		op->number = cursor_uint(c, bytes[what]);
		break;
	case S1:
	case S2:
	case S4:
		op->number = (Dwarf_Word)cursor_int(c, bytes[what]);
		break;
	case ULEB:
		op->number = uleb(c);
		break;
	case SLEB:
		op->number = sleb(c);
		break;
	case ULEB_SLEB:
		op->number = uleb(c);
		op->number2 = sleb(c);
		break;
	case BLOCK:
		op->number2 = (Dwarf_Word)(uintptr_t)c->p;
		op->number = uleb(c);
		cursor_take(c, op->number);
		break;
	default:
		c->bad = true;
		break;
	}
}

/* False: that is for libdw. */
static bool read_ops(struct var_locs *l, struct cursor c)
{
	const uint8_t *begin = c.p;
	size_t nr = 0;
	while (cursor_more(&c)) {
		if (nr == VAR_LOCS_MAX_OPS)
			return false;
		Dwarf_Op *op = &l->own[nr++];
		op->offset = (Dwarf_Word)(c.p - begin);
		op->atom = (uint8_t)cursor_uint(&c, 1);
		op->number = op->number2 = 0;
		read_operand(&c, op);
	}
	l->ops = l->own;
	l->nr = nr;
	return !c.bad;
}

static bool is_little_endian(Elf *elf)
{
	const char *ident = elf_getident(elf, NULL);
	return ident && ident[EI_DATA] == ELFDATA2LSB;
}

static void see_unit(struct var_locs_unit *u, Dwarf_CU *cu,
		     const Elf *lists_elf, const struct cursor *lists)
{
	Dwarf_Die die;
	Dwarf_Attribute mem;
	Dwarf_Half version;
	uint8_t bytes;
	if (u->cu == cu)
		return;
	*u = (struct var_locs_unit){.cu = cu};
	Elf *elf = dwarf_getelf(dwarf_cu_getdwarf(cu));
	if (!dwarf_cu_die(cu, &die, &version, NULL, &bytes, NULL, NULL, NULL) ||
	    bytes != 8 || !is_little_endian(elf))
		return;
	u->is_plain = true;
	/* As libdw finds it. */
	if (dwarf_lowpc(&die, &u->base) &&
	    (!dwarf_attr(&die, DW_AT_entry_pc, &mem) ||
	     dwarf_formaddr(&mem, &u->base)))
		u->base = 0;
	u->has_lists = version == 5 && elf == lists_elf && !lists->bad &&
		       u->base != (Dwarf_Addr)-1;
}

/* The entry of a list that begins at *@at; 1: it is read; 0: there is none;
 * -1: that is for libdw. */
static int read_entry(struct var_locs *l, const struct cursor *lists,
		      uint64_t at, Dwarf_Addr base)
{
	struct cursor c = *lists;
	cursor_take(&c, at);
	while (!c.bad) {
		uint64_t code = cursor_uint(&c, 1);
		if (code == DW_LLE_base_address) {
			base = cursor_uint(&c, 8);
			continue;
		}
		if (code == DW_LLE_end_of_list)
			return c.bad ? -1 : 0;
		if (code == DW_LLE_offset_pair) {
			l->lo = base + uleb(&c);
			l->hi = base + uleb(&c);
		} else if (code == DW_LLE_start_end) {
			l->lo = cursor_uint(&c, 8);
			l->hi = cursor_uint(&c, 8);
		} else if (code == DW_LLE_start_length) {
			l->lo = cursor_uint(&c, 8);
			l->hi = l->lo + uleb(&c);
		} else {
			return -1;
		}
		struct cursor ops = cursor_take(&c, uleb(&c));
		if (c.bad || !read_ops(l, ops))
			return -1;
		l->base = base;
		l->at = c.p - lists->p;
		return 1;
	}
	return -1;
}

/* The same for the attribute. */
static int read_own(struct var_locs *l, const struct cursor *lists,
		    const struct var_locs_unit *unit)
{
	Dwarf_Block block;
	Dwarf_Word at;
	unsigned form = dwarf_whatform(l->attr);
	if (l->at)
		return unit->has_lists
			       ? read_entry(l, lists, (uint64_t)l->at, l->base)
			       : -1;
	if (form == DW_FORM_sec_offset)
		return unit->has_lists && !dwarf_formudata(l->attr, &at) &&
				       at > 1
			       ? read_entry(l, lists, at, unit->base)
			       : -1;
	if (form != DW_FORM_exprloc || !unit->is_plain ||
	    dwarf_formblock(l->attr, &block) ||
	    !read_ops(l, (struct cursor){.p = block.data,
					 .end = block.data + block.length}))
		return -1;
	l->lo = 0;
	l->hi = (Dwarf_Addr)-1;
	l->at = 1;
	return 1;
}

int var_locs_next(struct var_locs *l, Elf *elf, const struct cursor *lists,
		  struct var_locs_unit *unit)
{
	Dwarf_Op *ops = NULL;
	if (l->at == 1) /* as libdw says that there are no more */
		return 0;
	see_unit(unit, l->attr->cu, elf, lists);
	int got = read_own(l, lists, unit);
	if (got >= 0)
		return got;
	l->nr = 0;
	l->at = dwarf_getlocations(l->attr, l->at, &l->base, &l->lo, &l->hi,
				   &ops, &l->nr);
	l->ops = ops;
	return l->at > 0 ? 1 : l->at < 0 ? -1 : 0;
}
