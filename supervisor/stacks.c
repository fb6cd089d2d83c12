#include "supervisor/stacks.h"

#include <stdlib.h>
#include <string.h>

#include "reports/array.h"
#include "reports/hindex.h"
#include "symbols/kallsyms.h"

#define MAX_FRAMES 128
#define IN_KERNEL  UINT32_MAX /* a place's module; the offset is the address */

struct stack {
	struct sym_space *space;
	struct sym_place *place;
	uint64_t hash;
	uint16_t nr;
	uint16_t nr_kernel; /* of nr, the first */
	bool first_is_return;
	bool wanted;
	bool put;
};

/* A frame that has its names: most are in many stacks. */
struct named {
	const struct sym_space *space;
	struct sym_place place;
	bool is_return;
	bool others; /* the trace reads it as others, see trace_name_frame */
};

struct stacks {
	struct stack *stack; /* index = id; 0 unused */
	uint32_t nr, cap;
	uint32_t *table; /* open addressing, power of two; 0 = empty */
	uint32_t mask;
	struct kallsyms *kernel; /* NULL = not read, or not permitted */
	bool kernel_tried;
	struct named *named;
	size_t nr_named, cap_named;
	struct hindex named_index;
};

struct stacks *stacks_create(void)
{
	struct stacks *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->nr = 1;
	s->cap = 256;
	s->mask = 1023;
	s->stack = calloc(s->cap, sizeof(*s->stack));
	s->table = calloc(s->mask + 1, sizeof(*s->table));
	if (!s->stack || !s->table) {
		stacks_destroy(s);
		return NULL;
	}
	return s;
}

void stacks_destroy(struct stacks *s)
{
	if (!s)
		return;
	for (uint32_t i = 1; s->stack && i < s->nr; i++)
		free(s->stack[i].place);
	kallsyms_destroy(s->kernel);
	free(s->named);
	hindex_free(&s->named_index);
	free(s->stack);
	free(s->table);
	free(s);
}

static uint64_t hash_places(const struct sym_space *space,
			    const struct sym_place *p, size_t nr)
{
	uint64_t h = (uint64_t)(uintptr_t)space + nr;
	for (size_t i = 0; i < nr; i++) {
		h = (h ^ p[i].offset ^ ((uint64_t)p[i].module << 48)) *
		    0x9e3779b97f4a7c15ull;
		h ^= h >> 29;
	}
	return h;
}

static bool grow(struct stacks *s)
{
	if (s->nr == s->cap) {
		struct stack *n =
			realloc(s->stack, s->cap * 2 * sizeof(*s->stack));
		if (!n)
			return false;
		s->stack = n;
		s->cap *= 2;
	}
	if (s->nr * 2 < s->mask)
		return true;
	uint32_t mask = s->mask * 2 + 1;
	uint32_t *table = calloc((size_t)mask + 1, sizeof(*table));
	if (!table)
		return false;
	for (uint32_t i = 1; i < s->nr; i++) {
		uint32_t k = (uint32_t)s->stack[i].hash & mask;
		while (table[k])
			k = (k + 1) & mask;
		table[k] = i;
	}
	free(s->table);
	s->table = table;
	s->mask = mask;
	return true;
}

static bool same(const struct stack *st, const struct sym_space *space,
		 const struct sym_place *p, size_t nr)
{
	if (st->space != space || st->nr != nr)
		return false;
	for (size_t i = 0; i < nr; i++)
		if (st->place[i].module != p[i].module ||
		    st->place[i].offset != p[i].offset)
			return false;
	return true;
}

