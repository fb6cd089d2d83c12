/* Whose values a register holds that several share, in code given as bytes. */
#include <stdlib.h>

#include "supervisor/probe/range-web.h"
#include "t/unit/range-code.h"

#define RBX 3 /* DWARF's number, too */

static struct var_row rows[16];
static struct var_memory other;
static bool has_other, is_parameter;
static uint64_t block_end = sizeof(text);
static bool *mine;

/* Rows at @at[i], of line @line[i]. */
static void with_rows(size_t nr, const unsigned *at, const unsigned *line)
{
	static struct variable variable;
	static struct var_function function = {.entry = TEXT};
	static struct var_place place;
	const struct range_index_entry entry = {.var = 0};
	struct variables v = {.vars = &variable,
			      .nr_vars = 1,
			      .places = &place,
			      .nr_places = 1,
			      .functions = &function,
			      .nr_functions = 1,
			      .rows = rows,
			      .nr_rows = nr,
			      .others = &other,
			      .nr_others = has_other};
	variable = (struct variable){.flags = is_parameter ? VAR_PARAMETER : 0,
				     .nr_places = 1};
	place = (struct var_place){.lo = TEXT,
				   .hi = TEXT + block_end,
				   .kind = VAR_REG,
				   .reg = RBX,
				   .flags = VAR_SCOPE | VAR_AMONG};
	for (size_t i = 0; i < nr; i++)
		rows[i] =
			(struct var_row){.addr = TEXT + at[i], .line = line[i]};
	free(mine);
	mine = NULL;
	check(range_web_find(&code, &v, &entry, 1, 0, &place, &mine));
}

#define ROWS(nr, ...)                                                          \
	with_rows(nr, (const unsigned[]){__VA_ARGS__},                         \
		  (const unsigned[]){__VA_ARGS__} + (nr))

/* Is what the instruction at @at writes believed? */
static bool own(unsigned at)
{
	return mine && mine[range_code_find(&code, TEXT + at)];
}

static void without_calls(void)
{
	printf("# --- no call\n");
	/* 0 mov $7,%ebx; 5 mov %ebx,%eax; 7 ret */
	LOAD(0xbb, 7, 0, 0, 0, 0x89, 0xd8, 0xc3);
	ROWS(2, 0, 5, 1, 2);
	check(own(0));
	ROWS(2, 0, 5, 1, 1); /* an operand */
	check(!own(0));
	ROWS(2, 0, 5, 2, 1);
	check(!own(0));
	ROWS(2, 0, 5, 0, 2); /* not known where */
	check(!own(0));
	ROWS(1, 0, 1);
	check(!own(0));
	ROWS(0, 0, 0);
	check(!mine);
	/* 0 mov $7,%ebx; 5 cltd; 6 idiv %ebx; 8 ret: a division's operand */
	LOAD(0xbb, 7, 0, 0, 0, 0x99, 0xf7, 0xfb, 0xc3);
	ROWS(2, 0, 5, 1, 2);
	check(!own(0));
	/* 0 mov $7,%ebx; 5 cltd; 6 add %ebx,%eax; 8 ret */
	LOAD(0xbb, 7, 0, 0, 0, 0x99, 0x01, 0xd8, 0xc3);
	ROWS(2, 0, 5, 1, 2);
	check(!own(0));
	/* 0 mov $7,%ebx; 5 ret: nobody reads it */
	LOAD(0xbb, 7, 0, 0, 0, 0xc3);
	ROWS(2, 0, 5, 1, 2);
	check(!own(0));
	/* No register that calls do not keep is free: 0 mov $7,%ebx; 5 add of
	 * rax to each of rcx, rdx, rsi, rdi, r8 to r11; 29 mov %ebx,%eax */
	LOAD(0xbb, 7, 0, 0, 0, 0x48, 1, 0xc1, 0x48, 1, 0xc2, 0x48, 1, 0xc6,
	     0x48, 1, 0xc7, 0x49, 1, 0xc0, 0x49, 1, 0xc1, 0x49, 1, 0xc2, 0x49,
	     1, 0xc3, 0x89, 0xd8, 0xc3);
	ROWS(2, 0, 29, 1, 2);
	check(!own(0));
	/* ... but one: not to r11 */
	LOAD(0xbb, 7, 0, 0, 0, 0x48, 1, 0xc1, 0x48, 1, 0xc2, 0x48, 1, 0xc6,
	     0x48, 1, 0xc7, 0x49, 1, 0xc0, 0x49, 1, 0xc1, 0x49, 1, 0xc2, 0x49,
	     1, 0xc2, 0x89, 0xd8, 0xc3);
	ROWS(2, 0, 29, 1, 2);
	check(own(0));
}

