/*
 * kept.h - figures that were measured of this machine, kept in the cache
 * directory (cachedir.h), so that the next start needs not measure them again.
 *
 * What a busy moment made of a measurement must not stay: a figure is the
 * median of KEPT_TIMES measurements of as many starts, none of them older than
 * KEPT_S. Until there are so many, each start measures, or, with what was
 * measured last, each end of a run. They are of one boot of
 * one machine, for the same CPUs and the same build of smco-trace; the file
 * (text, "costs") is as if it were not there where anything else is in it.
 */
#ifndef SMCO_KEPT_H
#define SMCO_KEPT_H

#include <time.h>

#include "reports/base.h"

#define KEPT_FIGURES 4
#define KEPT_TIMES   3
#define KEPT_S	     3600

enum kept_what {
	KEPT_BITS,	  /* struct bits_cost, ns */
	KEPT_WAKE,	  /* struct wakecost, ns */
	KEPT_SAMPLE,	  /* sampler_cost_ns */
	KEPT_SAMPLE_USER, /* the same, of the user's level only */
	KEPT_NR,
};

/* What is known so far of programs of @build, at @now_s of the wall's clock.
 * Without that, and where no directory may be used, nothing is known, and
 * nothing will be. */
void kept_open(uint64_t build, time_t now_s);
/* False: to be measured. */
bool kept_get(enum kept_what what, uint64_t ret[KEPT_FIGURES]);
/* The latest, of however few; for what is measured again at the end of a run,
 * when nobody waits for it. */
bool kept_latest(enum kept_what what, uint64_t ret[KEPT_FIGURES]);
/* Is there something to be kept, and too little known? */
bool kept_wants(enum kept_what what);
/* It was measured just now. */
void kept_add(enum kept_what what, const uint64_t figures[KEPT_FIGURES]);
/* What is new is written, which may take long; then nothing is known. */
void kept_close(void);

#endif
