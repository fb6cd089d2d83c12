#include "supervisor/probe/watch-store.h"

#include "supervisor/probe/code.h"

static bool number_of(ZydisRegister reg, unsigned *ret)
{
	/* Zydis and the processor count in the same order; ah to bh are no
	 * registers of their own there, and left out. */
	if (reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH)
		return false;
	ZydisRegister wide = ZydisRegisterGetLargestEnclosing(
		ZYDIS_MACHINE_MODE_LONG_64, reg);
	if (wide < ZYDIS_REGISTER_RAX || wide > ZYDIS_REGISTER_R15)
		return false;
	*ret = (unsigned)(wide - ZYDIS_REGISTER_RAX);
	return true;
}

static bool add_register(ZydisRegister reg, uint64_t times,
			 const struct watch_state *s, uint64_t *sum)
{
	unsigned nr;
	if (reg == ZYDIS_REGISTER_NONE)
		return true;
	if (!number_of(reg, &nr))
		return false;
	*sum += s->reg[nr] * times;
	return true;
}

static bool address_of(const struct code_insn *in,
		       const ZydisDecodedOperandMem *mem,
		       const struct watch_state *s, taddr_t *ret)
{
	uint64_t at = (uint64_t)mem->disp.value;
	if (in->z.address_width != 64 || mem->segment == ZYDIS_REGISTER_FS ||
	    mem->segment == ZYDIS_REGISTER_GS)
		return false;
	if (mem->base == ZYDIS_REGISTER_RIP)
		at += s->ip;
	else if (!add_register(mem->base, 1, s, &at))
		return false;
	*ret = at;
	return add_register(mem->index, mem->scale, s, ret);
}

static bool source_of(const ZydisDecodedOperand *op,
		      const struct watch_state *s, uint64_t *ret)
{
	unsigned nr;
	if (op->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		*ret = op->imm.value.u;
		return true;
	}
	if (op->type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    !number_of(op->reg.value, &nr))
		return false;
	*ret = s->reg[nr];
	return true;
}

bool watch_store_value(const uint8_t *insn, size_t len,
		       const struct watch_state *s, taddr_t addr,
		       unsigned bytes, uint64_t *value_ret)
{
	struct code_insn in;
	taddr_t at;
	uint64_t value;
	if (!code_decode(insn, len, s->ip - len, &in) || in.z.length != len ||
	    in.z.mnemonic != ZYDIS_MNEMONIC_MOV ||
	    in.op[0].type != ZYDIS_OPERAND_TYPE_MEMORY ||
	    !address_of(&in, &in.op[0].mem, s, &at) ||
	    !source_of(&in.op[1], s, &value))
		return false;
	/* Addresses may wrap around. */
	unsigned size = in.op[0].size / 8;
	if (size > 8 || addr - at >= size || size - (addr - at) < bytes)
		return false;
	value >>= 8 * (addr - at);
	*value_ret = bytes < 8 ? value & ((1ULL << 8 * bytes) - 1) : value;
	return true;
}
