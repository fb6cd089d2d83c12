/*
 * Control flow inside a function: leaders, jump tables, liveness.
 *
 * Landing pads are leaders by the exception tables; where those cannot be
 * read, nothing falls into a pad, so it comes behind a jump, a return, a call
 * or their padding, and is a leader for that.
 *
 * A jump through a register is a switch, a computed goto, or a tail call.
 * Labels of computed gotos are addresses that code or data names, and leaders
 * already. A switch's table holds distances, which nothing names: it must be
 * found, or the function is refused.
 */
#include <stdlib.h>
#include <string.h>

#include "supervisor/probe/range-text.h"

#define MAX_TABLE 8192 /* entries looked at */
/* How far back the computation of a jump's target is followed. */
#define LOOK_BACK 12

static void lead(struct range_code *code, uint64_t addr, uint16_t bits)
{
	size_t i = range_code_find(code, addr);
	if (i < code->nr && code->insns[i].addr == addr)
		code->insns[i].bits |= RB_LEADER | bits;
	/* A branch into the middle of what we decoded. */
	else if (i > 0 && i <= code->nr && code->insns[i - 1].addr < addr &&
		 code->insns[i - 1].addr + code->insns[i - 1].len > addr)
		code->refused = "it branches into an instruction";
}

/* An instruction anywhere in the file's code. */
static bool plausible(const struct range_image *img, uint64_t addr)
{
	return addr >= img->lo && addr < img->hi &&
	       img->mark[addr - img->lo] & RANGE_MARK_INSN;
}

/*
 * Everything from @table on that could be an entry: reading past its end gives
 * leaders too many, ending early would miss some. Distances of 4 bytes to the
 * table, or addresses of 8.
 */
static unsigned read_table(struct range_code *code,
			   const struct range_image *img, uint64_t table,
			   unsigned width)
{
	unsigned n = 0;
	for (; n < MAX_TABLE; n++) {
		const uint8_t *p =
			range_image_at(img, table + n * width, width);
		uint64_t to;
		int32_t distance;
		if (!p)
			break;
		memcpy(&to, p, width);
		if (width == 4) {
			memcpy(&distance, p, 4);
			to = table + (uint64_t)(int64_t)distance;
		}
		if (!plausible(img, to))
			break;
		lead(code, to, RB_TABLE);
	}
	return n;
}

static bool inside(const struct range_code *code, uint64_t addr)
{
	size_t i = range_code_find(code, addr);
	return i < code->nr && code->insns[i].addr == addr;
}

/*
 * Any of the tables whose address the function computes may be the one. Where
 * no distance is ever loaded there is no switch.
 */
static bool distance_tables(struct range_code *code,
			    const struct range_image *img)
{
	bool found = false, wanted = false;
	for (size_t i = 0; i < code->nr; i++)
		wanted |= code->insns[i].bits & RB_DISTANCE;
	if (!wanted)
		return true;
	for (size_t i = 0; i < code->nr; i++) {
		const struct range_insn *in = &code->insns[i];
		if (!(in->bits & RB_LEA) || in->base != RANGE_RIP ||
		    in->index != RANGE_NO_REG)
			continue;
		uint64_t at = (uint64_t)in->disp;
		if (inside(code, at))
			return false; /* distances to a label */
		if (!(at & 3) && !plausible(img, at))
			found |= read_table(code, img, at, 4) > 0;
	}
	return found;
}

/* The instruction that computes register @reg for the jump at @jump, or NULL:
 * too far away, in another block. */
static const struct range_insn *computes(const struct range_code *code,
					 size_t jump, unsigned reg)
{
	for (size_t k = 1; k <= LOOK_BACK && k <= jump; k++) {
		const struct range_insn *in = &code->insns[jump - k];
		if (!range_falls(code, jump - k) || in->kind != RK_PLAIN)
			return NULL;
		if (in->wrote >> reg & 1)
			return in;
		if (code->insns[jump - k].bits & RB_LEADER)
			return NULL;
	}
	return NULL;
}

/* jmp *table(,%reg,8) and the same by way of a register. */
static bool address_table(struct range_code *code,
			  const struct range_image *img,
			  const struct range_insn *in)
{
	return in->base == RANGE_RIP && in->index != RANGE_NO_REG &&
	       read_table(code, img, (uint64_t)in->disp, 8) > 0;
}

