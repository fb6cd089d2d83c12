#include "supervisor/monitor/range-cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/build-number.h"
#include "symbols/blocks.h"
#include "symbols/symbols.h"
#include "symbols/varstore.h"

/* With what is not seen by the build: another order of arrays in the file. */
#define MAGIC "smcoR\0\0\10"

_Static_assert(sizeof(struct range_cache_head) % 32 == 0,
	       "keeps the alignment");

static void add_globs(struct store_sum *sum, const struct range_globs *g)
{
	uint64_t nr = g->nr;
	store_sum_add(sum, &nr, sizeof(nr));
	for (size_t i = 0; i < g->nr; i++)
		store_sum_add(sum, g->glob[i], strlen(g->glob[i]) + 1);
}

void range_cache_key(struct range_cache_key *key, struct sym_space *s,
		     const struct range_select *select)
{
	struct sym_module_info info;
	struct store_sum sum;
	*key = (struct range_cache_key){.name = ""};
	sym_module_info(s, 1, &info);
	if (!info.build_id || !*info.build_id || !build_number())
		return;
	store_sum_init(&sum);
	add_globs(&sum, &select->vars);
	add_globs(&sum, &select->functions);
	add_globs(&sum, &select->files);
	add_globs(&sum, &select->elements);
	key->select = store_sum_end(&sum);
	snprintf(key->name, sizeof(key->name), "%s-%016llx.range",
		 info.build_id, (unsigned long long)key->select);
}

static uint64_t sum_of(const void *bytes, size_t len)
{
	struct store_sum sum;
	store_sum_init(&sum);
	store_sum_add(&sum, bytes, len);
	return store_sum_end(&sum);
}

static uint64_t head_sum(const struct range_cache_head *h)
{
	return sum_of(h, offsetof(struct range_cache_head, head_sum));
}

/* --- reading --- */

#define HEAD_BYTES sizeof(struct range_cache_head)

/* @sum is what the bytes behind the head have. */
static bool is_good(const uint8_t *bytes, size_t len, uint64_t sum,
		    const struct range_cache_key *key)
{
	struct range_cache_head h;
	memcpy(&h, bytes, sizeof(h));
	return !memcmp(h.magic, MAGIC, sizeof(h.magic)) &&
	       h.head_sum == head_sum(&h) && h.build == build_number() &&
	       h.sign == key->sign && h.select == key->select && h.len == len &&
	       h.has_plan <= 1 && h.sum == sum;
}

static bool take(uint8_t *bytes, size_t len, uint64_t sum,
		 const struct range_cache_key *key, struct sym_space *s,
		 struct variables **vars_ret, struct range_plan **plan_ret)
{
	struct store_in in = {.bytes = bytes, .len = len, .at = HEAD_BYTES};
	struct smco_err err = {0};
	*plan_ret = NULL;
	*vars_ret = is_good(bytes, len, sum, key) ? variables_take(&in) : NULL;
	if (!*vars_ret) {
		munmap(bytes, len);
		return false;
	}
	const struct range_cache_head *h = (const void *)bytes;
	bool has_plan = h->has_plan;
	variables_own(*vars_ret, bytes, len);
	if (has_plan && range_plan_take(plan_ret, &in, s, 1, *vars_ret, &err)) {
		smco_debug("range", "cache: %s", err.msg);
		*plan_ret = NULL;
	}
	if (!in.bad && in.at == len && !has_plan == !*plan_ret)
		return true;
	range_plan_destroy(*plan_ret);
	variables_destroy(*vars_ret);
	*plan_ret = NULL;
	*vars_ret = NULL;
	return false;
}

bool range_cache_take(uint8_t *bytes, size_t len,
		      const struct range_cache_key *key, struct sym_space *s,
		      struct variables **vars_ret, struct range_plan **plan_ret)
{
	if (len >= HEAD_BYTES)
		return take(
			bytes, len,
			store_blocks_sum(bytes + HEAD_BYTES, len - HEAD_BYTES),
			key, s, vars_ret, plan_ret);
	munmap(bytes, len);
	*vars_ret = NULL;
	*plan_ret = NULL;
	return false;
}

#define MAX_SIGNED 2

