#include "reports/ctf.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reports/bytes.h"
#include "reports/records.h"
#include "reports/schema.h"

#define CTF_MAGIC    UINT32_C(0xC1FC1FC1)
#define MAX_STREAMS  500 /* below what a process may have open */
#define PACKET_BYTES (32u << 10)
#define UNKNOWN_ID   UINT32_MAX /* of events that are not known here */

enum stream_class { CLASS_RECORDS, CLASS_NAMES };

struct stream {
	FILE *file; /* owned */
	struct bbuf body;
	uint64_t first_ns, last_ns;
};

struct ctf {
	const char *path;
	struct stream records[MAX_STREAMS];
	size_t nr;
	struct stream names;
};

/* --------------------------------------------------------------- directory ---
 */

static int fail(const char *path, int error, struct smco_err *err)
{
	return smco_fail(err, error == EACCES ? SMCO_PERM : SMCO_SYS, error,
			 "cannot write %s", path);
}

int ctf_begin(const char *path, struct smco_err *err)
{
	return mkdir(path, 0777) ? fail(path, errno, err) : SMCO_OK;
}

void ctf_abandon(const char *path)
{
	DIR *dir = opendir(path);
	if (!dir)
		return;
	for (const struct dirent *e; (e = readdir(dir)) != NULL;)
		if (!strncmp(e->d_name, "records_", 8) ||
		    !strcmp(e->d_name, "names") ||
		    !strcmp(e->d_name, "metadata"))
			unlinkat(dirfd(dir), e->d_name, 0);
	closedir(dir);
	rmdir(path);
}

static FILE *create(const struct ctf *c, const char *name)
{
	_cleanup_free_ char *path = NULL;
	if (asprintf(&path, "%s/%s", c->path, name) < 0) {
		path = NULL;
		return NULL;
	}
	return fopen(path, "wxe");
}

/* ----------------------------------------------------------------- streams ---
 */

static void put32(struct bbuf *b, uint32_t v)
{
	bbuf_put(b, &v, sizeof(v)); /* x86-64 is little-endian */
}

static void put64(struct bbuf *b, uint64_t v)
{
	bbuf_put(b, &v, sizeof(v));
}

/* The packet's header and context, as metadata_head has them. */
static bool flush_packet(struct stream *s, enum stream_class class)
{
	struct bbuf head = {0};
	if (!s->body.len)
		return !s->body.failed;
	uint64_t bits = (4 + 4 + 4 * 8 + s->body.len) * 8;
	put32(&head, CTF_MAGIC);
	put32(&head, class);
	put64(&head, s->first_ns);
	put64(&head, s->last_ns);
	put64(&head, bits);
	put64(&head, bits);
	bool ok = !head.failed && !s->body.failed &&
		  fwrite(head.data, 1, head.len, s->file) == head.len &&
		  fwrite(s->body.data, 1, s->body.len, s->file) == s->body.len;
	bbuf_free(&head);
	bbuf_reset(&s->body);
	return ok;
}

/*
 * The stream for a record of this time: of those that are not beyond it the
 * one that is furthest, so that as few as possible are needed. NULL: none.
 */
static struct stream *stream_for(struct ctf *c, uint64_t time_ns)
{
	struct stream *best = NULL;
	char name[32];
	for (size_t i = 0; i < c->nr; i++)
		if (c->records[i].last_ns <= time_ns &&
		    (!best || c->records[i].last_ns > best->last_ns))
			best = &c->records[i];
	if (best || c->nr == MAX_STREAMS)
		return best;
	best = &c->records[c->nr];
	snprintf(name, sizeof(name), "records_%zu", c->nr);
	best->file = create(c, name);
	c->nr += best->file != NULL;
	return best->file ? best : NULL;
}

static void begin_event(struct stream *s, uint32_t id, uint64_t time_ns)
{
	if (!s->body.len)
		s->first_ns = time_ns;
	s->last_ns = time_ns;
	put32(&s->body, id);
	put64(&s->body, time_ns);
}

