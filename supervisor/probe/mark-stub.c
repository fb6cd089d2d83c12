/* The code of the sensors at marks in a window. */
#include "supervisor/probe/mark-private.h"

#include <string.h>

static size_t branch(struct code_buf *e, uint8_t condition)
{
	CODE(e, 0x0f, condition);
	code_put32(e, 0);
	return e->len;
}

static void land(struct code_buf *e, size_t from)
{
	uint32_t distance = (uint32_t)(e->len - from);
	if (!e->failed)
		memcpy(e->buf + from - 4, &distance, 4);
}

/* What is made just now. */
struct making {
	struct code_buf *e;
	taddr_t data; /* where the tracee has struct mark_data */
	uint32_t tid_offset;
	bool is_ahead; /* of where the spots are, see mark_window.behind */
};

#define RED_ZONE 128
#define PUSHED	 6 /* registers, where a record is written */

#define JE  0x84
#define JNE 0x85
#define JLE 0x8e
#define JG  0x8f

/*
 * Slot %rcx gets what it is to hold; %ebx is the run. At %rdx is what has just
 * been counted: beside it is the other count of its pair, and what lies between
 * them is how many are open.
 *
 * The clock is read twice, as soon as it is known that there is to be a record
 * and when it is written and nothing of it is on its way to memory any more: so
 * what that took here, with all the lines that were no longer in the cache, is
 * known and no part of what is timed.
 */
static void record(const struct making *m, const struct mark_spot *at)
{
	struct code_buf *e = m->e;
	const taddr_t data = m->data;
	const bool is_end = at->counter % 2;
	CODE(e, 0x8b, 0x4a, is_end ? 0xf8 : 0); /* mov begun, %ecx */
	CODE(e, 0x2b, 0x4a, is_end ? 0 : 8);	/* sub ended, %ecx */
	CODE(e, 0x48, 0xc1, 0xe1, 32);		/* shl $32, %rcx */
	CODE(e, 0x48, 0x09, 0xcb);		/* or %rcx, %rbx */
	CODE(e, 0x0f, 0x31);			/* rdtsc */
	CODE(e, 0x48, 0xc1, 0xe2, 32);		/* shl $32, %rdx */
	CODE(e, 0x48, 0x09, 0xd0);		/* or %rdx, %rax */
	CODE(e, 0x48, 0x89, 0xc6);		/* mov %rax, %rsi */
	CODE(e, 0xb8, 1, 0, 0, 0);		/* mov $1, %eax */
	CODE(e, 0xf0, 0x0f, 0xc1, 0x05);	/* lock xadd %eax, head */
	code_put_rel(e, data + offsetof(struct mark_data, head), 0);
	CODE(e, 0x89, 0xc1, 0x81, 0xe1); /* mov %eax, %ecx; and $mask, %ecx */
	code_put32(e, MARK_RING - 1);
	CODE(e, 0xc1, 0xe1, 5);	   /* shl $5, %ecx */
	CODE(e, 0x48, 0x8d, 0x15); /* lea ring, %rdx */
	code_put_rel(e, data + offsetof(struct mark_data, ring), 0);
	CODE(e, 0x48, 0x01, 0xd1);     /* add %rdx, %rcx */
	CODE(e, 0x48, 0x89, 0x31);     /* mov %rsi, (%rcx): when */
	CODE(e, 0x48, 0x89, 0x59, 16); /* mov %rbx, 16(%rcx): run, level */
	CODE(e, 0xc6, 0x41, 18);       /* movb $what, 18(%rcx) */
	CODE(e, (uint8_t)at->what);
	CODE(e, 0x48, 0x8d, 0x94, 0x24); /* lea STACK(%rsp), %rdx */
	code_put32(e, RED_ZONE + PUSHED * 8 + (m->is_ahead ? 0 : at->pushed));
	CODE(e, 0x48, 0x89, 0x51, 24); /* mov %rdx, 24(%rcx): sp */
	CODE(e, 0x8d, 0x58, 1);	       /* lea 1(%rax), %ebx */
	if (m->tid_offset) {
		CODE(e, 0x64, 0x8b, 0x04, 0x25); /* mov %fs:tid, %eax */
		code_put32(e, m->tid_offset);
	} else {
		CODE(e, 0x31, 0xc0); /* xor %eax, %eax */
	}
	CODE(e, 0x89, 0x41, 8);		    /* mov %eax, 8(%rcx) */
	CODE(e, 0xf0, 0x83, 0x0c, 0x24, 0); /* lock orl $0, (%rsp) */
	CODE(e, 0x0f, 0x31);		    /* rdtsc */
	CODE(e, 0x29, 0xf0);		    /* sub %esi, %eax */
	CODE(e, 0x3d, 0xff, 0xff, 0, 0);    /* cmp $0xffff, %eax */
	CODE(e, 0x76, 5);		    /* jbe */
	CODE(e, 0xb8, 0xff, 0xff, 0, 0);    /* mov $0xffff, %eax */
	CODE(e, 0x66, 0x89, 0x41, 30);	    /* mov %ax, 30(%rcx): took */
	CODE(e, 0x89, 0x59, 12); /* mov %ebx, 12(%rcx): seq, at last */
}

