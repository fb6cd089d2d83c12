/*
 * The ends of blocks that are alike, of which the compiler has made one: whose
 * values they are.
 */
#include "t/unit/range-code.h"

#define IN_ESI(from, to)                                                       \
	{                                                                      \
		.lo = TEXT + (from), .hi = TEXT + (to), .kind = VAR_REG,       \
		.reg = 4, .flags = VAR_BEGINS                                  \
	}

/* A jump leads into the middle of a place from where another variable, called
 * @name, is in the register. */
static void by_jump(const char *name, uint16_t flags)
{
	/* 0 mov %eax,%esi; 2 jmp 11; 4 mov $7,%esi; 9 mov %eax,%ecx;
	 * 11 mov %eax,%edx; 13 ret */
	LOAD(0x89, 0xc6, 0xeb, 0x07, 0xbe, 7, 0, 0, 0, 0x89, 0xc1, 0x89, 0xc2,
	     0xc3);
	static struct var_function function = {.entry = TEXT};
	struct var_place places[] = {IN_ESI(9, 14), IN_ESI(2, 4)};
	places[1].flags |= flags;
	struct variable two[] = {
		{.name = "v",
		 .qualified = "f::v",
		 .type = int4,
		 .nr_places = 1},
		{.name = "v",
		 .qualified = name,
		 .type = int4,
		 .first_place = 1,
		 .nr_places = 1},
	};
	struct variables v = {.vars = two,
			      .nr_vars = 2,
			      .places = places,
			      .nr_places = 2,
			      .functions = &function,
			      .nr_functions = 1};
	struct range_index ix;
	range_sites_deinit(&sites);
	range_index_init(&ix, &v, NULL);
	range_sites_find(&sites, &code, &img, &v, &ix, 0, NULL);
	range_index_deinit(&ix);
	check_int(sites.nr, 2);
	check_int(sites.site[0].gap, 1);
	check_int(sites.site[0].var, 1);
}

/* Those are not its values if it is the same block's, written twice. */
int main(void)
{
	by_jump("f::v", VAR_ENDS);
	check_int(sites.site[1].gap, 3);
	by_jump("f::w", VAR_ENDS);
	check_int(sites.site[1].gap, 4);
	by_jump("f::v", 0);
	check_int(sites.site[1].gap, 4);
	forget_code();
	return tap_done();
}
