/*
 * tables.h - a thread that makes ready what naming a stack needs, so that no
 * stop has to wait for it: it finds where the frame information of modules is,
 * and reads it where the linker has left no table of it. It calls nothing but
 * symbols/, knows no process, gets no signals.
 */
#ifndef SMCO_TABLES_H
#define SMCO_TABLES_H

#include "symbols/symbols.h"

struct tables;

/*
 * Before the caller changes its CPUs or priority: the thread keeps those that
 * it starts with. To read much takes some ten milliseconds, which a program of
 * a tenth of a second cannot pay on the spot: where others want its CPU the
 * thread rests in between, so that it has @m_t_ppb of that (parts of 1e9). NULL
 * if there can be no thread.
 */
struct tables *tables_create(int64_t m_t_ppb);
/* How long it rests after @cpu_ns, ns; @is_wanted: somebody has taken the CPU
 * meanwhile. */
uint64_t tables_rest_ns(uint64_t cpu_ns, bool is_wanted, int64_t m_t_ppb);
/* How long the stops of one process may wait for its tables, in all, ns: what
 * its share is of a short time, for others may stand meanwhile, too. */
uint64_t tables_patience_ns(const struct tables *t);
/* Waits for the table in work, forgets the others. NULL is fine. */
void tables_destroy(struct tables *t);

/* Have the tables of all modules that @space has now. It must not be destroyed
 * before tables_destroy(). True if that will happen. */
bool tables_want(struct tables *t, struct sym_space *space);
/* The same for the program that exec would find under @command, before it
 * runs, and for the C library that we run with ourselves. */
void tables_expect(struct tables *t, const char *command);

#endif
