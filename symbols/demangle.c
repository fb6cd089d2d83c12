#include "symbols/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#define MAX_MANGLED  8192
#define MAX_READABLE 65536

struct output {
	char *text;
	size_t len, cap;
	jmp_buf too_long;
};

/*
 * libiberty prints by callback and keeps its own state on the stack, so that
 * jumping out of it leaks nothing.
 */
static void emit(const char *part, size_t len, void *opaque)
{
	struct output *o = opaque;
	if (len > MAX_READABLE - o->len)
		longjmp(o->too_long, 1);
	if (o->len + len + 1 > o->cap) {
		size_t cap = (o->len + len + 1) * 2 + 64;
		char *mem = realloc(o->text, cap);
		if (!mem)
			longjmp(o->too_long, 1);
		o->text = mem;
		o->cap = cap;
	}
	memcpy(o->text + o->len, part, len);
	o->len += len;
	o->text[o->len] = 0;
}

/* Legacy Rust looks like C++ with a hash at the end, so ask for Rust first. */
static bool print_readable(const char *name, struct output *o)
{
	const int options = DMGL_PARAMS | DMGL_ANSI | DMGL_RET_DROP;
	if (rust_demangle_callback(name, options, emit, o))
		return true;
	o->len = 0;
	return cplus_demangle_v3_callback(name, options, emit, o);
}

char *sym_demangle(const char *name)
{
	if (name[0] != '_' || (name[1] != 'R' && name[1] != 'Z') ||
	    strlen(name) > MAX_MANGLED)
		return NULL;
	struct output *o = calloc(1, sizeof(*o));
	if (!o)
		return NULL;
	if (setjmp(o->too_long) || !print_readable(name, o) || !o->len) {
		free(o->text);
		o->text = NULL;
	}
	char *ret = o->text;
	free(o);
	return ret;
}
