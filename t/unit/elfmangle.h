/*
 * elfmangle.h - take an ELF file, change some of its bytes, and do with it all
 * that symbols/ can do. Shared by the unit test and the fuzz target.
 */
#ifndef ELFMANGLE_H
#define ELFMANGLE_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols/pointee.h"
#include "symbols/sdt.h"
#include "symbols/symbols.h"
#include "symbols/variable.h"

struct elf_bytes {
	uint8_t *data;
	size_t len;
};

static inline bool elf_bytes_read(struct elf_bytes *e, const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		return false;
	e->len = (size_t)st.st_size;
	e->data = malloc(e->len);
	bool fine = e->data && read(fd, e->data, e->len) == (ssize_t)e->len;
	close(fd);
	return fine;
}

#define ELF_AT	  0x10000000ULL
#define ELF_STACK 0x7ff00000ULL

/* Where code is, by the header as it stands; mostly the start of .text. */
static inline uint64_t elf_code(const struct elf_bytes *e)
{
	uint64_t entry = 0x1000;
	if (e->len >= 32)
		memcpy(&entry, e->data + 24, 8);
	return entry && entry < e->len ? entry : 0x1000;
}

/* Memory is the file; elsewhere is a stack of return addresses and pointers. */
static inline ssize_t elf_bytes_mem(void *ctx, taddr_t addr, void *buf,
				    size_t len)
{
	const struct elf_bytes *e = ctx;
	uint64_t off = addr - ELF_AT;
	if (off < e->len) {
		size_t n = len < e->len - off ? len : e->len - off;
		memcpy(buf, e->data + off, n);
		return (ssize_t)n;
	}
	for (size_t i = 0; i < len / 8; i++) {
		uint64_t at = addr + 8 * i, r = at * 0x9e3779b97f4a7c15ULL;
		uint64_t w = r & 1 << 20 ? at + (r >> 55)
					 : ELF_AT + elf_code(e) + (r >> 55);
		memcpy((char *)buf + 8 * i, &w, 8);
	}
	return (ssize_t)len;
}

static inline void elf_exercise_at(struct sym_space *s, uint64_t off)
{
	struct sym_regs regs;
	taddr_t frames[32], slots[32];
	bool complete;
	for (size_t i = 0; i < 17; i++)
		regs.reg[i] = ELF_STACK + 64 * i;
	regs.reg[16] = ELF_AT + off;
	sym_unwind(s, &regs, frames, slots, 32, &complete);
	/* The same stack as a copy that ends somewhere. */
	uint64_t copy[32];
	struct elf_bytes none = {NULL, 0};
	elf_bytes_mem(&none, ELF_STACK, copy, sizeof(copy));
	const struct sym_stack stack = {ELF_STACK, copy, off % sizeof(copy)};
	sym_unwind_copy(s, &regs, &stack, frames, slots, 32, &complete);
	struct sym_name names[SYM_MAX_INLINE];
	sym_name(s, sym_pin(s, ELF_AT + off), off & 1, names);
}

/* Everything, at addresses all over the file and closely in its code. */
static inline void elf_exercise_as(struct elf_bytes *e, const char *path)
{
	struct sym_mapping map = {.start = ELF_AT,
				  .end = ELF_AT + e->len,
				  .exec = true,
				  .deleted = *path == '/',
				  .path = path};
	struct sym_space *s = sym_space_create(0, "", elf_bytes_mem, e);
	sym_space_update(s, &map, 1, NULL);
	sym_find(s, "malloc", "malloc", NULL, NULL, NULL);
	sym_find(s, "outer", NULL, NULL, NULL, NULL);
	sym_prepare_unwind(s);
	for (uint64_t off = 0; off < e->len; off += 1 + e->len / 37)
		elf_exercise_at(s, off);
	for (uint64_t i = 0; i < 600; i += 7)
		elf_exercise_at(s, elf_code(e) - 100 + i);
	struct sym_module_info info;
	sym_module_info(s, 1, &info);
	variables_destroy(variables_load(s, 1, NULL, NULL, NULL));
	variables_destroy(variables_of_symbols(s, 1, NULL, NULL, NULL));
	struct pointee p;
	if (!pointee_find(s, 1, "server.conf->in->limit", &p, NULL))
		pointee_deinit(&p);
	sym_space_destroy(s);
}

static inline void elf_exercise_probes(struct elf_bytes *e)
{
	struct sdt_list l;
	elf_version(EV_CURRENT);
	Elf *elf = elf_memory((char *)e->data, e->len);
	if (elf && !sdt_read(elf, &l, NULL))
		sdt_deinit(&l);
	elf_end(elf);
}

static inline void elf_exercise(struct elf_bytes *e)
{
	elf_exercise_probes(e);
	elf_exercise_as(e, "[vdso]"); /* as it is */
	elf_exercise_as(e, "/gone");  /* put together from its segments */
}

#endif
