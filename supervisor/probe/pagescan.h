/*
 * pagescan.h - can access_pagescan work on this machine? Tried on memory of
 * our own, no tracee needed.
 */
#ifndef SMCO_PAGESCAN_H
#define SMCO_PAGESCAN_H

#include "reports/base.h"

/* 0, or SMCO_UNSUPPORTED with what is missing. */
int pagescan_probe(struct smco_err *err);

#endif
