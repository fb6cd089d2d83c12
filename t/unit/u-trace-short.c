/*
 * What short traces take: sessions of some hundred events, recorded once, are
 * written again as a session writes them, and their bytes counted by kind.
 * Whoever changes the format or the models sees here what comes of it.
 *
 *	u-trace-short                 the test, on t/short
 *	u-trace-short RECORDED SHORT  makes such a file of a trace that
 *smco-trace wrote: without names of files and hosts
 */
#include "t/unit/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/chunk-head.h"
#include "reports/disk.h"
#include "reports/trace.h"
#include "t/unit/scratch.h"
#include "t/unit/trace-show.h"

struct rewrite {
	struct trace_reader *from;
	struct trace_writer *to;
	bool *put; /* [id] of stacks */
	uint32_t nr_put;
};

/* @text without directories; the caller frees. */
static char *without_directories(const char *text)
{
	char *ret = strdup(text), *to = ret, *word = ret;
	for (const char *p = text; *p; p++) {
		*to++ = *p;
		if (*p == '/')
			to = word;
		else if (*p == ' ' || *p == '\n')
			word = to;
	}
	*to = '\0';
	return ret;
}

static void copy_meta(struct rewrite *w)
{
	const char *key, *value;
	for (size_t i = 0; trace_meta_at(w->from, i, &key, &value); i++) {
		char *text = without_directories(
			strcmp(key, "hostname") != 0 ? value : "host");
		trace_put_meta(w->to, key, text);
		free(text);
	}
}

/* The frames of stack @id as they are without names: one of those that are
 * inlined into each other. */
static size_t bare_stack(struct rewrite *w, uint32_t id,
			 struct trace_frame to[STACK_MAX_FRAMES])
{
	size_t nr = 0, n = 0;
	const struct trace_frame *f = trace_stack(w->from, id, &nr);
	for (size_t i = 0; i < nr; i++) {
		if (f[i].inlined)
			continue;
		to[n] = (struct trace_frame){.function = "",
					     .file = "",
					     .module = f[i].module,
					     .build_id = "",
					     .offset = f[i].offset,
					     .naming = TRACE_CALL};
		n++;
	}
	return n;
}

/* Stack @id, the first time that it is needed. */
static void need_stack(struct rewrite *w, uint32_t id)
{
	struct trace_frame f[STACK_MAX_FRAMES];
	if (!id || id >= w->nr_put || w->put[id])
		return;
	w->put[id] = true;
	size_t nr = bare_stack(w, id, f);
	for (size_t i = 0; i < nr; i++)
		f[i].module = strrchr(f[i].module, '/')
				      ? strrchr(f[i].module, '/') + 1
				      : f[i].module;
	trace_put_stack(w->to, id, f, nr);
}

/* At the end every frame turns out to be another one, as in a session. */
static void name_frames(struct rewrite *w)
{
	struct trace_frame f[STACK_MAX_FRAMES];
	for (uint32_t id = 1; id < w->nr_put; id++) {
		size_t nr = w->put[id] ? bare_stack(w, id, f) : 0;
		for (size_t i = 0; i < nr; i++) {
			struct trace_frame name = f[i];
			name.naming = TRACE_FINAL;
			name.function = "f";
			trace_name_frame(w->to, &f[i], &name, 1);
		}
	}
}

/* As a session does: stacks when they are first needed, flushed with each
 * ledger, names at the end. How many records; 0: failed. */
static uint64_t rewrite(const char *from, const char *to, bool named)
{
	struct rewrite w = {.nr_put = 1};
	struct record r;
	uint64_t nr = 0;
	uint32_t id;
	if (trace_reader_open(from, &w.from, NULL) ||
	    trace_writer_create(to, 0, &w.to, NULL))
		return 0;
	for (size_t i = 0; trace_stack_at(w.from, i, &id); i++)
		w.nr_put = id >= w.nr_put ? id + 1 : w.nr_put;
	w.put = calloc(w.nr_put, sizeof(*w.put));
	copy_meta(&w);
	for (; trace_next(w.from, &r, NULL) > 0; nr++) {
		if (r.event == EV_SAMPLE || r.event == EV_SITE)
			need_stack(&w, r.param);
		if (r.event == EV_VARIABLE)
			need_stack(
				&w,
				((const struct ev_variable *)r.payload)->decl);
		if (r.event == EV_NAP) {
			const struct ev_nap *nap = r.payload;
			need_stack(&w, nap->alloc_stack);
			need_stack(&w, nap->ended_stack);
			need_stack(&w, nap->last_stack);
		}
		trace_put(w.to, &r);
		if (r.event == EV_LEDGER)
			trace_sync(w.to, NULL);
	}
	if (named)
		name_frames(&w);
	trace_reader_close(w.from);
	free(w.put);
	return trace_writer_close(w.to, NULL) ? 0 : nr;
}

struct bytes {
	size_t records, stacks, rest; /* without symbols */
};

static struct bytes count(const char *path)
{
	struct bytes sum = {.rest = sizeof(struct disk_header)};
	struct chunk_head h;
	size_t size = 0, next;
	uint8_t *data = show_load(path, &size);
	for (size_t at = sum.rest; at < size; at = next) {
		next = show_chunk(data, size, at, &h);
		if (h.type == CHUNK_RECORDS)
			sum.records += next - at;
		else if (h.type == CHUNK_STACKS)
			sum.stacks += next - at;
		else if (h.type != CHUNK_STRINGS && h.type != CHUNK_FRAMES &&
			 h.type != CHUNK_NAMES)
			sum.rest += next - at;
	}
	free(data);
	return sum;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		uint64_t nr;
		size_t records, stacks; /* exactly */
		size_t rest;		/* at most: zstd has versions */
	} want[] = {
		{"bzip2", 1665, 2216, 442, 442},
		{"python3", 776, 1678, 1821, 597},
		{"redis", 418, 1319, 428, 457},
	};
	if (argc == 3)
		return !rewrite(argv[1], argv[2], false);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		const char *to = scratch_path("x.trace");
		char from[256];
		snprintf(from, sizeof(from), "%.*s/short/%s.trace",
			 (int)(strstr(__FILE__, "/unit/") - __FILE__), __FILE__,
			 want[i].name);
		check_int(rewrite(from, to, true), want[i].nr);
		struct bytes got = count(to);
		check_int(got.records, want[i].records);
		check_int(got.stacks, want[i].stacks);
		if (!check(got.rest <= want[i].rest))
			printf("# %zu bytes\n", got.rest);
	}
	return tap_done();
}
