/* What a hit of a range sensor costs here, see range-cost.h. */
#include "supervisor/probe/range-cost.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "reports/median.h"
#include "supervisor/control/fixed.h"

/* On an AMD EPYC whose second thread is busy: of bzip2, three compilers' output
 * each way, this is 0.9 to 1.4 times what was lost (t/bench/RESULTS.md). */
const struct range_cost range_cost_usual = {
	.jumps = 1000,
	.reg = 400,
	.memory = 480,
	.expr = 700,
	.flags = 300,
	.saved = 300,
	.call = 10000,
	.alone = 1500,
};
/* Where nobody else uses the core a hit is three times cheaper, and this is
 * what bzip2 lost there, or more. Those passed seldom enough for a predictor to
 * forget them lose more than the laboratory's: so not less for jumps. */
const struct range_cost range_cost_least = {
	.jumps = 400,
	.reg = 150,
	.memory = 150,
	.expr = 250,
	.flags = 50,
	.saved = 200,
	.call = 10000,
};
#define MOST_TIMES 8

/* The arena: the function, the stubs, their cells and counters. */
#define ARENA	  (256u << 10)
#define PLAIN_OFF 0x4000 /* the function as it is */
#define STUB_OFF  0x8000
#define CELL_OFF  0x20000
#define HITS_OFF  0x28000
#define ENTRY	  4 /* of a function, behind what it calls */

/* In the function, one after another: so many jumps are more than the fastest
 * predictor of targets keeps, as in a program, and all fits the first cache. */
#define NR_WINDOWS 32
#define NR_VARS	   4
#define PASSES	   100 /* of the function at once */
#define ROUNDS	   10  /* behind one that only fills the caches */
/* The same while the program waits. */
#define PASSES_AGAIN	  25
#define ROUNDS_AGAIN	  7
#define RAX_RCX_R8_TO_R11 (1u << 0 | 1u << 1 | 0xfu << 8)

struct scene {
	uint8_t *arena;
	struct range_image img;
	struct range_code code;
	unsigned nr_windows; /* of the function: all, or one that is alone */
	struct range_window window[NR_WINDOWS];
	struct range_site site[NR_WINDOWS * NR_VARS];
	struct variable var[NR_VARS];
	struct var_place place;
	struct var_op op[4];
	uint32_t cell_of[NR_VARS];
};

/* What is planted in every window. */
struct planting {
	enum range_source source;
	unsigned nr;   /* values */
	uint32_t live; /* where they are */
	bool call;     /* the window ends in one */
	bool alone;    /* one window, with little else in its loop */
};

/* Independent of each other and of all others: nothing waits. */
static void filler(struct code_buf *e)
{
	CODE(e, 0x4c, 0x8d, 0x46, 0x01); /* lea 1(%rsi), %r8 */
	CODE(e, 0x4c, 0x8d, 0x4e, 0x02); /* lea 2(%rsi), %r9 */
	CODE(e, 0x4c, 0x8d, 0x56, 0x03); /* lea 3(%rsi), %r10 */
	CODE(e, 0x4c, 0x8d, 0x5e, 0x04); /* lea 4(%rsi), %r11 */
}

/*
 * The function: passes in rdi; again and again the filler and a window, which
 * is the two instructions behind it. At @at of the arena; the address behind
 * it.
 */
static uint64_t emit(const struct scene *s, uint32_t at, bool call,
		     uint64_t window[NR_WINDOWS])
{
	struct code_buf e = {.buf = s->arena + at,
			     .cap = PLAIN_OFF,
			     .base = (taddr_t)s->arena + at};
	CODE(&e, 0xc3, 0x90, 0x90, 0x90);	/* ret: what is called */
	CODE(&e, 0x48, 0x8d, 0x64, 0x24, 0xf8); /* lea -8(%rsp), %rsp */
	taddr_t again = e.base + e.len;
	for (unsigned i = 0; i < s->nr_windows; i++) {
		filler(&e);
		window[i] = e.base + e.len;
		CODE(&e, 0x48, 0x8d, 0x56, 0x05); /* lea 5(%rsi), %rdx */
		if (call) {
			CODE(&e, 0xe8);
			code_put_rel(&e, e.base, 0);
		} else {
			CODE(&e, 0x48, 0x8d, 0x46, 0x06); /* lea 6(%rsi) */
		}
	}
	CODE(&e, 0x48, 0xff, 0xcf, 0x0f, 0x85); /* dec %rdi; jnz */
	code_put_rel(&e, again, 0);
	CODE(&e, 0x48, 0x8d, 0x64, 0x24, 0x08, 0xc3); /* lea 8(%rsp); ret */
	return e.base + e.len;
}