static void put_fields(struct bbuf *b, const struct schema_event *e,
		       const void *payload)
{
	for (size_t i = 0; i < e->nr_fields; i++) {
		uint64_t v = schema_load(&e->field[i], payload);
		if (e->field[i].width == 4)
			put32(b, (uint32_t)v);
		else
			put64(b, v);
	}
}

static bool put_record(struct stream *s, const struct record *r)
{
	const struct schema_event *e = schema_event(r->event);
	bool known = e && e->size == r->payload_len;
	begin_event(s, known ? r->event : UNKNOWN_ID, r->time_ns);
	put32(&s->body, r->cpu);
	put32(&s->body, r->tid);
	put32(&s->body, r->param);
	if (known) {
		put_fields(&s->body, e, r->payload);
	} else {
		put32(&s->body, r->event);
		put32(&s->body, r->payload_len);
		bbuf_put(&s->body, r->payload, r->payload_len);
	}
	return s->body.len < PACKET_BYTES || flush_packet(s, CLASS_RECORDS);
}

static void put_text(struct bbuf *b, const char *text)
{
	bbuf_put(b, text, strlen(text) + 1);
}

static bool put_names(struct ctf *c, struct trace_reader *r)
{
	struct stream *s = &c->names;
	uint32_t id;
	size_t nr = 0;
	s->file = create(c, "names");
	if (!s->file)
		return false;
	for (size_t i = 0; trace_stack_at(r, i, &id); i++) {
		const struct trace_frame *f = trace_stack(r, id, &nr);
		for (size_t j = 0; f && j < nr; j++) {
			begin_event(s, 0, 0);
			put32(&s->body, id);
			put32(&s->body, (uint32_t)j);
			put_text(&s->body, f[j].function);
			put_text(&s->body, f[j].file);
			put32(&s->body, f[j].line);
			put_text(&s->body, f[j].module);
			put_text(&s->body, f[j].build_id);
			put64(&s->body, f[j].offset);
			put32(&s->body, f[j].inlined);
		}
		if (s->body.len >= PACKET_BYTES &&
		    !flush_packet(s, CLASS_NAMES))
			return false;
	}
	return flush_packet(s, CLASS_NAMES);
}

/* ---------------------------------------------------------------- metadata ---
 */

static const char metadata_head[] =
	"/* CTF 1.8 */\n"
	"typealias integer { size = 8; align = 8; signed = false; } := byte;\n"
	"typealias integer { size = 32; align = 8; signed = false; } := u32;\n"
	"typealias integer { size = 64; align = 8; signed = false; } := u64;\n"
	"typealias integer { size = 32; align = 8; signed = true; } := s32;\n"
	"typealias integer { size = 64; align = 8; signed = true; } := s64;\n"
	"trace {\n"
	"	major = 1; minor = 8; byte_order = le;\n"
	"	packet.header := struct { u32 magic; u32 stream_id; };\n"
	"};\n";

static const char metadata_streams[] =
	"typealias integer { size = 64; align = 8; signed = false;\n"
	"	map = clock.session.value; } := time;\n"
	"stream {\n"
	"	id = 0;\n"
	"	packet.context := struct { time timestamp_begin;\n"
	"		time timestamp_end; u64 content_size; u64 packet_size; "
	"};\n"
	"	event.header := struct { u32 id; time timestamp; };\n"
	"	event.context := struct { u32 cpu; u32 thread; u32 parameter; "
	"};\n"
	"};\n"
	"stream {\n"
	"	id = 1;\n"
	"	packet.context := struct { time timestamp_begin;\n"
	"		time timestamp_end; u64 content_size; u64 packet_size; "
	"};\n"
	"	event.header := struct { u32 id; time timestamp; };\n"
	"};\n"
	"event { name = \"frame\"; id = 0; stream_id = 1; fields := struct {\n"
	"	u32 _stack; u32 _depth; string _function; string _file;\n"
	"	u32 _line; string _module; string _build_id; u64 _offset;\n"
	"	u32 _inlined; }; };\n";

/* As a string in TSDL. */
static void put_quoted(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', out);
		fputc(*text < ' ' || *text > '~' ? '?' : *text, out);
	}
	fputc('"', out);
}

