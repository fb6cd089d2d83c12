/*
 * debugfile.h - separate debug files: by build-id under
 * /usr/lib/debug/.build-id, and by .gnu_debuglink beside the file, in its
 * .debug directory and under /usr/lib/debug. Internal to symbols/, naming side.
 */
#ifndef SYMBOLS_DEBUGFILE_H
#define SYMBOLS_DEBUGFILE_H

#include "symbols/module.h"

/*
 * The debug file of @m, looked for once, under @root_fd first; NULL if there
 * is none. It is taken only if its build-id (or, where neither has one, the
 * link's checksum) says that it belongs to @m.
 */
Elf *debugfile_of(struct module *m, int root_fd);

#endif