static uint32_t intern(struct stacks *s, struct sym_space *space,
		       const struct sym_place *place, size_t nr,
		       const struct stack *like)
{
	uint64_t hash = hash_places(space, place, nr);
	uint32_t k = (uint32_t)hash & s->mask;
	for (; s->table[k]; k = (k + 1) & s->mask) {
		const struct stack *st = &s->stack[s->table[k]];
		if (st->hash == hash && same(st, space, place, nr))
			return s->table[k];
	}
	if (!grow(s))
		return 0;
	struct sym_place *copy = malloc(nr * sizeof(*copy));
	if (!copy)
		return 0;
	memcpy(copy, place, nr * sizeof(*copy));
	s->stack[s->nr] = (struct stack){
		.space = space,
		.place = copy,
		.hash = hash,
		.nr = (uint16_t)nr,
		.nr_kernel = like->nr_kernel,
		.first_is_return = like->first_is_return,
	};
	k = (uint32_t)hash & s->mask;
	while (s->table[k])
		k = (k + 1) & s->mask;
	s->table[k] = s->nr;
	return s->nr++;
}

uint32_t stacks_intern(struct stacks *s, struct sym_space *space,
		       const taddr_t *frames, size_t nr, bool first_is_return)
{
	struct sym_place place[MAX_FRAMES];
	struct stack like = {.first_is_return = first_is_return};
	if (!nr)
		return 0;
	if (nr > MAX_FRAMES)
		nr = MAX_FRAMES;
	for (size_t i = 0; i < nr; i++)
		place[i] = sym_pin(space, frames[i]);
	return intern(s, space, place, nr, &like);
}

uint32_t stacks_intern_kernel(struct stacks *s, struct sym_space *space,
			      const taddr_t *kernel, size_t nr_kernel,
			      const taddr_t *frames, size_t nr)
{
	struct sym_place place[MAX_FRAMES];
	struct stack like = {0};
	size_t n = 0;
	/* Who called it says more than the last of where in the kernel. */
	size_t most = nr < MAX_FRAMES / 2 ? MAX_FRAMES - nr : MAX_FRAMES / 2;
	for (; n < nr_kernel && n < most; n++)
		place[n] = (struct sym_place){IN_KERNEL, kernel[n]};
	like.nr_kernel = (uint16_t)n;
	for (size_t i = 0; i < nr && n < MAX_FRAMES; i++)
		place[n++] = sym_pin(space, frames[i]);
	return n ? intern(s, space, place, n, &like) : 0;
}

void stacks_want(struct stacks *s, uint32_t id)
{
	if (id && id < s->nr)
		s->stack[id].wanted = true;
}

/* A call may be the last thing that a function does. */
static bool is_return(const struct stack *st, size_t i)
{
	if (i < st->nr_kernel)
		return i > 0;
	return i > st->nr_kernel || st->first_is_return;
}

/* Frame @i of @st before it has names. */
static struct trace_frame bare_frame(const struct stack *st, size_t i)
{
	struct sym_module_info mod = {.path = "", .build_id = ""};
	if (i < st->nr_kernel)
		mod.path = "[kernel]";
	else if (st->place[i].module)
		sym_module_info(st->space, st->place[i].module, &mod);
	return (struct trace_frame){
		.function = "",
		.file = "",
		.module = mod.path,
		.build_id = mod.build_id,
		.offset = st->place[i].offset,
		.naming = is_return(st, i) ? TRACE_CALL : TRACE_AT,
	};
}

/* Names for frame @i of @st, which is @bare before; returns how many. */
static size_t name_frame(const struct stacks *s, const struct stack *st,
			 size_t i, const struct trace_frame *bare,
			 struct trace_frame out[SYM_MAX_INLINE])
{
	struct sym_name name[SYM_MAX_INLINE];
	size_t nr = 0;

	out[0] = *bare;
	out[0].naming = TRACE_FINAL;
	if (i < st->nr_kernel && s->kernel) {
		struct kallsyms_name in_kernel = kallsyms_find(
			s->kernel, bare->offset - is_return(st, i));
		out[0].function = in_kernel.function;
		out[0].module = in_kernel.module;
	}
	if (i >= st->nr_kernel)
		nr = sym_name(st->space, st->place[i], is_return(st, i), name);
	for (size_t k = 0; k < nr; k++) {
		out[k] = out[0];
		out[k].function = name[k].function;
		out[k].file = name[k].file;
		out[k].line = name[k].line;
		out[k].inlined = k + 1 < nr;
	}
	return nr ? nr : 1;
}

