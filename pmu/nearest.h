/*
 * nearest.h - which names are meant by a wrong one?
 */
#ifndef SMCO_PMU_NEAREST_H
#define SMCO_PMU_NEAREST_H

#include "reports/base.h"

#define NEAREST_NR 4
struct nearest {
	const char *wanted;
	char name[NEAREST_NR][96]; /* best first */
	unsigned distance[NEAREST_NR];
	size_t nr;
};
void nearest_init(struct nearest *n, const char *wanted);
void nearest_offer(struct nearest *n, const char *name);
/* The same of one whose distance the caller knows. */
void nearest_add(struct nearest *n, const char *name, unsigned distance);
/* "a, b, c", or "" if nothing is near. Returns @buf. */
const char *nearest_list(const struct nearest *n, char *buf, size_t size);

#endif
