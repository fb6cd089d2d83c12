/*
 * What range sensors make of code: leaders, jump tables, liveness, sites and
 * windows, on bytes; and anything at all as code.
 */
#include <stdlib.h>

#include "supervisor/probe/range-relay.h"
#include "t/unit/range-code.h"

static bool leads(uint64_t off)
{
	size_t i = range_code_find(&code, TEXT + off);
	return i < code.nr && code.insns[i].addr == TEXT + off &&
	       code.insns[i].bits & RB_LEADER;
}
static uint32_t live(uint64_t off)
{
	return code.insns[range_code_find(&code, TEXT + off)].live;
}

#define RAX_BIT 1u
#define RCX_BIT 2u

static void leaders(void)
{
	/* 0 test %edi,%edi; 2 je 6; 4 inc %eax; 6 call 0x1020; 11 nop;
	 * 12 jmp 16; 14 nop; 15 int3; 16 ret; 17 nop */
	LOAD(0x85, 0xff, 0x74, 2, 0xff, 0xc0, 0xe8, 0x15, 0, 0, 0, 0x90, 0xeb,
	     2, 0x90, 0xcc, 0xc3, 0x90);
	check_str(code.refused, NULL);
	check_int(code.nr, 10);
	check(leads(0));
	check(!leads(2));
	check(!leads(4));
	check(leads(6));
	check(leads(11));  /* where the call comes back to */
	check(leads(12));  /* perhaps a landing pad */
	check(!leads(14)); /* padding */
	check(leads(16));
	check(code.insns[6].bits & RB_UNREACHED);
	/* endbr64; ud2; mov %eax,%ecx: a landing pad behind what ends */
	LOAD(0xf3, 0x0f, 0x1e, 0xfa, 0x0f, 0x0b, 0x89, 0xc1, 0xc3);
	check(leads(0));
	check(leads(6));
	/* ... or, behind padding, what may not come back: call; nop; inc */
	LOAD(0xe8, 0, 1, 0, 0, 0x90, 0xff, 0xc0, 0xff, 0xc1, 0xc3);
	check(leads(5));
	check(leads(6));
	check(!leads(8));
	/* ... and at the beginning of a cold part: nop; mov %rax,%rbx */
	LOAD(0x90, 0x48, 0x89, 0xc3, 0xc3);
	check(leads(1));
	LOAD(0xf3, 0x0f, 0x1e, 0xfa, 0xc3);
	check(code.insns[0].bits & RB_ENDBR && code.insns[0].bits & RB_PINNED);
	/* A branch into an instruction: je -1 */
	LOAD(0xb8, 1, 2, 3, 4, 0x74, 0xfa, 0xc3);
	check(code.refused != NULL);
	/* not an instruction */
	LOAD(0x06, 0xc3);
	check(code.refused != NULL);
}

/* A parameter of whose register no more is believed than how it came in. */
static void arrivals(void)
{
	const struct var_place p = {.lo = TEXT,
				    .hi = TEXT + 5,
				    .kind = VAR_REG,
				    .reg = 5,
				    .flags = VAR_BEGINS | VAR_PART};
	var_flags = VAR_PARAMETER;
	/* 0 dec %edi; 2 mov %edi,%eax; 4 test %eax,%eax; 6 ret */
	LOAD(0xff, 0xcf, 0x89, 0xf8, 0x85, 0xc0, 0xc3);
	find(int4, p);
	if (check_int(sites.nr, 1))
		check_int(sites.site[0].gap, 0);
	/* 0 endbr64; 4 dec %edi; 6 test %edi,%edi; 8 ret */
	LOAD(0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0xcf, 0x85, 0xff, 0xc3);
	find(int4, p);
	if (check_int(sites.nr, 1))
		check_int(sites.site[0].gap, 1);
	/* 0 dec %edi; 2 test %edi,%edi; 4 jne 0; 6 ret: a loop from there on */
	LOAD(0xff, 0xcf, 0x85, 0xff, 0x75, 0xfa, 0xc3);
	find(int4, p);
	check_int(sites.nr, 0);
	/* ... behind 0 endbr64; 4 dec %edi; 6 jne 4; 8 ret */
	LOAD(0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0xcf, 0x75, 0xfc, 0xc3);
	find(int4, p);
	check_int(sites.nr, 0);
	var_flags = 0;
}