/* Once as it is, once to be planted in: that is what s->code is of. */
static bool make_function(struct scene *s, const struct planting *what)
{
	s->nr_windows = what->alone ? 1 : NR_WINDOWS;
	uint64_t window[NR_WINDOWS];
	emit(s, PLAIN_OFF, what->call, window);
	uint64_t hi = emit(s, 0, what->call, window);
	uint64_t start = (taddr_t)s->arena + ENTRY;
	struct range_chunk chunk = {start, hi};
	s->img = (struct range_image){.nr_segments = 1};
	s->img.segment[0] =
		(struct range_segment){.vaddr = (taddr_t)s->arena,
				       .len = hi - (taddr_t)s->arena,
				       .bytes = s->arena,
				       .exec = true};
	if (range_image_scan(&s->img, &start, 1, NULL) ||
	    range_code_init(&s->code, &s->img, &chunk, 1, NULL))
		return false;
	for (unsigned i = 0; i < s->nr_windows; i++) {
		uint32_t at = (uint32_t)range_code_find(&s->code, window[i]);
		s->window[i] =
			(struct range_window){.first = at, .end = at + 2};
	}
	return !s->code.refused;
}

static void make_sites(struct scene *s, const struct planting *what)
{
	for (unsigned i = 0; i < s->nr_windows; i++) {
		uint32_t gap = s->window[i].first + 1;
		s->window[i].first_site = i * what->nr;
		s->window[i].nr_sites = what->nr;
		s->code.insns[gap].live = what->live;
		for (unsigned k = 0; k < what->nr; k++)
			s->site[i * what->nr + k] = (struct range_site){
				.gap = gap,
				.var = k,
				.source = (uint8_t)what->source,
				.reg = what->source == RS_FRAME ? RANGE_RSP : 6,
				.offset = what->source == RS_FRAME
						  ? -16 - 4 * (int64_t)k
						  : 0};
	}
	for (unsigned k = 0; k < NR_VARS; k++) {
		s->var[k].type = (struct var_type){.width = 4};
		s->cell_of[k] = k;
		/* Nothing widens. */
		((struct range_cell *)(s->arena + CELL_OFF))[k] =
			(struct range_cell){0, UINT32_MAX};
	}
	s->op[0] = (struct var_op){VAR_OP_REG, 4}; /* rsi */
	s->op[1] = (struct var_op){VAR_OP_CONST, 3};
	s->op[2] = (struct var_op){VAR_OP_SHL, 0};
	s->op[3] = (struct var_op){VAR_OP_PLUS_CONST, 7};
	s->place = (struct var_place){.kind = VAR_EXPR, .nr_ops = 4};
}

/* The stubs' code; *shape_ret is that of each. */
static bool make_stubs(struct scene *s, const struct planting *what,
		       struct range_stubs *stubs)
{
	struct variables v = {.vars = s->var,
			      .nr_vars = NR_VARS,
			      .places = &s->place,
			      .nr_places = 1,
			      .ops = s->op,
			      .nr_ops = ARRAY_SIZE(s->op)};
	const struct range_windows w = {.window = s->window,
					.nr = s->nr_windows,
					.site = s->site,
					.nr_sites = s->nr_windows * what->nr};
	const struct range_stub_place at = {
		.cells = (taddr_t)s->arena + CELL_OFF,
		.counters = (taddr_t)s->arena + HITS_OFF,
		.cell_of = s->cell_of,
	};
	make_sites(s, what);
	return !range_stubs_build(stubs, (taddr_t)s->arena + STUB_OFF, &s->code,
				  &s->img, &v, &w, &at, NULL) &&
	       stubs->code.len < CELL_OFF - STUB_OFF;
}

