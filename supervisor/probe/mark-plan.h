/*
 * mark-plan.h - which bytes of a file's code give way to jumps so that marks
 * in it are seen: windows of whole instructions, into which nothing jumps.
 * Where the mark is a nop of five bytes, that; elsewhere what is around it.
 * Pure; all addresses are the file's own, ELF and code are hostile input.
 *
 *	mark_plan_init(&plan);
 *	mark_plan_spot(&plan, &spot);		// a nop, as probes have
 *	mark_plan_function(&plan, code, ...);	// entry and exits
 *	mark_plan_place(&plan, code);		// windows, at last
 */
#ifndef SMCO_MARK_PLAN_H
#define SMCO_MARK_PLAN_H

#include <libelf.h>

#include "reports/base.h"

#define MARK_MAX	  256 /* spots of a module */
#define MARK_WINDOW_BYTES 96  /* that are moved, at most */

enum mark_when {
	MARK_ALWAYS, /* everybody who comes to the instruction */
	MARK_TAKEN,  /* a conditional branch that is taken */
};
struct mark_spot {
	uint64_t addr;	    /* of an instruction */
	uint64_t semaphore; /* 16 bits, to be counted up; 0 = none */
	uint32_t channel;   /* below MARK_MAX_CHANNELS: wanted together */
	/* Below MARK_MAX_COUNTERS: counted together. An odd one is for what
	 * ends that the one before it counts the beginnings of. */
	uint32_t counter;
	uint8_t what; /* the caller's; stands in records */
	uint8_t when; /* enum mark_when */
	/* It is behind its function's first instruction, so many bytes, and the
	 * stack is so many bytes longer there than where that begins. */
	uint8_t behind;
	uint32_t pushed;
};

struct mark_window {
	uint64_t addr;
	uint32_t first_spot, nr_spots;
	uint8_t len;  /* of the instructions that are moved */
	uint8_t room; /* that a jump may take, at least five */
	uint8_t nr_insns;
	bool goes_on; /* to what is behind them */
	/* The first spot is so far behind it, but no instruction is: it is
	 * passed where the window begins. */
	uint8_t behind;
	uint8_t bytes[MARK_WINDOW_BYTES]; /* the file's: @room or @len */
};

struct mark_plan {
	struct mark_spot *spot; /* by address, once placed: those in windows */
	size_t nr_spots, cap_spots;
	struct mark_window *window; /* by address */
	size_t nr_windows;
	size_t nr_refused; /* spots without a window */
	uint64_t refused_at;
	const char *why_refused; /* the first of them; never NULL */
};

void mark_plan_init(struct mark_plan *plan);
void mark_plan_deinit(struct mark_plan *plan);

/* What is known of a file's code; built when it is first needed, which takes a
 * tenth of a second for each MB. The Elf must stay. */
struct mark_code;
/* @part: sorted starts of parts of functions that lie elsewhere, which a branch
 * to does not leave; the caller's, must stay. NULL: memory is out. */
struct mark_code *mark_code_create(Elf *elf, const uint64_t *part,
				   size_t nr_parts);
void mark_code_destroy(struct mark_code *code);

/* SMCO_NOMEM; more than MARK_MAX are refused. */
int mark_plan_spot(struct mark_plan *plan, const struct mark_spot *spot,
		   struct smco_err *err);
/*
 * Where the function at @entry, @size bytes (0: not known), begins, spots like
 * @begin (behind its first instruction if that can stay, for others set uprobes
 * there, of which the kernel runs what the file has and goes on behind it), and
 * where it ends, by return or tail call, like @end. What cannot be
 * understood is refused, not an error. SMCO_NOMEM, SMCO_FORMAT.
 */
int mark_plan_function(struct mark_plan *plan, struct mark_code *code,
		       uint64_t entry, uint64_t size,
		       const struct mark_spot *begin,
		       const struct mark_spot *end, struct smco_err *err);
/* Windows for all spots. SMCO_NOMEM, SMCO_FORMAT. */
int mark_plan_place(struct mark_plan *plan, struct mark_code *code,
		    struct smco_err *err);

#endif
