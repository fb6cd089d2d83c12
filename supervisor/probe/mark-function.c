/* A file's code, and where functions begin and end; see mark-plan.h. */
#include "supervisor/probe/mark-function.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/probe/code.h"
#include "symbols/fderange.h"

#define MAX_PARTS 16 /* of a function */
#define LOOK_BACK 12 /* instructions, for what a jump's target is from */

struct mark_code {
	Elf *elf;
	const uint64_t *cold;
	size_t nr_cold;
	bool tried;
	int rc; /* of having tried */
	struct range_image img;
	struct fde_range *range;
	size_t nr_ranges;
};

struct mark_code *mark_code_create(Elf *elf, const uint64_t *part,
				   size_t nr_parts)
{
	struct mark_code *mc = calloc(1, sizeof(*mc));
	if (!mc)
		return NULL;
	mc->elf = elf;
	mc->cold = part;
	mc->nr_cold = nr_parts;
	return mc;
}

void mark_code_destroy(struct mark_code *mc)
{
	if (!mc)
		return;
	range_image_deinit(&mc->img);
	free(mc->range);
	free(mc);
}

int mark_code_load(struct mark_code *mc, struct smco_err *err)
{
	if (mc->tried)
		return mc->rc ? smco_fail(err, mc->rc, 0,
					  "the file's code cannot be read")
			      : 0;
	mc->tried = true;
	mc->rc = fde_ranges(mc->elf, &mc->range, &mc->nr_ranges, err);
	_cleanup_free_ uint64_t *start =
		calloc(mc->nr_ranges + 1, sizeof(*start));
	if (!mc->rc && !start)
		mc->rc = smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	for (size_t i = 0; start && i < mc->nr_ranges; i++)
		start[i] = mc->range[i].start;
	if (!mc->rc)
		mc->rc = range_image_load(&mc->img, mc->elf, -1, start,
					  mc->nr_ranges, err);
	return mc->rc;
}

const struct range_image *mark_code_image(const struct mark_code *mc)
{
	return &mc->img;
}

void mark_code_is_code(struct mark_code *mc, uint64_t addr)
{
	if (addr >= mc->img.lo && addr < mc->img.hi)
		mc->img.mark[addr - mc->img.lo] |= RANGE_MARK_CODE;
}

/* The last that begins at @addr or before it, or NULL. */
static const struct fde_range *range_below(const struct mark_code *mc,
					   uint64_t addr)
{
	size_t a = 0, b = mc->nr_ranges;
	while (a < b) {
		size_t mid = a + (b - a) / 2;
		if (mc->range[mid].start <= addr)
			a = mid + 1;
		else
			b = mid;
	}
	return a ? &mc->range[a - 1] : NULL;
}

bool mark_code_part(const struct mark_code *mc, uint64_t addr, uint64_t size,
		    struct range_chunk *ret)
{
	const struct fde_range *r = range_below(mc, addr);
	if (r && addr < r->end)
		*ret = (struct range_chunk){r->start, r->end};
	else
		*ret = (struct range_chunk){addr, addr + size};
	return ret->lo >= mc->img.lo && ret->hi <= mc->img.hi &&
	       ret->lo < ret->hi;
}

bool mark_code_bytes(const struct mark_code *mc, uint64_t addr, uint8_t *ret,
		     size_t n)
{
	size_t nr;
	if (elf_getphdrnum(mc->elf, &nr))
		return false;
	for (size_t i = 0; i < nr; i++) {
		GElf_Phdr ph;
		if (!gelf_getphdr(mc->elf, (int)i, &ph) ||
		    ph.p_type != PT_LOAD || ph.p_offset > INT64_MAX ||
		    addr < ph.p_vaddr || addr - ph.p_vaddr > ph.p_filesz ||
		    n > ph.p_filesz - (addr - ph.p_vaddr))
			continue;
		const Elf_Data *d = elf_getdata_rawchunk(
			mc->elf, (int64_t)ph.p_offset, ph.p_filesz, ELF_T_BYTE);
		if (!d || !d->d_buf)
			continue;
		memcpy(ret, (const uint8_t *)d->d_buf + (addr - ph.p_vaddr), n);
		return true;
	}
	return false;
}

/* --- one function --- */

struct function {
	struct mark_plan *plan;
	struct mark_code *mc;
	const struct mark_spot *end;
	struct range_chunk part[MAX_PARTS];
	size_t nr_parts;
	uint64_t entry;
	struct smco_err *err;
};

