/*
 * lrudrain.h - make new pages resettable. The kernel keeps the pages that a
 * CPU faulted in last (up to 31) in a batch of that CPU before they enter its
 * LRU lists, and MADV_COLD skips them until then. A busy program fills the
 * next batch soon; on one that has gone quiet, which is what matters here,
 * they would look touched for ever.
 */
#ifndef SMCO_LRUDRAIN_H
#define SMCO_LRUDRAIN_H

#include <stdint.h>

/*
 * Empty the batches of the CPUs in @cpu_mask (0-63): a short-lived thread
 * visits each and does there what empties it (its own MADV_COLD). Returns at
 * once; does nothing if the last time was less than 50 ms ago.
 */
void lrudrain_ask(uint64_t cpu_mask);

#endif
