#include "reports/pack.h"

#include <stdlib.h>
#include <string.h>

#include "reports/disk.h"

/*
 * A stack is a row of symbols, frame id + 1 each, 0 at its end. What follows a
 * symbol is mostly one of what followed it before: callers have callers. What
 * is no guess is a symbol that came before, some far more often than others.
 * Before format 7 fewer guesses were made, that was coded by its distance to
 * the largest, and a stack that is defined again had guesses of its own: other
 * frames for the same places, those that took their places in stacks before.
 */
#define SYMBOLS 65536 /* what is remembered, by the symbol's low bits */
#define STACKS	4096  /* definitions remembered, by the id's low bits */
#define FOLLOWS 4     /* what followed a symbol, the last one first */

enum guess {
	GUESS_AGAIN, /* what took this one's place, in a stack defined again */
	GUESS_FOLLOWS, /* what followed the symbol before */
	GUESS_NEW = GUESS_FOLLOWS + FOLLOWS, /* one more than the largest */
	GUESS_SAME, /* what the last stack has here, if it is not that */
	GUESSES,
};

struct symbol {
	uint32_t follows[FOLLOWS], again;
	bool knows_again;
	uint8_t nr_follows;
	uint8_t steady; /* how often the first was right, in a row; at most 3 */
};

struct stack {
	uint32_t id, nr;
	uint32_t *symbol; /* owned, nr of them; NULL: not in use */
};

struct pack_stacks {
	bool is_old;	       /* before format 7 */
	bool is_used;	       /* else all is zero yet, and mostly no memory */
	struct symbol *symbol; /* SYMBOLS */
	struct stack *stack;   /* STACKS */
	uint32_t id, most;     /* last id, largest symbol */
	uint32_t nr, nr_last;
	uint32_t now[STACK_MAX_FRAMES + 1], last[STACK_MAX_FRAMES + 1];
	struct number_model ids;
	struct known_model known[2];	  /* after the first? */
	struct number_model others[2][2]; /* old: again?, after the first? */
	/* again?, place up to 2, guesses known, last outcome, steady */
	struct bit_model guess[2][3][FOLLOWS + 1][GUESSES + 1][4][GUESSES];
};

struct pack_stacks *pack_stacks_create(void)
{
	struct pack_stacks *p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->symbol = calloc(SYMBOLS, sizeof(*p->symbol));
	p->stack = calloc(STACKS, sizeof(*p->stack));
	if (p->symbol && p->stack)
		return p;
	pack_stacks_destroy(p);
	return NULL;
}

static void forget(struct pack_stacks *p)
{
	for (size_t i = 0; p->stack && i < STACKS; i++)
		free(p->stack[i].symbol);
}

void pack_stacks_reset(struct pack_stacks *p, bool is_old)
{
	struct symbol *symbol = p->symbol;
	struct stack *stack = p->stack;
	p->is_old = is_old;
	if (!p->is_used)
		return;
	forget(p);
	memset(symbol, 0, SYMBOLS * sizeof(*symbol));
	memset(stack, 0, STACKS * sizeof(*stack));
	memset(p, 0, sizeof(*p));
	p->is_old = is_old;
	p->symbol = symbol;
	p->stack = stack;
}

void pack_stacks_destroy(struct pack_stacks *p)
{
	if (!p)
		return;
	forget(p);
	free(p->symbol);
	free(p->stack);
	free(p);
}

/* ---------------------------------------------------------------- symbols ---
 */

static struct symbol *symbol_at(struct pack_stacks *p, uint32_t symbol)
{
	return &p->symbol[symbol % SYMBOLS];
}

static uint32_t at(const uint32_t *symbol, uint32_t nr, uint32_t place)
{
	return place < nr ? symbol[place] : 0;
}

static void followed(struct symbol *s, uint32_t by)
{
	unsigned i = 0;
	while (i < s->nr_follows && s->follows[i] != by)
		i++;
	if (!i && s->nr_follows) {
		s->steady = s->steady < 3 ? (uint8_t)(s->steady + 1) : 3;
		return;
	}
	if (i == s->nr_follows && i < FOLLOWS)
		s->nr_follows++;
	if (i == FOLLOWS)
		i--;
	memmove(s->follows + 1, s->follows, i * sizeof(*s->follows));
	s->follows[0] = by;
	s->steady = 0;
}

/* The symbol at @place of a stack that was @old before, NULL if it is new.
 * *came: which guess was right at the place before. */
