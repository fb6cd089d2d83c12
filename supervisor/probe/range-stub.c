/* The stubs of one function, see range-stub.h. */
#include <stdlib.h>
#include <string.h>

#include "supervisor/probe/range-asm.h"
#include "supervisor/probe/range-hole.h"
#include "supervisor/probe/range-sensor.h"
#include "supervisor/probe/range-stub.h"

unsigned range_compare_width(const struct var_type *t)
{
	if (t->bit_size)
		return t->width == 8 ? 8 : 4;
	return t->width;
}

const struct var_type *range_cell_type(const struct variables *v,
				       uint32_t owner)
{
	static const struct var_type word = {
		.name = "", .width = 8, .is_signed = true};
	return owner < v->nr_vars ? &v->vars[owner].type : &word;
}

static unsigned spare_bits(const struct var_type *t)
{
	return 64 - 8 * range_compare_width(t);
}

struct range_cell range_cell_empty(const struct var_type *t)
{
	uint64_t ones = UINT64_MAX >> spare_bits(t);
	uint64_t top = ones ^ ones >> 1;
	if (t->is_signed)
		return (struct range_cell){.smallest = ones >> 1,
					   .largest = top};
	return (struct range_cell){.smallest = ones, .largest = 0};
}

bool range_cell_read(const struct range_cell *cell, const struct var_type *t,
		     int64_t *smallest_ret, int64_t *largest_ret)
{
	unsigned spare = spare_bits(t);
	uint64_t lo = __atomic_load_n(&cell->smallest, __ATOMIC_RELAXED);
	uint64_t hi = __atomic_load_n(&cell->largest, __ATOMIC_RELAXED);
	lo <<= spare;
	hi <<= spare;
	if (t->is_signed) {
		*smallest_ret = (int64_t)lo >> spare;
		*largest_ret = (int64_t)hi >> spare;
		return *smallest_ret <= *largest_ret;
	}
	*smallest_ret = (int64_t)(lo >> spare);
	*largest_ret = (int64_t)(hi >> spare);
	return lo <= hi;
}

static int64_t widen(uint64_t value, const struct var_type *t)
{
	unsigned spare = spare_bits(t);
	value <<= spare;
	return t->is_signed ? (int64_t)value >> spare
			    : (int64_t)(value >> spare);
}

unsigned range_cell_take(struct range_cell *cell, const struct var_type *t,
			 int64_t ret[2])
{
	const struct range_cell none = range_cell_empty(t);
	uint64_t *bound[2] = {&cell->smallest, &cell->largest};
	uint64_t empty[2] = {none.smallest, none.largest};
	unsigned nr = 0;
	for (unsigned i = 0; i < 2; i++) {
		/* Most are as they were, and need no locked access. */
		if (__atomic_load_n(bound[i], __ATOMIC_RELAXED) == empty[i])
			continue;
		ret[nr++] = widen(__atomic_exchange_n(bound[i], empty[i],
						      __ATOMIC_RELAXED),
				  t);
	}
	return nr;
}

void range_note_step(struct range_stubs *s, uint32_t insn, unsigned pushed,
		     enum range_step_kind kind)
{
	if (s->nr_steps && s->step[s->nr_steps - 1].offset == s->code.len)
		s->nr_steps--;
	if (s->nr_steps == s->cap_steps) {
		size_t cap = s->cap_steps ? 2 * s->cap_steps : 64;
		struct range_step *more = realloc(s->step, cap * sizeof(*more));
		if (!more) {
			s->code.failed = true;
			return;
		}
		s->step = more;
		s->cap_steps = cap;
	}
	s->step[s->nr_steps++] =
		(struct range_step){.offset = (uint32_t)s->code.len,
				    .insn = insn,
				    .pushed = (uint16_t)pushed,
				    .at_insn = kind == RANGE_AT_INSN,
				    .clean = kind == RANGE_CLEAN};
}

/* The return address of a call is the last of what was put. */
static void note_back(struct range_stubs *s)
{
	if (s->nr_back == s->cap_back) {
		size_t cap = s->cap_back ? 2 * s->cap_back : 16;
		uint32_t *more = realloc(s->back, cap * sizeof(*more));
		if (!more) {
			s->code.failed = true;
			return;
		}
		s->back = more;
		s->cap_back = cap;
	}
	s->back[s->nr_back++] = (uint32_t)(s->code.len - CODE_CALL_BACK_BYTES);
}

static const char *displace(struct range_stubs *s,
			    const struct range_image *img,
			    const struct range_code *code, uint32_t i,
			    uint64_t bias)
{
	struct code_insn decoded;
	const struct range_insn *in = &code->insns[i];
	const uint8_t *bytes = img->text + (in->addr - img->lo);
	size_t at = s->code.len;
	if (!code_decode(bytes, in->len, in->addr + bias, &decoded))
		return "it does not decode";
	const char *why = code_relocate(&s->code, bytes, &decoded);
	if (!why && in->kind == RK_CALL) {
		/* Between the push of the return address and the jump. */
		size_t end = s->code.len;
		s->code.len = at + CODE_CALL_PUSH_BYTES;
		range_note_step(s, i, 8, RANGE_DIRTY);
		s->code.len = end;
		note_back(s);
	}
	return why;
}