/*
 * A thread that is known to be alone with its number counts in memory of its
 * own, without a lock, which costs a quarter; in one instruction, for a handler
 * of its own may come in between. %rcx may be used; %rdx is where it counted.
 */
static void count(const struct making *m, const struct mark_spot *at)
{
	struct code_buf *e = m->e;
	const taddr_t data = m->data;
	const uint32_t tid_offset = m->tid_offset;
	const size_t counter = at->counter * sizeof(uint64_t);
	size_t not_owner = 0, counted = 0;
	if (tid_offset) {
		CODE(e, 0x64, 0x0f, 0xb6, 0x0c,
		     0x25); /* movzbl %fs:tid, %ecx */
		code_put32(e, tid_offset);
		CODE(e, 0x48, 0x8d, 0x15); /* lea owner, %rdx */
		code_put_rel(e, data + offsetof(struct mark_data, owner), 0);
		CODE(e, 0x8b, 0x14, 0x8a);	 /* mov (%rdx,%rcx,4), %edx */
		CODE(e, 0x64, 0x3b, 0x14, 0x25); /* cmp %fs:tid, %edx */
		code_put32(e, tid_offset);
		not_owner = branch(e, JNE);
		CODE(e, 0xc1, 0xe1, MARK_OWN_STEP); /* shl $STEP, %ecx */
		CODE(e, 0x48, 0x8d, 0x15);	    /* lea own, %rdx */
		code_put_rel(
			e, data + offsetof(struct mark_data, own) + counter, 0);
		CODE(e, 0x48, 0x01, 0xca); /* add %rcx, %rdx */
		CODE(e, 0x48, 0xff, 0x02); /* incq (%rdx) */
		CODE(e, 0xe9);		   /* jmp */
		code_put32(e, 0);
		counted = e->len;
		land(e, not_owner);
	}
	CODE(e, 0x48, 0x8d, 0x15); /* lea count, %rdx */
	code_put_rel(e, data + offsetof(struct mark_data, count) + counter, 0);
	CODE(e, 0xf0, 0x48, 0xff, 0x02); /* lock incq (%rdx) */
	if (tid_offset)
		land(e, counted);
}

