/*
 * All units of a file. Much of it is read by two threads, each with a handle of
 * libdw's own and one half of the units, and put together as one thread would
 * have found it. Where units of one half refer to the other's declarations (by
 * link-time optimisation, by dwz), one variable would become two: then one
 * thread reads all, from the beginning.
 */
#include <dwarf.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/pair.h"
#include "symbols/varbuild.h"

uint64_t var_two_from_bytes = 4 << 20;

/* The unit's DIE, by which it belongs to a half. */
static uint64_t place_of(Dwarf_Die *cu)
{
	return dwarf_dieoffset(cu);
}

static bool is_mine(const struct var_build *b, uint64_t place)
{
	return place >= b->lo && place < b->hi;
}

void var_refers(struct var_build *b, const Dwarf_Die *die, Dwarf_Die *origin)
{
	Dwarf_Die cu;
	if (!b->over || origin->cu == die->cu)
		return;
	if (dwarf_cu_getdwarf(origin->cu) != dwarf_cu_getdwarf(die->cu) ||
	    !dwarf_diecu(origin, &cu, NULL, NULL) || !is_mine(b, place_of(&cu)))
		atomic_store_explicit(b->over, true, memory_order_relaxed);
}

static void walk_units(struct var_build *b, Dwarf *dwarf)
{
	Dwarf_CU *cu = NULL;
	uint8_t type;
	Dwarf_Die die, sub;
	int got;
	while (!(got = dwarf_get_units(dwarf, cu, &cu, NULL, &type, &die,
				       NULL))) {
		if (type == DW_UT_type || !is_mine(b, place_of(&die)))
			continue;
		b->v->is_split |= type == DW_UT_skeleton;
		if (type == DW_UT_compile)
			var_walk_unit(b, &die);
		else if (type == DW_UT_skeleton &&
			 !dwarf_cu_info(cu, NULL, NULL, NULL, &sub, NULL, NULL,
					NULL) &&
			 sub.addr)
			var_walk_unit(b, &sub);
	}
	b->v->nr_damaged += got < 0 && !b->lo;
}

/* What is needed while units are read; what they came to is put in order, each
 * half by its own thread. */
static void end_units(struct var_build *b)
{
	free(b->members);
	free(b->groups);
	free(b->names);
	free(b->enums);
	free(b->group_of.slots);
	free(b->name_of.slots);
	free(b->enum_of.slots);
	var_files_free(b);
	if (b->over && atomic_load_explicit(b->over, memory_order_relaxed))
		return; /* all is read anew */
	if (!b->no_memory && !var_build_settle(b))
		b->no_memory = true;
}

/* --- two of them --- */

struct second {
	struct var_build b;
	Dwarf *dwarf;
	pthread_t thread;
};

static void *walk_second(void *arg)
{
	struct second *s = arg;
	walk_units(&s->b, s->dwarf);
	dwarf_end(s->dwarf);
	end_units(&s->b);
	return NULL;
}

/* Has the file location lists, also compressed ones? */
static bool has_lists(Elf *elf)
{
	size_t names;
	Elf_Scn *scn = NULL;
	GElf_Shdr head;
	if (elf_getshdrstrndx(elf, &names))
		return false;
	while ((scn = elf_nextscn(elf, scn))) {
		const char *name =
			gelf_getshdr(scn, &head)
				? elf_strptr(elf, names, head.sh_name)
				: NULL;
		if (name && strstr(name, "debug_loc"))
			return true;
	}
	return false;
}

/* Where the second half begins; 0 if one thread is to read all. */
static uint64_t middle_of(Elf *elf)
{
	struct cursor info = var_section(elf, ".debug_info");
	cpu_set_t set;
	if (info.bad || cursor_left(&info) < var_two_from_bytes ||
	    sched_getaffinity(0, sizeof(set), &set) || CPU_COUNT(&set) < 2)
		return 0;
	/* Compressed as once: unpacked by the first handle, for that alone. */
	if (!var_section(elf, ".zdebug_info").bad ||
	    !var_section(elf, ".zdebug_str").bad ||
	    !var_section(elf, ".zdebug_abbrev").bad)
		return 0;
	return cursor_left(&info) / 2;
}

