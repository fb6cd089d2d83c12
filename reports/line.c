#include "reports/line.h"

#include <limits.h>
#include <stdarg.h>
#include <string.h>

static const char *const ink_code[] = {
	[INK_NONE] = "",	 [INK_BOLD] = "\033[1m",
	[INK_DIM] = "\033[2m",	 [INK_NAME] = "\033[36m",
	[INK_GOOD] = "\033[32m", [INK_WARN] = "\033[33m",
	[INK_BAD] = "\033[31m",
};

/* Code point at @s and its length; 0 if it is not valid UTF-8. */
static size_t decode_utf8(const unsigned char *s, uint32_t *ret)
{
	static const uint32_t lowest[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t n = s[0] < 0x80	 ? 1
		   : s[0] < 0xc2 ? 0
		   : s[0] < 0xe0 ? 2
		   : s[0] < 0xf0 ? 3
		   : s[0] < 0xf5 ? 4
				 : 0;
	if (!n)
		return 0;
	uint32_t v = n == 1 ? s[0] : s[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		v = v << 6 | (s[i] & 0x3f);
	}
	if (v < lowest[n] || v > 0x10ffff || (v >= 0xd800 && v < 0xe000))
		return 0;
	*ret = v;
	return n;
}

/* Control characters and those that turn the direction of writing. */
static bool is_harmful(uint32_t v)
{
	return v < 0x20 || (v >= 0x7f && v < 0xa0) ||
	       (v >= 0x200b && v <= 0x200f) || (v >= 0x2028 && v <= 0x202e) ||
	       (v >= 0x2066 && v <= 0x2069) || v == 0xfeff;
}

size_t line_char(const char *s, bool *ok)
{
	uint32_t v = 0;
	if (!*s)
		return 0;
	size_t n = decode_utf8((const unsigned char *)s, &v);
	*ok = n && !is_harmful(v);
	return n ? n : 1;
}

unsigned line_columns(const char *s)
{
	unsigned columns = 0;
	bool ok;
	for (size_t n; (n = line_char(s, &ok)) != 0; s += n)
		columns++;
	return columns;
}

/* What follows is written in @ink. */
static void set_ink(struct line *l, enum ink ink)
{
	if (!l->page->color || l->ink == ink)
		return;
	if (l->ink != INK_NONE)
		bbuf_put(&l->text, "\033[0m", 4);
	bbuf_put(&l->text, ink_code[ink], strlen(ink_code[ink]));
	l->ink = ink;
}

/* At most @max columns of @s. */
static void put_text(struct line *l, const char *s, unsigned max)
{
	bool ok;
	for (size_t n; max && (n = line_char(s, &ok)) != 0; s += n, max--) {
		if (ok)
			bbuf_put(&l->text, s, n);
		else
			bbuf_put(&l->text, "?", 1);
		l->col++;
	}
}

void line_begin(struct line *l, const struct page *page, unsigned indent,
		const char *label, enum ink ink, unsigned text_col)
{
	*l = (struct line){.page = page, .indent = text_col};
	line_pad(l, indent);
	if (*label)
		line_add(l, ink, label);
	line_pad(l, text_col);
	l->fresh = true;
}

unsigned line_left(const struct line *l)
{
	if (!l->page->width)
		return UINT_MAX;
	return l->col < l->page->width ? l->page->width - l->col : 0;
}

void line_add(struct line *l, enum ink ink, const char *s)
{
	if (l->full || !*s)
		return;
	unsigned left = line_left(l);
	set_ink(l, ink);
	if (line_columns(s) <= left) {
		put_text(l, s, UINT_MAX);
	} else {
		const char *dots = l->page->ascii ? "..." : "\u2026";
		unsigned n = line_columns(dots);
		put_text(l, s, left > n ? left - n : 0);
		if (left >= n)
			put_text(l, dots, n);
		l->full = true;
	}
	l->fresh = false;
}

void line_addf(struct line *l, enum ink ink, const char *fmt, ...)
{
	char buf[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	line_add(l, ink, buf);
}

void line_add_before(struct line *l, enum ink ink, const char *s, unsigned tail)
{
	const struct page *page = l->page;
	struct page narrow = *page;
	if (narrow.width > l->col + tail + 20)
		narrow.width -= tail;
	else if (narrow.width > 1)
		narrow.width -= 1;
	line_widen(l, &narrow);
	line_add(l, ink, s);
	line_widen(l, page);
}

static void write_out(struct line *l)
{
	set_ink(l, INK_NONE);
	while (l->text.len && l->text.data[l->text.len - 1] == ' ')
		l->text.len--;
	bbuf_put(&l->text, "\n", 1);
	if (!l->text.failed)
		fwrite(l->text.data, 1, l->text.len, l->page->out);
	bbuf_reset(&l->text);
	l->col = 0;
	l->full = false;
}

static void break_line(struct line *l)
{
	write_out(l);
	line_pad(l, l->indent);
	l->fresh = true;
}

void line_item(struct line *l, enum ink ink, const char *before, const char *s)
{
	if (!l->fresh) {
		/* Blanks between words of one colour keep it. */
		set_ink(l, l->ink == ink ? ink : INK_NONE);
		/* Room for the separator's comma behind it, too. */
		if (line_columns(before) + line_columns(s) + 1 > line_left(l)) {
			char tail[8];
			size_t n = strcspn(before, " ");
			snprintf(tail, sizeof(tail), "%.*s", (int)n, before);
			put_text(l, tail, line_left(l));
			break_line(l);
		} else {
			put_text(l, before, UINT_MAX);
		}
	}
	line_add(l, ink, s);
}

void line_words(struct line *l, enum ink ink, const char *s)
{
	char word[256];
	while (*s) {
		s += strspn(s, " ");
		size_t n = strcspn(s, " ");
		if (n >= sizeof(word))
			n = sizeof(word) - 1;
		if (!n)
			break;
		memcpy(word, s, n);
		word[n] = '\0';
		line_item(l, ink, " ", word);
		s += n;
	}
}

void line_pad(struct line *l, unsigned col)
{
	if (l->col < col)
		set_ink(l, INK_NONE);
	while (l->col < col && (!l->page->width || l->col < l->page->width)) {
		bbuf_put(&l->text, " ", 1);
		l->col++;
	}
}

void line_end(struct line *l)
{
	write_out(l);
	bbuf_free(&l->text);
}

void line_widen(struct line *l, const struct page *page)
{
	l->page = page;
	l->full = false;
}

void line_discard(struct line *l)
{
	bbuf_free(&l->text);
}