static uint64_t pass(const uint8_t *arena, uint32_t at, unsigned passes)
{
	void (*function)(uint64_t passes, uint64_t value);
	const uint8_t *entry = arena + at + ENTRY;
	memcpy(&function, &entry, sizeof(function));
	uint64_t start_ns = smco_now_ns();
	function(passes, 1);
	return smco_now_ns() - start_ns;
}

/* What the stubs add to a window, in picoseconds, of which all are passed
 * @passes times. In turn, so that whoever uses the processor, too, does so to
 * both; and in the middle, not at best: who shares the core comes and goes
 * within microseconds, and the program has that, too. */
static uint32_t run(const struct scene *s, unsigned passes, unsigned rounds)
{
	const uint8_t *arena = s->arena;
	unsigned loops = passes * NR_WINDOWS / s->nr_windows;
	int64_t more_ns[ROUNDS];
	for (unsigned i = 0; i <= rounds; i++) {
		uint64_t plain_ns = pass(arena, PLAIN_OFF, loops);
		uint64_t with_ns = pass(arena, 0, loops);
		if (i)
			more_ns[i - 1] = (int64_t)(with_ns - plain_ns);
	}
	int64_t ns = clamp_i64(median_i64(more_ns, rounds), 0, INT64_MAX);
	return (uint32_t)(sat_u64((u128)ns * 1000) / passes / NR_WINDOWS);
}

static void plant(const struct scene *s, const struct range_stubs *stubs)
{
	memcpy(s->arena + STUB_OFF, stubs->code.buf, stubs->code.len);
	for (unsigned i = 0; i < s->nr_windows; i++) {
		taddr_t at = s->code.insns[s->window[i].first].addr;
		struct code_buf e = {.buf = s->arena + (at - (taddr_t)s->arena),
				     .cap = CODE_JUMP_BYTES,
				     .base = at};
		code_jump(&e, stubs->code.base + stubs->start[i]);
	}
}

static bool executable(const struct scene *s, bool yes)
{
	return !mprotect(s->arena, CELL_OFF,
			 PROT_READ | (yes ? PROT_EXEC : PROT_WRITE));
}

/* What @what adds to a window, in picoseconds; false: it cannot be said. */
static bool added(struct scene *s, const struct planting *what,
		  uint32_t *ps_ret, struct range_shape *shape_ret)
{
	struct range_stubs stubs = {.nr_windows = 0};
	bool ok = executable(s, false) && make_function(s, what) &&
		  make_stubs(s, what, &stubs);
	if (ok) {
		plant(s, &stubs);
		*shape_ret = stubs.shape[0];
		ok = executable(s, true);
	}
	if (ok)
		*ps_ret = run(s, PASSES, ROUNDS);
	range_stubs_deinit(&stubs);
	range_code_deinit(&s->code);
	range_image_deinit(&s->img);
	return ok;
}

static uint32_t part(uint32_t all, uint32_t without, uint32_t nr)
{
	return all > without && nr ? (all - without) / nr : 0;
}

/* Flags and, but for some, registers are free. */
static const uint32_t few = RANGE_ALL_REGS & ~RAX_RCX_R8_TO_R11;

static bool measure(struct scene *s, struct range_cost *c)
{
	const struct planting what[] = {
		{RS_REG, 1, few, false, false},
		{RS_REG, 4, few, false, false},
		{RS_FRAME, 4, few, false, false},
		{RS_EXPR, 1, few, false, false},
		{RS_REG, 1, few | RANGE_FLAGS, false, false},
		{RS_FRAME, 1, RANGE_ALL_REGS, false, false},
		{RS_REG, 1, few, true, false},
		{RS_REG, 1, few, false, true},
	};
	struct range_shape shape[ARRAY_SIZE(what)];
	uint32_t ps[ARRAY_SIZE(what)];
	for (size_t i = 0; i < ARRAY_SIZE(what); i++)
		if (!added(s, &what[i], &ps[i], &shape[i]))
			return false;
	c->reg = part(ps[1], ps[0], 3);
	c->jumps = part(ps[0], c->reg, 1);
	c->memory = part(ps[2], c->jumps, shape[2].memory);
	c->expr = part(ps[3], c->jumps, shape[3].exprs);
	c->flags = part(ps[4], ps[0], shape[4].flags);
	c->saved = part(ps[5], c->jumps + c->memory, shape[5].saved);
	/* The caller's own return is not predicted either. */
	c->call = part(2 * ps[6], 2 * ps[0], shape[6].call);
	c->alone = ps[7];
	return true;
}

