/*
 * markup.h - what a trace says, within a page of HTML.
 */
#ifndef SMCO_MARKUP_H
#define SMCO_MARKUP_H

#include <stdio.h>

/* Write @s so that it is text between tags and in quoted attributes, whatever
 * it says; of control characters and what is no UTF-8 there is a '?'. */
void markup_text(FILE *out, const char *s);

#endif