/* What the key's sign is of; 0: that cannot be told. */
static size_t signed_files(struct sym_space *s,
			   struct block_file files[MAX_SIGNED])
{
	int fd[MAX_SIGNED];
	struct stat st;
	size_t nr = variables_files(s, 1, fd);
	for (size_t i = 0; i < nr; i++) {
		if (fstat(fd[i], &st) || st.st_size < 0)
			return 0;
		files[i] = (struct block_file){
			.fd = fd[i],
			.len = (size_t)st.st_size,
		};
	}
	return nr;
}

/* Of the @nr @files that were read; none: it cannot be. */
static void sign_with(struct range_cache_key *key,
		      const struct block_file *files, size_t nr)
{
	struct store_sum sum;
	store_sum_init(&sum);
	for (size_t i = 0; i < nr; i++)
		store_sum_block(&sum, files[i].sum, files[i].len);
	key->sign = store_sum_end(&sum);
	key->is_signed = nr;
	if (!nr)
		*key->name = '\0';
}

void range_cache_sign(struct range_cache_key *key, struct sym_space *s)
{
	struct block_file files[MAX_SIGNED];
	size_t nr = signed_files(s, files);
	sign_with(key, files, nr && blocks_read(files, nr) ? nr : 0);
}

/* Small pages: large ones may have to be put together first, which can take
 * half a second. Forks, of which the command is one, have no use for them. */
static uint8_t *room_for(size_t len)
{
	uint8_t *bytes = mmap(NULL, len, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (bytes == MAP_FAILED)
		return NULL;
	madvise(bytes, len, MADV_DONTFORK);
	return bytes;
}

/* The file @fd, of @len bytes, and all that is to be signed at the same time;
 * NULL: nothing was. */
static uint8_t *read_both(int fd, size_t len, struct range_cache_key *key,
			  struct sym_space *s, uint64_t *sum_ret)
{
	uint8_t *bytes = room_for(len);
	/* Read, not mapped: who cuts it short would kill us. */
	struct block_file files[2 + MAX_SIGNED] = {
		{.fd = fd, .len = HEAD_BYTES, .into = bytes},
		{.fd = fd, .from = HEAD_BYTES, .len = len - HEAD_BYTES},
	};
	size_t nr = key->is_signed ? 0 : signed_files(s, &files[2]);
	if (!bytes)
		return NULL;
	files[1].into = bytes + HEAD_BYTES;
	if ((!nr && !key->is_signed) || !blocks_read(files, 2 + nr)) {
		munmap(bytes, len);
		return NULL;
	}
	if (nr)
		sign_with(key, &files[2], nr);
	*sum_ret = files[1].sum;
	return bytes;
}

bool range_cache_load(int dir, struct range_cache_key *key, struct sym_space *s,
		      struct variables **vars_ret, struct range_plan **plan_ret)
{
	uint8_t *bytes = NULL;
	uint64_t sum;
	size_t len;
	if (!*key->name)
		return false;
	int fd _cleanup_close_ = cachedir_find(dir, key->name, &len);
	if (fd >= 0 && len >= HEAD_BYTES)
		bytes = read_both(fd, len, key, s, &sum);
	if (!key->is_signed)
		range_cache_sign(key, s);
	return bytes && take(bytes, len, sum, key, s, vars_ret, plan_ret);
}

/* --- writing --- */

static bool put_all(struct cachefile *f, const struct range_cache_key *key,
		    const struct variables *vars, const struct range_plan *plan)
{
	struct range_cache_head h = {
		.magic = MAGIC,
		.build = build_number(),
		.sign = key->sign,
		.select = key->select,
		.has_plan = plan != NULL,
	};
	struct store_out o;
	/* Its place; what is known at the end comes then. */
	bool good = !outfile_append(&f->out, &h, sizeof(h));
	if (good && store_out_init(&o, &f->out)) {
		variables_put(&o, vars);
		if (plan)
			range_plan_put(&o, plan);
		good = store_flush(&o);
		h.len = f->out.size;
		h.sum = store_sum_end(&o.sum);
		h.head_sum = head_sum(&h);
		store_out_deinit(&o);
	} else {
		good = false;
	}
	return good && pwrite(f->out.fd, &h, sizeof(h), 0) == sizeof(h);
}

bool range_cache_store(int dir, const struct range_cache_key *key,
		       const struct variables *vars,
		       const struct range_plan *plan, uint64_t most)
{
	struct cachefile f;
	if (!*key->name || !key->is_signed || vars->is_split ||
	    !cachefile_create(&f, dir))
		return false;
	bool good = put_all(&f, key, vars, plan);
	cachefile_close(&f, key->name, good, most);
	return good;
}
