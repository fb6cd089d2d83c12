#include "reports/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/bytes.h"
#include "reports/shortage.h"

#define LINE_MAX_BYTES	1023  /* of `command` */
#define WORDS_MAX_BYTES 60000 /* of `argv`; longer ones are left out */
#define FIRST_FORMAT	6     /* whose writers put `argv` where it is needed */

static void put_text(struct bbuf *b, const char *s)
{
	bbuf_put(b, s, strlen(s));
}

/* The text with its end, the caller's; NULL if out of memory. */
static char *finish(struct bbuf *b)
{
	bbuf_put(b, "", 1);
	if (!b->failed)
		return (char *)b->data;
	bbuf_free(b);
	return NULL;
}

/* ------------------------------------------------------------ in a trace ---
 */

/* Not what would be found between blanks. */
static bool is_special(const char *word)
{
	return !*word || strpbrk(word, " \n");
}

static void put_escaped(struct bbuf *b, const char *word)
{
	for (; *word; word++)
		if (*word == '\n')
			put_text(b, "\\n");
		else if (*word == '\\')
			put_text(b, "\\\\");
		else
			bbuf_put(b, word, 1);
}

int command_put(struct trace_writer *w, char *const *argv)
{
	struct bbuf line = {0}, words = {0};
	bool special = false;
	for (char *const *a = argv; *a; a++) {
		put_text(&line, a == argv ? "" : " ");
		put_text(&line, *a);
		put_text(&words, a == argv ? "" : "\n");
		put_escaped(&words, *a);
		special |= is_special(*a);
	}
	if (line.len > LINE_MAX_BYTES) {
		line.len = LINE_MAX_BYTES;
		special = true;
	}
	special |= line.len == LINE_MAX_BYTES; /* looks cut */
	bool fits = words.len <= WORDS_MAX_BYTES;
	_cleanup_free_ char *command = finish(&line);
	_cleanup_free_ char *in_lines = finish(&words);
	if (!command || !in_lines)
		return SMCO_NOMEM;
	int rc = trace_put_meta(w, "command", command);
	if (!rc && special && fits)
		rc = trace_put_meta(w, "argv", in_lines);
	return rc;
}

/* @text with each @end made an end of a word; the words as command_words() has
 * them. */
static char **split(const char *text, char end, bool escaped)
{
	size_t nr = 1, len = strlen(text);
	for (const char *p = text; *p; p++)
		nr += *p == end;
	char **words = malloc((nr + 1) * sizeof(*words) + len + 1);
	if (!words) {
		shortage_tell();
		return NULL;
	}
	char *to = (char *)(words + nr + 1);
	nr = 0;
	words[nr++] = to;
	for (const char *p = text; *p; p++) {
		if (*p == end) {
			*to++ = '\0';
			words[nr++] = to;
		} else if (escaped && *p == '\\' && p[1]) {
			p++;
			*to++ = *p == 'n' ? '\n' : *p;
		} else {
			*to++ = *p;
		}
	}
	*to = '\0';
	words[nr] = NULL;
	return words;
}

char **command_words(struct trace_reader *r)
{
	const char *argv = trace_meta(r, "argv");
	const char *command = trace_meta(r, "command");
	if (argv)
		return split(argv, '\n', true);
	if (trace_format(r) < FIRST_FORMAT || !command ||
	    trace_meta(r, "attached") || strlen(command) >= LINE_MAX_BYTES)
		return NULL;
	return split(command, ' ', false);
}

/* ------------------------------------------------------------- for people ---
 */

static bool is_control(char c)
{
	return (unsigned char)c < ' ' || c == '\177';
}

static bool is_harmless(const char *word)
{
	const char *p = word;
	for (; *p; p++)
		if (!(*p & 0x80) && (*p < '0' || *p > '9') &&
		    (*p < 'a' || *p > 'z') && (*p < 'A' || *p > 'Z') &&
		    !strchr("@%+=:,./_-", *p))
			return false;
	return p > word;
}

static void put_control(struct bbuf *b, char c)
{
	char octal[8];
	if (c == '\n' || c == '\t') {
		put_text(b, c == '\n' ? "\\n" : "\\t");
		return;
	}
	snprintf(octal, sizeof(octal), "\\%03o", (unsigned char)c);
	put_text(b, octal);
}

static void quote_controls(struct bbuf *b, const char *word)
{
	put_text(b, "$'");
	for (; *word; word++) {
		if (is_control(*word)) {
			put_control(b, *word);
		} else {
			put_text(b, *word == '\'' || *word == '\\' ? "\\" : "");
			bbuf_put(b, word, 1);
		}
	}
	put_text(b, "'");
}

static void quote(struct bbuf *b, const char *word)
{
	if (is_harmless(word)) {
		put_text(b, word);
		return;
	}
	for (const char *p = word; *p; p++)
		if (is_control(*p)) {
			quote_controls(b, word);
			return;
		}
	put_text(b, "'");
	for (; *word; word++)
		if (*word == '\'')
			put_text(b, "'\\''");
		else
			bbuf_put(b, word, 1);
	put_text(b, "'");
}

char *command_quote(char *const *words)
{
	struct bbuf b = {0};
	for (char *const *w = words; *w; w++) {
		put_text(&b, w == words ? "" : " ");
		quote(&b, *w);
	}
	return finish(&b);
}

char *command_line_shown(const char *line)
{
	struct bbuf b = {0};
	for (; *line; line++)
		if (is_control(*line))
			put_control(&b, *line);
		else
			bbuf_put(&b, line, 1);
	return finish(&b);
}

char *command_shown(struct trace_reader *r)
{
	_cleanup_free_ char **words = command_words(r);
	const char *command = trace_meta(r, "command");
	if (words)
		return command_quote(words);
	return command ? command_line_shown(command) : NULL;
}