static bool is_inside(const struct function *f, uint64_t addr)
{
	for (size_t i = 0; i < f->nr_parts; i++)
		if (addr >= f->part[i].lo && addr < f->part[i].hi)
			return true;
	return false;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static bool is_cold(const struct mark_code *mc, uint64_t addr)
{
	return mc->nr_cold &&
	       bsearch(&addr, mc->cold, mc->nr_cold, sizeof(addr), compare);
}

/* A branch to @target leaves the function, unless that is into a part of it,
 * which is looked at next. */
static bool leaves(struct function *f, uint64_t target)
{
	struct range_chunk c;
	if (is_inside(f, target))
		return false;
	if (!mark_code_part(f->mc, target, 1, &c))
		return true;
	if (c.lo == target && !is_cold(f->mc, target))
		return true;
	if (!is_cold(f->mc, c.lo) && !is_cold(f->mc, target))
		return true; /* into the middle of another function */
	if (f->nr_parts < MAX_PARTS)
		f->part[f->nr_parts++] = c;
	return false;
}

/*
 * A jump through a register or memory is a tail call where the target was
 * loaded as it is; what was computed, or comes from a table, is a switch.
 * Should it be a computed goto, the stack tells (what is recorded there).
 */
static bool is_tail_call(const struct range_code *code, size_t i)
{
	const struct range_insn *in = &code->insns[i];
	if (in->bits & RB_READS)
		return in->index == RANGE_NO_REG;
	for (size_t k = 1; k <= LOOK_BACK && k <= i; k++) {
		const struct range_insn *c = &code->insns[i - k];
		if (!range_falls(code, i - k) || c->kind != RK_PLAIN)
			return false;
		if (c->wrote & in->use & ~(1u << RANGE_RSP))
			return c->bits & RB_READS && c->reg != RANGE_NO_REG &&
			       c->index == RANGE_NO_REG;
		if (c->bits & RB_LEADER)
			return false;
	}
	return false;
}

static int one_exit(struct function *f, const struct range_code *code, size_t i)
{
	const struct range_insn *in = &code->insns[i];
	struct mark_spot s = *f->end;
	s.addr = in->addr;
	switch (in->kind) {
	case RK_RET:
		break;
	case RK_JUMP:
		if (!leaves(f, in->target))
			return 0;
		break;
	case RK_BRANCH:
		if (!leaves(f, in->target))
			return 0;
		s.when = MARK_TAKEN;
		break;
	case RK_JUMP_TO:
		if (!is_tail_call(code, i))
			return 0;
		break;
	default:
		return 0;
	}
	return mark_plan_spot(f->plan, &s, f->err);
}

/* A loop's head is passed again in each turn: no count of calls. */
static const char *unusable(const struct range_code *code, size_t first,
			    uint64_t entry)
{
	if (code->refused)
		return code->refused;
	if (first == code->nr || code->insns[first].addr < entry)
		return "it has no code";
	if (code->insns[first].addr != entry &&
	    code->insns[first].bits & RB_LEADER)
		return "a loop begins with it";
	for (size_t i = 0; i < code->nr; i++) {
		const struct range_insn *in = &code->insns[i];
		if (in->target == entry &&
		    (in->kind == RK_JUMP || in->kind == RK_BRANCH))
			return "a loop begins with it";
	}
	return NULL;
}

/*
 * If the function's first instruction, @i, can stay where it is, *s is behind
 * it: none that leads elsewhere, or is as long as a jump anyway, and nothing
 * but it leads to the next one.
 */
static void step_behind(const struct function *f, const struct range_code *code,
			size_t i, struct mark_spot *s)
{
	const struct range_insn *in = &code->insns[i];
	uint8_t bytes[CODE_JUMP_BYTES - 1];
	struct code_insn first;
	if (in->addr != f->entry || in->len >= CODE_JUMP_BYTES ||
	    in->kind != RK_PLAIN || !range_falls(code, i) ||
	    in[1].bits & RB_LEADER ||
	    !mark_code_bytes(f->mc, in->addr, bytes, in->len) ||
	    !code_decode(bytes, in->len, in->addr, &first))
		return;
	uint32_t pushed = 0;
	if (in->wrote & 1u << RANGE_RSP) {
		const ZydisDecodedOperand *op = first.op;
		if (first.z.mnemonic == ZYDIS_MNEMONIC_PUSH)
			pushed = first.z.operand_width / 8;
		else if (first.z.mnemonic == ZYDIS_MNEMONIC_SUB &&
			 op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
			 op[1].imm.value.s > 0)
			pushed = (uint32_t)op[1].imm.value.s;
		if (!pushed)
			return;
	}
	s->addr = in[1].addr;
	s->behind = in->len;
	s->pushed = pushed;
}

static int one_part(struct function *f, const struct range_chunk *c,
		    const struct mark_spot *begin)
{
	struct range_code code;
	int rc = range_code_init(&code, mark_code_image(f->mc), c, 1, f->err);
	if (rc)
		return rc;
	const char *why = code.refused;
	if (begin) {
		struct mark_spot s = *begin;
		size_t i = range_code_find(&code, f->entry);
		/* Jumps land on it: it must stay. */
		if (i < code.nr && code.insns[i].bits & RB_ENDBR)
			i++;
		if (!why)
			why = unusable(&code, i, f->entry);
		if (!why) {
			s.addr = code.insns[i].addr;
			step_behind(f, &code, i, &s);
			rc = mark_plan_spot(f->plan, &s, f->err);
		}
	}
	if (why)
		mark_plan_refuse(f->plan, f->entry, why);
	for (size_t i = 0; !rc && !why && i < code.nr; i++)
		rc = one_exit(f, &code, i);
	range_code_deinit(&code);
	return rc;
}

int mark_plan_function(struct mark_plan *plan, struct mark_code *mc,
		       uint64_t entry, uint64_t size,
		       const struct mark_spot *begin,
		       const struct mark_spot *end, struct smco_err *err)
{
	struct function f = {
		.plan = plan,
		.mc = mc,
		.end = end,
		.entry = entry,
		.nr_parts = 1,
		.err = err,
	};
	int rc = mark_code_load(mc, err);
	if (rc)
		return rc;
	if (!mark_code_part(mc, entry, size, &f.part[0])) {
		mark_plan_refuse(plan, entry, "it is in no code");
		return 0;
	}
	if (f.part[0].lo != entry && size && size < f.part[0].hi - entry)
		f.part[0] = (struct range_chunk){entry, entry + size};
	for (size_t i = 0; !rc && i < f.nr_parts; i++) {
		const struct range_chunk c = f.part[i];
		rc = one_part(&f, &c, i ? NULL : begin);
	}
	return rc;
}
