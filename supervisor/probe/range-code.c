/* Decoding one function, see range-text.h. */
#include <stdlib.h>
#include <string.h>

#include "supervisor/probe/code.h"
#include "supervisor/probe/range-text.h"

/* A function larger than this is data, or not worth the time. */
#define MAX_FUNCTION (4u << 20)

static int general(ZydisRegister r)
{
	r = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);
	if (r < ZYDIS_REGISTER_RAX || r > ZYDIS_REGISTER_R15)
		return -1;
	return (int)(r - ZYDIS_REGISTER_RAX);
}

static bool high_byte(ZydisRegister r)
{
	return r >= ZYDIS_REGISTER_AH && r <= ZYDIS_REGISTER_BH;
}

static uint32_t flag_bits(ZydisAccessedFlagsMask f)
{
	uint32_t r = 0;
	r |= f & ZYDIS_CPUFLAG_CF ? 1u << 16 : 0;
	r |= f & ZYDIS_CPUFLAG_PF ? 1u << 17 : 0;
	r |= f & ZYDIS_CPUFLAG_AF ? 1u << 18 : 0;
	r |= f & ZYDIS_CPUFLAG_ZF ? 1u << 19 : 0;
	r |= f & ZYDIS_CPUFLAG_SF ? 1u << 20 : 0;
	r |= f & ZYDIS_CPUFLAG_OF ? 1u << 21 : 0;
	return r;
}

