/*
 * linkmap.h - has a running program loaded a library, or unloaded one? The
 * dynamic linker keeps a list of what is loaded, for debuggers; its end is
 * looked at with one read of memory. Nothing is stopped and nothing planted,
 * and what was loaded and unloaded between two looks is not seen. Namespaces of
 * dlmopen have lists of their own, which are not looked at. The list is in the
 * program's memory: hostile.
 */
#ifndef SMCO_LINKMAP_H
#define SMCO_LINKMAP_H

#include "supervisor/tracee/tracee.h"

/* All zero at first. */
struct linkmap {
	/* private: */
	taddr_t debug; /* struct r_debug */
	bool is_tried, is_known;
	taddr_t tail;	  /* the last struct link_map */
	uint64_t last[5]; /* what it was */
	uint64_t nr, sum; /* of all: how many, and where they are */
};

/*
 * Is the list another than at the last look? True at the first one. False where
 * there is none (static programs), or while it is being changed. The process
 * may run.
 */
bool linkmap_changed(struct linkmap *l, struct tproc *p);
/* A word of the program's memory. */
struct linkmap_word {
	taddr_t addr;
	uint64_t value;
};
#define LINKMAP_WORDS 4
/*
 * What says, without a walk, that such a module still is where it is: as long
 * as all of these words are what they were, the list has it and is not being
 * changed. (glibc says that it is before it unmaps, and has the module out of
 * the list before it says that it is not.) False: there is no such module now.
 * One that is loaded later may have the very same words; its bytes tell. The
 * last word's value is @bias.
 */
bool linkmap_words(struct linkmap *l, struct tproc *p, uint64_t bias,
		   struct linkmap_word ret[LINKMAP_WORDS]);

#endif
