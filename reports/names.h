/*
 * names.h - words for what a trace has as numbers: frames, system calls, wait
 * statuses, reasons. Texts are not cleaned here (line.h does that).
 */
#ifndef SMCO_NAMES_H
#define SMCO_NAMES_H

#include "reports/trace.h"

#define NAMES_MAX 256

/* "cache_fill", "std::vector<...>::push_back" (template arguments are cut
 * when the name is longer than @max columns), "libfoo.so+0x1234", "?". */
char *names_function(const struct trace_frame *f, size_t max, char *buf);
/* @path without its directories. */
const char *names_file(const char *path);
/* Copy @s with the arguments of its outermost templates left out, as far as
 * @size goes. */
void names_cut_templates(const char *s, char *buf, size_t size);
/* "cache.c:212" with at most one directory in front, "[libc.so.6]" if only the
 * module is known, "" if nothing is. */
char *names_place(const struct trace_frame *f, char *buf);
/* How many of @nr frames tell something: not those that start every program
 * and thread (_start, clone3, ...), which are the outermost. */
size_t names_worth_showing(const struct trace_frame *f, size_t nr);
/* Would both be shown alike? */
bool names_same_frame(const struct trace_frame *a, const struct trace_frame *b);

/* Of x86-64: "read", "syscall 1023". */
char *names_syscall(int32_t nr, char *buf);
/* Of a wait status: "exited with status 0", "killed by SIGTERM". */
char *names_exit(int32_t status, char *buf);
const char *names_mech(size_t mech);	   /* enum ledger_mech order */
const char *names_coverage(size_t why);	   /* for people */
const char *names_coverage_id(size_t why); /* for programs */
const char *names_process_why(uint32_t why);
/* What "bits", "uffd", ... is; NULL if unknown. */
const char *names_mechanism(const char *id);

#endif