static uint32_t code_symbol(struct pack_stacks *p, struct bitcoder *c,
			    const struct stack *old, uint32_t place,
			    unsigned *came, uint32_t symbol)
{
	uint64_t guess[GUESSES] = {0}, got = symbol;
	unsigned valid = 1 << GUESS_NEW, nr_known = 0, steady = 0;
	struct symbol *before = NULL;
	guess[GUESS_NEW] = p->most + 1u;
	if (old) {
		uint32_t was = at(old->symbol, old->nr, place);
		struct symbol *s = symbol_at(p, was);
		guess[GUESS_AGAIN] = was ? s->again : 0;
		if (!was || s->knows_again)
			valid |= 1 << GUESS_AGAIN, nr_known++;
	} else {
		guess[GUESS_SAME] = at(p->last, p->nr_last, place);
		valid |= 1 << GUESS_SAME;
	}
	if (place) {
		before = symbol_at(p, p->now[place - 1]);
		steady = before->steady;
		unsigned nr = before->nr_follows;
		if (p->is_old && nr > 2)
			nr = 2;
		for (unsigned i = 0; i < nr; i++) {
			guess[GUESS_FOLLOWS + i] = before->follows[i];
			valid |= 1u << (GUESS_FOLLOWS + i);
		}
		nr_known += nr;
	}
	*came = code_choice(
		c,
		p->guess[!!old][place < 2 ? place : 2][nr_known][*came][steady],
		guess, GUESSES, valid, &got);
	if (*came == GUESSES && !p->is_old)
		got = code_known32(c, &p->known[!!place], symbol);
	else if (*came == GUESSES)
		got = p->most - code_number32(c, &p->others[!!old][!!place],
					      p->most - symbol);
	symbol = (uint32_t)got;
	if (before)
		followed(before, symbol);
	if (symbol > p->most)
		p->most = symbol;
	return symbol;
}

/* ----------------------------------------------------------------- stacks ---
 */

/* Of p->now, which has its end marked: remember it as stack @id. */
static bool remember(struct pack_stacks *p, struct stack *s, bool again,
		     uint32_t id)
{
	if (again && s->nr == p->nr)
		for (uint32_t i = 0; i < p->nr; i++) {
			struct symbol *was = symbol_at(p, s->symbol[i]);
			was->again = p->now[i];
			was->knows_again = true;
		}
	free(s->symbol);
	*s = (struct stack){id, p->nr,
			    malloc((p->nr + 1) * sizeof(*s->symbol))};
	if (!s->symbol)
		return false;
	memcpy(s->symbol, p->now, p->nr * sizeof(*s->symbol));
	return true;
}

/* Stack *id, p->now[0..p->nr) with its end marked. */
static int code_stack(struct pack_stacks *p, struct bitcoder *c, uint32_t *id)
{
	uint32_t step = (uint32_t)zigzag((int32_t)(*id - p->id - 1));
	unsigned came = 0;
	step = code_number32(c, &p->ids, step);
	*id = p->id = p->id + 1 + (uint32_t)unzigzag(step);
	struct stack *s = &p->stack[*id % STACKS];
	bool again = p->is_old && s->symbol && s->id == *id;
	for (uint32_t i = 0;; i++) {
		if (i > STACK_MAX_FRAMES || bitcoder_failed(c))
			return SMCO_FORMAT;
		p->now[i] = code_symbol(p, c, again ? s : NULL, i, &came,
					p->now[i]);
		p->nr = i;
		if (!p->now[i])
			break;
	}
	memcpy(p->last, p->now, p->nr * sizeof(*p->last));
	p->nr_last = p->nr;
	return p->is_old && !remember(p, s, again, *id) ? SMCO_NOMEM : SMCO_OK;
}

int pack_stacks_encode(struct pack_stacks *p, struct bitcoder *c, uint32_t nr,
		       struct cursor plain)
{
	p->is_used = true;
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t id, depth, step, frame = 0;
		if (!cursor_varint32(&plain, &id) ||
		    !cursor_varint32(&plain, &depth) ||
		    depth > STACK_MAX_FRAMES)
			return SMCO_FORMAT;
		for (uint32_t j = 0; j < depth; j++) {
			if (!cursor_varint32(&plain, &step))
				return SMCO_FORMAT;
			frame += (uint32_t)unzigzag(step);
			p->now[j] = frame + 1;
			if (!p->now[j]) /* the end's */
				return SMCO_FORMAT;
		}
		p->now[depth] = 0;
		int rc = code_stack(p, c, &id);
		if (rc)
			return rc;
	}
	return SMCO_OK;
}

int pack_stacks_decode(struct pack_stacks *p, struct bitcoder *c, uint32_t nr,
		       size_t most, struct bbuf *plain_ret)
{
	p->is_used = true;
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t id = 0, last = 0;
		int rc = code_stack(p, c, &id);
		if (rc)
			return rc;
		bbuf_varint(plain_ret, id);
		bbuf_varint(plain_ret, p->nr);
		for (uint32_t j = 0; j < p->nr; j++) {
			uint32_t frame = p->now[j] - 1;
			bbuf_varint(plain_ret, zigzag((int32_t)(frame - last)));
			last = frame;
		}
		if (plain_ret->failed)
			return SMCO_NOMEM;
		if (plain_ret->len > most)
			return SMCO_FORMAT;
	}
	return SMCO_OK;
}
