/* Where the kernel keeps a thread's pointer: from its types, as it offers them
 * (Documentation/bpf/btf.rst). libbpf would sort all of them first, 0.1 s. */
#include <fcntl.h>
#include <linux/btf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/probe/watch-private.h"

#define TYPES_FILE "/sys/kernel/btf/vmlinux"
#define MOST_BYTES (64u << 20)

struct types {
	const uint8_t *at, *end;
	const char *names;
	size_t names_len;
};

static size_t extra_bytes(uint32_t info)
{
	size_t nr = BTF_INFO_VLEN(info);
	switch (BTF_INFO_KIND(info)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return 4;
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return nr * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return nr * sizeof(struct btf_enum);
	case BTF_KIND_FUNC_PROTO:
		return nr * sizeof(struct btf_param);
	case BTF_KIND_DATASEC:
		return nr * sizeof(struct btf_var_secinfo);
	case BTF_KIND_ENUM64:
		return nr * 12;
	default:
		return 0;
	}
}

static bool is_called(const struct types *t, uint32_t name, const char *want)
{
	return name < t->names_len && !strcmp(t->names + name, want);
}

/* Where struct @name has @member, bytes; 0: there is none. */
static uint32_t member_at(const struct types *t, const char *name,
			  const char *member)
{
	const uint8_t *at = t->at;
	while ((size_t)(t->end - at) >= sizeof(struct btf_type)) {
		const struct btf_type *type = (const void *)at;
		const struct btf_member *m = (const void *)(type + 1);
		size_t len = extra_bytes(type->info);
		at += sizeof(*type);
		if (len > (size_t)(t->end - at))
			break;
		at += len;
		if (BTF_INFO_KIND(type->info) != BTF_KIND_STRUCT ||
		    !is_called(t, type->name_off, name))
			continue;
		for (size_t i = 0; i < BTF_INFO_VLEN(type->info); i++)
			if (is_called(t, m[i].name_off, member))
				return BTF_MEMBER_BIT_OFFSET(m[i].offset) / 8;
	}
	return 0;
}

/* All of the file; NULL: it cannot be read. */
static uint8_t *read_types(size_t *len_ret)
{
	_cleanup_close_ int fd = open(TYPES_FILE, O_RDONLY | O_CLOEXEC);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) || st.st_size <= 0 ||
	    (uint64_t)st.st_size > MOST_BYTES)
		return NULL;
	uint8_t *file = malloc((size_t)st.st_size);
	ssize_t n = 1;
	*len_ret = 0;
	while (file && n > 0) {
		n = read(fd, file + *len_ret, (size_t)st.st_size - *len_ret);
		*len_ret += n > 0 ? (size_t)n : 0;
	}
	if (file && n < 0) {
		free(file);
		file = NULL;
	}
	return file;
}

uint32_t watch_thread_at(void)
{
	size_t len = 0;
	_cleanup_free_ uint8_t *file = read_types(&len);
	const struct btf_header *h = (const void *)file;
	if (!file || len < sizeof(*h) || h->magic != BTF_MAGIC ||
	    h->hdr_len > len)
		return 0;
	uint64_t left = len - h->hdr_len;
	if ((uint64_t)h->type_off + h->type_len > left || !h->str_len ||
	    (uint64_t)h->str_off + h->str_len > left)
		return 0;
	const uint8_t *at = file + h->hdr_len;
	const struct types t = {
		.at = at + h->type_off,
		.end = at + h->type_off + h->type_len,
		.names = (const char *)at + h->str_off,
		.names_len = h->str_len,
	};
	/* The last name ends, too. */
	if (t.names[t.names_len - 1])
		return 0;
	uint32_t thread = member_at(&t, "task_struct", "thread");
	uint32_t base = member_at(&t, "thread_struct", "fsbase");
	return thread && base ? thread + base : 0;
}