static void across_calls(void)
{
	printf("# --- calls\n");
	/* 0 mov $7,%ebx; 5 call; 10 mov %ebx,%eax; 12 ret */
	LOAD(0xbb, 7, 0, 0, 0, 0xe8, 0, 1, 0, 0, 0x89, 0xd8, 0xc3);
	ROWS(4, 0, 5, 10, 12, 1, 2, 2, 9); /* f() \n + g() */
	check(!own(0));
	ROWS(4, 0, 5, 10, 12, 1, 2, 1, 9); /* f() + \n g() */
	check(!own(0));
	ROWS(4, 0, 5, 10, 12, 2, 1, 1, 9); /* h(g(), \n f()) */
	check(!own(0));
	ROWS(4, 0, 5, 10, 12, 3, 1, 2, 9);
	check(!own(0));
	ROWS(4, 0, 5, 10, 12, 1, 2, 3, 9); /* three statements */
	check(own(0));
	ROWS(4, 0, 5, 10, 12, 1, 2, 9, 9); /* returned, behind what cleans up */
	check(!own(0));
	/* 0 mov $7,%ebx; 5 call; 10 dec %ebx; 12 jne 5; 14 ret */
	LOAD(0xbb, 7, 0, 0, 0, 0xe8, 0, 1, 0, 0, 0xff, 0xcb, 0x75, 0xf7, 0xc3);
	ROWS(2, 0, 14, 1, 1);
	check(own(0));
	check(own(10));
	/* A loop that does not use it: 0 mov $7,%ebx; 5 call; 10 jne 5;
	 * 12 mov %ebx,%eax; 14 ret */
	LOAD(0xbb, 7, 0, 0, 0, 0xe8, 0, 1, 0, 0, 0x75, 0xf9, 0x89, 0xd8, 0xc3);
	ROWS(2, 0, 14, 1, 1);
	check(!own(0));
	/* ... nor is it needed the next time: 0 call; 5 mov %eax,%ebx; 7 call;
	 * 12 add %ebx,%eax; 14 jne 0; 16 ret */
	LOAD(0xe8, 0, 1, 0, 0, 0x89, 0xc3, 0xe8, 0, 1, 0, 0, 0x01, 0xd8, 0x75,
	     0xf0, 0xc3);
	ROWS(2, 0, 16, 1, 1);
	check(!own(5));
}

static void given(void)
{
	printf("# --- parameters\n");
	/* 0 mov %edi,%ebx; 2 call; 7 mov %ebx,%eax; 9 ret */
	static const uint8_t copied[] = {0x89, 0xfb, 0xe8, 0,	 1,
					 0,    0,    0x89, 0xd8, 0xc3};
	load(copied, sizeof(copied), NULL, 0);
	ROWS(2, 0, 9, 1, 1);
	check(!own(0));
	is_parameter = true;
	ROWS(2, 0, 9, 1, 1);
	check(own(0));
	/* Behind mov %eax,%edi; or not of such a register */
	LOAD(0x89, 0xc7, 0x89, 0xfb, 0xe8, 0, 1, 0, 0, 0x89, 0xd8, 0xc3);
	ROWS(2, 0, 11, 1, 1);
	check(!own(2));
	LOAD(0x89, 0xc3, 0xe8, 0, 1, 0, 0, 0x89, 0xd8, 0xc3);
	ROWS(2, 0, 9, 1, 1);
	check(!own(0));
	is_parameter = false;
}