uint32_t range_stub_end(const struct range_window *w, const bool *others)
{
	uint32_t i = w->first + 1;
	while (others && i < w->end && !others[i])
		i++;
	return others ? i : w->end;
}

static const char *one_window(struct range_stubs *s, struct range_sensor *x,
			      size_t number)
{
	const struct range_window *w = &x->w->window[number];
	const struct range_site *site = x->w->site + w->first_site;
	const struct range_site *end = site + w->nr_sites;
	const uint32_t last = range_stub_end(w, x->at->others);
	static const uint8_t fill[16] = {0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc,
					 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc,
					 0xcc, 0xcc, 0xcc, 0xcc};

	code_put(&s->code, fill, -s->code.len & 15);
	s->start[number] = (uint32_t)s->code.len;
	x->nr_slow = 0;
	x->shape = &s->shape[number];
	x->shape->call = x->code->insns[last - 1].kind == RK_CALL;
	x->counter = x->at->counters + 8 * number;
	for (uint32_t i = w->first; i <= last; i++) {
		size_t n = 0;
		while (site + n < end && site[n].gap == i)
			n++;
		range_note_step(s, i, 0, RANGE_AT_INSN);
		if (n)
			range_sensors(x, i, site, n);
		site += n;
		if (i == last)
			break;
		range_note_step(s, i, 0, RANGE_AT_INSN);
		const char *why = displace(s, x->img, x->code, i, x->at->bias);
		if (why)
			return why;
	}
	if (range_falls(x->code, last - 1) &&
	    x->code->insns[last - 1].kind != RK_CALL) {
		range_note_step(s, last, 0, RANGE_AT_INSN);
		code_jump(&s->code, x->code->insns[last].addr + x->at->bias);
	}
	range_slow_paths(x);
	return NULL;
}

int range_stubs_build(struct range_stubs *ret, taddr_t base,
		      const struct range_code *code,
		      const struct range_image *img, const struct variables *v,
		      const struct range_windows *w,
		      const struct range_stub_place *at, struct smco_err *err)
{
	struct range_sensor x = {
		.s = ret, .code = code, .img = img, .v = v, .w = w, .at = at};
	const char *why = NULL;

	memset(ret, 0, sizeof(*ret));
	/* A sensor is below 100 bytes, its slow ways below 160; expressions
	 * have twelve steps of ten bytes more. */
	size_t cap = 256 + w->nr_sites * 640;
	for (size_t i = 0; i < w->nr; i++)
		cap += 64 + 16 * (w->window[i].end - w->window[i].first);
	for (size_t i = 0; i < w->nr_sites; i++)
		cap += range_hole_bytes(v, w->site[i].var);
	ret->nr_windows = w->nr;
	ret->code =
		(struct code_buf){.buf = malloc(cap), .cap = cap, .base = base};
	ret->start = calloc(w->nr + 1, sizeof(*ret->start));
	ret->shape = calloc(w->nr + 1, sizeof(*ret->shape));
	x.slow = calloc(3 * w->nr_sites + 1, sizeof(*x.slow));
	if (!ret->code.buf || !ret->start || !ret->shape || !x.slow) {
		range_stubs_deinit(ret);
		free(x.slow);
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	}
	for (size_t i = 0; i < w->nr && !why; i++)
		why = one_window(ret, &x, i);
	free(x.slow);
	if (!why && ret->code.failed)
		why = "its stubs are too far away or too long";
	if (!why)
		return 0;
	range_stubs_deinit(ret);
	return smco_fail(err, SMCO_UNSUPPORTED, 0,
			 "the function at 0x%llx cannot carry sensors: %s",
			 (unsigned long long)(code->insns[0].addr + at->bias),
			 why);
}

void range_stubs_deinit(struct range_stubs *s)
{
	free(s->code.buf);
	free(s->start);
	free(s->shape);
	free(s->step);
	free(s->back);
	memset(s, 0, sizeof(*s));
}

const struct range_step *range_stubs_step(const struct range_stubs *s,
					  uint32_t off)
{
	size_t a = 0, b = s->nr_steps;
	while (a < b) {
		size_t mid = a + (b - a) / 2;
		if (s->step[mid].offset <= off)
			a = mid + 1;
		else
			b = mid;
	}
	return a ? &s->step[a - 1] : NULL;
}

uint32_t range_stubs_moved(const struct range_stubs *s,
			   const struct range_windows *w, size_t window,
			   uint32_t insn)
{
	if (window >= w->nr || insn < w->window[window].first ||
	    insn >= w->window[window].end)
		return UINT32_MAX;
	const struct range_step *step = range_stubs_step(s, s->start[window]);
	for (; step && step < s->step + s->nr_steps; step++)
		if (step->insn == insn)
			return step->offset;
	return UINT32_MAX;
}