static void tables(void)
{
	/* 0 lea 0x3000(%rip),%rdx; 7 movslq (%rdx,%rdi,4),%rax;
	 * 11 add %rdx,%rax; 14 notrack jmp *%rax; 17 xor; 19 xor; 21 ret */
	static const uint8_t by_distance[] = {
		0x48, 0x8d, 0x15, 0xf9, 0x1f, 0,    0,	  0x48,
		0x63, 0x04, 0xba, 0x48, 0x01, 0xd0, 0x3e, 0xff,
		0xe0, 0x31, 0xc0, 0x31, 0xc9, 0xc3};
	const int32_t to[] = {TEXT + 17 - TABLE, TEXT + 19 - TABLE, 0x7fffffff,
			      TEXT + 21 - TABLE};
	load(by_distance, sizeof(by_distance), to, sizeof(to));
	check_str(code.refused, NULL);
	check(leads(17));
	check(leads(19));
	check(!leads(21)); /* behind the table's end */
	/* The distance extended by an instruction of its own, as gcc -O0 does:
	 * 7 mov (%rdx,%rdi,4),%eax; 10 cltq; 12 add %rdx,%rax; 15 jmp *%rax;
	 * 17 xor; 19 xor; 21 ret */
	static const uint8_t in_two[] = {0x48, 0x8d, 0x15, 0xf9, 0x1f, 0,
					 0,    0x8b, 0x04, 0xba, 0x48, 0x98,
					 0x48, 0x01, 0xd0, 0xff, 0xe0, 0x31,
					 0xc0, 0x31, 0xc9, 0xc3};
	load(in_two, sizeof(in_two), to, sizeof(to));
	check_str(code.refused, NULL);
	check(leads(19));
	check(code.insns[range_code_find(&code, TEXT + 19)].bits & RB_TABLE);
	check(!code.free_jumps);
	/* No such table. */
	load(by_distance, sizeof(by_distance), NULL, 0);
	check(code.refused != NULL);
	/* 0 jmp *0x3000(,%rdi,8); 7 xor; 9 ret */
	static const uint8_t by_address[] = {0xff, 0x24, 0xfd, 0,    0x30,
					     0,	   0,	 0x31, 0xc0, 0xc3};
	const uint64_t where[] = {TEXT + 9, 5};
	load(by_address, sizeof(by_address), where, sizeof(where));
	check_str(code.refused, NULL);
	check(leads(9));
	/* A tail call: mov 8(%rdi),%rax; jmp *%rax */
	LOAD(0x48, 0x8b, 0x47, 8, 0xff, 0xe0);
	check_str(code.refused, NULL);
	/* A label that data names: xor; inc; ret */
	const uint64_t label[] = {TEXT + 2};
	load("\x31\xc0\xff\xc0\xc3", 5, label, sizeof(label));
	check(leads(2));
	/* ... and one that code names: lea 1(%rip),%rax; ret; nop; ret */
	LOAD(0x48, 0x8d, 0x05, 2, 0, 0, 0, 0x31, 0xc0, 0xc3);
	check(leads(9));
}