static void bound(uint32_t *ps, uint32_t least, uint32_t usual)
{
	if (*ps < least)
		*ps = least;
	if (*ps > usual * MOST_TIMES)
		*ps = usual * MOST_TIMES;
}

void range_cost_bound(struct range_cost *c)
{
	const struct range_cost *l = &range_cost_least, *u = &range_cost_usual;
	bound(&c->jumps, l->jumps, u->jumps);
	bound(&c->reg, l->reg, u->reg);
	bound(&c->memory, l->memory, u->memory);
	bound(&c->expr, l->expr, u->expr);
	bound(&c->flags, l->flags, u->flags);
	bound(&c->saved, l->saved, u->saved);
	bound(&c->call, l->call, u->call);
	bound(&c->alone, l->alone, u->alone);
}

static struct scene *open_scene(void)
{
	struct scene *s = calloc(1, sizeof(*s));
	void *arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s && arena != MAP_FAILED) {
		s->arena = arena;
		return s;
	}
	if (arena != MAP_FAILED)
		munmap(arena, ARENA);
	free(s);
	return NULL;
}

static void close_scene(struct scene *s)
{
	if (s)
		munmap(s->arena, ARENA);
	free(s);
}

int range_cost_measure(struct range_cost *ret, struct smco_err *err)
{
	struct scene *s = open_scene();
	if (!s)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	bool ok = measure(s, ret);
	close_scene(s);
	return ok ? 0
		  : smco_fail(err, SMCO_SYS, errno,
			      "cannot measure what a range sensor costs");
}

static struct range_cost here;
/* Planted with one value and with NR_VARS, to be run again. */
static struct scene *again[2];

static void keep_scenes(void)
{
	const struct planting what[] = {{RS_REG, 1, few, false, false},
					{RS_REG, NR_VARS, few, false, false}};
	for (size_t i = 0; i < ARRAY_SIZE(what); i++) {
		struct range_shape shape;
		uint32_t ps;
		again[i] = open_scene();
		if (!again[i] || !added(again[i], &what[i], &ps, &shape)) {
			close_scene(again[i]);
			again[i] = NULL;
		}
	}
}

bool range_cost_again(struct range_cost *ret)
{
	*ret = *range_cost_here();
	if (!again[0] || !again[1])
		return false;
	uint32_t one = run(again[0], PASSES_AGAIN, ROUNDS_AGAIN);
	uint32_t all = run(again[1], PASSES_AGAIN, ROUNDS_AGAIN);
	ret->reg = part(all, one, NR_VARS - 1);
	ret->jumps = part(one, ret->reg, 1);
	range_cost_bound(ret);
	return true;
}

static void find_out(void)
{
	struct smco_err err = {0};
	if (range_cost_measure(&here, &err)) {
		smco_debug("range", "%s", err.msg);
		here = range_cost_usual;
	}
	range_cost_bound(&here);
	keep_scenes();
	smco_debug("range",
		   "a hit costs %u ps, a value %u, %u in memory, %u computed, "
		   "flags %u, a register %u, a call %u, one alone %u",
		   here.jumps, here.reg, here.memory, here.expr, here.flags,
		   here.saved, here.call, here.alone);
}

const struct range_cost *range_cost_here(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, find_out);
	return &here;
}

/* On grep, whose windows are passed once a line or a file: 15 to 20 ns. */
#define COLD_PS	    20000
#define COLD_GAP_NS (10 * NSEC_PER_USEC)

uint64_t range_cost_cold(uint64_t hits, uint64_t ns)
{
	return hits <= ns / COLD_GAP_NS ? hits * COLD_PS : 0;
}

uint32_t range_cost_window(const struct range_cost *c,
			   const struct range_shape *shape)
{
	uint64_t ps = c->jumps + (uint64_t)c->reg * shape->regs +
		      (uint64_t)c->memory * shape->memory +
		      (uint64_t)c->expr * shape->exprs +
		      (uint64_t)c->flags * shape->flags +
		      (uint64_t)c->saved * shape->saved +
		      (shape->call ? c->call : 0);
	return ps > UINT32_MAX ? UINT32_MAX : (uint32_t)ps;
}