static void whose(void)
{
	printf("# --- others\n");
	/* 0 mov $7,%ebx; 5 mov %ebx,%eax; 7 mov $8,%ebx; 12 mov %ebx,%eax;
	 * 14 ret */
	LOAD(0xbb, 7, 0, 0, 0, 0x89, 0xd8, 0xbb, 8, 0, 0, 0, 0x89, 0xd8, 0xc3);
	ROWS(4, 0, 5, 7, 12, 1, 2, 3, 4);
	check(own(0) && own(7));
	/* In the same register, in a block that has both, or one. */
	has_other = true;
	other = (struct var_memory){.lo = TEXT, .hi = TEXT + 15, .reg = RBX};
	ROWS(4, 0, 5, 7, 12, 1, 2, 3, 4);
	check(!own(0) && !own(7));
	other.lo = TEXT + 7;
	ROWS(4, 0, 5, 7, 12, 1, 2, 3, 4);
	check(own(0) && !own(7));
	other.lo = TEXT + 12;
	ROWS(4, 0, 5, 7, 12, 1, 2, 3, 4);
	check(own(0) && own(7));
	other.lo = TEXT;
	other.reg = 12;
	ROWS(4, 0, 5, 7, 12, 1, 2, 3, 4);
	check(own(0) && own(7));
	has_other = false;
	/* Its own block ends before the second one. */
	block_end = 7;
	ROWS(4, 0, 5, 7, 12, 1, 2, 3, 4);
	check(own(0) && !own(7));
	block_end = 5;
	ROWS(4, 0, 5, 7, 12, 1, 2, 3, 4);
	check(!own(0));
	block_end = sizeof(text);
	/* What two writes lead to is one's: 0 je 9; 2 mov $7,%ebx; 7 jmp 14;
	 * 9 mov $8,%ebx; 14 mov %ebx,%eax; 16 ret */
	LOAD(0x74, 7, 0xbb, 7, 0, 0, 0, 0xeb, 5, 0xbb, 8, 0, 0, 0, 0x89, 0xd8,
	     0xc3);
	ROWS(4, 0, 2, 9, 14, 1, 2, 3, 4);
	check(own(2) && own(9));
	has_other = true;
	other = (struct var_memory){
		.lo = TEXT + 9, .hi = TEXT + 17, .reg = RBX};
	ROWS(4, 0, 2, 9, 14, 1, 2, 3, 4);
	check(own(2) && own(9));
	has_other = false;
}

static void steps(void)
{
	printf("# --- steps on the way\n");
	/* 0 mov %ecx,%ebx; 2 sub %edx,%ebx; 4 mov %ebx,%eax; 6 ret */
	LOAD(0x89, 0xcb, 0x29, 0xd3, 0x89, 0xd8, 0xc3);
	ROWS(2, 0, 4, 1, 2);
	check(!own(0) && own(2));
	ROWS(3, 0, 2, 4, 1, 2, 3);
	check(own(0) && own(2));
	/* Two registers at once: 0 xchg %ecx,%ebx; 2 mov %ebx,%eax; 4 ret */
	LOAD(0x87, 0xd9, 0x89, 0xd8, 0xc3);
	ROWS(2, 0, 2, 1, 2);
	check(!own(0));
	/* A stack that moves: 0 mov $7,%ebx; 5 sub %rax,%rsp; 8 mov %ebx,%eax;
	 * 10 ret; one that does not: sub $8,%rsp */
	LOAD(0xbb, 7, 0, 0, 0, 0x48, 0x29, 0xc4, 0x89, 0xd8, 0xc3);
	ROWS(2, 0, 8, 1, 2);
	check(!mine);
	LOAD(0xbb, 7, 0, 0, 0, 0x48, 0x83, 0xec, 8, 0x89, 0xd8, 0xc3);
	ROWS(2, 0, 9, 1, 2);
	check(own(0));
}

int main(void)
{
	without_calls();
	across_calls();
	given();
	whose();
	steps();
	free(mine);
	forget_code();
	return tap_done();
}
