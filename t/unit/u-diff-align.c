/* Lines of one build laid against those of another. */
#include "t/unit/tap.h"

#include <stdlib.h>

#include "reports/diff-align.h"

static const char f[] = "f", g[] = "g";
#define NO UINT32_MAX

struct lines {
	struct diff_line line[8];
	size_t nr;
};

static void expect(const char *what, struct lines a, struct lines b,
		   int64_t prior, const uint32_t *want)
{
	uint32_t match[8];
	bool same = true;
	check_int(diff_align_lines(a.line, a.nr, b.line, b.nr, prior, match),
		  0);
	for (size_t i = 0; i < a.nr; i++)
		same &= match[i] == want[i];
	if (check_msg(same, "%s", what))
		return;
	for (size_t i = 0; i < a.nr; i++)
		printf("# %zu: got %d, want %d\n", i, (int)match[i],
		       (int)want[i]);
}
#define LINES(...)                                                             \
	((struct lines){{__VA_ARGS__},                                         \
			sizeof((struct diff_line[]){__VA_ARGS__}) /            \
				sizeof(struct diff_line)})
#define WANT(...) ((const uint32_t[]){__VA_ARGS__})

int main(void)
{
	expect("nothing moved", LINES({10, f}, {20, f}),
	       LINES({10, f}, {20, f}), 0, WANT(0, 1));
	/* A trap: line 138 is there before and after, but is another one. */
	expect("all moved by two", LINES({136, f}, {138, f}),
	       LINES({138, f}, {140, f}), 0, WANT(0, 1));
	expect("an insertion in the middle",
	       LINES({10, f}, {20, f}, {30, f}, {40, f}),
	       LINES({10, f}, {20, f}, {24, f}, {34, f}, {44, f}), 0,
	       WANT(0, 1, 3, 4));
	expect("one is gone, nothing moved", LINES({10, f}, {20, f}, {30, f}),
	       LINES({20, f}, {30, f}), 0, WANT(NO, 0, 1));
	expect("one is gone, and what stands above moved",
	       LINES({10, f}, {20, f}, {30, f}), LINES({20, f}, {30, f}), 10,
	       WANT(0, 1, NO));
	expect("calls tell lines apart", LINES({10, f}, {11, g}, {12, f}),
	       LINES({10, g}, {30, f}), 0, WANT(NO, 0, 1));
	expect("two calls on a line", LINES({10, f}, {10, g}),
	       LINES({15, f}, {15, g}), 0, WANT(0, 1));
	expect("no other side", LINES({10, f}), (struct lines){.nr = 0}, 0,
	       WANT(NO));

	/* Too many to try all: those moved by as much as what is above. */
	enum { MANY = 1500 };
	struct diff_line *a = calloc(2 * MANY, sizeof(*a)), *b = a + MANY;
	uint32_t *match = calloc(MANY, sizeof(*match));
	for (size_t i = 0; i < MANY; i++) {
		a[i] = (struct diff_line){10 + 3 * i, f};
		b[i] = (struct diff_line){15 + 3 * i, f};
	}
	check_int(diff_align_lines(a, MANY, b, MANY, 5, match), 0);
	check_int(match[0], 0);
	check_int(match[MANY - 1], MANY - 1);
	/* As many as are tried move by themselves. */
	check_int(diff_align_lines(a, 1000, b, 1000, 0, match), 0);
	check_int(match[0], 0);
	check_int(match[999], 999);
	free(a);
	free(match);
	return tap_done();
}
