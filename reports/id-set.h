/*
 * id-set.h - which ids occur among any number of them: memory grows with the
 * different ones only.
 */
#ifndef SMCO_ID_SET_H
#define SMCO_ID_SET_H

#include "reports/base.h"

struct id_set {	      /* zero-initialise */
	uint32_t *id; /* owned; after id_set_sort ascending, each once */
	size_t nr;
	/* private: */
	size_t cap;
};

/* SMCO_NOMEM: it is not in. */
int id_set_add(struct id_set *s, uint32_t id);
void id_set_sort(struct id_set *s);
void id_set_free(struct id_set *s);

#endif
