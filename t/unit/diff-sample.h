/*
 * diff-sample.h - made-up traces for the tests of smco-diff: a session is a
 * list of sites, each with a stack in words and what is found there.
 */
#ifndef DIFF_SAMPLE_H
#define DIFF_SAMPLE_H

#include <stdlib.h>
#include <string.h>

#include "t/unit/trace-sample.h"

struct sample_site {
	/* "fill@src/cache.c:12 < run@main.c:40 < main@main.c:80", innermost
	 * first; "fill" without lines; "+1f0@libx.so.1" without a name. */
	const char *stack;
	uint64_t size;	 /* of a block */
	unsigned naps;	 /* of as many blocks; 0 = allocated, used */
	unsigned nap_ms; /* each */
	unsigned error_ms;
	unsigned allocs;  /* 0 = as many as naps, at least one */
	unsigned watched; /* in percent; 0 = 100 */
	bool freed;	  /* else unused until the end */
};

struct sample_variable {
	const char *name, *file;
	uint32_t line;
	int64_t smallest, largest;
	unsigned watched; /* in percent of the time; 0 = 100 */
	bool polled;	  /* no sensors */
};

struct sample_session {
	const char *command; /* NULL = "./prog --fast" */
	const char *build;   /* NULL = "b1" */
	const char *dir;     /* in front of relative files; NULL = none */
	const struct sample_site *site;
	size_t nr;
	unsigned armed;	       /* percent of known blocks; 0 = 100 */
	unsigned without_turn; /* blocks that never got one */
	unsigned duration_ms;  /* 0 = 60 s */
	uint64_t instructions; /* 0 = no counters */
	uint64_t switches;     /* of them; 0 = not counted, or */
	bool no_switches;      /* counted, and there were none */
	unsigned clock_ms;     /* task-clock; 0 = 1 s */
	const struct sample_variable *variable;
	size_t nr_variables;
	bool cut;	      /* without an end */
	const char *monitors; /* NULL = not in the trace: nap */
};

/* One frame from @text, in place; returns behind it. */
static inline char *sample_frame(char *text, const struct sample_session *s,
				 uint64_t *offset, struct trace_frame *f,
				 char *file, size_t file_size)
{
	char *next = strstr(text, " < ");
	if (next)
		*next = '\0';
	char *at = strchr(text, '@');
	if (at)
		*at++ = '\0';
	char *colon = at ? strchr(at, ':') : NULL;
	*f = (struct trace_frame){
		.function = *text == '+' ? "" : text,
		.file = "",
		.line = colon ? (uint32_t)atoi(colon + 1) : 0,
		.module = at && !colon ? at : "/usr/bin/prog",
		.build_id = s->build ? s->build : "b1",
		.offset = *text == '+' ? strtoull(text, NULL, 16)
				       : (*offset += 0x40),
	};
	if (colon) {
		*colon = '\0';
		snprintf(file, file_size, "%s%s", s->dir ? s->dir : "", at);
		f->file = file;
	}
	return next ? next + 3 : NULL;
}

static inline void sample_site_stack(struct trace_writer *w, uint32_t id,
				     const struct sample_session *s,
				     const char *stack)
{
	struct trace_frame f[32];
	char *copy = strdup(stack), file[32][128];
	uint64_t offset = 0x1000 * id;
	size_t nr = 0;
	for (char *p = copy; p && nr < 32; nr++)
		p = sample_frame(p, s, &offset, &f[nr], file[nr],
				 sizeof(file[nr]));
	trace_put_stack(w, id, f, nr);
	free(copy);
}

static inline void sample_site_put(struct trace_writer *w, uint32_t id,
				   const struct sample_site *site,
				   uint64_t end_ms)
{
	uint64_t allocs = site->allocs ? site->allocs : site->naps;
	if (!allocs)
		allocs = 1;
	for (unsigned i = 0; i < site->naps; i++)
		SAMPLE_PUT(
			w, EV_NAP, end_ms, id * 1000 + i,
			(struct ev_nap){
				.addr = ((uint64_t)id << 32) + i * site->size,
				.size = site->size,
				.start_ns = SAMPLE_MS(1),
				.length_ns = SAMPLE_MS(site->nap_ms),
				.error_ns = SAMPLE_MS(site->error_ms),
				.alloc_ns = SAMPLE_MS(1),
				.pid = 7,
				.alloc_stack = id,
				.ended_syscall = -1,
				.flags = site->freed ? NAP_FREED : NAP_AT_EXIT,
			});
	SAMPLE_PUT(w, EV_SITE, end_ms, id,
		   (struct ev_site){
			   .nr_allocs = allocs,
			   .bytes = allocs * site->size,
			   .nr_watched = allocs *
					 (site->watched ? site->watched : 100) /
					 100,
			   .nr_naps = site->naps,
			   .stack = id,
		   });
}

