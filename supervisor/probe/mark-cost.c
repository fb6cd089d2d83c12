/* What a counted passing costs here, see mark-cost.h. */
#include "supervisor/probe/mark-cost.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "supervisor/control/fixed.h"
#include "supervisor/probe/mark-private.h"

/* On an AMD EPYC 1.7 and 5.7 ns one after the other. */
const struct mark_cost mark_cost_usual = {.owner = 1500, .other = 5000};
#define MOST_TIMES     8
#define MOST_TIMING_PS (2 * MARK_RECORD_NS * 1000)

/* The arena: the function, one stub, what it writes to. */
#define CODE_BYTES 8192u
#define STUB_OFF   4096u
#define ARENA	   (CODE_BYTES + MARK_DATA_BYTES)
#define PASSINGS   2000 /* at once */
#define ROUNDS	   12	/* of which the fastest counts */

/* A word of this thread's area that is no other's at this moment: where the
 * area is. */
#define AREA_OFFSET 0x10

struct scene {
	uint8_t *arena;
	struct mark_data *data;
	uint32_t number; /* what the stub takes for the thread's */
};

static const uint8_t nop[CODE_JUMP_BYTES] = {0x0f, 0x1f, 0x44, 0x00, 0x00};

/* The function: passings in rdi, each a nop or a jump to the stub. */
static void emit(struct scene *s)
{
	struct code_buf e = {
		.buf = s->arena, .cap = STUB_OFF, .base = (taddr_t)s->arena};
	code_put(&e, nop, sizeof(nop));
	CODE(&e, 0x48, 0xff, 0xcf, 0x0f, 0x85); /* dec %rdi; jnz */
	code_put_rel(&e, e.base, 0);
	CODE(&e, 0xc3); /* ret */
}

static const char *make_stub(struct scene *s)
{
	struct mark_spot spot = {.addr = (taddr_t)s->arena};
	struct mark_window window = {
		.addr = spot.addr,
		.nr_spots = 1,
		.len = sizeof(nop),
		.room = sizeof(nop),
		.nr_insns = 1,
		.goes_on = true,
	};
	const struct mark_plan plan = {.spot = &spot,
				       .nr_spots = 1,
				       .window = &window,
				       .nr_windows = 1};
	struct mark_stub stub = {
		.code = {.buf = s->arena + STUB_OFF,
			 .cap = CODE_BYTES - STUB_OFF,
			 .base = (taddr_t)s->arena + STUB_OFF}};
	memcpy(window.bytes, nop, sizeof(nop));
	return mark_stub_build(&stub, &plan, &window, 0,
			       (taddr_t)(uintptr_t)s->data, AREA_OFFSET);
}

static uint64_t pass(const struct scene *s)
{
	void (*function)(uint64_t passings);
	memcpy(&function, &s->arena, sizeof(function));
	uint64_t start_ns = smco_now_ns();
	function(PASSINGS);
	return smco_now_ns() - start_ns;
}

static bool executable(const struct scene *s, bool yes)
{
	return !mprotect(s->arena, CODE_BYTES,
			 PROT_READ | (yes ? PROT_EXEC : PROT_WRITE));
}

/* At best, ns; UINT64_MAX: this process may not make code. */
static uint64_t fastest(const struct scene *s)
{
	uint64_t ns = UINT64_MAX;
	if (!executable(s, true))
		return ns;
	for (unsigned i = 0; i < ROUNDS; i++)
		ns = min_u64(ns, pass(s));
	return executable(s, false) ? ns : UINT64_MAX;
}

static uint32_t added_ps(uint64_t with_ns, uint64_t plain_ns)
{
	return (uint32_t)(sat_sub_u64(with_ns, plain_ns) * 1000 / PASSINGS);
}

/* Between the records of the last pass, which was @ns long, ps; ring and
 * records begin with it. */
static uint32_t between_ps(const struct scene *s, uint64_t ns)
{
	const struct mark_slot *first = s->data->ring,
			       *last = first + PASSINGS - 1;
	uint64_t ticks = last->tsc - first->tsc, took = 0;
	for (const struct mark_slot *k = first; k < last; k++)
		took += k->took;
	if (!ticks || took > ticks)
		return 0;
	return (uint32_t)((double)(ticks - took) / (double)ticks * (double)ns *
			  1000 / PASSINGS);
}

/* The same at best; the jump itself takes as long as a nop. */
static uint32_t timing_ps(const struct scene *s, uint64_t plain_ns)
{
	uint32_t ps = UINT32_MAX;
	if (!executable(s, true))
		return ps;
	for (unsigned i = 0; i < ROUNDS; i++) {
		s->data->head = 0;
		uint32_t now = between_ps(s, pass(s));
		ps = now < ps ? now : ps;
	}
	uint32_t plain = (uint32_t)(plain_ns * 1000 / PASSINGS);
	return ps > plain ? ps - plain : 0;
}

static bool measure(struct scene *s, struct mark_cost *c)
{
	emit(s);
	const char *why = make_stub(s);
	uint64_t plain_ns = fastest(s);
	if (why || plain_ns == UINT64_MAX)
		return false;
	struct code_buf e = {
		.buf = s->arena, .cap = sizeof(nop), .base = (taddr_t)s->arena};
	code_jump(&e, e.base + STUB_OFF);
	uint32_t *owner = &s->data->owner[s->number % MARK_OWNERS];
	*owner = ~s->number;
	uint64_t other_ns = fastest(s);
	*owner = s->number;
	uint64_t owner_ns = fastest(s);
	s->data->channel[0] = (struct mark_channel){
		.run = 1, .tokens = INT32_MAX, .from = INT32_MAX};
	c->timing = timing_ps(s, plain_ns);
	c->other = added_ps(other_ns, plain_ns);
	c->owner = added_ps(owner_ns, plain_ns);
	return other_ns != UINT64_MAX && owner_ns != UINT64_MAX &&
	       c->timing != UINT32_MAX;
}

int mark_cost_measure(struct mark_cost *ret, struct smco_err *err)
{
	struct scene s;
	bool ok = false;
	s.arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s.arena != MAP_FAILED) {
		s.data = (struct mark_data *)(void *)(s.arena + CODE_BYTES);
		__asm__("mov %%fs:%c1, %0" : "=r"(s.number) : "i"(AREA_OFFSET));
		ok = measure(&s, ret);
		munmap(s.arena, ARENA);
	}
	return ok ? 0
		  : smco_fail(err, SMCO_SYS, errno,
			      "cannot measure what a mark's passing costs");
}

static void bound(uint32_t *ps, uint32_t usual)
{
	*ps = *ps < usual ? usual : *ps;
	*ps = *ps > usual * MOST_TIMES ? usual * MOST_TIMES : *ps;
}

void mark_cost_bound(struct mark_cost *c)
{
	bound(&c->owner, mark_cost_usual.owner);
	bound(&c->other, mark_cost_usual.other);
	if (c->timing > MOST_TIMING_PS)
		c->timing = MOST_TIMING_PS;
}

static struct mark_cost here;

static void find_out(void)
{
	struct smco_err err = {0};
	if (mark_cost_measure(&here, &err)) {
		smco_debug("mark", "%s", err.msg);
		here = mark_cost_usual;
	}
	mark_cost_bound(&here);
	smco_debug("mark",
		   "a passing costs %u ps, %u without its own count; %u are in "
		   "what is timed",
		   here.owner, here.other, here.timing);
}

const struct mark_cost *mark_cost_here(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, find_out);
	return &here;
}
