/*
 * bpfload.h - load a BPF object that is part of this program, and say in the
 * user's words why it cannot be.
 */
#ifndef SMCO_BPFLOAD_H
#define SMCO_BPFLOAD_H

#include <stdbool.h>

#include "reports/base.h"

struct bpf_object;

/*
 * @start to @end: the object file, empty in a build without clang. @what names
 * the feature in messages ("accessed bits"), @needs the kernel feature that
 * old kernels lack. libbpf's own messages are silenced. Errors: SMCO_PERM
 * (capabilities), SMCO_UNSUPPORTED (no BTF, lockdown, old kernel, no clang,
 * hardly a file descriptor left for anything else).
 */
int bpfload(const char *start, const char *end, const char *what,
	    const char *needs, struct bpf_object **ret, struct smco_err *err);
struct bpfload_map {
	const char *name;
	uint32_t nr; /* of entries; 0: it is another's, */
	int fd;	     /* this one */
};
/* The same with one of its maps like @map; NULL: all are as it says. */
int bpfload_with(const char *start, const char *end, const char *what,
		 const char *needs, const struct bpfload_map *map,
		 struct bpf_object **ret, struct smco_err *err);
/* Are our numbers of processes the kernel's, as BPF programs see them? Not in a
 * container. */
bool bpfload_has_kernels_numbers(void);
/* The descriptor of a program, owned by @obj; -1 if there is none. */
int bpfload_prog(struct bpf_object *obj, const char *name);

#endif
