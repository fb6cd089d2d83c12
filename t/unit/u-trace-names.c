/*
 * Frames that get names after the stacks that have them: each stack is defined
 * once, and is read with its names; a frame means the same in all of them.
 */
#include "t/unit/tap.h"

#include <stdio.h>
#include <string.h>

#include "reports/chunk-head.h"
#include "reports/disk.h"
#include "reports/trace.h"
#include "t/unit/scratch.h"
#include "t/unit/trace-show.h"

static struct trace_frame bare(uint64_t offset, enum trace_naming naming)
{
	return (struct trace_frame){.function = "",
				    .file = "",
				    .module = "/usr/bin/prog",
				    .build_id = "c0ffee",
				    .offset = offset,
				    .naming = (uint8_t)naming};
}

static struct trace_frame named(uint64_t offset, const char *function,
				uint32_t line, bool inlined)
{
	struct trace_frame f = bare(offset, TRACE_FINAL);
	f.function = function;
	f.file = "prog.c";
	f.line = line;
	f.inlined = inlined;
	return f;
}

/* What stack @id is read as: "FUNCTION:LINE" of each frame. */
static const char *stack_text(struct trace_reader *r, uint32_t id)
{
	static char text[256];
	size_t nr = 0, len = 0;
	const struct trace_frame *f = trace_stack(r, id, &nr);
	text[0] = '\0';
	for (size_t i = 0; f && i < nr && len < sizeof(text); i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"%s%s:%u%s@%llx", i ? " " : "",
					f[i].function, f[i].line,
					f[i].inlined ? "i" : "",
					(unsigned long long)f[i].offset);
	return text;
}

/* How many chunks of @type there are in the file, and their bytes. */
static unsigned chunks_of(const char *path, enum chunk_type type,
			  size_t *bytes_ret)
{
	struct chunk_head h;
	unsigned nr = 0;
	size_t size = 0, next;
	uint8_t *data = show_load(path, &size);
	*bytes_ret = 0;
	for (size_t at = sizeof(struct disk_header); at < size; at = next) {
		next = show_chunk(data, size, at, &h);
		if (h.type == type) {
			nr++;
			*bytes_ret += next - at;
		}
	}
	free(data);
	return nr;
}

static void names(const char *path)
{
	struct trace_writer *w = NULL;
	struct trace_reader *r = NULL;
	struct trace_frame leaf = bare(0x10, TRACE_AT),
			   call = bare(0x10, TRACE_CALL),
			   out = bare(0x20, TRACE_CALL),
			   unknown = bare(0x30, TRACE_CALL);
	struct trace_frame one[] = {leaf, call, out, unknown};
	struct trace_frame two[] = {call, call, out};
	struct trace_frame in[] = {named(0x20, "inner", 7, true),
				   named(0x20, "outer", 9, false)};
	struct trace_frame f;
	size_t bytes;
	check_int(trace_writer_create(path, 5, &w, NULL), 0);
	trace_put_stack(w, 1, one, 4);
	trace_put_stack(w, 2, two, 3);
	trace_flush(w, NULL);
	f = named(0x10, "leaf", 3, false);
	check_int(trace_name_frame(w, &leaf, &f, 1), 0);
	f = named(0x10, "call", 2, false);
	check_int(trace_name_frame(w, &call, &f, 1), 0);
	check_int(trace_name_frame(w, &out, in, 2), 0);
	check_int(trace_name_frame(w, &out, in, 2), 0); /* as it is */
	check_int(trace_name_frame(w, &out, in, 1), SMCO_BUSY);
	f = bare(0x30, TRACE_FINAL);
	check_int(trace_name_frame(w, &unknown, &f, 1), 0);
	check_int(trace_name_frame(w, &unknown, in, 2), SMCO_BUSY);
	trace_put_stack(w, 3, two + 1, 2); /* also one that comes later */
	two[0] = named(0x10, "replaced", 4, false);
	two[2] = bare(0x20, TRACE_FINAL);
	trace_put_stack(w, 4, two, 3);
	check_int(trace_writer_close(w, NULL), 0);

	check_int(trace_reader_open(path, &r, NULL), 0);
	check_str(stack_text(r, 1),
		  "leaf:3@10 call:2@10 inner:7i@20 outer:9@20 :0@30");
	check_str(stack_text(r, 2),
		  "call:2@10 call:2@10 inner:7i@20 outer:9@20");
	check_str(stack_text(r, 3), "call:2@10 inner:7i@20 outer:9@20");
	check_str(stack_text(r, 4), "replaced:4@10 call:2@10 :0@20");
	trace_reader_close(r);
	check_int(chunks_of(path, CHUNK_NAMES, &bytes), 1);
	/* head 12, three items of 3, 3 and 4 bytes: 0x30 is as it was */
	check_int(bytes, 12 + 10);
}

