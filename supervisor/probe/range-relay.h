/*
 * range-relay.h - where only a jump of two bytes fits: padding within its
 * reach, five bytes of it, that holds the jump to the stub. Pure.
 *
 * A function has for its own what lies behind its jumps and returns, and what
 * fills up sixteen bytes behind its end: so two functions never share any.
 */
#ifndef SMCO_RANGE_RELAY_H
#define SMCO_RANGE_RELAY_H

#include "supervisor/probe/range-window.h"

/* Padding that a jump of two bytes at @from reaches and none of @w uses; its
 * address in the file, 0: there is none. */
uint64_t range_relay_find(const struct range_code *code,
			  const struct range_image *img,
			  const struct range_windows *w, uint64_t from);
/* The windows' relays are such padding of @code, each another. */
bool range_relays_fit(const struct range_code *code,
		      const struct range_image *img,
		      const struct range_windows *w);
/* Of the padding at @addr, before the next function, up to @want bytes. */
uint64_t range_room_behind(const struct range_image *img, uint64_t addr,
			   uint64_t want);

#endif
