/*
 * range-lead.h - by which registers a function may reach what lies in its own
 * frame: what was made of the stack pointer there. Pure.
 *
 * Perhaps only: who looks there asks whether it is so. What is made of such an
 * address counts as one, and so does what is loaded from a slot that one was
 * put in.
 */
#ifndef SMCO_RANGE_LEAD_H
#define SMCO_RANGE_LEAD_H

#include "supervisor/probe/range-text.h"

#define RANGE_LEAD_SLOTS 64

struct range_leads {
	/* private: */
	uint16_t *regs; /* before each instruction; NULL: not known yet */
	struct range_lead_slot {
		uint8_t base;
		int64_t disp;
	} slot[RANGE_LEAD_SLOTS];
	size_t nr_slots;
};

/* May instruction @i of @code reach the frame by the registers of its operand?
 * Found out for the whole function when it is asked first, after
 * (struct range_leads){0}; without memory no. */
bool range_leads_by(struct range_leads *l, const struct range_code *code,
		    uint32_t i);
void range_leads_deinit(struct range_leads *l);

#endif
