#include "reports/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <seccomp.h>

const char *names_file(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash && slash[1] ? slash + 1 : path;
}

void names_cut_templates(const char *s, char *buf, size_t size)
{
	size_t n = 0;
	unsigned depth = 0;
	for (; *s && n + 5 < size; s++) {
		/* operator<, operator<<, operator->: not brackets */
		if (!depth && !strncmp(s, "operator", 8) && s[8] &&
		    strchr("<>-", s[8])) {
			size_t len = 8 + strspn(s + 8, "<>-=");
			if (n + len + 5 >= size)
				break;
			memcpy(buf + n, s, len);
			n += len;
			s += len - 1;
		} else if (*s == '<') {
			if (!depth++) {
				memcpy(buf + n, "<...>", 5);
				n += 5;
			}
		} else if (*s == '>' && depth) {
			depth--;
		} else if (!depth) {
			buf[n++] = *s;
		}
	}
	buf[n] = '\0';
}

char *names_function(const struct trace_frame *f, size_t max, char *buf)
{
	if (*f->function && strlen(f->function) > max)
		names_cut_templates(f->function, buf, NAMES_MAX);
	else if (*f->function)
		snprintf(buf, NAMES_MAX, "%s", f->function);
	else if (*f->module)
		snprintf(buf, NAMES_MAX, "%.200s+0x%" PRIx64,
			 names_file(f->module), f->offset);
	else if (f->offset)
		snprintf(buf, NAMES_MAX, "0x%" PRIx64, f->offset);
	else
		snprintf(buf, NAMES_MAX, "?");
	return buf;
}

char *names_place(const struct trace_frame *f, char *buf)
{
	if (*f->file) {
		const char *file = names_file(f->file);
		/* One directory says which of two list.c it is. */
		const char *dir = file;
		while (dir > f->file && dir[-1] == '/')
			dir--;
		while (dir > f->file && dir[-1] != '/')
			dir--;
		if (dir[0] != '.' && dir != f->file)
			file = dir;
		else if (dir == f->file && *dir != '/' && *dir != '.')
			file = dir;
		if (f->line)
			snprintf(buf, NAMES_MAX, "%.200s:%u", file, f->line);
		else
			snprintf(buf, NAMES_MAX, "%.200s", file);
	} else if (*f->module && *f->function) {
		snprintf(buf, NAMES_MAX, "[%.200s]", names_file(f->module));
	} else {
		*buf = '\0';
	}
	return buf;
}

static bool is_one_of(const char *name, const char *const *list)
{
	for (; *list; list++)
		if (!strcmp(name, *list))
			return true;
	return false;
}

size_t names_worth_showing(const struct trace_frame *f, size_t nr)
{
	/* What calls main() or a thread's function: nothing outside of it is
	 * the program's, named or not. */
	static const char *const caller[] = {
		"__libc_start_call_main", "__libc_start_main",
		"__libc_start_main_impl", "__libc_start_main@@GLIBC_2.34",
		"start_thread",		  NULL};
	static const char *const start[] = {"_start",  "clone",	   "clone3",
					    "__clone", "__clone3", NULL};
	size_t n = 0;
	while (n < nr && !is_one_of(f[n].function, caller))
		n++;
	while (n && is_one_of(f[n - 1].function, start))
		n--;
	return n ? n : nr; /* nothing else is better than nothing */
}

bool names_same_frame(const struct trace_frame *a, const struct trace_frame *b)
{
	if (strcmp(a->function, b->function) || strcmp(a->file, b->file) ||
	    a->line != b->line)
		return false;
	if (*a->file)
		return true;
	if (strcmp(a->module, b->module))
		return false;
	return *a->function || a->offset == b->offset;
}

char *names_syscall(int32_t nr, char *buf)
{
	char *name =
		nr < 0 ? NULL
		       : seccomp_syscall_resolve_num_arch(SCMP_ARCH_X86_64, nr);
	if (name)
		snprintf(buf, NAMES_MAX, "%s", name);
	else
		snprintf(buf, NAMES_MAX, "syscall %" PRId32, nr);
	free(name);
	return buf;
}

char *names_exit(int32_t status, char *buf)
{
	if (status >= 0 && WIFEXITED(status)) {
		snprintf(buf, NAMES_MAX, "exited with status %d",
			 WEXITSTATUS(status));
	} else if (status >= 0 && WIFSIGNALED(status)) {
		const char *name = sigabbrev_np(WTERMSIG(status));
		const char *core = WCOREDUMP(status) ? " (core dumped)" : "";
		if (name)
			snprintf(buf, NAMES_MAX, "killed by SIG%s%s", name,
				 core);
		else
			snprintf(buf, NAMES_MAX, "killed by signal %d%s",
				 WTERMSIG(status), core);
	} else {
		snprintf(buf, NAMES_MAX, "ended");
	}
	return buf;
}

const char *names_mech(size_t mech)
{
	static const char *const name[] = {
		"stops",  "agent",	    "touches",
		"arming", "supervisor CPU", "other",
	};
	return mech < ARRAY_SIZE(name) ? name[mech] : "other";
}

#define SHARED                                                                 \
	"shared, locked, pinned, huge or device pages, above a sampled "       \
	"stack, or too "                                                       \
	"large for a guard"
#define NO_STACK                                                               \
	"without a stack: from before the attach, or it could not be had"

const char *names_coverage(size_t why)
{
	static const char *const text[COVER_NR] = {
		[COVER_WATCHED] = "watched",
		[COVER_BELOW_CUTOFF] = "smaller than the cutoff",
		[COVER_NOT_ADMITTED] =
			"allocated faster than the budget allows",
		[COVER_NEVER_ARMED] = "known, but never got a turn",
		[COVER_NO_STACK] = NO_STACK,
		[COVER_SHARED] = SHARED,
		[COVER_MECHANISM] = "out of the mechanism's reach",
		[COVER_LOST] = "events lost",
		[COVER_SHORT_LIVED] = "lived for less time than a nap takes",
	};
	return why < COVER_NR ? text[why] : "for another reason";
}

const char *names_coverage_id(size_t why)
{
	static const char *const id[COVER_NR] = {
		[COVER_WATCHED] = "watched",
		[COVER_BELOW_CUTOFF] = "below_cutoff",
		[COVER_NOT_ADMITTED] = "not_admitted",
		[COVER_NEVER_ARMED] = "never_armed",
		[COVER_NO_STACK] = "no_stack",
		[COVER_SHARED] = "shared",
		[COVER_MECHANISM] = "mechanism",
		[COVER_LOST] = "lost",
		[COVER_SHORT_LIVED] = "short_lived",
	};
	return why < COVER_NR ? id[why] : "other";
}

const char *names_process_why(uint32_t why)
{
	static const char *const text[] = {"launched", "attached", "forked",
					   "execed",   "ended",	   "detached"};
	return why < ARRAY_SIZE(text) ? text[why] : "other";
}

const char *names_mechanism(const char *id)
{
	static const struct {
		const char *id, *text;
	} known[] = {
		{"bits", "accessed bits in the page table"},
		{"pagescan", "pages written, as the kernel tracks them"},
		{"uffd", "userfaultfd"},
		{"mprotect", "protected pages"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(id, known[i].id))
			return known[i].text;
	return NULL;
}