static void liveness(void)
{
	/* 0 mov $1,%eax; 5 add %ecx,%eax; 7 ret */
	LOAD(0xb8, 1, 0, 0, 0, 0x01, 0xc8, 0xc3);
	check(!(live(0) & RAX_BIT));
	check(live(5) & RAX_BIT);
	check(live(0) & RCX_BIT);
	check(!(live(0) & RANGE_FLAGS));
	check(!(live(7) & RANGE_FLAGS));
	/* 0 cmp %ecx,%eax; 2 mov %eax,%edx; 4 sete %al; 7 ret */
	LOAD(0x39, 0xc8, 0x89, 0xc2, 0x0f, 0x94, 0xc0, 0xc3);
	check(live(2) & RANGE_FLAGS);
	check(!(live(0) & RANGE_FLAGS));
	/* A byte is not the register; nor is what is moved perhaps. */
	LOAD(0xb0, 1, 0xc3);
	check(live(0) & RAX_BIT);
	LOAD(0x0f, 0x44, 0xc1, 0xc3); /* cmove %ecx,%eax */
	check(live(0) & RAX_BIT);
	check_int(code.insns[0].wrote, RAX_BIT);
	/* A shift by %cl may leave the flags: 0 shl %cl,%eax; 2 setc %al */
	LOAD(0xd3, 0xe0, 0x0f, 0x92, 0xc0, 0xc3);
	check(live(0) & RANGE_FLAGS);
	/* A loop: 0 xor %eax,%eax; 2 add %ecx,%eax; 4 dec %ecx; 6 jne 2 */
	LOAD(0x31, 0xc0, 0x01, 0xc8, 0xff, 0xc9, 0x75, 0xfa, 0xc3);
	check(live(2) & RCX_BIT && live(2) & RAX_BIT);
	check(!(live(0) & RAX_BIT));
	/* Behind a jump out of the function everything may be needed. */
	LOAD(0xb8, 1, 0, 0, 0, 0xe9, 0, 1, 0, 0);
	check(live(5) & RANGE_FLAGS);
}

/* --- sites and windows --- */

static void registers(void)
{
	/* 0 mov $7,%ebx; 5 add %ecx,%ebx; 7 mov %ebx,%eax; 9 pop %rbx;
	 * 10 ret */
	LOAD(0xbb, 7, 0, 0, 0, 0x01, 0xcb, 0x89, 0xd8, 0x5b, 0xc3);
	find(int4, (struct var_place){HERE, .kind = VAR_REG, .reg = 3});
	check_int(sites.nr, 2); /* not what pop brings back */
	check_int(sites.site[0].gap, 1);
	check_int(sites.site[1].gap, 2);
	check(sites.site[0].fall);
	check_int(sites.site[0].reg, 3);
	check_int(windows.nr, 1);
	check_int(windows.nr_sites, 2);
	/* From the second instruction on, and where it begins. */
	find(int4, (struct var_place){.lo = TEXT + 5,
				      .hi = TEXT + 9,
				      .kind = VAR_REG,
				      .reg = 3,
				      .flags = VAR_BEGINS});
	check_int(sites.nr, 2);
	check(!sites.site[0].fall);
	/* What ends at the next instruction is not there any more. */
	find(int4,
	     (struct var_place){
		     .lo = TEXT, .hi = TEXT + 7, .kind = VAR_REG, .reg = 3});
	check_int(sites.nr, 1);
	/* mov -8(%rbp),%rbx; leave; ret is a restore; to go on is not */
	LOAD(0x48, 0x8b, 0x5d, 0xf8, 0xc9, 0xc3);
	find(int4, (struct var_place){HERE, .kind = VAR_REG, .reg = 3});
	check_int(sites.nr, 0);
	LOAD(0x48, 0x8b, 0x5d, 0xf8, 0x01, 0xd8, 0xc9, 0xc3);
	find(int4, (struct var_place){HERE, .kind = VAR_REG, .reg = 3});
	check_int(sites.nr, 1);
	/* A pointer is not followed. */
	find(int4, (struct var_place){HERE, .kind = VAR_MEM, .reg = 3});
	check_int(sites.nr, 0);
	check_int(sites.nr_unreadable, 1);
}

static const struct var_place in_frame = {HERE, .kind = VAR_MEM, .reg = 6,
					  .offset = -20, .flags = VAR_FRAME};

