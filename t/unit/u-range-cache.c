/*
 * What is kept of a program's variables and plan is what comes back, to the
 * last bit; a file that is damaged, cut, somebody else's or of other bytes is
 * as good as none, and no damage at all is a danger.
 */
#include "t/unit/symhelp.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "supervisor/monitor/range-cache.h"
#include "supervisor/probe/range-plan.h"
#include "symbols/blocks.h"
#include "symbols/pair.h"
#include "symbols/varstore.h"
#include "t/unit/cache-sign.h"

static const struct range_select all;

struct kept {
	struct sym_space *s;
	struct range_cache_key key;
	struct variables *v;
	struct range_plan *plan;
};

static int cache;

/* With the functions planned that have the first @windows. */
static struct kept read_some(const char *name, size_t windows)
{
	struct kept k = {.s = sym_space_of_file(name)};
	struct smco_err err = {0};
	check(k.s);
	range_cache_key(&k.key, k.s, &all);
	range_cache_sign(&k.key, k.s);
	k.v = variables_load(k.s, 1, NULL, NULL, &err);
	check(k.v && !range_plan_begin(&k.plan, k.s, 1, k.v, windows, &err));
	return k;
}

static struct kept read_file(const char *name)
{
	return read_some(name, SIZE_MAX);
}

static void forget(struct kept *k)
{
	range_plan_destroy(k->plan);
	variables_destroy(k->v);
	sym_space_destroy(k->s);
}

#define SAME(a, b, array, nr)                                                  \
	((a)->nr == (b)->nr &&                                                 \
	 (!(a)->nr ||                                                          \
	  !memcmp((a)->array, (b)->array, (a)->nr * sizeof(*(a)->array))))

static bool same_string(const char *a, const char *b)
{
	return (!a && !b) || (a && b && !strcmp(a, b));
}

static bool same_variable(const struct variable *a, const struct variable *b)
{
	struct variable x = *a, y = *b;
	if (!same_string(a->name, b->name) ||
	    !same_string(a->qualified, b->qualified) ||
	    !same_string(a->file, b->file) ||
	    !same_string(a->scope, b->scope) ||
	    !same_string(a->type.name, b->type.name))
		return false;
	x.name = y.name = x.qualified = y.qualified = NULL;
	x.file = y.file = x.scope = y.scope = NULL;
	x.type.name = y.type.name = NULL;
	x.type.dim = y.type.dim = NULL;
	return !memcmp(&x, &y, sizeof(x)) &&
	       (!x.type.nr_dims ||
		!memcmp(a->type.dim, b->type.dim,
			x.type.nr_dims * sizeof(*a->type.dim)));
}

static bool same_variables(const struct variables *a, const struct variables *b)
{
	bool same = a->nr_vars == b->nr_vars && a->nr_seen == b->nr_seen &&
		    a->nr_damaged == b->nr_damaged &&
		    a->cut_short == b->cut_short &&
		    a->nr_functions == b->nr_functions &&
		    a->nr_enumerators == b->nr_enumerators &&
		    SAME(a, b, places, nr_places) && SAME(a, b, ops, nr_ops) &&
		    SAME(a, b, ranges, nr_ranges) &&
		    SAME(a, b, others, nr_others) && SAME(a, b, rows, nr_rows);
	for (size_t i = 0; same && i < a->nr_vars; i++)
		same = same_variable(&a->vars[i], &b->vars[i]);
	for (size_t i = 0; same && i < a->nr_functions; i++) {
		const struct var_function *f = &a->functions[i],
					  *g = &b->functions[i];
		same = same_string(f->name, g->name) &&
		       same_string(f->file, g->file) && f->line == g->line &&
		       f->entry == g->entry &&
		       f->first_range == g->first_range &&
		       f->nr_ranges == g->nr_ranges;
	}
	for (size_t i = 0; same && i < a->nr_enumerators; i++)
		same = same_string(a->enumerators[i].name,
				   b->enumerators[i].name) &&
		       a->enumerators[i].value == b->enumerators[i].value;
	return same;
}

/* What is between the fields may be anything. */
static bool same_sites(const struct range_windows *a,
		       const struct range_windows *b)
{
	bool same = a->nr_sites == b->nr_sites;
	for (size_t i = 0; same && i < a->nr_sites; i++) {
		const struct range_site *x = &a->site[i], *y = &b->site[i];
		same = x->gap == y->gap && x->var == y->var &&
		       x->place == y->place && x->source == y->source &&
		       x->reg == y->reg && x->shift == y->shift &&
		       x->fall == y->fall && x->subscript == y->subscript &&
		       x->offset == y->offset;
	}
	return same;
}