/* The instructions were counted half of the time. */
static inline void sample_counters(struct trace_writer *w,
				   const struct sample_session *s,
				   uint64_t end_ms)
{
	trace_put_meta(w, "counter.0.0", "instructions");
	trace_put_meta(w, "counter.0.0.role", "instructions");
	trace_put_meta(w, "counter.1.0", "task-clock");
	trace_put_meta(w, "counter.1.0.unit", "ns");
	trace_put_meta(w, "counter.1.0.role", "task-clock");
	if (s->switches || s->no_switches) {
		trace_put_meta(w, "counter.2.0", "context-switches");
		trace_put_meta(w, "counter.2.0.role", "switches");
	}
	struct ev_counts counts = {7,
				   1,
				   SAMPLE_MS(end_ms),
				   SAMPLE_MS(end_ms),
				   SAMPLE_MS(end_ms / 2),
				   {s->instructions / 2}};
	SAMPLE_PUT(w, EV_COUNTS, end_ms, 0, counts);
	counts.missed_ns = 0;
	counts.value[0] = SAMPLE_MS(s->clock_ms ? s->clock_ms : 1000);
	SAMPLE_PUT(w, EV_COUNTS, end_ms, 1, counts);
	counts.value[0] = s->switches;
	if (s->switches || s->no_switches)
		SAMPLE_PUT(w, EV_COUNTS, end_ms, 2, counts);
}

static inline void sample_variable_put(struct trace_writer *w, uint32_t id,
				       const struct sample_variable *v,
				       uint64_t end_ms)
{
	const struct trace_frame f[] = {
		{.function = v->name,
		 .file = v->file,
		 .line = v->line,
		 .module = "/usr/bin/prog",
		 .build_id = "b1"},
		{.function = "int", .file = "", .module = "", .build_id = ""},
	};
	trace_put_stack(w, 1000 + id, f, 2);
	SAMPLE_PUT(w, EV_VARIABLE, 0, id,
		   (struct ev_variable){.decl = 1000 + id,
					.bits = 32,
					.flags = VARIABLE_SIGNED});
	SAMPLE_PUT(w, EV_RANGE, end_ms, id,
		   (struct ev_range){
			   .smallest = v->smallest,
			   .largest = v->largest,
			   .hits = 10,
			   .watched_ns = SAMPLE_MS(end_ms) *
					 (v->watched ? v->watched : 100) / 100,
			   .alive_ns = SAMPLE_MS(end_ms),
			   .pid = 7,
			   .flags = v->polled ? RANGE_POLLED : RANGE_SENSED,
		   });
}

static inline void sample_session_write(const char *path,
					const struct sample_session *s)
{
	uint64_t end_ms = s->duration_ms ? s->duration_ms : 60000;
	struct trace_writer *w = NULL;
	if (trace_writer_create(path, 1, &w, NULL))
		abort();
	SAMPLE_PUT(w, EV_PROCESS, 0, 7, (struct ev_process){7, 1, -1, 0});
	trace_put_meta(w, "command", s->command ? s->command : "./prog --fast");
	trace_put_meta(w, "nap_ns", "1000000000");
	if (s->monitors)
		trace_put_meta(w, "monitors", s->monitors);
	for (uint32_t i = 0; i < s->nr; i++) {
		if (s->site[i].stack)
			sample_site_stack(w, i + 1, s, s->site[i].stack);
		sample_site_put(w, i + 1, &s->site[i], end_ms);
	}
	SAMPLE_PUT(w, EV_LEDGER, end_ms, 0,
		   (struct ev_ledger){
			   .run_ns = SAMPLE_MS(end_ms),
			   .spent_ns = SAMPLE_MS(end_ms / 100),
			   .nr_known = 100,
			   .nr_armed = s->armed ? s->armed : 100,
		   });
	if (s->without_turn)
		SAMPLE_PUT(w, EV_COVERAGE, end_ms, COVER_NEVER_ARMED,
			   (struct ev_coverage){s->without_turn, 1 << 20});
	for (uint32_t i = 0; i < s->nr_variables; i++)
		sample_variable_put(w, i + 1, &s->variable[i], end_ms);
	if (s->instructions)
		sample_counters(w, s, end_ms);
	if (trace_flush(w, NULL))
		abort();
	if (s->cut)
		trace_writer_destroy(w);
	else if (trace_writer_close(w, NULL))
		abort();
}

#endif
