/*
 * symhelp.h - what the tests of symbols/ share: compile something into a
 * scratch directory, run it, hand its mappings to a space.
 */
#ifndef SYMHELP_H
#define SYMHELP_H

#include <errno.h>
#include <libelf.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbols/symbols.h"
#include "t/unit/scratch.h"
#include "t/unit/tap.h"

/* Where @name stands in @elf, 0 (and said) if nowhere. */
static inline uint64_t label_in(Elf *elf, const char *name)
{
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
		Elf64_Shdr *sh = elf64_getshdr(scn);
		if (sh->sh_type != SHT_SYMTAB)
			continue;
		Elf_Data *d = elf_getdata(scn, NULL);
		const Elf64_Sym *sym = d->d_buf;
		for (size_t i = 0; i < d->d_size / sizeof(*sym); i++)
			if (!strcmp(elf_strptr(elf, sh->sh_link,
					       sym[i].st_name),
				    name))
				return sym[i].st_value;
	}
	printf("# no label %s\n", name);
	return 0;
}

#define UNUSED_OK __attribute__((unused))

/* --- a scratch directory, removed when all went well --- */

static const char *scratch;

static inline void make_scratch(void)
{
	scratch = scratch_dir();
}

static inline int run(const char *fmt, ...)
	__attribute__((format(printf, 1, 2)));
/* Run a shell command, $D is the scratch directory; its exit status. */
static inline int run(const char *fmt, ...)
{
	char cmd[4096];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	setenv("D", scratch, 1);
	int st = system(cmd);
	if (st)
		printf("# status %d: %s\n", st, cmd);
	return st;
}

static inline int finish(void)
{
	if (tap_failed)
		printf("# kept: %s\n", scratch_keep());
	return tap_done();
}

/* --- the mappings of a process --- */

struct maps {
	struct sym_mapping map[1024];
	char path[1024][512];
	size_t nr;
};

static inline void maps_read(struct maps *m, pid_t pid)
{
	char name[64], line[1024];
	snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
	FILE *f = fopen(name, "r");
	m->nr = 0;
	while (f && m->nr < 1024 && fgets(line, sizeof(line), f)) {
		struct sym_mapping *e = &m->map[m->nr];
		char *path = m->path[m->nr], perms[8];
		int at = 0;
		line[strcspn(line, "\n")] = 0;
		if (sscanf(line, "%lx-%lx %7s %lx %*s %lu %n", &e->start,
			   &e->end, perms, &e->offset, &e->inode, &at) < 5)
			continue;
		snprintf(path, 512, "%s", line + at);
		char *del = strstr(path, " (deleted)");
		e->deleted = del && !del[10];
		if (e->deleted)
			*del = 0;
		e->exec = perms[2] == 'x';
		e->path = path;
		m->nr++;
	}
	if (f)
		fclose(f);
}

static inline ssize_t read_pid(void *ctx, taddr_t addr, void *buf, size_t len)
{
	struct iovec here = {buf, len};
	struct iovec there = {(void *)(uintptr_t)addr, len};
	return process_vm_readv(*(pid_t *)ctx, &here, 1, &there, 1, 0);
}

/* --- a program that says something, then waits for its stdin --- */

struct prog {
	pid_t pid;
	FILE *in, *out;
};

static inline void prog_start(struct prog *p, char *const argv[])
{
	int to[2], from[2];
	if (pipe2(to, 02000000) || pipe2(from, 02000000))
		exit(1);
	fflush(stdout);
	p->pid = fork();
	if (!p->pid) {
		dup2(to[0], 0);
		dup2(from[1], 1);
		execv(argv[0], argv);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	p->in = fdopen(to[1], "w");
	p->out = fdopen(from[0], "r");
}

/* Send a line (may be NULL), get the answer: "WORD 0xADDR LINE". */
static UNUSED_OK inline bool prog_ask(struct prog *p, const char *line,
				      const char *word, taddr_t *addr, int *no)
{
	char answer[256], got[64];
	unsigned long value;
	int n = 0;
	*addr = 0;
	if (no)
		*no = 0;
	if (line) {
		fprintf(p->in, "%s\n", line);
		fflush(p->in);
	}
	if (!fgets(answer, sizeof(answer), p->out) ||
	    sscanf(answer, "%63s %lx %d", got, &value, &n) < 2 ||
	    strcmp(got, word)) {
		printf("# asked for %s\n", word);
		return false;
	}
	*addr = value;
	if (no)
		*no = n;
	return true;
}

static inline void prog_end(struct prog *p)
{
	fclose(p->in);
	fclose(p->out);
	kill(p->pid, SIGKILL);
	waitpid(p->pid, NULL, 0);
}

static UNUSED_OK inline const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* Where the sources of fixtures are: tests run from the top directory. */
#define FIX "t/fixtures/sym"

/* That of one mapped file of the scratch directory. The caller's. */
static inline struct sym_space *space_of(const char *name)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", scratch, name);
	return sym_space_of_file(path);
}

#endif