static bool start_second(struct second *s, const struct var_build *b, Elf *elf)
{
	sigset_t all, before;
	*s = (struct second){.b = *b};
	s->dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	if (!s->dwarf)
		return false;
	if (!var_build_begin(&s->b)) {
		dwarf_end(s->dwarf);
		return false;
	}
	/* Signals are the other threads' business. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = pthread_create(&s->thread, NULL, walk_second, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!error)
		return true;
	dwarf_end(s->dwarf);
	var_build_drop(&s->b);
	return false;
}

/* Would one thread have found all that, too? */
static bool fits(const struct var_build *x, const struct var_build *y)
{
	const struct variables *a = x->v, *b = y->v;
	uint64_t left = (uint64_t)x->steps_left + y->steps_left;
	return left >= VAR_MAX_STEPS &&
	       a->nr_vars + b->nr_vars <= VAR_MAX_VARIABLES &&
	       x->nr_found + y->nr_found <= VAR_MAX_PLACES &&
	       a->nr_ops + b->nr_ops <= VAR_MAX_PLACES &&
	       a->nr_functions + b->nr_functions <= VAR_MAX_FUNCTIONS &&
	       a->nr_ranges + b->nr_ranges <= VAR_MAX_RANGES &&
	       a->nr_enumerators + b->nr_enumerators <= VAR_MAX_VARIABLES &&
	       a->nr_others + b->nr_others <= VAR_MAX_PLACES &&
	       a->nr_rows + b->nr_rows <= VAR_MAX_PLACES;
}

/* --- putting it together --- */

/* @nr of them behind the *nr_ret that are there. */
static bool append(void **mem, size_t *nr_ret, const void *more, size_t nr,
		   size_t item)
{
	void *all = realloc(*mem, (*nr_ret + nr + 1) * item);
	if (!all)
		return false;
	*mem = all;
	if (nr)
		memcpy((char *)all + *nr_ret * item, more, nr * item);
	*nr_ret += nr;
	return true;
}

#define APPEND(to, nr_to, from, nr_from)                                       \
	append((void **)&(to), &(nr_to), (from), (nr_from), sizeof(*(to)))

/* The second half's are put behind the first one's; numbers in them count from
 * the first one's end. */
struct joining {
	struct var_build *b, *s;
	struct variables first; /* how many it had */
	bool ok;
};

/* Of places there are most. */
static void *join_places(void *arg)
{
	struct joining *j = arg;
	struct variables *v = j->b->v, *w = j->s->v;
	for (size_t i = 0; i < w->nr_places; i++) {
		struct var_place *p = &w->places[i];
		if (p->function != VAR_NO_FUNCTION)
			p->function += (uint32_t)j->first.nr_functions;
		if (p->nr_ops)
			p->first_op += (uint32_t)j->first.nr_ops;
	}
	j->ok = APPEND(v->places, v->nr_places, w->places, w->nr_places) &&
		APPEND(v->ops, v->nr_ops, w->ops, w->nr_ops);
	return NULL;
}

static void renumber(struct variables *w, const struct variables *first)
{
	for (size_t i = 0; i < w->nr_vars; i++) {
		struct variable *var = &w->vars[i];
		if (var->type.nr_enumerators)
			var->type.first_enumerator +=
				(uint32_t)first->nr_enumerators;
		if (var->nr_places)
			var->first_place += (uint32_t)first->nr_places;
	}
	for (size_t i = 0; i < w->nr_functions; i++)
		w->functions[i].first_range += (uint32_t)first->nr_ranges;
	for (size_t i = 0; i < w->nr_others; i++)
		w->others[i].function += (uint32_t)first->nr_functions;
	for (size_t i = 0; i < w->nr_rows; i++)
		w->rows[i].function += (uint32_t)first->nr_functions;
}

static void *join_rest(void *arg)
{
	struct joining *j = arg;
	struct variables *v = j->b->v, *w = j->s->v;
	renumber(w, &j->first);
	v->nr_seen += w->nr_seen;
	v->nr_damaged += w->nr_damaged;
	v->cut_short |= w->cut_short;
	v->is_split |= w->is_split;
	var_strings_join(v, w);
	j->ok = APPEND(v->vars, v->nr_vars, w->vars, w->nr_vars) &&
		APPEND(v->functions, v->nr_functions, w->functions,
		       w->nr_functions) &&
		APPEND(v->ranges, v->nr_ranges, w->ranges, w->nr_ranges) &&
		APPEND(v->enumerators, v->nr_enumerators, w->enumerators,
		       w->nr_enumerators) &&
		APPEND(v->others, v->nr_others, w->others, w->nr_others) &&
		APPEND(v->rows, v->nr_rows, w->rows, w->nr_rows);
	return NULL;
}

static bool join(struct var_build *b, struct var_build *s)
{
	struct joining places = {.b = b, .s = s, .first = *b->v};
	struct joining rest = places;
	pair_run(s->v->nr_places >= pair_from, join_places, &places, join_rest,
		 &rest);
	return places.ok && rest.ok;
}

static void walk_alone(struct var_build *b, Dwarf *dwarf)
{
	b->lo = 0;
	b->hi = UINT64_MAX;
	b->over = NULL;
	walk_units(b, dwarf);
	end_units(b);
}

void var_walk_file(struct var_build *b, Dwarf *dwarf, Elf *elf)
{
	struct second s;
	uint64_t middle = middle_of(elf);
	b->sections = var_sections_of(elf);
	b->has_lists = has_lists(elf);
	b->over = &b->reaches_over;
	b->lo = middle;
	b->hi = UINT64_MAX;
	struct var_build fresh = *b;
	if (!middle || !start_second(&s, b, elf)) {
		walk_alone(b, dwarf);
		return;
	}
	b->lo = 0;
	b->hi = middle;
	walk_units(b, dwarf);
	end_units(b);
	pthread_join(s.thread, NULL);
	b->no_memory |= s.b.no_memory;
	if (b->reaches_over || !fits(b, &s.b)) {
		var_build_drop(b);
		*b = fresh;
		b->no_memory = !var_build_begin(b);
		if (!b->no_memory)
			walk_alone(b, dwarf);
	} else if (!b->no_memory) {
		b->no_memory = !join(b, &s.b);
	}
	var_build_drop(&s.b);
}
