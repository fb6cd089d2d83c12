/*
 * Naps that are added up and not kept: whatever memory they are put in order
 * with, the sums, and the summary, are those of naps that are kept.
 */
#include "t/unit/tap.h"

#include <stdlib.h>

#include "reports/model.h"
#include "reports/section.h"
#include "t/unit/scratch.h"
#include "t/unit/trace-sample.h"

#define BLOCKS 7000
#define NAPS   3 /* of a block */
#define STACKS 7

static void put_stacks(struct trace_writer *w)
{
	for (uint32_t id = 1; id <= STACKS; id++) {
		char name[16];
		snprintf(name, sizeof(name), "site_%u", id);
		struct trace_frame f = {.function = name,
					.file = "a.c",
					.line = id,
					.module = "/bin/a",
					.build_id = ""};
		trace_put_stack(w, id, &f, 1);
	}
}

/* All begin, then those of odd blocks grow, then most end, backwards: a nap's
 * records lie far apart. Some are said to be of another site at last. */
static void write_naps(struct trace_writer *w)
{
	for (uint32_t turn = 0; turn < 3; turn++)
		for (uint32_t i = 0; i < BLOCKS * NAPS; i++) {
			uint32_t at = turn == 2 ? BLOCKS * NAPS - 1 - i : i;
			uint32_t block = at / NAPS;
			struct ev_nap nap = {
				.addr = 0x10000 + 4096 * block,
				.size = 1000 + block,
				.start_ns = SAMPLE_MS(1000 * (at % NAPS)),
				.length_ns = SAMPLE_MS(100 + at % 89 + turn),
				.error_ns = SAMPLE_MS(at % 5),
				.alloc_ns = SAMPLE_MS(1),
				.pid = 10 + block % 2,
				.alloc_stack = 1 + block % STACKS,
				.last_stack = at % 3,
				.ended_syscall = -1,
				.flags = NAP_ONGOING,
			};
			if (turn == 1 && !(block % 2))
				continue;
			if (turn == 2 && block % 10 == 0)
				continue;
			if (turn == 2) {
				nap.flags = at % 4 ? NAP_ENDED_READ : NAP_FREED;
				nap.ended_stack = 1 + at % 2;
				if (block % 50 == 1)
					nap.alloc_stack =
						1 + (block + 1) % STACKS;
			}
			sample_put(w, EV_NAP, 4000 + turn, block + 1, &nap,
				   sizeof(nap));
		}
}

static const char *write_trace(const char *name, uint32_t pid)
{
	const char *path = scratch_path(name);
	struct trace_writer *w = NULL;
	check_int(trace_writer_create(path, 1, &w, NULL), 0);
	put_stacks(w);
	SAMPLE_PUT(w, EV_PROCESS, 0, 0, (struct ev_process){.pid = pid});
	write_naps(w);
	check_int(trace_writer_close(w, NULL), 0);
	return path;
}

static struct summary *load(const char *a, const char *b,
			    const struct select *select)
{
	struct summary_input in[2] = {0};
	struct summary *s = NULL;
	check_int(trace_reader_open(a, &in[0].reader, NULL), 0);
	check_int(trace_reader_open(b, &in[1].reader, NULL), 0);
	check_int(summary_load_files(in, 2, select, &s, NULL), 0);
	trace_reader_close(in[0].reader);
	trace_reader_close(in[1].reader);
	return s;
}

static char *text_of(const struct summary *s)
{
	static const struct summary_style style = {0};
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	summary_print(s, f, NULL, &style);
	fclose(f);
	return text;
}

static void check_same(const struct summary *kept, const struct summary *sums)
{
	check_int(sums->sum.nr, kept->sum.nr);
	check(!memcmp(&sums->sum, &kept->sum, sizeof(kept->sum)));
	check_int(sums->nr_left_out, kept->nr_left_out);
	check_int(sums->nr_stacks, kept->nr_stacks);
	size_t nr_same = 0, nr_naps = 0;
	for (size_t i = 0; i < kept->nr_stacks; i++) {
		nr_same += !memcmp(&sums->stack[i].sum, &kept->stack[i].sum,
				   sizeof(kept->sum));
		nr_naps += sums->stack[i].nr_naps;
	}
	check_int(nr_same, kept->nr_stacks);
	check_int(nr_naps, 0);
	check_int(sums->naps.nr, 0);
	check_int(kept->naps.nr, kept->sum.nr);
	char *a = text_of(kept), *b = text_of(sums);
	check(strstr(a, "site_1"));
	check(!strcmp(b, a));
	free(a);
	free(b);
}

static bool same_nap(const struct model_nap *a, const struct model_nap *b)
{
	return !memcmp(&a->nap, &b->nap, sizeof(a->nap)) &&
	       a->object == b->object && a->site == b->site &&
	       a->file == b->file;
}

