#include "symbols/debugfile.h"

#include <elfutils/libdwelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEBUG_DIR "/usr/lib/debug"

/* The checksum of .gnu_debuglink: CRC-32 (IEEE), reflected, over the file. */
static bool file_crc32(int fd, uint32_t *ret)
{
	static const uint32_t nibble[16] = {
		0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac,
		0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
		0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
		0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
	};
	uint8_t *buf = malloc(1 << 16);
	uint32_t crc = ~0u;
	off_t at = 0;
	ssize_t n = -1;
	while (buf && (n = pread(fd, buf, 1 << 16, at)) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			crc ^= buf[i];
			crc = nibble[crc & 15] ^ (crc >> 4);
			crc = nibble[crc & 15] ^ (crc >> 4);
		}
		at += n;
	}
	free(buf);
	*ret = ~crc;
	return n == 0;
}

static bool belongs_to(const struct module *m, Elf *elf, int fd,
		       const GElf_Word *crc)
{
	const void *id;
	ssize_t len = dwelf_elf_gnu_build_id(elf, &id);
	if (*m->build_id) {
		char hex[sizeof(m->build_id)] = "";
		if (len <= 0 || (size_t)len * 2 >= sizeof(hex))
			return false;
		for (ssize_t i = 0; i < len; i++)
			snprintf(hex + 2 * i, 3, "%02x",
				 ((const uint8_t *)id)[i]);
		return !strcmp(hex, m->build_id);
	}
	uint32_t got;
	return crc && file_crc32(fd, &got) && got == *crc;
}

static bool try_path(struct module *m, int root_fd, const char *path,
		     const GElf_Word *crc)
{
	int fd = module_open_path(root_fd, path);
	if (fd < 0)
		return false;
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF && belongs_to(m, elf, fd, crc)) {
		m->debug_elf = elf;
		m->debug_fd = fd;
		module_elf_contents(elf, &m->debug_has_symtab,
				    &m->debug_has_dwarf);
		return true;
	}
	if (elf)
		elf_end(elf);
	close(fd);
	return false;
}

static bool try_build_id(struct module *m, int root_fd)
{
	char path[PATH_MAX];
	if (strlen(m->build_id) < 4)
		return false;
	snprintf(path, sizeof(path), DEBUG_DIR "/.build-id/%.2s/%s.debug",
		 m->build_id, m->build_id + 2);
	return try_path(m, root_fd, path, NULL);
}

static bool try_link(struct module *m, int root_fd, const char *name,
		     GElf_Word crc)
{
	const char *slash = strrchr(m->path, '/');
	if (!slash || !*name || strchr(name, '/'))
		return false;
	int dir = (int)(slash - m->path);
	const struct {
		const char *before, *after;
	} where[] = {
		{"", ""},
		{"", "/.debug"},
		{DEBUG_DIR, ""},
	};
	for (size_t i = 0; i < ARRAY_SIZE(where); i++) {
		char path[PATH_MAX];
		int n = snprintf(path, sizeof(path), "%s%.*s%s/%s",
				 where[i].before, dir, m->path, where[i].after,
				 name);
		/* A link to itself would find the stripped file again. */
		if (n >= (int)sizeof(path) || !strcmp(path, m->path))
			continue;
		if (try_path(m, root_fd, path, &crc))
			return true;
	}
	return false;
}

static void look_for(struct module *m, int root_fd)
{
	Elf *elf = module_elf(m);
	if (!elf)
		return;
	GElf_Word crc = 0;
	const char *link = dwelf_elf_gnu_debuglink(elf, &crc);
	int roots[2] = {root_fd, ROOT_OURS};
	for (size_t i = 0; i < 2 && !m->debug_elf; i++) {
		if (i && root_fd == ROOT_OURS)
			break;
		if (!try_build_id(m, roots[i]) && link)
			try_link(m, roots[i], link, crc);
	}
	elf_end(elf);
}

Elf *debugfile_of(struct module *m, int root_fd)
{
	pthread_mutex_lock(&m->debug_lock);
	if (!m->debug_tried && m->is_elf)
		look_for(m, root_fd);
	m->debug_tried = true;
	pthread_mutex_unlock(&m->debug_lock);
	return m->debug_elf;
}