static void put_event_class(FILE *out, uint32_t id,
			    const struct schema_event *e)
{
	fprintf(out,
		"event { name = \"%s\"; id = %" PRIu32
		"; stream_id = 0; fields := struct {\n",
		e->name, id);
	for (size_t i = 0; i < e->nr_fields; i++)
		fprintf(out, "	%c%d _%s;\n", e->field[i].is_signed ? 's' : 'u',
			e->field[i].width * 8, e->field[i].name);
	fputs("}; };\n", out);
}

static bool put_metadata(struct ctf *c, struct trace_reader *r)
{
	static const char *const keys[] = {"command", "hostname", "kernel",
					   "version"};
	uint64_t start = trace_start_real_ns(r);
	FILE *out = create(c, "metadata");
	if (!out)
		return false;
	fputs(metadata_head, out);
	fputs("env {\n	tracer_name = \"smco-trace\";\n", out);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		const char *v = trace_meta(r, keys[i]);
		if (!v)
			continue;
		fprintf(out, "	%s = ", keys[i]);
		put_quoted(out, v);
		fputs(";\n", out);
	}
	fprintf(out,
		"	truncated = %d;\n	damaged_chunks = %" PRIu64
		";\n	lost_records = %" PRIu64
		";\n	dropped_records = %" PRIu64 ";\n",
		trace_is_truncated(r), trace_nr_damaged(r), trace_nr_lost(r),
		trace_nr_dropped(r));
	fprintf(out,
		"};\nclock { name = session; freq = 1000000000;\n"
		"	offset_s = %" PRIu64 "; offset = %" PRIu64 "; };\n",
		start / NSEC_PER_SEC, start % NSEC_PER_SEC);
	fputs(metadata_streams, out);
	for (uint32_t id = 1; id < EV_NR; id++)
		if (schema_event(id))
			put_event_class(out, id, schema_event(id));
	fprintf(out,
		"event { name = \"unknown\"; id = %" PRIu32
		"; stream_id = 0; fields := struct {\n"
		"	u32 _event; u32 _length; byte _payload[_length];\n}; "
		"};\n",
		UNKNOWN_ID);
	bool ok = !ferror(out);
	return !fclose(out) && ok;
}

/* ------------------------------------------------------------------- all ---
 */

static int put_records(struct ctf *c, struct trace_reader *r,
		       const struct select *select, struct smco_err *err)
{
	struct record record;
	int rc;
	select_narrow(select, r);
	while ((rc = trace_next(r, &record, NULL)) != 0) {
		if (rc < 0 || !select_record(select, &record))
			continue; /* damage is counted by the reader */
		struct stream *s = stream_for(c, record.time_ns);
		if (!s && c->nr == MAX_STREAMS)
			return smco_fail(err, SMCO_UNSUPPORTED, 0,
					 "records are so far from the order of "
					 "time that CTF would take more than "
					 "%d streams",
					 MAX_STREAMS);
		if (!s || !put_record(s, &record))
			return fail(c->path, errno, err);
	}
	return SMCO_OK;
}

static bool close_stream(struct stream *s, enum stream_class class)
{
	bool ok = !s->file || flush_packet(s, class);
	if (s->file && fclose(s->file))
		ok = false;
	bbuf_free(&s->body);
	return ok;
}

int ctf_write(const struct summary_input *input, const struct select *select,
	      const char *path, struct smco_err *err)
{
	struct ctf *c = calloc(1, sizeof(*c));
	if (!c)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	c->path = path;
	int rc = put_records(c, input->reader, select, err);
	if (!rc &&
	    (!put_names(c, input->reader) || !put_metadata(c, input->reader)))
		rc = fail(path, errno, err);
	bool ok = close_stream(&c->names, CLASS_NAMES);
	for (size_t i = 0; i < c->nr; i++)
		ok &= close_stream(&c->records[i], CLASS_RECORDS);
	if (!rc && !ok)
		rc = fail(path, errno ? errno : EIO, err);
	free(c);
	return rc;
}