static void frame(void)
{
	/* 0 mov %edi,-20(%rbp); 3 movl $9,-20(%rbp); 10 incl -20(%rbp);
	 * 13 mov -20(%rbp),%eax; 16 mov %edi,-16(%rbp); 19 ret */
	LOAD(0x89, 0x7d, 0xec, 0xc7, 0x45, 0xec, 9, 0, 0, 0, 0xff, 0x45, 0xec,
	     0x8b, 0x45, 0xec, 0x89, 0x7d, 0xf0, 0xc3);
	/* What is changed at once where it lies is half of something. */
	find(int4, in_frame);
	check_int(sites.nr, 2);
	check_int(sites.site[1].source, RS_FRAME);
	struct var_type live = int4;
	live.is_volatile = true;
	find(live, in_frame);
	check_int(sites.nr, 3);
	check_int(sites.site[0].source, RS_REG);
	check_int(sites.site[0].reg, 7);
	check_int(sites.site[1].source, RS_CONST);
	check_int(sites.site[1].offset, 9);
	check_int(sites.site[2].source, RS_FRAME);
	check_int(sites.site[2].offset, -20);
	/* Eight bytes cover it, four bytes before it do not. */
	LOAD(0x48, 0x89, 0x7d, 0xe8, 0x48, 0x89, 0x7d, 0xe4, 0xc3);
	find(int4, in_frame);
	check_int(sites.nr, 1);
	check_int(sites.site[0].gap, 1);
	/* Its address is out: loads count, too.
	 * 0 lea -20(%rbp),%rdi; 4 call; 9 mov -20(%rbp),%eax; 12 ret */
	LOAD(0x48, 0x8d, 0x7d, 0xec, 0xe8, 0x17, 0, 0, 0, 0x8b, 0x45, 0xec,
	     0xc3);
	find(int4, in_frame);
	check_int(sites.nr, 1);
	check_int(sites.site[0].gap, 3);
	check_int(sites.site[0].source, RS_REG);
	check_int(sites.site[0].reg, 0);
	/* A bit-field by its byte: movb $3,-19(%rbp) */
	LOAD(0xc6, 0x45, 0xed, 3, 0xc3);
	find((struct var_type){.width = 4, .bit_offset = 9, .bit_size = 3},
	     in_frame);
	check_int(sites.nr, 1);
	check_int(sites.site[0].source, RS_FRAME);
	find((struct var_type){.width = 4, .bit_offset = 9, .bit_size = 8},
	     in_frame);
	check_int(sites.nr, 0);
	/* An element of an array that begins there: movl $1,-12(%rbp) */
	LOAD(0xc7, 0x45, 0xf4, 1, 0, 0, 0, 0xc3);
	struct var_type array = int4;
	struct var_dim dim = {.count = 3, .stride = 4};
	array.nr_dims = 1;
	array.dim = &dim;
	find(array, in_frame);
	check_int(sites.nr, 1);
	dim.count = 2;
	find(array, in_frame);
	check_int(sites.nr, 0);
	/* All that a vector stores, and no more: movups %xmm0,-20(%rbp) */
	LOAD(0x0f, 0x11, 0x45, 0xec, 0xc3);
	dim.count = 3;
	find(array, in_frame);
	check_int(sites.nr, 3);
	for (int k = 0; k < 3; k++) {
		check_int(sites.site[k].source, RS_FRAME);
		check_int(sites.site[k].offset, -20 + 4 * k);
		check_int(sites.site[k].gap, 1);
	}
	/* mov %rdi,-20(%rbp) may be another variable. */
	LOAD(0x48, 0x89, 0x7d, 0xec, 0xc3);
	find(array, in_frame);
	check_int(sites.nr, 1);
	check_int(sites.site[0].source, RS_REG);
	/* Nor is movq $9,-20(%rbp) both; but movq %xmm0,-20(%rbp) */
	LOAD(0x48, 0xc7, 0x45, 0xec, 9, 0, 0, 0, 0xc3);
	find(array, in_frame);
	check_int(sites.nr, 1);
	LOAD(0x66, 0x0f, 0xd6, 0x45, 0xec, 0xc3);
	find(array, in_frame);
	check_int(sites.nr, 2);
	check_int(sites.site[1].offset, -16);
	/* Bytes by the word are too many: movups %xmm0,-20(%rbp) */
	LOAD(0x0f, 0x11, 0x45, 0xec, 0xc3);
	array.width = 1;
	dim = (struct var_dim){.count = 16, .stride = 1};
	find(array, in_frame);
	check_int(sites.nr, 1);
}

