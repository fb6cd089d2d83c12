/*
 * fixed.h - the arithmetic of the controllers: 64-bit fixed point that stops
 * at the ends of its range instead of wrapping. Private to control/.
 *
 * Percentages are ppb outside. Inside the cascade they are "fine": a millionth
 * of a ppb, because a target of 1 % shared by 100 000 plants is 99 ppb each
 * and rounding it would be a hundredth of the budget.
 */
#ifndef SMCO_CONTROL_FIXED_H
#define SMCO_CONTROL_FIXED_H

#include "supervisor/control/control.h"

#define FINE_PER_PPB 1000000LL
#define FINE_ONE     (PPB * FINE_PER_PPB) /* 100 %, 10^15 */

__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 i128;

static inline uint64_t sat_add_u64(uint64_t a, uint64_t b)
{
	uint64_t r;
	return __builtin_add_overflow(a, b, &r) ? UINT64_MAX : r;
}

static inline uint64_t sat_sub_u64(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static inline int64_t sat_i64(i128 v)
{
	if (v > INT64_MAX)
		return INT64_MAX;
	return v < INT64_MIN ? INT64_MIN : (int64_t)v;
}

static inline uint64_t sat_u64(u128 v)
{
	return v > UINT64_MAX ? UINT64_MAX : (uint64_t)v;
}

static inline int64_t clamp_i64(int64_t v, int64_t lo, int64_t hi)
{
	return v < lo ? lo : v > hi ? hi : v;
}

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The square root, rounded down. */
static inline uint64_t root_u64(uint64_t n)
{
	uint64_t r = 0;
	for (uint64_t bit = 1ULL << 31; bit; bit /= 2)
		if ((r + bit) * (r + bit) <= n)
			r += bit;
	return r;
}

/* @ns times @ppb / 10^9, rounded down. @ppb must not be negative. */
static inline uint64_t mul_ppb(uint64_t ns, int64_t ppb)
{
	return sat_u64((u128)ns * (uint64_t)ppb / PPB);
}

/* How long it is until @ns are @ppb / 10^9 of it. @ppb is more than 0. */
static inline uint64_t div_ppb(uint64_t ns, int64_t ppb)
{
	return sat_u64((u128)ns * PPB / (uint64_t)ppb);
}

/* Is there no bound at all? The largest target says so. */
static inline bool target_is_unlimited(int64_t overhead_ppb)
{
	return overhead_ppb == INT64_MAX;
}

#endif