/* Only where somebody was seen in it, for that is a long list. */
static void read_kernel(struct stacks *s)
{
	struct smco_err err = {0};
	for (uint32_t id = 1; id < s->nr && !s->kernel_tried; id++) {
		if (!s->stack[id].wanted || !s->stack[id].nr_kernel)
			continue;
		s->kernel_tried = true;
		if (kallsyms_load(NULL, &s->kernel, &err))
			smco_debug("stacks", "%s", err.msg);
	}
}

static int put_bare(const struct stack *st, uint32_t id, struct trace_writer *w)
{
	struct trace_frame frames[MAX_FRAMES];
	for (size_t i = 0; i < st->nr; i++)
		frames[i] = bare_frame(st, i);
	return trace_put_stack(w, id, frames, st->nr);
}

struct named_key {
	const struct stacks *s;
	struct named named;
};

static bool same_named(const void *ctx, uint32_t value)
{
	const struct named_key *k = ctx;
	const struct named *a = &k->s->named[value], *b = &k->named;
	return a->space == b->space && a->place.module == b->place.module &&
	       a->place.offset == b->place.offset &&
	       a->is_return == b->is_return;
}

/* Frame @i of @st, once; *others: the trace reads it as others already. */
static int put_name(struct stacks *s, const struct stack *st, size_t i,
		    struct trace_writer *w, bool *others)
{
	struct trace_frame names[SYM_MAX_INLINE];
	struct named_key key = {
		s, {st->space, st->place[i], is_return(st, i), false}};
	uint64_t hash = hash_places(st->space, &st->place[i], 1);
	uint32_t found;
	if (hindex_find(&s->named_index, hash, same_named, &key, &found)) {
		*others |= s->named[found].others;
		return SMCO_OK;
	}
	struct trace_frame bare = bare_frame(st, i);
	size_t nr = name_frame(s, st, i, &bare, names);
	int rc = trace_name_frame(w, &bare, names, nr);
	if (rc && rc != SMCO_BUSY)
		return rc;
	key.named.others = rc == SMCO_BUSY;
	*others |= key.named.others;
	/* What cannot be remembered is named once more. */
	if (ARRAY_ROOM(s->named, s->nr_named, s->cap_named) &&
	    hindex_add(&s->named_index, hash, (uint32_t)s->nr_named))
		s->named[s->nr_named++] = key.named;
	return SMCO_OK;
}

/* Once more as a whole where a frame already has other names: of a file that
 * was replaced, perhaps. */
static int put_names(struct stacks *s, const struct stack *st, uint32_t id,
		     struct trace_writer *w)
{
	struct trace_frame frames[MAX_FRAMES * SYM_MAX_INLINE];
	bool others = false;
	size_t nr = 0;
	for (size_t i = 0; i < st->nr; i++) {
		int rc = put_name(s, st, i, w, &others);
		if (rc)
			return rc;
	}
	for (size_t i = 0; i < st->nr && others; i++) {
		struct trace_frame bare = bare_frame(st, i);
		nr += name_frame(s, st, i, &bare, frames + nr);
	}
	return others ? trace_put_stack(w, id, frames, nr) : SMCO_OK;
}

int stacks_put(struct stacks *s, struct trace_writer *w, bool named)
{
	int rc = SMCO_OK;
	if (named)
		read_kernel(s);
	for (uint32_t id = 1; id < s->nr && !rc; id++) {
		struct stack *st = &s->stack[id];
		if (!st->wanted)
			continue;
		if (!st->put)
			rc = put_bare(st, id, w);
		if (!rc && named)
			rc = put_names(s, st, id, w);
		st->put |= !rc;
	}
	return rc;
}
