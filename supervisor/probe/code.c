/* Emitting, decoding and relocating, see code.h. */
#include "supervisor/probe/code.h"

void code_put32(struct code_buf *e, uint32_t v)
{
	code_put(e, &v, sizeof(v));
}

void code_put_rel(struct code_buf *e, taddr_t target, unsigned tail)
{
	int64_t d = (int64_t)(target - (e->base + e->len + 4 + tail));
	if (d != (int32_t)d)
		e->failed = true;
	code_put32(e, (uint32_t)d);
}

void code_jump(struct code_buf *e, taddr_t target)
{
	CODE(e, 0xe9);
	code_put_rel(e, target, 0);
}

bool code_decode(const uint8_t *bytes, size_t len, taddr_t addr,
		 struct code_insn *ret)
{
	ZydisDecoder d;
	ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisDecoderContext context;
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&d, &context, bytes,
							len, &ret->z)) ||
	    !ZYAN_SUCCESS(ZydisDecoderDecodeOperands(
		    &d, &context, &ret->z, ret->op, ret->z.operand_count)))
		return false;
	/* Those that it has not, without clearing all of each. */
	for (int i = ret->z.operand_count; i < ZYDIS_MAX_OPERAND_COUNT; i++)
		ret->op[i].type = ZYDIS_OPERAND_TYPE_UNUSED;
	ret->addr = addr;
	ret->target = 0;
	for (int i = 0; i < ret->z.operand_count; i++)
		if (ret->op[i].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
		    ret->op[i].imm.is_relative)
			ret->target = addr + ret->z.length +
				      (uint64_t)ret->op[i].imm.value.s;
	ret->ends = ret->z.meta.category == ZYDIS_CATEGORY_RET ||
		    ret->z.meta.category == ZYDIS_CATEGORY_UNCOND_BR;
	return true;
}

static const char *relocate_branch(struct code_buf *e,
				   const struct code_insn *in)
{
	const ZydisDecodedInstruction *z = &in->z;
	uint64_t back = in->addr + z->length;

	switch (z->meta.category) {
	case ZYDIS_CATEGORY_UNCOND_BR:
		code_jump(e, in->target);
		return NULL;
	case ZYDIS_CATEGORY_COND_BR:
		if (z->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
		    (z->opcode & 0xf0) != 0x70)
			return "it begins with a loop or jrcxz";
		CODE(e, 0x0f, 0x80 | (z->opcode & 0xf));
		code_put_rel(e, in->target, 0);
		return NULL;
	case ZYDIS_CATEGORY_CALL:
		/* The return address must be the one unwinders know: push
		 * it, then jump. */
		CODE(e, 0xff, 0x35, 5, 0, 0, 0);
		code_jump(e, in->target);
		code_put(e, &back, sizeof(back));
		return NULL;
	default:
		return "a relative branch of an unknown kind";
	}
}

const char *code_relocate(struct code_buf *e, const uint8_t *bytes,
			  const struct code_insn *in)
{
	const ZydisDecodedInstruction *z = &in->z;

	if (in->target)
		return relocate_branch(e, in);
	size_t start = e->len;
	code_put(e, bytes, z->length);
	for (int i = 0; i < z->operand_count && !e->failed; i++) {
		const ZydisDecodedOperand *op = &in->op[i];
		if (op->type != ZYDIS_OPERAND_TYPE_MEMORY ||
		    op->mem.base != ZYDIS_REGISTER_RIP)
			continue;
		if (z->raw.disp.size != 32)
			return "an address relative to the counter, not 32 "
			       "bits";
		taddr_t target =
			in->addr + z->length + (uint64_t)op->mem.disp.value;
		size_t end = e->len;
		e->len = start + z->raw.disp.offset;
		code_put_rel(e, target, z->length - z->raw.disp.offset - 4);
		e->len = end;
		break;
	}
	return NULL;
}