static void window_rules(void)
{
	/* 0 inc %ebx; 2 jmp 0: three bytes are missing behind it */
	LOAD(0xff, 0xc3, 0xeb, 0xfc, 0x89, 0xc1, 0xc3);
	find(int4, (struct var_place){HERE, .kind = VAR_REG, .reg = 3});
	check_int(sites.nr, 1);
	check_int(windows.nr, 0);
	check_int(windows.nr_refused[RR_NO_ROOM], 1);
	/* The same with padding behind. */
	LOAD(0xff, 0xc3, 0xeb, 0xfc, 0x90, 0x90, 0xc3);
	find(int4, (struct var_place){HERE, .kind = VAR_REG, .reg = 3});
	check_int(windows.nr, 1);
	check_int(windows.window[0].end, 2);
	/* 0 je 6; 2 mov %eax,%ebx; 4 mov %eax,%ecx; 6 ...: only from before,
	 * with the branch that leads past it */
	LOAD(0x74, 4, 0x89, 0xc3, 0x89, 0xc1, 0x31, 0xc0, 0xc3);
	find(int4, (struct var_place){HERE, .kind = VAR_REG, .reg = 3});
	check_int(windows.nr, 1);
	check_int(windows.window[0].first, 0);
	check_int(windows.window[0].end, 3);
	check(windows.site[0].gap >= 2);
	/* 0 je 4; 2 mov %eax,%ebx; 4 syscall; 6 jmp 4 */
	LOAD(0x74, 2, 0x89, 0xc3, 0x0f, 0x05, 0xeb, 0xfc);
	find(int4, (struct var_place){HERE, .kind = VAR_REG, .reg = 3});
	check_int(windows.nr, 0);
	check_int(windows.nr_refused[RR_PINNED], 1);
	/* Flags in use: 0 cmp %ecx,%eax; 2 mov $5,%ebx; 7 sete %al;
	 * 10 mov %eax,%edx; the look waits until they are not needed */
	LOAD(0x39, 0xc8, 0xbb, 5, 0, 0, 0, 0x0f, 0x94, 0xc0, 0x89, 0xc2, 0xc3);
	find(int4, (struct var_place){HERE, .kind = VAR_REG, .reg = 3});
	check_int(windows.nr, 1);
	check(windows.site[0].gap >= 3);
	/* Nobody may jump into a window: loop: 0 mov $1,%ebx; 5 dec %ecx;
	 * 7 jne 5 */
	LOAD(0xbb, 1, 0, 0, 0, 0xff, 0xc9, 0x75, 0xfc, 0xc3);
	find(int4, (struct var_place){HERE, .kind = VAR_REG, .reg = 3});
	check_int(windows.nr, 1);
	check_int(windows.window[0].end, 1);
}

static struct var_place in_ebx(uint64_t from, uint64_t to)
{
	return (struct var_place){.lo = TEXT + from,
				  .hi = TEXT + to,
				  .kind = VAR_REG,
				  .reg = 3,
				  .flags = VAR_BEGINS};
}

/* What is in ebx before anybody writes to it is the caller's, here it may be an
 * argument. */
static struct var_place in_esi(uint64_t from, uint64_t to)
{
	struct var_place p = in_ebx(from, to);
	p.reg = 4;
	return p;
}

