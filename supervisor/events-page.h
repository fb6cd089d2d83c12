/*
 * events-page.h - what --list-events prints.
 */
#ifndef SMCO_EVENTS_PAGE_H
#define SMCO_EVENTS_PAGE_H

#include <stdio.h>

/* One line for each event whose name matches @glob (NULL: all): whether it can
 * be counted here, name, kind, description; then why the others cannot, once a
 * kind. Returns how many events there were. */
size_t events_print(FILE *out, const char *glob);

#endif
