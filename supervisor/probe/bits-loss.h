/*
 * bits-loss.h - what a program loses whose accessed bits are reset while it
 * runs, seen by itself: by how much fewer steps it makes.
 */
#ifndef SMCO_BITS_LOSS_H
#define SMCO_BITS_LOSS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* At @mem in loss_walk and loss_measure. */
#define LOSS_MEM_BYTES (32ul << 20)

/* Pages of a range that is more than one. */
#define LOSS_RANGE_PAGES 4

struct bits_loss {
	uint64_t touch_ns; /* each page of a range */
	uint64_t range_ns; /* each range besides, in a page table of its own */
};

/* Of what was lost for a page: @single_ns for each that is a range of its own,
 * @in_range_ns for each in a range of LOSS_RANGE_PAGES. */
void bits_loss_split(double single_ns, double in_range_ns,
		     struct bits_loss *ret);

/* What a busy moment made of the one is not in the other: to the lesser. */
void bits_loss_lessen(struct bits_loss *loss, const struct bits_loss *again);

/* Shared by the one who walks and the one who measures; zero at first. */
struct loss_walk {
	volatile uint64_t steps;
	volatile pid_t pid; /* of the one who walks, before its first step */
	volatile uint32_t over; /* set by the one who measures */
};

/*
 * Touches pages of @mem in no order until w->over, so that each reset page is
 * touched before long, among others. They are written first.
 */
void loss_walk(struct loss_walk *w, volatile char *mem);

/*
 * Resets pages of @mem in the process @pidfd that walks there, on the CPU that
 * we are on, in every other spell of a millisecond of its CPU time, and
 * compares its steps (20 to 80 ms, up to four times that where others want the
 * CPU). A first touch in itself, as a loop sees it, is not all: where the
 * machine is a guest whose page tables its host keeps a copy of, each page
 * table in which something was reset is compared entry by entry: 8 us a page
 * and 20 a page table were measured, where a loop saw 6. What is seen to be
 * lost for a range is measured twice, for as long again: it would be charged
 * for all of the run. False if nothing could be told, or if a page with all
 * that belongs to it is below @enough_ns: the spells are too short to tell
 * more.
 */
bool loss_measure(struct loss_walk *w, int pidfd, char *mem, uint64_t enough_ns,
		  struct bits_loss *ret);

#endif