static bool same_function(const struct range_plan_function *a,
			  const struct range_plan_function *b)
{
	struct range_function_info x = a->info, y = b->info;
	x.refused = y.refused = NULL;
	return same_string(a->info.refused, b->info.refused) &&
	       !memcmp(&x, &y, sizeof(x)) &&
	       a->first_window == b->first_window &&
	       SAME(&a->windows, &b->windows, window, nr) &&
	       same_sites(&a->windows, &b->windows) &&
	       !memcmp(a->windows.nr_refused, b->windows.nr_refused,
		       sizeof(a->windows.nr_refused));
}

static bool same_plan(const struct range_plan *a, const struct range_plan *b)
{
	const struct range_image *x = &a->img, *y = &b->img;
	size_t nr = a->v->nr_functions, nr_vars = a->v->nr_vars;
	bool same = x->lo == y->lo && x->hi == y->hi &&
		    !memcmp(x->text, y->text, x->hi - x->lo) &&
		    !memcmp(x->mark, y->mark, x->hi - x->lo) &&
		    SAME(x, y, taken, nr_taken) && a->nr_cells == b->nr_cells &&
		    a->code_bytes == b->code_bytes && a->lo == b->lo &&
		    a->hi == b->hi && SAME(a, b, use, nr_uses) &&
		    SAME(a, b, function_of, nr_windows) &&
		    SAME(a, b, subscript, nr_subscripts) &&
		    !memcmp(a->var, b->var, nr_vars * sizeof(*a->var)) &&
		    !memcmp(a->cell_of, b->cell_of,
			    (nr_vars + a->nr_subscripts) * sizeof(uint32_t));
	for (size_t i = 0; same && i < nr; i++)
		same = same_function(&a->function[i], &b->function[i]);
	return same;
}

/* The code of all functions that have windows: as it is when they go in. */
static unsigned decode_all(const struct range_plan *plan)
{
	unsigned nr = 0;
	for (uint32_t i = 0; i < plan->v->nr_functions; i++) {
		struct range_code code;
		if (range_plan_decode(plan, i, &code, NULL))
			continue;
		nr++;
		range_plan_release(plan, i, &code);
	}
	return nr;
}

/* Functions whose turn comes later, and between the cache: in the end the plan
 * is as if all were planned at once. */
static void test_later(const char *name)
{
	struct kept k = read_file(name), some = read_some(name, 0);
	struct smco_err err = {0};
	uint32_t nr = (uint32_t)k.v->nr_functions, planned = 0;
	size_t most = range_plan_most_windows(some.plan);
	check(range_plan_is_whole(k.plan) && !range_plan_is_whole(some.plan));
	check(most >= k.plan->nr_windows &&
	      range_plan_most_windows(k.plan) == k.plan->nr_windows);
	check(range_plan_most_subscripts(some.plan) >= k.plan->nr_subscripts);
	for (unsigned round = 0; round < 3 && planned < nr; round++) {
		struct variables *v;
		struct range_plan *plan;
		check(range_cache_store(cache, &k.key, some.v, some.plan,
					1 << 30));
		if (!check(range_cache_load(cache, &k.key, k.s, &v, &plan)))
			break;
		for (planned = 0; range_plan_is_planned(plan, planned);)
			planned++;
		check(planned >= round);
		check(!range_plan_is_planned(plan, nr - 1));
		check_int(plan->function[nr - 1].windows.nr, 0);
		uint32_t end = round < 2 ? planned + 1 : nr;
		for (; planned < end; planned++)
			check_int(range_plan_more(plan, planned, &err), 0);
		range_plan_settle(plan);
		range_plan_destroy(some.plan);
		variables_destroy(some.v);
		some.v = v;
		some.plan = plan;
	}
	check(range_plan_is_whole(some.plan));
	check(some.plan->nr_windows <= most);
	check_msg(same_plan(k.plan, some.plan), "%zu windows of %s",
		  k.plan->nr_windows, name);
	check_int(decode_all(some.plan), decode_all(k.plan));
	forget(&some);
	forget(&k);
}

