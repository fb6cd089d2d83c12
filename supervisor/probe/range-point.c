/* See range-point.h. */
#include "supervisor/probe/range-point.h"

/* Is nothing said behind @in that is still of its block? What a call that does
 * not return leaves is. */
static bool ends_block(const struct range_insn *in)
{
	return in->bits & RB_UNREACHED || in->kind == RK_JUMP ||
	       in->kind == RK_JUMP_TO || in->kind == RK_RET;
}

bool range_point_gap(const struct range_edges *e, const struct range_code *code,
		     const struct range_image *img, const struct var_place *p,
		     uint32_t *gap_ret, bool *fall_ret)
{
	size_t i = range_code_find(code, p->lo);
	if (i == code->nr || code->insns[i].addr != p->lo ||
	    code->insns[i].bits & (RB_UNREACHED | RB_ENDBR))
		return false;
	bool falls = i > 0 && range_falls(code, i - 1);
	bool led_to = range_is_led_to(e, code, i) ||
		      range_image_is_leader(img, p->lo);
	if (i > 0 && !falls &&
	    (p->flags & VAR_LAST || !ends_block(&code->insns[i - 1])))
		return false;
	*gap_ret = (uint32_t)i;
	*fall_ret = falls && led_to;
	return true;
}
