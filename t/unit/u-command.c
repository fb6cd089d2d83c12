/* The words of what was run: through a trace, and for people. */
#include "t/unit/tap.h"

#include <stdlib.h>
#include <string.h>

#include "reports/command.h"
#include "t/unit/scratch.h"

/* Into a trace and out of it: the same words, and @shown for people; `argv` is
 * in the trace only if @apart. */
static void through(const char *const *argv, const char *shown, bool apart)
{
	const char *path = scratch_path("x.trace");
	struct trace_writer *w = NULL;
	struct trace_reader *r = NULL;
	size_t nr = 0, same = 0;
	check_int(trace_writer_create(path, 5, &w, NULL), 0);
	check_int(command_put(w, (char *const *)argv), 0);
	trace_writer_close(w, NULL);
	check_int(trace_reader_open(path, &r, NULL), 0);
	check_int(!!trace_meta(r, "argv"), apart);
	char **words = command_words(r);
	for (; words && argv[nr] && words[nr]; nr++)
		same += !strcmp(argv[nr], words[nr]);
	check(words && !argv[nr] && !words[nr]);
	check_int(same, nr);
	char *text = command_shown(r);
	if (shown)
		check_str(text, shown);
	free(text);
	free(words);
	trace_reader_close(r);
}
#define THROUGH(shown, apart, ...)                                             \
	through((const char *[]){__VA_ARGS__, NULL}, shown, apart)

/* @value is what a trace of another writer has; @nr words, -1: not known. */
static void written(const char *key, const char *value, const char *other,
		    int nr, const char *shown)
{
	const char *path = scratch_path("x.trace");
	struct trace_writer *w = NULL;
	struct trace_reader *r = NULL;
	int got = -1;
	check_int(trace_writer_create(path, 5, &w, NULL), 0);
	trace_put_meta(w, key, value);
	if (other)
		trace_put_meta(w, other, "1");
	trace_writer_close(w, NULL);
	check_int(trace_reader_open(path, &r, NULL), 0);
	char **words = command_words(r), *text = command_shown(r);
	if (words)
		for (got = 0; words[got];)
			got++;
	check_int(got, nr);
	check_str(text ? text : "(none)", shown);
	free(words);
	free(text);
	trace_reader_close(r);
}

static void lengths(void)
{
	static char word[70001];
	for (size_t len = 1022; len <= 1024; len++) {
		memset(word, 'x', len);
		word[len] = '\0';
		THROUGH(word, len > 1022, word);
	}
	memset(word, 'x', 60000);
	word[60000] = '\0';
	THROUGH(word, true, word);
	memset(word, 'x', sizeof(word) - 1); /* not known: cut */
	const char *path = scratch_path("x.trace");
	struct trace_writer *w = NULL;
	struct trace_reader *r = NULL;
	check_int(trace_writer_create(path, 5, &w, NULL), 0);
	check_int(command_put(w, (char *[]){word, NULL}), 0);
	trace_writer_close(w, NULL);
	check_int(trace_reader_open(path, &r, NULL), 0);
	check(!command_words(r));
	char *text = command_shown(r);
	check_int(strlen(text), 1023);
	free(text);
	trace_reader_close(r);
}

int main(void)
{
	THROUGH("true", false, "true");
	THROUGH("/bin/ls -l --color=auto a,b:c@d%e+f_g.h", false, "/bin/ls",
		"-l", "--color=auto", "a,b:c@d%e+f_g.h");
	THROUGH("sh -c 'exit 3'", true, "sh", "-c", "exit 3");
	THROUGH("''", true, "");
	THROUGH("a '' b ''", true, "a", "", "b", "");
	THROUGH("'it'\\''s' '\"' '$HOME' '~' '*' '!' 'a;b'", false, "it's",
		"\"", "$HOME", "~", "*", "!", "a;b");
	THROUGH("'a\\b' 'c\\n' ' '", true, "a\\b", "c\\n", " ");
	THROUGH("'\\n'", false, "\\n");
	THROUGH("$'x\\ny\\t\\'\\\\\\033[m\\177'", true, "x\ny\t'\\\033[m\177");
	THROUGH("\xc3\xbc 'b\xc3\xa4 r'", true, "\xc3\xbc", "b\xc3\xa4 r");
	lengths();
	written("command", "a b  c", NULL, 4, "a b '' c");
	written("command", "a 'b c'", "attached", -1, "a 'b c'");
	written("command", "a\n\tb\033\\'c", "attached", -1,
		"a\\n\\tb\\033\\'c");
	written("argv", "a\nb\\nc\\\\\n", NULL, 3, "a $'b\\nc\\\\' ''");
	written("argv", "a\\", NULL, 1, "'a\\'");
	written("argv", "", NULL, 1, "''");
	written("version", "1", NULL, -1, "(none)");
	return tap_done();
}
