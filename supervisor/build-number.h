/*
 * build-number.h - which build of smco-trace this is, so that what is kept for
 * the next time is of the same one.
 */
#ifndef SMCO_BUILD_NUMBER_H
#define SMCO_BUILD_NUMBER_H

#include <stdint.h>

/* A checksum of the notes by which the linker numbers an executable; 0 if it
 * has none. */
uint64_t build_number(void);

#endif
