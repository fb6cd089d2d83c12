/*
 * Damaged cache files whose sums are right. The input is a list of edits to a
 * sound file, with everything planned or nothing yet: the first byte chooses
 * which, then come six bytes each: where (32 bits), how many bytes, what. An
 * edit of no bytes cuts the file there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "supervisor/monitor/range-cache.h"
#include "supervisor/probe/range-plan.h"
#include "t/unit/cache-sign.h"
#include "t/unit/scratch.h"

#define NR_PROGRAMS 3
#define STUBS	    0x10000000 /* where they would be */

static const struct range_select all;

static struct base {
	struct sym_space *syms;
	struct range_cache_key key;
	uint8_t *bytes[2]; /* nothing planned, all */
	size_t len[2];
} base[NR_PROGRAMS];

static bool keep(struct base *b, const struct variables *v, int dir,
		 unsigned whole)
{
	struct range_plan *plan;
	bool fine = !range_plan_begin(&plan, b->syms, 1, v,
				      whole ? SIZE_MAX : 0, NULL);
	fine = fine && range_cache_store(dir, &b->key, v, plan, 1 << 30) &&
	       cache_read(dir, b->key.name, &b->bytes[whole], &b->len[whole]) &&
	       !unlinkat(dir, b->key.name, 0);
	if (fine)
		range_plan_destroy(plan);
	return fine;
}

static bool build(struct base *b, const char *cmd, int dir)
{
	const char *prog = scratch_path("prog");
	char full[4096 + 512];
	snprintf(full, sizeof(full), cmd, prog);
	if (system(full) || !(b->syms = sym_space_of_file(prog)))
		return false;
	range_cache_key(&b->key, b->syms, &all);
	range_cache_sign(&b->key, b->syms);
	struct variables *v = variables_load(b->syms, 1, NULL, NULL, NULL);
	bool fine = v && keep(b, v, dir, 0) && keep(b, v, dir, 1);
	variables_destroy(v);
	unlink(prog);
	return fine;
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *cache = scratch_path("cache");
	(void)argc, (void)argv;
	if (mkdir(cache, 0700) || setenv("SMCO_CACHE_DIR", cache, 1))
		abort();
	int dir = cachedir_open();
	if (dir < 0 ||
	    !build(&base[0], "cc -O1 -g -o %s t/fixtures/range/subscripts.c",
		   dir) ||
	    !build(&base[1], "c++ -O1 -g -o %s t/fixtures/sym/varscxx.cc",
		   dir) ||
	    !build(&base[2],
		   "echo 'enum e { A, B } x; struct { unsigned a : 3, b; } s; "
		   "int t[4]; int main(int n, char **v) { for (int i = 0; "
		   "i < n; i++) s.a += t[n + i] = i; x = (enum e)n; "
		   "return v[0][0]; }' | cc -O0 -g -xc - -o %s",
		   dir))
		abort();
	close(dir);
	scratch_remove();
	return 0;
}

/* What is done with a function when its sensors go in. */
static void plant(const struct range_plan *plan, uint32_t function)
{
	struct range_stubs stubs = {.nr_windows = 0};
	struct range_code code;
	const struct range_stub_place at = {
		.cells = STUBS / 2,
		.counters = STUBS / 4,
		.cell_of = plan->cell_of,
	};
	if (range_plan_decode(plan, function, &code, NULL))
		return;
	if (plan->function[function].windows.nr) {
		range_stubs_build(&stubs, STUBS, &code, &plan->img, plan->v,
				  &plan->function[function].windows, &at, NULL);
		range_stubs_deinit(&stubs);
	}
	range_plan_release(plan, function, &code);
}

static void use(struct variables *v, struct range_plan *plan)
{
	for (uint32_t i = 0; i < v->nr_vars; i++) {
		const struct var_place *at[2];
		variables_at(v, &v->vars[i], 0x1000, at, 2);
	}
	for (uint32_t i = 0; plan && i < v->nr_functions; i++) {
		if (range_plan_more(plan, i, NULL))
			continue;
		plant(plan, i);
		range_plan_forget(plan, i);
	}
	if (plan)
		range_plan_settle(plan);
	for (uint32_t i = 0; plan && i < v->nr_vars; i++) {
		size_t nr;
		const struct range_use *u = range_plan_uses(plan, i, &nr);
		if (nr &&
		    range_plan_function_of(plan, u->window) == v->nr_functions)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	struct base *from = &base[data[0] / 2 % NR_PROGRAMS];
	unsigned whole = data[0] % 2;
	size_t len = from->len[whole];
	uint8_t *bytes = mmap(NULL, len, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (bytes == MAP_FAILED)
		return 0;
	memcpy(bytes, from->bytes[whole], len);
	size_t cut = len;
	for (size_t i = 1; i + 6 <= size; i += 6) {
		uint32_t at;
		memcpy(&at, data + i, 4);
		at %= (uint32_t)len;
		size_t n = data[i + 4] % 9;
		cut = n ? cut : at;
		memset(bytes + at, data[i + 5], n < len - at ? n : len - at);
	}
	cache_sign(bytes, cut);
	struct variables *v;
	struct range_plan *plan;
	/* What is taken goes with its pages; here go those behind it. */
	size_t kept = (cut + 4095) & ~(size_t)4095;
	if (kept < len)
		munmap(bytes + kept, len - kept);
	if (!cut)
		return 0;
	if (range_cache_take(bytes, cut, &from->key, from->syms, &v, &plan)) {
		use(v, plan);
		range_plan_destroy(plan);
		variables_destroy(v);
	}
	return 0;
}
