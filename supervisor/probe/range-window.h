/*
 * range-window.h - which bytes of a function are overwritten by jumps so that
 * all its sites are reached: windows of whole instructions, five bytes at
 * least, into which nothing jumps; or two where there is padding for the rest
 * of the way (range-relay.h). Pure.
 */
#ifndef SMCO_RANGE_WINDOW_H
#define SMCO_RANGE_WINDOW_H

#include "supervisor/probe/range-break.h"

struct range_window {
	uint32_t first; /* instruction, where the jump goes */
	uint32_t end;	/* exclusive */
	uint32_t first_site;
	uint32_t nr_sites;
	uint64_t relay; /* a short jump goes there; 0: a long one to the stub */
};

enum range_refusal {
	RR_NO_ROOM, /* a branch target behind less than five bytes, and no
		     * padding in reach */
	RR_PINNED,  /* an instruction there cannot run anywhere else */
	RR_NR,
};

struct range_windows {
	struct range_window *window; /* by first, disjoint */
	size_t nr;
	/* Those that are served, moved to where they are served, by gap. */
	struct range_site *site;
	size_t nr_sites;
	size_t nr_refused[RR_NR]; /* sites without a window, by reason */
	/* Of those, the ones that a breakpoint can see. */
	struct range_break *brk;
	size_t nr_breaks;
};

int range_windows_find(struct range_windows *ret, const struct range_code *code,
		       const struct range_image *img, const struct variables *v,
		       const struct range_sites *sites, struct smco_err *err);
void range_windows_deinit(struct range_windows *w);

/*
 * For jumps of others: the end of the window that begins at instruction @first
 * and holds at least @least instructions and five bytes, into which nothing
 * jumps; 0 if there is none. Behind it control goes on unless range_falls says
 * that its last instruction does not, or that is a call.
 */
uint32_t range_window_end(const struct range_code *code,
			  const struct range_image *img, uint32_t first,
			  uint32_t least);

/* Registers that the value of @site is read from. */
uint32_t range_site_regs(const struct range_site *site,
			 const struct variables *v);

#endif