static void register_operand(struct range_insn *i,
			     const ZydisDecodedOperand *op)
{
	int g = general(op->reg.value);
	if (g < 0)
		return;
	if (op->actions & ZYDIS_OPERAND_ACTION_MASK_READ)
		i->use |= 1u << g;
	if (!(op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
		return;
	i->wrote |= (uint16_t)(1u << g);
	/* What is written in part, or perhaps, stays needed. */
	if (op->size >= 32 && !(op->actions & ZYDIS_OPERAND_ACTION_CONDWRITE))
		i->def |= 1u << g;
	else
		i->use |= 1u << g;
}

static void memory_operand(struct range_insn *i, const struct code_insn *in,
			   const ZydisDecodedOperand *op)
{
	int base = general(op->mem.base), index = general(op->mem.index);
	bool write = op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;

	if (base >= 0)
		i->use |= 1u << base;
	if (index >= 0)
		i->use |= 1u << index;
	if (write)
		i->bits |= RB_STORES;
	bool thread = op->mem.segment == ZYDIS_REGISTER_FS;
	if (op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN ||
	    op->mem.segment == ZYDIS_REGISTER_GS ||
	    (thread && (op->mem.base != ZYDIS_REGISTER_NONE ||
			op->mem.index != ZYDIS_REGISTER_NONE)))
		return;
	i->mem_size = (uint8_t)(op->size / 8);
	i->disp = op->mem.disp.has_displacement ? op->mem.disp.value : 0;
	i->index = index >= 0 ? (uint8_t)index : RANGE_NO_REG;
	i->scale = op->mem.scale;
	if (op->mem.index != ZYDIS_REGISTER_NONE && index < 0)
		return; /* a vector of addresses */
	if (thread) {
		i->base = RANGE_FS;
	} else if (op->mem.base == ZYDIS_REGISTER_RIP) {
		i->base = RANGE_RIP;
		i->disp += (int64_t)(in->addr + in->z.length);
	} else if (base >= 0) {
		i->base = (uint8_t)base;
	} else if (op->mem.base == ZYDIS_REGISTER_NONE) {
		i->base = RANGE_RIP;
	} else {
		return;
	}
	if (in->z.mnemonic == ZYDIS_MNEMONIC_LEA) {
		i->bits |= RB_LEA;
		return;
	}
	/* Parts that a mask leaves out, conditional stores. */
	if (op->actions & ZYDIS_OPERAND_ACTION_MASK_READ)
		i->bits |= RB_READS;
	if (write && !(op->actions & ZYDIS_OPERAND_ACTION_CONDWRITE) &&
	    in->z.avx.mask.mode <= ZYDIS_MASK_MODE_DISABLED)
		i->bits |= RB_WRITES;
}

/* A constant is added to a register, in whatever form. */
static void plain_sum(struct range_insn *i, const struct code_insn *in)
{
	const ZydisDecodedOperand *op = in->op;
	bool imm = op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
	int64_t k = imm ? op[1].imm.value.s : 1;
	int g = op[0].type == ZYDIS_OPERAND_TYPE_REGISTER
			? general(op[0].reg.value)
			: -1;
	if (g < 0 || high_byte(op[0].reg.value))
		return;
	switch (in->z.mnemonic) {
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		if (!imm)
			return;
		break;
	case ZYDIS_MNEMONIC_INC:
	case ZYDIS_MNEMONIC_DEC:
		k = 1;
		break;
	case ZYDIS_MNEMONIC_LEA:
		if (i->base != g || i->index != RANGE_NO_REG)
			return;
		k = i->disp;
		break;
	default:
		return;
	}
	bool less = in->z.mnemonic == ZYDIS_MNEMONIC_SUB ||
		    in->z.mnemonic == ZYDIS_MNEMONIC_DEC;
	i->imm = less ? (int64_t) - (uint64_t)k : k;
	i->bits |= RB_ADDS;
}

static void plain_mask(struct range_insn *i, const struct code_insn *in)
{
	if (in->z.mnemonic != ZYDIS_MNEMONIC_AND ||
	    in->op[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return;
	i->imm = in->op[1].imm.value.s;
	i->bits |= RB_MASKS;
}

/* mov between a register and memory: what is in which afterwards. */
static void plain_move(struct range_insn *i, const struct code_insn *in)
{
	const ZydisDecodedOperand *op = in->op;
	switch (in->z.mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVZX:
	case ZYDIS_MNEMONIC_MOVSX:
	case ZYDIS_MNEMONIC_MOVSXD:
		break;
	default:
		return;
	}
	int mem = op[0].type == ZYDIS_OPERAND_TYPE_MEMORY   ? 0
		  : op[1].type == ZYDIS_OPERAND_TYPE_MEMORY ? 1
							    : -1;
	if (mem < 0) {
		if (op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
			i->bits |= RB_IMM;
			i->imm = op[1].imm.value.s;
		}
		return;
	}
	const ZydisDecodedOperand *other = &op[1 - mem];
	if (other->type == ZYDIS_OPERAND_TYPE_REGISTER &&
	    general(other->reg.value) >= 0 && !high_byte(other->reg.value)) {
		i->reg = (uint8_t)general(other->reg.value);
	} else if (other->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		i->bits |= RB_IMM;
		i->imm = other->imm.value.s;
	}
}

static bool same_register_twice(const struct code_insn *in)
{
	return in->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       in->op[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       in->op[0].reg.value == in->op[1].reg.value &&
	       in->op[0].size >= 32;
}

static bool flags_unsure(const struct code_insn *in)
{
	switch (in->z.mnemonic) {
	case ZYDIS_MNEMONIC_SHL:
	case ZYDIS_MNEMONIC_SHR:
	case ZYDIS_MNEMONIC_SAR:
	case ZYDIS_MNEMONIC_ROL:
	case ZYDIS_MNEMONIC_ROR:
	case ZYDIS_MNEMONIC_RCL:
	case ZYDIS_MNEMONIC_RCR:
	case ZYDIS_MNEMONIC_SHLD:
	case ZYDIS_MNEMONIC_SHRD:
		return true; /* a count of zero leaves them */
	default:
		return in->z.attributes &
		       (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE |
			ZYDIS_ATTRIB_HAS_REPNE);
	}
}

static uint8_t kind_of(const struct code_insn *in)
{
	switch (in->z.meta.category) {
	case ZYDIS_CATEGORY_UNCOND_BR:
		return in->target ? RK_JUMP : RK_JUMP_TO;
	case ZYDIS_CATEGORY_COND_BR:
		return RK_BRANCH;
	case ZYDIS_CATEGORY_CALL:
		return in->target ? RK_CALL : RK_CALL_TO;
	case ZYDIS_CATEGORY_RET:
		return RK_RET;
	default:
		break;
	}
	switch (in->z.mnemonic) {
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_INT3:
		return RK_STOP;
	default:
		return RK_PLAIN;
	}
}

/* What range-form.c makes something of: it writes its first operand. */
static bool computes(const struct code_insn *in)
{
	if (in->op[0].type != ZYDIS_OPERAND_TYPE_REGISTER)
		return false;
	switch (in->z.mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVZX:
	case ZYDIS_MNEMONIC_MOVSX:
	case ZYDIS_MNEMONIC_MOVSXD:
	case ZYDIS_MNEMONIC_CDQE:
	case ZYDIS_MNEMONIC_LEA:
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_INC:
	case ZYDIS_MNEMONIC_DEC:
	case ZYDIS_MNEMONIC_SHL:
	case ZYDIS_MNEMONIC_IMUL:
		return true;
	default:
		return false;
	}
}

/* What the kernel, a transaction or the processor ties to its address, and
 * branches that have no long form. */
static bool pinned(const struct code_insn *in)
{
	switch (in->z.meta.category) {
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_SYSRET:
	case ZYDIS_CATEGORY_INTERRUPT:
	case ZYDIS_CATEGORY_SYSTEM:
		return true;
	case ZYDIS_CATEGORY_COND_BR:
		return in->z.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
		       (in->z.opcode & 0xf0) != 0x70;
	default:
		break;
	}
	return in->z.mnemonic == ZYDIS_MNEMONIC_ENDBR64 ||
	       in->z.mnemonic == ZYDIS_MNEMONIC_XEND ||
	       in->z.mnemonic == ZYDIS_MNEMONIC_XABORT;
}

/* @before is the instruction before it, or NULL. */
static void understand(struct range_insn *i, const struct code_insn *in,
		       const struct range_insn *before)
{
	const ZydisDecodedInstruction *z = &in->z;
	for (int k = 0; k < z->operand_count; k++) {
		const ZydisDecodedOperand *op = &in->op[k];
		if (op->type == ZYDIS_OPERAND_TYPE_REGISTER)
			register_operand(i, op);
		else if (op->type == ZYDIS_OPERAND_TYPE_MEMORY)
			memory_operand(i, in, op);
	}
	if (z->mnemonic == ZYDIS_MNEMONIC_XOR && same_register_twice(in)) {
		i->use &= ~i->def;
		i->bits |= RB_IMM;
	}
	if (z->cpu_flags) {
		i->use |= flag_bits(z->cpu_flags->tested);
		if (!flags_unsure(in))
			i->def |= flag_bits(
				z->cpu_flags->modified | z->cpu_flags->set_0 |
				z->cpu_flags->set_1 | z->cpu_flags->undefined);
	}
	plain_move(i, in);
	plain_sum(i, in);
	plain_mask(i, in);
	i->kind = kind_of(in);
	i->target = in->target;
	if (pinned(in))
		i->bits |= RB_PINNED;
	if (computes(in))
		i->bits |= RB_COMPUTES;
	if (z->mnemonic == ZYDIS_MNEMONIC_ENDBR64)
		i->bits |= RB_ENDBR;
	if (z->mnemonic == ZYDIS_MNEMONIC_MOVSXD && i->bits & RB_READS &&
	    i->index != RANGE_NO_REG)
		i->bits |= RB_DISTANCE;
	/* In two instructions, where nothing is optimised. */
	bool extends = z->mnemonic == ZYDIS_MNEMONIC_CDQE ||
		       (z->mnemonic == ZYDIS_MNEMONIC_MOVSXD && !i->mem_size);
	if (extends && before && before->bits & RB_READS &&
	    before->mem_size == 4 && before->index != RANGE_NO_REG)
		i->bits |= RB_DISTANCE;
	if (z->mnemonic == ZYDIS_MNEMONIC_POP)
		i->bits |= RB_POP;
	if (z->mnemonic == ZYDIS_MNEMONIC_NOP ||
	    z->mnemonic == ZYDIS_MNEMONIC_INT3)
		i->bits |= RB_PADDING;
	if (z->mnemonic == ZYDIS_MNEMONIC_SYSCALL)
		i->use |= RANGE_ALL_REGS;
	if (i->kind == RK_CALL || i->kind == RK_CALL_TO || i->kind == RK_RET) {
		/* Callers and callees may know more of each other than the
		 * ABI says, but never the flags. */
		i->use |= RANGE_ALL_REGS;
		i->def |= RANGE_FLAGS;
	}
}

static void decode_chunk(struct range_code *code, const struct range_image *img,
			 const struct range_chunk *c)
{
	const uint8_t *bytes = img->text + (c->lo - img->lo);
	for (uint64_t at = c->lo; at < c->hi;) {
		struct range_insn *i = &code->insns[code->nr++];
		struct code_insn in;
		*i = (struct range_insn){.addr = at,
					 .len = 1,
					 .kind = RK_BAD,
					 .base = RANGE_NO_REG,
					 .index = RANGE_NO_REG,
					 .reg = RANGE_NO_REG,
					 .use = RANGE_ALL_REGS | RANGE_FLAGS};
		if (range_image_is_leader(img, at))
			i->bits |= RB_LEADER;
		if (code_decode(bytes + (at - c->lo), c->hi - at, at, &in)) {
			i->len = in.z.length;
			i->use = 0;
			understand(i, &in, i > code->insns ? i - 1 : NULL);
			if (img->mark[at - img->lo] & RANGE_MARK_CODE)
				i->bits &= (uint16_t)~RB_PADDING;
		} else {
			code->refused = "data or unknown instructions in it";
		}
		at += i->len;
	}
}

static int by_address(const void *a, const void *b)
{
	const struct range_chunk *x = a, *y = b;
	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

int range_code_init(struct range_code *code, const struct range_image *img,
		    const struct range_chunk *chunks, size_t nr_chunks,
		    struct smco_err *err)
{
	uint64_t bytes = 0;
	memset(code, 0, sizeof(*code));
	_cleanup_free_ struct range_chunk *sorted =
		calloc(nr_chunks + 1, sizeof(*sorted));
	if (!sorted)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	if (nr_chunks)
		memcpy(sorted, chunks, nr_chunks * sizeof(*sorted));
	qsort(sorted, nr_chunks, sizeof(*sorted), by_address);
	for (size_t i = 0; i < nr_chunks; i++) {
		if (sorted[i].lo < img->lo || sorted[i].hi > img->hi ||
		    sorted[i].lo >= sorted[i].hi ||
		    (i && sorted[i].lo < sorted[i - 1].hi))
			code->refused = "its code is not where it should be";
		else
			bytes += sorted[i].hi - sorted[i].lo;
	}
	if (bytes > MAX_FUNCTION)
		code->refused = "too large";
	if (!nr_chunks)
		code->refused = "it has no code";
	if (code->refused)
		return 0;
	/* Many more than there will be: filled in one by one. */
	code->insns = malloc(bytes * sizeof(*code->insns));
	if (!code->insns)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	for (size_t i = 0; i < nr_chunks; i++)
		decode_chunk(code, img, &sorted[i]);
	struct range_insn *fit =
		realloc(code->insns, code->nr * sizeof(*code->insns));
	if (fit)
		code->insns = fit;
	if (!code->refused)
		range_code_flow(code, img);
	return 0;
}

void range_code_deinit(struct range_code *code)
{
	free(code->insns);
	memset(code, 0, sizeof(*code));
}

size_t range_code_find(const struct range_code *code, uint64_t addr)
{
	size_t a = 0, b = code->nr;
	while (a < b) {
		size_t mid = a + (b - a) / 2;
		if (code->insns[mid].addr < addr)
			a = mid + 1;
		else
			b = mid;
	}
	return a;
}

bool range_falls(const struct range_code *code, size_t i)
{
	const struct range_insn *in = &code->insns[i];
	if (i + 1 >= code->nr || code->insns[i + 1].addr != in->addr + in->len)
		return false;
	switch (in->kind) {
	case RK_PLAIN:
	case RK_BRANCH:
	case RK_CALL:
	case RK_CALL_TO:
		return true;
	default:
		return false;
	}
}
