/*
 * range-point.h - places at which no instruction runs (VAR_POINT). Control that
 * passes there has the variable in it all the same. Pure.
 */
#ifndef SMCO_RANGE_POINT_H
#define SMCO_RANGE_POINT_H

#include "supervisor/probe/range-edge.h"

/*
 * The gap at which @p, a VAR_POINT, is read, and whether only of those who come
 * from the instruction before it: what is said at the end of a block and at the
 * start of the next one is at one address, and those who go from the one to the
 * other pass both. False: nobody can tell who passes.
 */
bool range_point_gap(const struct range_edges *e, const struct range_code *code,
		     const struct range_image *img, const struct var_place *p,
		     uint32_t *gap_ret, bool *fall_ret);

#endif
