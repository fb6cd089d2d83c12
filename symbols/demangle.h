/*
 * demangle.h - C++ and Rust (legacy and v0) names as people write them.
 * Internal to symbols/.
 */
#ifndef SYMBOLS_DEMANGLE_H
#define SYMBOLS_DEMANGLE_H

#include "reports/base.h"

/*
 * The readable form of @name, malloc'ed, or NULL if @name is not mangled, is
 * malformed, or its readable form would be absurdly long (a short hostile name
 * can stand for gigabytes).
 */
char *sym_demangle(const char *name);

#endif
