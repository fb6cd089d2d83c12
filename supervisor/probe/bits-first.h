/*
 * bits-first.h - what the first touch of a page after its reset takes.
 */
#ifndef SMCO_BITS_FIRST_H
#define SMCO_BITS_FIRST_H

#include <stdbool.h>
#include <stdint.h>

struct memory_room;

/*
 * More than another touch that misses the TLB, too, ns: in no order, in pages
 * of our own with 64 page tables, with 32 MB of other memory used since the
 * reset, as a program of some size does. Right after a reset page tables are in
 * the caches still: 310 to 370 ns were measured then, 430 to 470 so, and 390 to
 * 550 in programs of 128 MB to 4 GB, by how much memory they use meanwhile.
 * Takes 50 to 70 ms and 48 MB of memory, which is given back. 0: there was no
 * memory, or not ten times as much, or nothing was to be seen.
 */
uint64_t bits_first_touch_ns(void);

/* May so much be taken, of our control group's memory and the machine's? */
bool bits_first_has_room(const struct memory_room *group,
			 const struct memory_room *machine);

#endif
