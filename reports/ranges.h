/*
 * ranges.h - the integer variables of a trace and the values they had, joined
 * over processes, threads and files: variables of one name, declared in one
 * place, are one. Part of the model (model.h).
 */
#ifndef SMCO_RANGES_H
#define SMCO_RANGES_H

#include "reports/hindex.h"
#include "reports/trace.h"

/* What looks like a mistake, the worst first. */
enum finding {
	FINDING_NONE,
	FINDING_SUBSCRIPT, /* outside of an array that it is a subscript of */
	FINDING_BOOL,	   /* a bool that was neither 0 nor 1 */
	FINDING_ENUM,	   /* a value that names no enumerator */
	FINDING_NEGATIVE,  /* below -1, and called a size */
	FINDING_WRAPPED,   /* at both ends of its type */
	FINDING_LIMIT,	   /* within 1 % of an end of its type */
	FINDING_CONSTANT,  /* given the same value a thousand times */
	FINDING_NR,
};
/* For people: "within 1 % of its type's limit"; "" for none. */
const char *finding_text(enum finding f);
/* For programs: "limit"; "" for none. */
const char *finding_name(enum finding f);

struct model_ranges;

/* A variable's values wherever it was the subscript of one array. */
struct model_subscript {
	uint32_t range;			 /* private: of which variable */
	const struct trace_frame *array; /* its declaration */
	uint64_t elements;		 /* of its first dimension */
	int32_t offset;		   /* the subscript is the variable + this */
	bool is_sure;		   /* see VARIABLE_SURE_ARRAY */
	bool has_value;		   /* the rest is 0 without */
	int64_t smallest, largest; /* what was in the brackets */
	uint64_t watched_ns, alive_ns;
};

struct model_range {
	/* Texts are not cleaned; none is NULL. */
	const struct trace_frame *decl; /* function: its qualified name */
	const char *type;
	const char *unwatched; /* why it cannot be watched; "" if it can */
	struct ev_variable var;
	bool has_value;		   /* the rest is 0 without */
	int64_t smallest, largest; /* as enum range says */
	/* The smallest between them that names no enumerator. */
	bool has_odd;
	int64_t odd;
	uint32_t flags; /* enum range_flags, of all */
	uint64_t hits, watched_ns, alive_ns;
	uint32_t nr_processes; /* that had it */
	enum finding finding;
	/* FINDING_SUBSCRIPT: the one furthest outside; else NULL. */
	const struct model_subscript *subscript;
};
/* By the places of declaration, then by the names of the types; 0 = the same
 * variable, of whatever traces. */
int range_compare_place(const struct trace_frame *a, const char *a_type,
			const struct trace_frame *b, const char *b_type);
/* The same of two ranges. */
int range_compare_decl(const struct model_range *a,
		       const struct model_range *b);
/* Those with a value, or @all, in that order; the caller frees. NULL: out of
 * memory. */
const struct model_range **model_ranges_sorted(const struct model_ranges *rs,
					       bool all, size_t *nr_ret);
/* A bound as a number: exact for unsigned ones, too. */
long double range_number(const struct model_range *r, int64_t bound);
/* Share of the time that its assignments were seen, ppb; -1 if there were no
 * sensors. */
int64_t range_watched_ppb(const struct model_range *r);
/* ": 7", of its odd value, or ""; to @buf, which has RANGE_WORDS bytes. */
const char *range_odd_words(const struct model_range *r, char *buf);
/* Nobody was seen to assign it: it has what it had when the watch began. */
bool range_is_initial(const struct model_range *r);
/* For people: "i - 1", and "table[256]" or "table[10].len"; @buf has
 * RANGE_WORDS bytes, names that are longer are cut. Not cleaned. */
#define RANGE_WORDS 512
char *subscript_words(const struct model_range *r, char *buf);
char *subscript_array_words(const struct model_subscript *s, char *buf);

struct model_ranges {
	struct model_range
		*range; /* findings first, worst first; then as met */
	size_t nr, cap;
	size_t nr_with_value;
	size_t nr_initial; /* of those */
	size_t nr_findings;
	struct model_subscript *subscript;
	size_t nr_subscripts, cap_subscripts;
	/* private: */
	struct range_id { /* of a file */
		uint32_t file, id, range;
		uint32_t subscript; /* UINT32_MAX: the variable itself */
	} * id;
	size_t nr_ids, cap_ids;
	struct range_part { /* the last record of a process */
		uint32_t file, id, range, subscript;
		struct ev_range ev;
	} * part;
	size_t nr_parts, cap_parts;
	struct hindex decl_index, id_index, part_index, subscript_index;
};

/* Take in a record of EV_VARIABLE or EV_RANGE; 0 or SMCO_NOMEM. */
int model_ranges_take_variable(struct model_ranges *rs,
			       struct trace_reader *reader, uint32_t file,
			       const struct record *r);
int model_ranges_take_range(struct model_ranges *rs, uint32_t file,
			    const struct record *r);
/* Index in @rs->range, until model_ranges_finish, of the variable @id of @file;
 * UINT32_MAX: it is not known, or a subscript. */
uint32_t model_ranges_of(const struct model_ranges *rs, uint32_t file,
			 uint32_t id);
/* After the last record: sums, findings, order. */
void model_ranges_finish(struct model_ranges *rs);
void model_ranges_free(struct model_ranges *rs);

#endif