/* Stacks cost the same with names and without. */
static void once(const char *path)
{
	size_t bytes[2], of_names;
	for (unsigned with = 0; with < 2; with++) {
		struct trace_writer *w = NULL;
		check_int(trace_writer_create(path, 5, &w, NULL), 0);
		for (uint32_t id = 1; id <= 400; id++) {
			struct trace_frame f[20];
			for (uint32_t i = 0; i < 20; i++)
				f[i] = bare(i * 64 + id % (i + 1), TRACE_CALL);
			trace_put_stack(w, id, f, 20);
			if (id % 100 == 0)
				trace_sync(w, NULL);
		}
		for (uint32_t i = 0; i < 20 && with; i++)
			for (uint32_t j = 0; j <= i; j++) {
				struct trace_frame f =
					bare(i * 64 + j, TRACE_CALL);
				struct trace_frame g[2] = {
					named(f.offset, "inlined", j, true),
					named(f.offset, "function", i, false)};
				trace_name_frame(w, &f, g + j % 2, 2 - j % 2);
			}
		check_int(trace_writer_close(w, NULL), 0);
		check_int(chunks_of(path, CHUNK_STACKS, &bytes[with]), 4);
		check_int(chunks_of(path, CHUNK_NAMES, &of_names), with);
	}
	check_int(bytes[1], bytes[0]);
	check(of_names < 210 * 2);
}

/* A stack stays below its most frames, and all together below theirs. */
static void spread(const char *path)
{
	const uint32_t nr = 4200, limit = 4 << 20;
	struct trace_writer *w = NULL;
	struct trace_reader *r = NULL;
	struct trace_frame many[NAMES_MAX_FRAMES], f[17];
	size_t got = 0, whole = 0, as_defined = 0;
	for (uint32_t i = 0; i < NAMES_MAX_FRAMES; i++)
		many[i] = named(1, "deep", i, true);
	for (uint32_t i = 0; i < 17; i++)
		f[i] = bare(1, TRACE_CALL);
	check_int(trace_writer_create(path, 5, &w, NULL), 0);
	for (uint32_t id = 1; id <= nr; id++)
		trace_put_stack(w, id, f, 17);
	check_int(trace_name_frame(w, f, many, NAMES_MAX_FRAMES), 0);
	check_int(trace_writer_close(w, NULL), 0);
	check_int(trace_reader_open(path, &r, NULL), 0);
	for (uint32_t id = 1; id <= nr; id++) {
		trace_stack(r, id, &got);
		whole += got == 1024;
		as_defined += got == 17;
	}
	check_int(whole, limit / (1024 - 17));
	check_int(whole + as_defined, nr);
	trace_reader_close(r);
}

/* Names of itself, in a circle, of what is unknown; none, too many. */
static void hostile(const char *path)
{
	static const struct {
		const char *bytes;
		unsigned len, nr;
		const char *text; /* of stack 1, frames 1 and 2 */
		unsigned nr_damaged;
	} t[] = {
		{"\2\2\2\0", 4, 1, "a:1@1 a:1@1 b:2@2", 0},
		{"\2\1\4\2\1\1", 6, 2, "b:2@2 a:1@1", 0},
		{"\2\1\164", 3, 1, ":0@0 b:2@2", 0},
		{"\164\1\2", 3, 1, "a:1@1 b:2@2", 0},
		{"\2\0", 2, 1, "a:1@1 b:2@2", 1},
		{"\2\101\2", 3, 1, "a:1@1 b:2@2", 1},
		{"\2\1\4\2", 4, 2, "b:2@2 b:2@2", 1},
		{"", 0, 1, "a:1@1 b:2@2", 1},
	};
	struct trace_frame f[] = {named(1, "a", 1, false),
				  named(2, "b", 2, false)};
	struct trace_writer *w = NULL;
	struct trace_reader *r = NULL;
	size_t size = 0;
	check_int(trace_writer_create(path, 5, &w, NULL), 0);
	trace_put_stack(w, 1, f, 2);
	trace_sync(w, NULL);
	trace_writer_destroy(w);
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		uint8_t *data = show_load(path, &size);
		struct bbuf b = {0};
		bbuf_put(&b, data, size);
		const struct chunk_head h = {.type = CHUNK_NAMES,
					     .seq = 4,
					     .nr_items = t[i].nr,
					     .stored_size = t[i].len,
					     .raw_size = t[i].len};
		chunk_head_write(&b, &h);
		bbuf_put(&b, t[i].bytes, t[i].len);
		show_sign(b.data, b.len);
		check_int(trace_reader_open_mem(b.data, b.len, &r, NULL), 0);
		check_str(stack_text(r, 1), t[i].text);
		check_int(trace_nr_damaged(r), t[i].nr_damaged);
		trace_reader_close(r);
		bbuf_free(&b);
		free(data);
	}
}

int main(void)
{
	const char *path = scratch_path("x.trace");
	names(path);
	once(path);
	spread(path);
	hostile(path);
	return tap_done();
}
