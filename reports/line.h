/*
 * line.h - lines of a report: text is cleaned (a trace is hostile; it must not
 * send escape sequences to a terminal), counted in columns, cut or wrapped at
 * the width, coloured if wanted.
 */
#ifndef SMCO_LINE_H
#define SMCO_LINE_H

#include <stdio.h>

#include "reports/bytes.h"

enum ink {
	INK_NONE,
	INK_BOLD,
	INK_DIM,
	INK_NAME, /* functions */
	INK_GOOD,
	INK_WARN,
	INK_BAD,
};

struct page { /* where lines go; plain data */
	FILE *out;
	unsigned width; /* columns; 0 = no limit */
	bool color;
	bool ascii; /* no characters beyond ASCII of our own */
};

struct line {
	/* private: */
	const struct page *page;
	struct bbuf text;
	unsigned col;	 /* next column */
	unsigned indent; /* of continuation lines */
	enum ink ink;	 /* in force at the end of text */
	bool full;	 /* cut: what follows is dropped */
	bool fresh;	 /* nothing but the indent since the last break */
};

/* Start a line: @indent blanks, then @label, padded so that text starts at
 * @text_col, which is also where continuation lines start. */
void line_begin(struct line *l, const struct page *page, unsigned indent,
		const char *label, enum ink ink, unsigned text_col);
/* Append @s; what does not fit on the line is cut with an ellipsis. */
void line_add(struct line *l, enum ink ink, const char *s);
void line_addf(struct line *l, enum ink ink, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Append @s as one piece, on a continuation line if it does not fit; @before
 * (", " and the like) stands in front of it where a line goes on. */
void line_item(struct line *l, enum ink ink, const char *before, const char *s);
/* Append @s, cut so that @tail columns are left on the line if it is wide
 * enough for something of both. */
void line_add_before(struct line *l, enum ink ink, const char *s,
		     unsigned tail);
/* Words of @s, wrapped. */
void line_words(struct line *l, enum ink ink, const char *s);
/* Blanks up to @col. */
void line_pad(struct line *l, unsigned col);
/* The next column, from 0. */
static inline unsigned line_column(const struct line *l)
{
	return l->col;
}
/* Columns left; UINT_MAX if there is no limit. */
unsigned line_left(const struct line *l);
/* From here on @page's width counts. */
void line_widen(struct line *l, const struct page *page);
/* Write it, with its newline. */
void line_end(struct line *l);
/* Write nothing. */
void line_discard(struct line *l);

/* Columns of @s as line_add will show it. */
unsigned line_columns(const char *s);
/* One UTF-8 character at @s: its length, 0 at the end of the string; *ok says
 * whether it may be shown as it is (valid, and no control character). */
size_t line_char(const char *s, bool *ok);

#endif
