/*
 * command.h - the words of what was run: into a trace, out of it, and for
 * people, who get them as a shell would have to be given them.
 */
#ifndef SMCO_COMMAND_H
#define SMCO_COMMAND_H

#include "reports/trace.h"

/*
 * Keys `command` and, where the words are not those between its blanks,
 * `argv`. @argv ends with NULL. What trace_put_meta returns, SMCO_NOMEM.
 */
int command_put(struct trace_writer *w, char *const *argv);

/* The words, NULL behind the last one; one free() is enough. NULL: they are
 * not known, or out of memory. */
char **command_words(struct trace_reader *r);
/* @words in one line, those quoted that have more than letters, digits and
 * harmless characters; with control characters as $'...'. The caller frees;
 * NULL if out of memory. */
char *command_quote(char *const *words);
/* @line, in which words are not known, with control characters as \n, \t,
 * \033. The caller frees; NULL if out of memory. */
char *command_line_shown(const char *line);
/* command_quote() of command_words(), or command_line_shown() of `command`;
 * NULL if that is not there, either. The caller frees. */
char *command_shown(struct trace_reader *r);

#endif
