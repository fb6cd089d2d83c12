/*
 * trace-show.h - what the hostile-input test and the fuzzer share: putting
 * right checksums on wrong content, and doing all a reader does.
 */
#ifndef TRACE_SHOW_H
#define TRACE_SHOW_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "reports/chunk-head.h"
#include "reports/disk.h"
#include "reports/html.h"
#include "reports/model.h"
#include "reports/records.h"
#include "reports/section.h"
#include "reports/summary.h"
#include "t/unit/trace-sample.h"

/* Make all checksums right again, as far as sizes lead from one chunk to the
 * next. Returns the number of chunks. */
static inline unsigned show_sign(uint8_t *data, size_t len)
{
	unsigned chunks = 0;
	struct chunk_head h;
	for (size_t at = sizeof(struct disk_header);
	     chunk_head_parse(data + at, len - at, &h); chunks++) {
		size_t left = len - at - h.size;
		if (h.stored_size > left)
			h.stored_size = (uint32_t)left;
		chunk_head_sign(data + at, &h);
		at += h.size + h.stored_size;
	}
	return chunks;
}

/* Of the chunk at @at of a file that is whole: its head, and where the next
 * one stands. */
static inline size_t show_chunk(const uint8_t *data, size_t len, size_t at,
				struct chunk_head *ret)
{
	if (!chunk_head_read(data + at, len - at, ret))
		abort();
	return at + ret->size + ret->stored_size;
}

/* Every table in every form, and the plain records. */
static inline bool show_tables(const struct summary *s, const uint8_t *data,
			       size_t len, FILE *f)
{
	struct select all = {.from_ns = 0};
	struct page page = {.out = f, .width = 80};
	struct model_sites sites = {0};
	const struct section *section;
	bool ok = !model_sites(s, 3, &sites);
	for (size_t i = 0; ok && (section = section_at(i)) != NULL; i++)
		for (int format = SECTION_TEXT; format <= SECTION_JSON;
		     format++) {
			struct summary_input input = {.name = "x"};
			struct section_options o = {
				.format = (enum section_format)format,
				.sort = i % 2 ? section->column[1].name : NULL,
				.top = i % 2 ? 5 : 0};
			if (trace_reader_open_mem(data, len, &input.reader,
						  NULL))
				return false;
			struct section_source src = {s, &input, 1, &all,
						     &sites};
			/* A table may have nothing to show, and say so. */
			ok &= section_print(section, &src, &o, &page, NULL) !=
			      SMCO_NOMEM;
			trace_reader_close(input.reader);
		}
	struct summary_input input = {.name = "x"};
	ok = ok && !trace_reader_open_mem(data, len, &input.reader, NULL);
	if (ok)
		ok = !records_print_juwel(&input, 1, &all, f, NULL);
	trace_reader_close(input.reader);
	model_sites_free(&sites);
	return ok;
}

/* A page: parts of the data, in which nothing begins or ends an element, and a
 * script; no other script's end. */
static inline bool page_is_whole(const char *text)
{
	static const char part[] = "<script type=\"application/json\" id=\"";
	static const char end[] = "</script";
	size_t nr_parts = 0, nr_ends = 0;
	for (const char *at = text; (at = strstr(at, part)); nr_parts++) {
		at = strchr(at + 1, '<');
		if (!at || strncmp(at, end, strlen(end)))
			return false;
	}
	for (const char *at = text; (at = strstr(at, end)); at++)
		nr_ends++;
	return nr_parts && nr_ends == nr_parts + 1;
}

static inline bool show_page(const struct summary *s)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	bool ok = !html_print(s, f, NULL);
	fclose(f);
	ok &= page_is_whole(text);
	free(text);
	return ok;
}

/* Text and JSON of the trace, @tables as well; false if it is none, or if a
 * byte came out that could steer a terminal. */
static inline bool show(const uint8_t *data, size_t len, bool tables)
{
	struct summary_style style = {.width = 80, .max_frames = 3};
	struct trace_reader *r;
	struct summary *s;
	char *text = NULL;
	size_t size = 0;
	if (trace_reader_open_mem(data, len, &r, NULL))
		return false;
	bool ok = !summary_load(r, &s, NULL);
	trace_reader_close(r);
	if (!ok)
		return false;
	FILE *f = open_memstream(&text, &size);
	summary_print(s, f, "x.trace", &style);
	ok = !summary_print_json(s, f, NULL) &&
	     (!tables || (show_tables(s, data, len, f) && show_page(s)));
	fclose(f);
	for (size_t i = 0; i < size; i++)
		ok &= text[i] == '\n' || text[i] == '\r' || (text[i] & 0x80) ||
		      text[i] >= ' ';
	free(text);
	summary_free(s);
	return ok;
}

/* The bytes of the file at @path; the caller frees. NULL if unreadable. */
static inline uint8_t *show_load(const char *path, size_t *size_ret)
{
	struct stat st;
	FILE *f = fopen(path, "r");
	if (!f || fstat(fileno(f), &st) < 0)
		return NULL;
	uint8_t *data = malloc((size_t)st.st_size);
	*size_ret = data ? fread(data, 1, (size_t)st.st_size, f) : 0;
	fclose(f);
	return data;
}

#endif