static void test_same(const char *name)
{
	struct kept k = read_file(name);
	struct variables *v = NULL;
	struct range_plan *plan = NULL;
	check(!range_cache_load(cache, &k.key, k.s, &v, &plan));
	check(range_cache_store(cache, &k.key, k.v, k.plan, 1 << 30));
	check(range_cache_load(cache, &k.key, k.s, &v, &plan));
	if (!check(v && plan))
		return;
	check_msg(same_variables(k.v, v), "%zu variables of %s", v->nr_vars,
		  name);
	check_msg(same_plan(k.plan, plan), "%zu windows", plan->nr_windows);
	check_int(decode_all(plan), decode_all(k.plan));
	range_plan_destroy(plan);
	variables_destroy(v);

	/* Without a plan. */
	check(range_cache_store(cache, &k.key, k.v, NULL, 1 << 30));
	check(range_cache_load(cache, &k.key, k.s, &v, &plan) && !plan);
	check(same_variables(k.v, v));
	variables_destroy(v);

	struct range_cache_key other = k.key;
	other.sign++;
	check(!range_cache_load(cache, &other, k.s, &v, &plan));
	other = k.key;
	other.select++;
	check(!range_cache_load(cache, &other, k.s, &v, &plan));
	forget(&k);
}

/* Memory of what is no variable is kept, too. */
static void test_others(const char *name)
{
	struct kept k = read_file(name);
	check(k.v->nr_others > 0);
	forget(&k);
	test_same(name);
}

/* So are the rows of where registers are shared, and who shares them. */
static void test_rows(const char *name)
{
	struct kept k = read_file(name);
	check(k.v->nr_rows > 0);
	forget(&k);
	test_same(name);
}

/* --- damage --- */

