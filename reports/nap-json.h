/*
 * nap-json.h - one nap as compact JSON. There may be millions, so no tree is
 * built for each; the rest of the document is jansson's.
 */
#ifndef SMCO_NAP_JSON_H
#define SMCO_NAP_JSON_H

#include "reports/bytes.h"
#include "reports/model.h"

/* Append the object that JSON.md calls a nap. b->failed if memory is out. */
void nap_json(struct bbuf *b, const struct model_nap *m);

#endif
