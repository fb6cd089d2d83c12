/* Padding in reach of short jumps, see range-relay.h. */
#include "supervisor/probe/range-relay.h"

#include <Zydis/Zydis.h>

#include "supervisor/probe/code.h"

#define REACH_BACK (128 - CODE_SHORT_BYTES) /* from the jump's first byte */
#define REACH_ON   (127 + CODE_SHORT_BYTES)
#define ALIGNED	   16 /* functions begin there, if they have padding at all */

struct run {
	uint64_t lo, hi;
};

uint64_t range_room_behind(const struct range_image *img, uint64_t addr,
			   uint64_t want)
{
	uint64_t at = addr;
	while (at < addr + want && at < img->hi) {
		struct code_insn in;
		uint64_t off = at - img->lo;
		if (img->mark[off] & RANGE_MARK_LEADER ||
		    !code_decode(img->text + off, img->hi - at, at, &in) ||
		    (in.z.mnemonic != ZYDIS_MNEMONIC_NOP &&
		     in.z.mnemonic != ZYDIS_MNEMONIC_INT3))
			break;
		at += in.z.length;
	}
	return at - addr;
}

static bool is_last(const struct range_code *code, size_t i)
{
	const struct range_insn *in = &code->insns[i];
	return i + 1 == code->nr || in[1].addr != in->addr + in->len;
}

/* What is behind it is not reached from it. */
static bool ends(const struct range_insn *in)
{
	return in->bits & RB_UNREACHED || in->kind == RK_JUMP ||
	       in->kind == RK_JUMP_TO || in->kind == RK_RET;
}

/* What nobody reaches at or behind instruction *i; that becomes the next. */
static bool next_run(const struct range_code *code,
		     const struct range_image *img, size_t *i, struct run *ret)
{
	for (; *i < code->nr; ++*i) {
		const struct range_insn *in = &code->insns[*i];
		uint64_t behind = in->addr + in->len;
		if (!ends(in))
			continue;
		ret->lo = in->bits & RB_UNREACHED ? in->addr : behind;
		for (; !is_last(code, *i) && in[1].bits & RB_UNREACHED; ++*i)
			behind += (++in)->len;
		ret->hi = behind;
		if (is_last(code, *i)) {
			uint64_t most = -behind & (ALIGNED - 1);
			uint64_t room = range_room_behind(img, behind, most);
			ret->hi += room < most ? room : most;
		}
		++*i;
		return true;
	}
	return false;
}

static bool overlap(uint64_t a, uint64_t b)
{
	return a < b + CODE_JUMP_BYTES && b < a + CODE_JUMP_BYTES;
}

/* The first byte behind what of [at, at + 5) is used by another; 0: none is. */
static uint64_t used_until(const struct range_code *code,
			   const struct range_windows *w, size_t but,
			   uint64_t at)
{
	for (size_t i = 0; i < w->nr; i++) {
		const struct range_window *win = &w->window[i];
		/* A long jump may reach into padding, a short one does not. */
		uint64_t is =
			win->relay ? win->relay : code->insns[win->first].addr;
		if (i != but && overlap(is, at))
			return is + CODE_JUMP_BYTES;
	}
	return 0;
}

static bool reaches(uint64_t from, uint64_t to)
{
	return to + REACH_BACK >= from && to <= from + REACH_ON;
}

uint64_t range_relay_find(const struct range_code *code,
			  const struct range_image *img,
			  const struct range_windows *w, uint64_t from)
{
	uint64_t lowest = from > REACH_BACK ? from - REACH_BACK : 0;
	size_t i = range_code_find(code, lowest);
	struct run run;
	i = i ? i - 1 : 0;
	while (next_run(code, img, &i, &run) && run.lo <= from + REACH_ON) {
		uint64_t at = run.lo > lowest ? run.lo : lowest, next;
		for (; at + CODE_JUMP_BYTES <= run.hi && reaches(from, at);
		     at = next) {
			next = used_until(code, w, w->nr, at);
			if (!next)
				return at;
		}
	}
	return 0;
}

static bool is_padding(const struct range_code *code,
		       const struct range_image *img, uint64_t at)
{
	size_t i = range_code_find(code, at);
	struct run run;
	i = i ? i - 1 : 0;
	while (next_run(code, img, &i, &run) && run.lo <= at)
		if (at + CODE_JUMP_BYTES <= run.hi)
			return true;
	return false;
}

bool range_relays_fit(const struct range_code *code,
		      const struct range_image *img,
		      const struct range_windows *w)
{
	for (size_t i = 0; i < w->nr; i++) {
		uint64_t relay = w->window[i].relay;
		if (relay &&
		    (!reaches(code->insns[w->window[i].first].addr, relay) ||
		     !is_padding(code, img, relay) ||
		     used_until(code, w, i, relay)))
			return false;
	}
	return true;
}
