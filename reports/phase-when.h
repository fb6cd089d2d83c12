/*
 * phase-when.h - when threads were in which phase: for each thread and phase a
 * track of pieces of time, each with how much of it was in the phase. A few
 * phases are there as they were; of many, neighbours become one piece, so that
 * memory is bounded, whatever the trace has. Part of the model (phases.h).
 */
#ifndef SMCO_PHASE_WHEN_H
#define SMCO_PHASE_WHEN_H

#include "reports/hindex.h"
#include "reports/record.h"

struct when_piece {
	uint64_t from_ns, to_ns; /* [from, to), not empty */
	uint64_t in_ns; /* of that, it was in the phase, as far as is known */
	uint64_t nr;	/* entered in it */
};

struct when_track {
	uint32_t file, phase;
	uint32_t pid, tid;	  /* 0 = not known */
	struct when_piece *piece; /* in order, none over another, once sorted */
	size_t nr, cap;
	/* private: */
	struct when_piece
		late;	  /* whenever it was in that time; to_ns 0: none */
	size_t nr_sorted; /* of them, the first ones */
	uint64_t grain_ns;
};

/* Zero-initialise, model_when_free at the end. */
struct model_when {
	struct when_track *track; /* in the order of their first records */
	size_t nr, cap;
	uint64_t nr_untracked; /* records of threads beyond what is kept */
	/* private: */
	struct hindex index;
};

/*
 * Where and when @piece is, as far as [@from_ns, @to_ns) goes (to 0: no end):
 * it ends at @end_ns, and its in_ns and nr are of all of it. False: nothing of
 * it is there.
 */
bool when_clip(struct when_piece *piece, uint64_t end_ns, uint64_t length_ns,
	       uint64_t from_ns, uint64_t to_ns);
/* SMCO_NOMEM. */
int model_when_add(struct model_when *m, uint32_t file, uint32_t phase,
		   uint32_t pid, uint32_t tid, const struct when_piece *piece);
/* The same of what fills up what there is by then: nobody knows when it was. */
int model_when_add_late(struct model_when *m, uint32_t file, uint32_t phase,
			uint32_t pid, uint32_t tid,
			const struct when_piece *piece);
/* After the last one. SMCO_NOMEM. */
int model_when_finish(struct model_when *m);
void model_when_free(struct model_when *m);

/* Add a piece, none of another's time counts twice. SMCO_NOMEM. */
int when_add(struct when_track *t, const struct when_piece *piece,
	     size_t max_pieces);
/* In order, none over another, at most @max of them (0: as many as there
 * are). */
void when_sort(struct when_track *t, size_t max);
/* @late fills up the pieces of a sorted one, and what is between them, by the
 * room that each has. SMCO_NOMEM. */
int when_fill(struct when_track *t, const struct when_piece *late);
/*
 * Of a sorted one: how much of [@from_ns, @to_ns) it was in the phase. *hint is
 * the caller's, 0 at first: who asks for one time after the other is fast.
 */
double when_in_ns(const struct when_track *t, uint64_t from_ns, uint64_t to_ns,
		  size_t *hint);
/* How likely at that moment, 0 to 1. */
double when_share(const struct when_track *t, uint64_t time_ns, size_t *hint);

#endif