static uint8_t *copy(const uint8_t *bytes, size_t len)
{
	uint8_t *to = mmap(NULL, len, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(to, bytes, len);
	return to;
}

static bool take(uint8_t *bytes, size_t len, const struct kept *k)
{
	struct variables *v;
	struct range_plan *plan;
	if (!range_cache_take(bytes, len, &k->key, k->s, &v, &plan))
		return false;
	for (size_t i = 0; i < v->nr_vars; i++) {
		const struct var_place *at[2];
		variables_at(v, &v->vars[i], 0x1000, at, 2);
	}
	for (uint32_t i = 0; plan && i < v->nr_functions; i++)
		range_plan_more(plan, i, NULL);
	if (plan)
		range_plan_settle(plan);
	if (plan)
		decode_all(plan);
	range_plan_destroy(plan);
	variables_destroy(v);
	return true;
}

/* Each @step-th byte. */
static void test_damage(const char *name, size_t windows, size_t step)
{
	struct kept k = read_some(name, windows);
	uint8_t *bytes = NULL;
	size_t len = 0, believed = 0, cut = 0, accepted = 0, nr = 0;
	check(range_cache_store(cache, &k.key, k.v, k.plan, 1 << 30));
	if (!check(cache_read(cache, k.key.name, &bytes, &len)))
		return;
	check(take(copy(bytes, len), len, &k));
	printf("# %zu bytes\n", len);
	for (size_t i = 0; i < len; i += step) {
		uint8_t *bad = copy(bytes, len);
		bad[i] ^= (uint8_t)(1 << i % 8);
		believed += take(bad, len, &k);
		cut += i && take(copy(bytes, i), i, &k);
	}
	check_int(believed, 0);
	check_int(cut, 0);
	/* With the sums put right only what is looked at can tell. */
	static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
	for (size_t i = sizeof(struct range_cache_head); i < len; i += step)
		for (size_t n = 0; n < sizeof(values); n++) {
			uint8_t *bad = copy(bytes, len);
			bad[i] = values[n];
			cache_sign(bad, len);
			accepted += take(bad, len, &k);
			nr++;
		}
	for (size_t i = sizeof(struct range_cache_head); i < len; i += 8) {
		uint8_t *bad = copy(bytes, i);
		cache_sign(bad, i);
		cut += take(bad, i, &k);
	}
	check_int(cut, 0);
	printf("# %zu of %zu such are possible files\n", accepted, nr);
	munmap(bytes, len);
	forget(&k);
}

/* Bounds of an array that no code of ours could be made for are refused. */
static size_t refused_within(const struct kept *k, const uint8_t *bytes,
			     size_t len, const struct range_site *site)
{
	const uint8_t none = RANGE_NO_REG, rsp = 4;
	const struct range_within forged[] = {
		{62, 4, none, 0, 0, 0, 32},
		{rsp, 4, none, 0, 0, 0, 32},
		{1, 3, none, 0, 0, 0, 32},
		{1, 16, none, 0, 0, 0, 32},
		{1, 0, none, 0, 0, 0, 32},
		{1, 4, none, 0, 0, 0, UINT32_MAX},
		{62, 4, 1, rsp, 4, 0, 32},
		{1, 4, 62, rsp, 4, 0, 32},
		{1, 4, rsp, rsp, 4, 0, 32},
		{1, 0, 1, 62, 4, 0, 32},
		{1, 0, 1, rsp, 0, 0, 32},
		{1, 0, 1, rsp, 3, 0, 32},
		{1, 0, 1, rsp, 16, 0, 32},
		{1, 0, 1, rsp, 4, 0, UINT32_MAX},
		{1, 0, 1, rsp, 4, 1 << 30, 32},
	};
	const uint8_t *at = memmem(bytes, len, site, sizeof(*site));
	size_t nr = 0;
	for (size_t i = 0; check(at) && i < ARRAY_SIZE(forged); i++) {
		uint8_t *bad = copy(bytes, len);
		memcpy(bad + (at - bytes) + offsetof(struct range_site, within),
		       &forged[i], sizeof(forged[i]));
		cache_sign(bad, len);
		nr += !take(bad, len, k);
	}
	return nr;
}

static void test_within(const char *name)
{
	struct kept k = read_file(name);
	uint8_t *bytes = NULL;
	size_t len = 0, nr = 0;
	check(range_cache_store(cache, &k.key, k.v, k.plan, 1 << 30));
	if (!check(cache_read(cache, k.key.name, &bytes, &len)))
		return;
	for (size_t i = 0; i < k.v->nr_functions; i++) {
		const struct range_windows *w = &k.plan->function[i].windows;
		for (size_t n = 0; n < w->nr_sites; n++)
			if (w->site[n].within.extent && ++nr)
				check_int(refused_within(&k, bytes, len,
							 &w->site[n]),
					  15);
	}
	check(nr > 0);
	munmap(bytes, len);
	forget(&k);
}

/* --- the directory --- */

static int in_cache(const char *cmd)
{
	return run("cd $D/cache && %s", cmd);
}

static void test_files(const char *name)
{
	struct kept k = read_file(name);
	uint8_t *bytes;
	size_t len;
	check(range_cache_store(cache, &k.key, k.v, k.plan, 1 << 30));
	check(cache_read(cache, k.key.name, &bytes, &len));
	munmap(bytes, len);
	check_int(in_cache("test $(ls | wc -l) = $(ls *.range | wc -l)"), 0);
	check_int(in_cache("chmod g+w *.range"), 0);
	check(!cache_read(cache, k.key.name, &bytes, &len));
	check_int(in_cache("for i in *.range; do mv $i ../x && "
			   "ln -s ../x $i && chmod g-w ../x; done"),
		  0);
	check(!cache_read(cache, k.key.name, &bytes, &len));
	check_msg(range_cache_store(cache, &k.key, k.v, k.plan, 1 << 30),
		  "a link is replaced");
	check_int(in_cache("test ! -L $(ls -t *.range | head -1)"), 0);
	check(cache_read(cache, k.key.name, &bytes, &len));
	munmap(bytes, len);

	/* Those used longest ago go; what is unfinished and old, too. */
	check_int(in_cache("for i in 1 2 3 4; do head -c 1000 /dev/zero | tee "
			   "ab-000000000000000$i.range >mine$i; "
			   "touch -d 2020-01-0$i *000$i.range mine$i; done; "
			   "for i in new-1-000000000000000a new-x new-2-b "
			   "new-3-000000000000000b; do touch $i; done; "
			   "touch -d 2020-01-01 new-[x23]*; mkdir sub"),
		  0);
	struct range_cache_key other = k.key;
	snprintf(other.name, sizeof(other.name), "fe-0123456789abcdef.range");
	uint64_t sum = 0;
	struct stat st;
	FILE *names = popen("ls -d $D/cache/*.range", "r");
	for (char at[4096]; names && fgets(at, sizeof(at), names);) {
		at[strcspn(at, "\n")] = 0;
		check(!lstat(at, &st));
		sum += S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
	}
	pclose(names);
	/* Two of those of 1000 bytes too many. */
	check(range_cache_store(cache, &other, k.v, k.plan, sum + len - 1500));
	check_int(in_cache("set -- *000[1-4].range && test $# = 2 && "
			   "test ! -e ab-0000000000000001.range && "
			   "test ! -e ab-0000000000000002.range"),
		  0);
	check_int(in_cache("test -e new-1-000000000000000a && "
			   "test ! -e new-3-000000000000000b && test -d sub"),
		  0);
	check_int(in_cache("test -e mine1 && test -e mine4 && test -e new-x "
			   "&& test -e new-2-b"),
		  0);
	check(cache_read(cache, k.key.name, &bytes, &len));
	munmap(bytes, len);
	other.name[0] = 'e';
	range_cache_store(cache, &other, k.v, k.plan, len - 1);
	check_msg(!cache_read(cache, other.name, &bytes, &len) &&
			  cache_read(cache, k.key.name, &bytes, &len),
		  "what is too large for all is not kept, others stay");
	munmap(bytes, len);
	forget(&k);
}

/* Those that say the same are kept once, until the strings are put. */
static void test_strings(void)
{
	static const char i[] = "main::i", same[] = "main::i", k[] = "main::k";
	struct cachefile f;
	struct store_out o;
	if (!check(cachefile_create(&f, cache) && store_out_init(&o, &f.out)))
		return;
	const char *first = store_string(&o, i);
	check(store_string(&o, k) != first);
	check(store_string(&o, same) == first);
	check(store_string(&o, "") != first);
	check_int(o.text_len, sizeof(i) + sizeof(k) + 1);
	check_str(o.text + (uintptr_t)first, i);
	store_put_strings(&o);
	check(store_string(&o, same) == NULL);
	check_int(o.text_len, sizeof(same));
	check(store_flush(&o));
	store_out_deinit(&o);
	cachefile_close(&f, "strings", false, 0);
}

/* Read by one or two, each block once; the sums are those of the bytes. */
static void test_blocks(void)
{
	const size_t block = STORE_BUF_BYTES;
	const size_t lens[] = {
		0, 1, block - 1, block, block + 1, 5 * block + 7, 8 * block};
	const char *path = scratch_path("blocks");
	uint8_t *bytes = malloc(8 * block), *got = malloc(8 * block);
	uint32_t next = 1;
	for (size_t i = 0; i < 8 * block; i++)
		bytes[i] = (uint8_t)((next = next * 1103515245 + 12345) >> 16);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	check(fd >= 0 &&
	      pwrite(fd, bytes, 8 * block, 0) == (ssize_t)(8 * block));
	uint64_t usual = blocks_two_from_bytes;
	for (unsigned two = 0; two < 2; two++) {
		blocks_two_from_bytes = two ? 1 : UINT64_MAX;
		for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
			struct block_file f[] = {
				{.fd = fd, .len = lens[i], .into = got},
				{.fd = fd, .from = 3, .len = 3 * block - 3},
			};
			memset(got, 0, 8 * block);
			check(blocks_read(f, 2));
			check(!memcmp(got, bytes, lens[i]));
			check(f[0].sum == store_blocks_sum(bytes, lens[i]));
			check(f[1].sum ==
			      store_blocks_sum(bytes + 3, 3 * block - 3));
		}
		struct block_file longer[] = {
			{.fd = fd, .len = block},
			{.fd = fd, .from = 1, .len = 8 * block},
		};
		check_msg(!blocks_read(longer, 2), "it has not so many");
	}
	blocks_two_from_bytes = usual;
	uint64_t sum = store_blocks_sum(bytes, 8 * block);
	memcpy(got, bytes, block);
	memcpy(bytes, bytes + block, block);
	memcpy(bytes + block, got, block);
	check_msg(sum != store_blocks_sum(bytes, 8 * block), "their order");
	check(!close(fd) && !unlink(path));
	free(bytes);
	free(got);
}