static void sensor(const struct making *m, const struct mark_spot *at)
{
	struct code_buf *e = m->e;
	taddr_t c = m->data + offsetof(struct mark_data, channel) +
		    at->channel * sizeof(struct mark_channel);
	taddr_t run = c + offsetof(struct mark_channel, run);
	taddr_t tokens = c + offsetof(struct mark_channel, tokens);
	taddr_t recorded_from = c + offsetof(struct mark_channel, from);
	CODE(e, 0x48, 0x8d, 0x64, 0x24, 0x80); /* lea -128(%rsp), %rsp */
	CODE(e, 0x50, 0x51, 0x52);	       /* push rax, rcx, rdx */
	CODE(e, 0x9f, 0x0f, 0x90, 0xc0);       /* lahf; seto %al */
	count(m, at);
	CODE(e, 0x83, 0x3d); /* cmpl $0, run */
	code_put_rel(e, run, 1);
	CODE(e, 0);
	size_t unwanted = branch(e, JE);
	CODE(e, 0xb9, 0xff, 0xff, 0xff, 0xff); /* mov $-1, %ecx */
	CODE(e, 0xf0, 0x0f, 0xc1, 0x0d);       /* lock xadd %ecx, tokens */
	code_put_rel(e, tokens, 0);
	CODE(e, 0x85, 0xc9); /* test %ecx, %ecx */
	size_t spent = branch(e, JLE);
	CODE(e, 0x3b, 0x0d); /* cmp from, %ecx */
	code_put_rel(e, recorded_from, 0);
	size_t skipped = branch(e, JG);
	CODE(e, 0x50, 0x53, 0x56); /* push rax with the flags, rbx, rsi */
	CODE(e, 0x8b, 0x1d);	   /* mov run, %ebx */
	code_put_rel(e, run, 0);
	record(m, at);
	CODE(e, 0x5e, 0x5b, 0x58); /* pop rsi, rbx, rax */
	CODE(e, 0xe9);
	code_put32(e, 0);
	size_t recorded = e->len;
	land(e, spent);
	CODE(e, 0xc7, 0x05); /* movl $0, run */
	code_put_rel(e, run, 4);
	code_put32(e, 0);
	land(e, recorded);
	land(e, skipped);
	land(e, unwanted);
	CODE(e, 0x04, 0x7f, 0x9e); /* add $0x7f, %al; sahf */
	CODE(e, 0x5a, 0x59, 0x58); /* pop rdx, rcx, rax */
	CODE(e, 0x48, 0x8d, 0xa4, 0x24, 128, 0, 0, 0); /* lea 128(%rsp), %rsp */
}

/* Sensors that only those pass who take the branch. */
static void taken(const struct making *m, const struct mark_spot *s,
		  const struct mark_spot *end, const struct code_insn *in)
{
	struct code_buf *e = m->e;
	/* The opposite condition leads past them. */
	size_t past = branch(e, 0x80 | ((in->z.opcode & 0xf) ^ 1));
	for (; s < end; s++)
		if (s->when == MARK_TAKEN)
			sensor(m, s);
	code_jump(e, in->target);
	land(e, past);
}

static const char *one_insn(const struct making *m, const struct mark_spot *s,
			    const struct mark_spot *end, const uint8_t *bytes,
			    const struct code_insn *in)
{
	bool any_taken = false;
	for (const struct mark_spot *k = s; k < end; k++) {
		any_taken |= k->when == MARK_TAKEN;
		if (k->when == MARK_ALWAYS)
			sensor(m, k);
	}
	if (!any_taken)
		return code_relocate(m->e, bytes, in);
	if (in->z.meta.category != ZYDIS_CATEGORY_COND_BR)
		return "it is no branch";
	taken(m, s, end, in);
	return NULL;
}

const char *mark_stub_build(struct mark_stub *ret, const struct mark_plan *plan,
			    const struct mark_window *w, uint64_t bias,
			    taddr_t data, uint32_t tid_offset)
{
	struct code_buf *e = &ret->code;
	const struct making m = {e, data, tid_offset, w->behind != 0};
	const struct mark_spot *s = plan->spot + w->first_spot,
			       *end = s + w->nr_spots;
	size_t at = 0;
	for (unsigned i = 0; i < w->nr_insns; i++) {
		struct code_insn in;
		const struct mark_spot *from = s;
		if (at >= w->len || !code_decode(w->bytes + at, w->len - at,
						 w->addr + bias + at, &in))
			return "it does not decode";
		while (s < end && s->addr == w->addr + w->behind + at)
			s++;
		ret->at[at] = (uint32_t)e->len;
		const char *why = one_insn(&m, from, s, w->bytes + at, &in);
		if (why)
			return why;
		at += in.z.length;
	}
	if (s != end)
		return "no instruction begins there";
	if (w->goes_on)
		code_jump(e, w->addr + bias + at);
	return e->failed ? "its stub is too far away or too long" : NULL;
}