/* Where a place begins and the variable was there before, it gets no value. */
static void goes_on(void)
{
	/* 0 mov %eax,%ebx; 2 je 6; 4 mov %eax,%ecx; 6 mov %eax,%edx; 8 ret */
	LOAD(0x89, 0xc3, 0x74, 0x02, 0x89, 0xc1, 0x89, 0xc2, 0xc3);
	find_two(int4, in_ebx(2, 6), in_ebx(6, 9), 2);
	check_int(sites.nr, 1);
	check_int(sites.site[0].gap, 1);
	/* Not from everywhere: it is elsewhere at 4, */
	find_two(int4, in_ebx(2, 4), in_ebx(6, 9), 2);
	check_int(sites.nr, 2);
	check_int(sites.site[1].gap, 3);
	/* or at the branch, */
	find_two(int4, in_ebx(4, 6), in_ebx(6, 9), 2);
	check_int(sites.nr, 2);
	/* or in another register. */
	struct var_place other = in_ebx(2, 6);
	other.reg = 4;
	find_two(int4, other, in_ebx(6, 9), 2);
	check_int(sites.nr, 2);
	/* The same with mov %eax,%ebx at 4: a new value. */
	LOAD(0x89, 0xc3, 0x74, 0x02, 0x89, 0xc3, 0x89, 0xc2, 0xc3);
	find_two(int4, in_ebx(2, 6), in_ebx(6, 9), 2);
	check_int(sites.nr, 2);
	/* With jmp *%rax at 8, which may lead anywhere. */
	LOAD(0x89, 0xc3, 0x74, 0x02, 0x89, 0xc1, 0x89, 0xc2, 0xff, 0xe0);
	find_two(int4, in_ebx(2, 6), in_ebx(6, 8), 2);
	check_int(sites.nr, 2);
	find_two(int4, in_ebx(2, 6), in_ebx(6, 10), 2);
	check_int(sites.nr, 1);
}

/* A branch may lead into the middle of a place, to which those come, too, who
 * passed where it begins. */
static void is_entered(void)
{
	/* 0 je 4; 2 mov %eax,%ecx; 4 mov %eax,%edx; 6 mov $5,%edx; 11 ret */
	LOAD(0x74, 0x02, 0x89, 0xc1, 0x89, 0xc2, 0xba, 5, 0, 0, 0, 0xc3);
	find(int4, in_esi(2, 12));
	check_int(sites.nr, 1);
	check_int(sites.site[0].gap, 2);
	check(!sites.site[0].fall);
	/* Not where the variable was in the register before, */
	find_two(int4, in_esi(0, 2), in_esi(2, 12), 2);
	check_int(sites.nr, 1);
	check_int(sites.site[0].gap, 0);
	/* but from another one, */
	struct var_place other = in_esi(0, 2);
	other.reg = 6;
	find_two(int4, other, in_esi(2, 12), 2);
	check_int(sites.nr, 2);
	check_int(sites.site[1].gap, 2);
	/* nor where it is said to be in a block, whatever it has there. */
	struct var_place block = in_esi(2, 12);
	block.flags = VAR_SCOPE;
	find(int4, block);
	check_int(sites.nr, 0);
	/* 0 je 4; 2 mov %eax,%esi; 4 ...: a value of its own before the join,
	 */
	LOAD(0x74, 0x02, 0x89, 0xc6, 0x89, 0xc2, 0xba, 5, 0, 0, 0, 0xc3);
	find(int4, in_esi(2, 12));
	check_int(sites.nr, 2);
	check_int(sites.site[0].gap, 1);
	check_int(sites.site[1].gap, 2);
	check(!sites.site[1].fall);
}