static bool resolve_jump(struct range_code *code, const struct range_image *img,
			 size_t i)
{
	const struct range_insn *in = &code->insns[i];
	if (in->bits & RB_READS) { /* through memory */
		bool table = in->index != RANGE_NO_REG && in->base == RANGE_RIP;
		code->free_jumps |= !table;
		return !table || address_table(code, img, in);
	}
	for (unsigned reg = 0; reg < 16; reg++) {
		if (!(in->use >> reg & 1) || reg == RANGE_RSP)
			continue;
		const struct range_insn *c = computes(code, i, reg);
		if (c && c->reg == reg && c->bits & RB_READS) {
			bool table = c->index != RANGE_NO_REG &&
				     c->base == RANGE_RIP;
			code->free_jumps |= !table;
			return !table || address_table(code, img, c);
		}
		/* A sum is a distance added; what cannot be seen may be. */
		code->free_jumps |= !c || c->bits & RB_READS;
		return distance_tables(code, img);
	}
	return false;
}

static void find_leaders(struct range_code *code, const struct range_image *img)
{
	/* The one before does not go on to this one, or perhaps not: a call
	 * that does not return may have a landing pad behind its padding. */
	bool dead = false, perhaps = false;
	for (size_t i = 0; i < code->nr && !code->refused; i++) {
		struct range_insn *in = &code->insns[i];
		const struct range_insn *prev = i ? in - 1 : NULL;
		bool padding = in->bits & RB_PADDING;
		if (!prev || prev->addr + prev->len != in->addr) {
			in->bits |= RB_LEADER;
			dead = false;
			perhaps = true; /* gcc puts a nop before a pad here */
		}
		if (dead && padding && !(in->bits & RB_LEADER))
			in->bits |= RB_UNREACHED;
		else if (dead || perhaps || in->bits & RB_ENDBR)
			in->bits |= RB_LEADER;
		if (in->target && in->kind != RK_CALL)
			lead(code, in->target, 0);
		if (in->kind == RK_JUMP_TO && !resolve_jump(code, img, i))
			code->refused = "a jump table that was not found";
		if (in->kind == RK_PLAIN && !padding)
			dead = perhaps = false;
		else if (in->kind == RK_BRANCH)
			dead = perhaps = false;
		else if (in->kind == RK_CALL || in->kind == RK_CALL_TO)
			perhaps = true, dead = false;
		else if (in->kind != RK_PLAIN && !padding)
			dead = true;
		if (in->bits & RB_LEADER && padding)
			dead = false;
	}
	/* Leaders found later make padding code again. */
	for (size_t i = 0; i < code->nr; i++)
		if (code->insns[i].bits & RB_LEADER)
			code->insns[i].bits &= (uint16_t)~RB_UNREACHED;
}

static uint32_t live_at(const struct range_code *code, uint64_t addr)
{
	size_t i = range_code_find(code, addr);
	return i < code->nr && code->insns[i].addr == addr
		       ? code->insns[i].live
		       : RANGE_ALL_REGS | RANGE_FLAGS;
}

static uint32_t live_behind(const struct range_code *code, size_t i)
{
	const struct range_insn *in = &code->insns[i];
	uint32_t all = RANGE_ALL_REGS | RANGE_FLAGS;
	uint32_t next = range_falls(code, i) ? code->insns[i + 1].live : all;
	switch (in->kind) {
	case RK_JUMP:
		return live_at(code, in->target);
	case RK_BRANCH:
		return next | live_at(code, in->target);
	case RK_RET:
		return RANGE_ALL_REGS;
	case RK_PLAIN:
	case RK_CALL:
	case RK_CALL_TO:
		return next;
	default:
		return all;
	}
}

/* Backwards until nothing changes; from nothing needed up, so it ends. */
void range_code_live(struct range_code *code)
{
	bool changed = true;
	for (unsigned round = 0; changed; round++) {
		changed = false;
		for (size_t i = code->nr; i-- > 0;) {
			struct range_insn *in = &code->insns[i];
			uint32_t live = in->use |
					(live_behind(code, i) & ~in->def) |
					1u << RANGE_RSP;
			/* Odd code that takes for ever needs everything. */
			if (round > 200)
				live = RANGE_ALL_REGS | RANGE_FLAGS;
			if (live != in->live) {
				in->live = live;
				changed = true;
			}
		}
	}
}

void range_code_flow(struct range_code *code, const struct range_image *img)
{
	find_leaders(code, img);
	if (!code->refused)
		range_code_live(code);
}