static void test_sums(const char *one, const char *two)
{
	/* In memory all of it, some records at a time, ten at a time. */
	static const size_t memory[] = {0, 20000, 1000};
	struct select select = {0};
	struct summary *kept = load(one, two, &select);
	check_int(kept->sum.nr, 2 * BLOCKS * NAPS);
	/* A nap of another site is not of the same block. */
	check_int(kept->sum.nr_objects, 2 * BLOCKS);
	check_int(kept->sum.nr_by_end[END_NEVER], 2 * BLOCKS * NAPS / 10);
	for (size_t i = 0; i < ARRAY_SIZE(memory); i++) {
		struct select sums_only = {.only_sums = true,
					   .nap_bytes = memory[i]};
		struct summary *sums = load(one, two, &sums_only);
		check_same(kept, sums);
		summary_free(sums);
	}
	/* Kept and put in order with little memory: the same naps. */
	select.nap_bytes = 20000;
	struct summary *again = load(one, two, &select);
	struct shelf_window a = {.shelf = &kept->naps};
	struct shelf_window b = {.shelf = &again->naps};
	check_int(again->naps.nr, kept->naps.nr);
	check(again->naps.nr_in_file > 0);
	check_int(kept->naps.nr_in_file, 0);
	size_t nr_same = 0;
	for (uint64_t i = 0; i < kept->naps.nr; i++)
		nr_same += same_nap(shelf_at(&a, i), shelf_at(&b, i));
	check_int(nr_same, kept->naps.nr);
	shelf_window_close(&a);
	shelf_window_close(&b);
	summary_free(again);
	summary_free(kept);
}

static void test_selected(const char *a, const char *b)
{
	struct select select = {
		.from_ns = SAMPLE_MS(1150), .has_process = true, .process = 10};
	struct summary *kept = load(a, b, &select);
	check(kept->nr_left_out > 0);
	select.only_sums = true;
	select.nap_bytes = 20000;
	struct summary *sums = load(a, b, &select);
	check_same(kept, sums);
	summary_free(sums);
	summary_free(kept);
}

/* How often the one has it that most of the naps of @site have, looked up nap
 * by nap: who ended them by reading, or used the blocks before. */
static uint64_t most_by_hand(const struct summary *kept,
			     const struct model_site *site, bool ended)
{
	uint64_t nr[STACKS + 1] = {0}, most = 0;
	struct shelf_window naps = {.shelf = &kept->naps};
	for (uint64_t i = 0; i < kept->naps.nr; i++) {
		const struct model_nap *m = shelf_at(&naps, i);
		const struct ev_nap *n = &m->nap;
		uint32_t id = ended ? n->ended_stack : n->last_stack;
		size_t nr_frames, nr_site;
		const struct trace_frame *f =
			model_frames(kept, id, &nr_frames);
		const struct trace_frame *alloc =
			model_frames(kept, n->alloc_stack, &nr_site);
		if (!f || alloc->line != site->stack->frames->line ||
		    (ended && model_nap_end(n) != END_READ))
			continue;
		if (++nr[f->line] > most)
			most = nr[f->line];
	}
	return most;
}

static void test_culprits(const char *a, const char *b)
{
	struct select select = {.only_sums = true, .nap_bytes = 20000};
	struct summary *s = load(a, b, &select), *kept = load(a, b, NULL);
	struct model_sites sites;
	check_int(model_sites(s, 0, &sites), 0);
	check_int(sites.nr, STACKS);
	for (size_t i = 0; i < sites.nr; i++) {
		const struct model_site *site = &sites.site[i];
		uint64_t ended = most_by_hand(kept, site, true);
		check(ended > 0);
		check_int(model_ended_by(s, site, END_READ).nr, ended);
		check_int(model_last_used_by(s, site).nr,
			  most_by_hand(kept, site, false));
	}
	model_sites_free(&sites);
	summary_free(s);
	summary_free(kept);
}

/* Section @name sorted by @sort with @memory bytes, as CSV. */
static char *table(const struct summary *s, const struct select *select,
		   const struct summary_input *in, const char *name,
		   const char *sort, size_t top, size_t memory)
{
	struct section_source src = {s, in, 1, select, NULL};
	struct section_options o = {.format = SECTION_CSV,
				    .sort = sort,
				    .top = top,
				    .sort_bytes = memory};
	char *text = NULL;
	size_t size;
	struct page page = {.out = open_memstream(&text, &size)};
	trace_rewind(in->reader);
	check_int(section_print(section_find(name), &src, &o, &page, NULL), 0);
	fclose(page.out);
	return text;
}

/* Tables whose rows do not all fit into memory have the same rows in the same
 * order; the first of them are those of all. */
static void test_sorted(const char *path)
{
	static const char *const by[][2] = {{"naps", "length"},
					    {"naps", "-site"},
					    {"naps", "ended"},
					    {"events", "thread"},
					    {"events", "-payload"}};
	struct summary_input in = {.name = path};
	struct select select = {.nap_bytes = 20000};
	struct summary *s = NULL;
	check_int(trace_reader_open(path, &in.reader, NULL), 0);
	check_int(summary_load_files(&in, 1, &select, &s, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(by); i++) {
		const char *name = by[i][0], *sort = by[i][1];
		char *all = table(s, &select, &in, name, sort, 0, 0);
		char *little = table(s, &select, &in, name, sort, 0, 300000);
		char *first = table(s, &select, &in, name, sort, 100, 0);
		check(strlen(all) > 1000000);
		check(!strcmp(little, all));
		check(strlen(first) > 5000 &&
		      !strncmp(first, all, strlen(first)));
		free(all);
		free(little);
		free(first);
	}
	summary_free(s);
	trace_reader_close(in.reader);
}

int main(void)
{
	char *a = strdup(write_trace("u-many-naps-a", 10));
	char *b = strdup(write_trace("u-many-naps-b", 11));
	test_sums(a, b);
	test_selected(a, b);
	test_culprits(a, b);
	test_sorted(a);
	remove(a);
	remove(b);
	free(a);
	free(b);
	return tap_done();
}