/* Several at once: one of them wins, and it is whole. */
static void test_at_once(const char *name)
{
	struct kept k = read_file(name);
	unsigned wrong = 0;
	pid_t pids[2];
	check(range_cache_store(cache, &k.key, k.v, k.plan, 1 << 30));
	for (unsigned i = 0; i < ARRAY_SIZE(pids); i++) {
		fflush(stdout);
		pids[i] = fork();
		if (pids[i])
			continue;
		for (unsigned n = 0; n < 200; n++) {
			struct variables *v = NULL;
			struct range_plan *plan = NULL;
			if (!range_cache_store(cache, &k.key, k.v, k.plan,
					       1 << 30) ||
			    !range_cache_load(cache, &k.key, k.s, &v, &plan) ||
			    !same_variables(v, k.v) || !same_plan(plan, k.plan))
				_exit(1);
			range_plan_destroy(plan);
			variables_destroy(v);
		}
		_exit(0);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(pids); i++) {
		int status;
		waitpid(pids[i], &status, 0);
		wrong += status != 0;
	}
	check_int(wrong, 0);
	check_int(in_cache("test $(ls | grep -c new-.*-) = 2"), 0);
	forget(&k);
}

static int opens(const char *own, const char *base, const char *home)
{
	own ? setenv("SMCO_CACHE_DIR", own, 1) : unsetenv("SMCO_CACHE_DIR");
	base ? setenv("XDG_CACHE_HOME", base, 1) : unsetenv("XDG_CACHE_HOME");
	home ? setenv("HOME", home, 1) : unsetenv("HOME");
	int fd = cachedir_open();
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void test_where(void)
{
	const char *home = scratch_path("home"), *link = scratch_path("link");
	check_int(run("mkdir $D/home && ln -s home $D/link"), 0);
	check_int(opens("", NULL, home), 0);
	check_int(opens(NULL, NULL, NULL), 0);
	check_int(opens(NULL, "home", NULL), 0);
	check_int(run("test -z \"$(ls -A $D/home)\""), 0);
	check_int(opens(NULL, NULL, home), 1);
	check_int(run("test $(stat -c %%a $D/home/.cache/smco) = 700"), 0);
	check_int(opens(NULL, home, NULL), 1);
	check_int(run("test -d $D/home/smco"), 0);
	check_int(opens(NULL, scratch_path("home/xdg"), NULL), 1);
	check_int(run("test $(stat -c %%a $D/home/xdg) = 700"), 0);
	check_int(opens(NULL, scratch_path("home/no/xdg"), NULL), 0);
	check_int(opens(scratch_path("home/own"), home, home), 1);
	check_int(opens(link, NULL, NULL), 0);
	check_int(opens(scratch_path("home/none/own"), NULL, NULL), 0);
	check_int(run("chmod 770 $D/home/own $D/home/smco"), 0);
	check_int(opens(scratch_path("home/own"), NULL, NULL), 0);
	check_int(opens(NULL, home, NULL), 0);
	if (geteuid()) {
		printf("ok %d # SKIP needs root\n", ++tap_nr);
		return;
	}
	/* As with sudo: the directory is somebody else's. */
	check_int(run("chmod 700 $D/home/own && rm -rf $D/home/.cache && "
		      "chown -R 65534 $D/home"),
		  0);
	check_int(opens(NULL, NULL, home), 0);
	check_int(opens(scratch_path("home/own"), NULL, NULL), 0);
	check_int(run("test ! -e $D/home/.cache"), 0);
}

int main(void)
{
	make_scratch();
	check_int(run("cc -O2 -g -o $D/known t/fixtures/range/known.c "
		      "-lpthread"),
		  0);
	check_int(run("cc -O2 -g -o $D/subs t/fixtures/range/subscripts.c"), 0);
	check_int(run("cc -O1 -g -o $D/stacked t/fixtures/range/stacked.c"), 0);
	check_int(run("gcc -O0 -g -o $D/regs t/fixtures/range/registers.c"), 0);
	check_int(run("cc -o $D/holes t/fixtures/range/holes.S"), 0);
	check_int(run("c++ -O1 -g -o $D/cxx t/fixtures/sym/varscxx.cc"), 0);
	check_int(run("echo 'enum e { A, B } x; struct { unsigned a : 3, b; } "
		      "s; int t[4]; int main(int n, char **v) { for (int i = "
		      "0; i < n; i++) s.a += t[n + i] = i; x = (enum e)n; "
		      "return v[0][0]; }' | cc -O0 -g -xc - -o $D/tiny"),
		  0);
	check(setenv("SMCO_CACHE_DIR", scratch_path("cache"), 1) == 0);
	cache = cachedir_open();
	check(cache >= 0);
	test_blocks();
	test_strings();
	test_same(scratch_path("known"));
	blocks_two_from_bytes = 1;
	pair_from = 0;
	test_same(scratch_path("subs"));
	test_same(scratch_path("cxx"));
	test_others(scratch_path("holes"));
	test_rows(scratch_path("regs"));
	test_later(scratch_path("known"));
	test_later(scratch_path("subs"));
	test_later(scratch_path("cxx"));
	test_damage(scratch_path("tiny"), SIZE_MAX, 1);
	test_damage(scratch_path("tiny"), 0, 7);
	test_damage(scratch_path("holes"), SIZE_MAX, 1);
	test_within(scratch_path("stacked"));
	test_files(scratch_path("tiny"));
	test_at_once(scratch_path("tiny"));
	test_where();
	return finish();
}
