/* What a register is to watch, for the program in the kernel. */
#include "supervisor/probe/watch-private.h"

static bool is_width(unsigned bytes)
{
	return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}

/* What its operations push, and read, is there. */
static bool is_expression(const struct watch_what *what,
			  const struct watch_field *f)
{
	unsigned depth = 0;
	if (f->first_op + f->nr_ops > what->nr_ops)
		return false;
	for (unsigned i = 0; i < f->nr_ops; i++) {
		const struct watch_op *op = &what->op[f->first_op + i];
		unsigned pops = op->code >= WATCH_ADD	? 2
				: op->code > WATCH_PUSH ? 1
							: 0;
		bool has_width = op->code == WATCH_LOAD ||
				 op->code == WATCH_ZEXT ||
				 op->code == WATCH_SEXT;
		if (depth < pops || (has_width && !is_width((unsigned)op->arg)))
			return false;
		depth += 1 - pops;
		if (depth > WATCH_DEPTH)
			return false;
	}
	return depth == 1;
}

bool watch_is_sound(const struct watch_what *what)
{
	unsigned n = what->is_insn ? 8 : what->bytes;
	if (!is_width(n) || (!what->is_insn && what->addr % n) ||
	    !what->nr_fields || what->nr_fields > WATCH_FIELDS ||
	    what->nr_pointers > WATCH_GUARDS || what->nr_ops > WATCH_OPS)
		return false;
	for (size_t i = 0; i < what->nr_fields; i++) {
		const struct watch_field *f = &what->field[i];
		if (!f->bits || f->shift + f->bits > 8 * n)
			return false;
		if (what->is_insn && (f->reg > 15 || !is_width(f->bytes)))
			return false;
		if (f->source == WATCH_EXPR && !is_expression(what, f))
			return false;
	}
	return true;
}

void watch_fill(struct watch_word *w, const struct watch_what *what,
		int64_t most_hits)
{
	*w = (struct watch_word){
		.addr = what->addr,
		.bytes = what->is_insn ? 0 : what->bytes,
		.nr_parts = (__u32)what->nr_fields,
		.left = most_hits,
		.nr_guards = (__u32)what->nr_pointers,
	};
	for (size_t i = 0; i < what->nr_pointers; i++)
		w->guard[i] = (struct watch_guard){
			.addr = what->pointer[i].addr,
			.value = what->pointer[i].value,
		};
	for (size_t i = 0; i < what->nr_fields; i++) {
		const struct watch_field *f = &what->field[i];
		w->part[i] = (struct watch_part){
			.shift = f->shift,
			.bits = f->bits,
			.is_signed = f->is_signed,
			.source = (__u8)f->source,
			.reg = f->reg,
			.bytes = f->bytes,
			.first_op = f->first_op,
			.nr_ops = f->nr_ops,
			.offset = f->offset,
			.smallest = f->is_signed ? INT64_MAX : -1,
			.largest = f->is_signed ? INT64_MIN : 0,
		};
	}
	for (size_t i = 0; i < what->nr_ops; i++) {
		w->op_code[i] = (__u8)what->op[i].code;
		w->op_arg[i] = what->op[i].arg;
	}
}
