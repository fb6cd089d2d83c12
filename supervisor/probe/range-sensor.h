/*
 * range-sensor.h - the code of the sensors in one gap. Private to
 * range-stub.c, range-sensor.c, range-named.c and range-expr.c.
 */
#ifndef SMCO_RANGE_SENSOR_H
#define SMCO_RANGE_SENSOR_H

#include "supervisor/probe/range-stub.h"

/* Widening: reached when a value is smaller or larger than all before. */
struct range_slow {
	size_t branch; /* to it, see asm_land */
	taddr_t back;
	taddr_t word;  /* of the cell */
	int64_t value; /* is_const */
	uint32_t var;  /* its owner */
	uint32_t insn;
	uint16_t pushed;
	uint8_t reg;
	uint8_t width;
	bool is_const, is_signed, is_largest;
	bool has_names; /* only if the value has none: range_named */
	bool clean;	/* the sensors have saved nothing */
};

struct range_sensor {
	struct range_stubs *s;
	const struct range_code *code;
	const struct range_image *img;
	const struct variables *v;
	const struct range_windows *w;
	const struct range_stub_place *at;
	struct range_shape *shape; /* of this window */
	taddr_t counter;	   /* of this window; 0 once it has counted */
	struct range_slow *slow;
	size_t nr_slow;
	/* Of this gap. */
	uint32_t insn;
	unsigned pushed;   /* bytes below the program's stack pointer */
	bool clean;	   /* nothing is saved: all was free */
	uint8_t alias[16]; /* where the program's register is just now */
	uint8_t scratch[RANGE_EXPR_DEPTH];
};

void range_sensors(struct range_sensor *x, uint32_t gap,
		   const struct range_site *site, size_t n);
void range_slow_paths(struct range_sensor *x);
enum range_step_kind { RANGE_DIRTY, RANGE_AT_INSN, RANGE_CLEAN };
/* From here on the code is at @insn with so many bytes pushed. */
void range_note_step(struct range_stubs *s, uint32_t insn, unsigned pushed,
		     enum range_step_kind kind);
/* Behind @s: if what is in its register lies in its enum's hole and has no
 * name, to @unnamed, else back. */
void range_named(struct range_sensor *x, const struct range_slow *s,
		 taddr_t unnamed);
/* Into scratch[0], by way of the others. */
void range_expression(struct range_sensor *x, const struct var_op *ops,
		      size_t nr);

#endif