/* A site may move on to where others come, too, as long as its place lasts. */
static void moves_on(void)
{
	/* 0 je 11; 2 mov %eax,%ecx; 4 mov $5,%edx; 9 jne 4; 11 ret */
	LOAD(0x74, 0x09, 0x89, 0xc1, 0xba, 5, 0, 0, 0, 0x75, 0xf9, 0xc3);
	find(int4, in_esi(2, 11));
	check_int(sites.nr, 1);
	check_int(sites.site[0].gap, 1);
	if (check_int(windows.nr_sites, 1)) {
		check_int(windows.site[0].gap, 2);
		check(!windows.site[0].fall);
		check_int(windows.window[0].first, 2);
	}
	find(int4, in_esi(2, 4));
	check_int(sites.nr, 1);
	check_int(windows.nr_sites, 0);
	check_int(windows.nr_refused[RR_NO_ROOM], 1);
	/* What is in memory may be nobody's yet for those others. */
	struct var_place frame = in_frame;
	frame.lo = TEXT + 2;
	frame.flags |= VAR_BEGINS;
	find(int4, frame);
	check_int(sites.nr, 1);
	check_int(windows.nr_sites, 0);
}

/* ... and behind a join, where the variable has a value whichever way control
 * comes: what a loop of no optimisation adds to. */
static void settled(void)
{
	/* 0 movl $0,-20(%rbp); 7 jmp 13; 9 addl $1,-20(%rbp);
	 * 13 cmpl $9,-20(%rbp); 17 jle 9; 19 ret */
	LOAD(0xc7, 0x45, 0xec, 0, 0, 0, 0, 0xeb, 4, 0x83, 0x45, 0xec, 1, 0x83,
	     0x7d, 0xec, 9, 0x7e, 0xf6, 0xc3);
	find(int4, in_frame);
	check_int(sites.nr, 2);
	if (check_int(windows.nr_sites, 2)) {
		check_int(windows.site[1].gap, 3);
		check(!windows.site[1].fall);
		check_int(windows.window[1].first, 3);
	}
	/* Where the place does not hold on one of the ways only what is stored
	 * just before the jump into it, and that in another slot is not; */
	struct var_place loop = in_frame;
	loop.lo = TEXT + 9;
	find(int4, loop);
	check_int(sites.nr, 2);
	if (check_int(windows.nr_sites, 1))
		check_int(windows.site[0].gap, 1);
	LOAD(0xc7, 0x45, 0xe8, 0, 0, 0, 0, 0xeb, 4, 0x83, 0x45, 0xec, 1, 0x83,
	     0x7d, 0xec, 9, 0x7e, 0xf6, 0xc3);
	find(int4, loop);
	check_int(sites.nr, 1);
	check_int(windows.nr_sites, 0);
	/* but in two places that are the same it does. */
	LOAD(0xc7, 0x45, 0xec, 0, 0, 0, 0, 0xeb, 4, 0x83, 0x45, 0xec, 1, 0x83,
	     0x7d, 0xec, 9, 0x7e, 0xf6, 0xc3);
	struct var_place before = in_frame;
	before.hi = loop.lo;
	find_two(int4, before, loop, 2);
	check_int(windows.nr_sites, 2);
	/* The same with nothing assigned before the loop: cmpl for movl. */
	LOAD(0x81, 0x7d, 0xec, 0, 0, 0, 0, 0xeb, 4, 0x83, 0x45, 0xec, 1, 0x83,
	     0x7d, 0xec, 9, 0x7e, 0xf6, 0xc3);
	find(int4, in_frame);
	check_int(sites.nr, 1);
	check_int(windows.nr_sites, 0);
	check_int(windows.nr_refused[RR_NO_ROOM], 1);
	/* With jmp *%rdi at 19, which may come back to any leader. */
	LOAD(0xc7, 0x45, 0xec, 0, 0, 0, 0, 0xeb, 4, 0x83, 0x45, 0xec, 1, 0x83,
	     0x7d, 0xec, 9, 0x7e, 0xf6, 0xff, 0xe7);
	loop = in_frame;
	loop.hi = TEXT + 19;
	find(int4, loop);
	check(code.free_jumps);
	check_int(windows.nr_sites, 1);
	find(int4, in_frame);
	check_int(windows.nr_sites, 2);
}

/* Anything at all: nothing breaks, windows hold what they promise. */
static void random_code(void)
{
	unsigned seed = 1, understood = 0, served = 0, bad = 0, relayed = 0;
	for (int n = 0; n < 20000; n++) {
		uint8_t bytes[64];
		for (size_t k = 0; k < sizeof(bytes); k++)
			bytes[k] = (uint8_t)(rand_r(&seed) >> 7);
		behind = n & 2 ? 0xcc : 0x50;
		load(bytes, sizeof(bytes), bytes, sizeof(bytes));
		if (code.refused)
			continue;
		understood++;
		find(int4,
		     (struct var_place){HERE, .kind = n & 1 ? VAR_REG : VAR_MEM,
					.reg = (uint8_t)(n / 2 % 16),
					.flags = VAR_FRAME});
		served += windows.nr_sites > 0;
		for (size_t w = 0; w < windows.nr; w++) {
			const struct range_window *x = &windows.window[w];
			bad += w && x->first < windows.window[w - 1].end;
			relayed += x->relay != 0;
			for (uint32_t i = x->first + 1; i < x->end; i++)
				bad += code.insns[i].bits & RB_LEADER ? 1 : 0;
		}
		bad += !range_relays_fit(&code, &img, &windows);
	}
	printf("# %u understood, %u with a site, %u relays\n", understood,
	       served, relayed);
	check(understood > 100);
	check(served > 20);
	check_int(bad, 0);
}

/* The constant of 1 and whether it is of those only who do not jump. */
static int64_t turned(const struct var_place *of)
{
	find_places(int4, of, 3);
	for (size_t i = 0; i < sites.nr; i++)
		if (sites.site[i].source == RS_CONST && sites.site[i].offset)
			return sites.site[i].fall;
	return -1;
}

/* A constant said from a branch on that one of its ways has no place for. */
static void unrolled(void)
{
	const struct var_place of[] = {
		{.lo = TEXT, .hi = TEXT + 3, .kind = VAR_CONST},
		{.lo = TEXT + 3,
		 .hi = TEXT + 10,
		 .kind = VAR_CONST,
		 .offset = 1,
		 .flags = VAR_BEGINS},
		in_ebx(10, 17)};
	printf("# --- the first turn of a loop\n");
	/* 0 cmp $1,%esi; 3 jle 17; 5 mov $1,%ebx; 10 add $1,%ebx;
	 * 13 cmp %ebx,%esi; 15 jg 10; 17 ret: it was stepped for the test */
	LOAD(0x83, 0xfe, 1, 0x7e, 12, 0xbb, 1, 0, 0, 0, 0x83, 0xc3, 1, 0x39,
	     0xde, 0x7f, 0xf9, 0xc3);
	check_int(turned(of), false);
	/* By another number: add $2,%ebx */
	LOAD(0x83, 0xfe, 1, 0x7e, 12, 0xbb, 1, 0, 0, 0, 0x83, 0xc3, 2, 0x39,
	     0xde, 0x7f, 0xf9, 0xc3);
	check_int(turned(of), true);
	/* Another way out: 3 jle 18 */
	LOAD(0x83, 0xfe, 1, 0x7e, 13, 0xbb, 1, 0, 0, 0, 0x83, 0xc3, 1, 0x39,
	     0xde, 0x7f, 0xf9, 0x90, 0xc3);
	check_int(turned(of), true);
	/* No loop: 15 jg 17 */
	LOAD(0x83, 0xfe, 1, 0x7e, 12, 0xbb, 1, 0, 0, 0, 0x83, 0xc3, 1, 0x39,
	     0xde, 0x7f, 0, 0xc3);
	check_int(turned(of), true);
}

int main(void)
{
	unrolled();
	leaders();
	tables();
	liveness();
	registers();
	arrivals();
	frame();
	window_rules();
	goes_on();
	is_entered();
	moves_on();
	settled();
	random_code();
	forget_code();
	return tap_done();
}
