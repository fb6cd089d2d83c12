#include "reports/sink.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>
#include <zstd.h>

#include "reports/dictionary.h"
#include "reports/keeper.h"
#include "reports/outfile.h"
#include "reports/packer.h"

#define ZSTD_LEVEL	   3
#define ZSTD_LEVEL_PRESET  19 /* schema and meta, but for long ones: */
#define PRESET_LONG	   8192
#define ZSTD_LEVEL_RECORDS 1  /* columns: more effort gains nothing */
#define ZSTD_LEVEL_BEHIND  -3 /* of records when more than so many wait: */
#define BEHIND		   (SINK_PLACES / 4)
#define ZSTD_WORTH	   96		/* smaller payloads are not tried */
#define KEEP_FROM_NS	   NSEC_PER_SEC /* age; what is over sooner is cheap */
#define INDEX_EVERY	   64 /* record chunks described by an index chunk */
#define INDEX_WORTH	   (64u << 10) /* bytes of these; less is soon read */

struct index_entry {
	uint64_t pos;
	uint32_t nr_items;
	uint64_t earliest_ns, latest_ns, threads;
};

struct sink {
	struct outfile file;
	struct keeper *keeper; /* NULL as long as the run is short */
	uint64_t opened_ns;
	char *path; /* for messages */
	pid_t pid;  /* whose thread it is */
	pthread_t thread;
	bool has_thread;

	pthread_mutex_t lock;
	pthread_cond_t work, done;
	struct chunk place[SINK_PLACES];
	uint64_t nr_put, nr_done; /* places handed over, and written */
	bool stop, publish;
	atomic_bool failed;
	struct smco_err failure; /* set once, before @failed */
	struct trace_stats stats;

	/* of the thread, and of who closes when it has ended */
	uint32_t seq;
	bool is_behind; /* rather larger than late, and then dropped */
	ZSTD_CCtx *zstd;
	struct packer *packer;
	struct bbuf coded, out;
	struct index_entry index[INDEX_EVERY];
	uint32_t nr_index;
	uint64_t index_bytes; /* of the chunks in it */
};

/* ------------------------------------------------------------- the thread ---
 */

static void fail(struct sink *s, enum smco_code code, int error)
{
	if (atomic_load(&s->failed))
		return;
	if (code == SMCO_NOMEM)
		smco_fail(&s->failure, code, 0, "out of memory for the trace");
	else
		smco_fail(&s->failure, code, error,
			  "cannot write trace %s, stopped after %llu bytes",
			  s->path, (unsigned long long)s->file.size);
	atomic_store(&s->failed, true);
}

/* @c as it is to be stored, in place or in @s->coded; fills in what @h says of
 * that. */
static const uint8_t *code_chunk(struct sink *s, const struct chunk *c,
				 struct chunk_head *h)
{
	bool is_records = c->type == CHUNK_RECORDS;
	h->raw_size = h->stored_size = (uint32_t)c->body.len;
	bbuf_reset(&s->coded);
	if ((is_records || c->type == CHUNK_STACKS) &&
	    packer_pack(s->packer, c->type, c->nr_items, h->seq, &c->body,
			&s->coded, &h->back)) {
		h->flags = CHUNK_MODELLED | CHUNK_MODELLED_7;
		h->raw_size = h->stored_size = (uint32_t)s->coded.len;
		return s->coded.data;
	}
	bbuf_reset(&s->coded);
	size_t bound = ZSTD_compressBound(c->body.len);
	bool preset = c->type == CHUNK_SCHEMA || c->type == CHUNK_META;
	uint8_t *to = c->body.len < ZSTD_WORTH && !preset
			      ? NULL
			      : bbuf_reserve(&s->coded, bound);
	if (!to)
		return c->body.data;
	bool is_short = preset && c->body.len < PRESET_LONG;
	int level = is_short	   ? ZSTD_LEVEL_PRESET
		    : !is_records  ? ZSTD_LEVEL
		    : s->is_behind ? ZSTD_LEVEL_BEHIND
				   : ZSTD_LEVEL_RECORDS;
	size_t n = ZSTD_compress_usingDict(
		s->zstd, to, bound, c->body.data, c->body.len,
		preset ? dictionary_start : NULL,
		preset ? dictionary_size() : 0, level);
	if (!n || ZSTD_isError(n) || n >= c->body.len - c->body.len / 16)
		return c->body.data;
	h->flags = preset ? CHUNK_ZSTD | CHUNK_DICTIONARY : CHUNK_ZSTD;
	h->stored_size = (uint32_t)n;
	return to;
}

/* Chunk @c to the end of what is written next; its position in the file. */
static uint64_t seal(struct sink *s, const struct chunk *c)
{
	uint64_t pos = s->file.size + s->out.len;
	struct chunk_head h = {
		.type = (uint8_t)c->type,
		.seq = s->seq++,
		.nr_items = c->nr_items,
	};
	const uint8_t *stored = code_chunk(s, c, &h);
	size_t size = h.stored_size;
	h.payload_crc = (uint32_t)crc32_z(0, stored, size);
	size_t at = s->out.len;
	chunk_head_write(&s->out, &h);
	bbuf_put(&s->out, stored, size);
	pthread_mutex_lock(&s->lock);
	s->stats.nr_chunks++;
	s->stats.raw_bytes += c->body.len;
	if (c->type == CHUNK_RECORDS) {
		s->stats.record_raw_bytes += c->body.len;
		s->stats.record_stored_bytes += s->out.len - at;
	}
	pthread_mutex_unlock(&s->lock);
	return pos;
}

static void put_index(struct sink *s)
{
	struct chunk c = {.type = CHUNK_INDEX, .nr_items = s->nr_index};
	uint64_t pos = 0;
	if (s->index_bytes < INDEX_WORTH)
		s->nr_index = c.nr_items = 0;
	for (uint32_t i = 0; i < s->nr_index; i++) {
		const struct index_entry *e = &s->index[i];
		bbuf_varint(&c.body, e->pos - pos);
		bbuf_varint(&c.body, e->nr_items);
		bbuf_varint(&c.body, e->earliest_ns);
		bbuf_varint(&c.body, e->latest_ns - e->earliest_ns);
		bbuf_put(&c.body, &e->threads, sizeof(e->threads));
		pos = e->pos;
	}
	s->nr_index = 0;
	s->index_bytes = 0;
	if (c.body.failed)
		fail(s, SMCO_NOMEM, 0);
	else if (c.nr_items)
		seal(s, &c);
	bbuf_free(&c.body);
}

static void take_in(struct sink *s, const struct chunk *c)
{
	if (c->body.failed) {
		fail(s, SMCO_NOMEM, 0);
		return;
	}
	uint64_t pos = seal(s, c);
	if (c->type != CHUNK_RECORDS)
		return;
	s->index[s->nr_index++] = (struct index_entry){
		pos, c->nr_items, c->earliest_ns, c->latest_ns, c->threads};
	s->index_bytes += s->file.size + s->out.len - pos;
	if (s->nr_index == INDEX_EVERY)
		put_index(s);
}

static void write_out(struct sink *s)
{
	if (s->out.failed)
		fail(s, SMCO_NOMEM, 0);
	if (s->out.len && !atomic_load(&s->failed)) {
		int error = outfile_append(&s->file, s->out.data, s->out.len);
		if (error)
			fail(s, SMCO_SYS, error);
	}
	bbuf_reset(&s->out);
}

/* From its first second on what is in the file gets onto the disk, too. */
static void keep(struct sink *s)
{
	if (!s->keeper && smco_now_ns() - s->opened_ns >= KEEP_FROM_NS)
		s->keeper = keeper_start(s->file.fd);
	keeper_wrote(s->keeper);
}

static void publish(struct sink *s)
{
	struct smco_err err;
	if (!outfile_publish(&s->file, &err) || atomic_load(&s->failed))
		return;
	s->failure = err;
	atomic_store(&s->failed, true);
}

/* What is handed over goes into the file with one write, as far as it is there
 * when the thread comes to it. */
static void *work(void *arg)
{
	struct sink *s = arg;
	pthread_mutex_lock(&s->lock);
	for (;;) {
		while (s->nr_done == s->nr_put && !s->stop && !s->publish)
			pthread_cond_wait(&s->work, &s->lock);
		uint64_t from = s->nr_done, to = s->nr_put;
		bool is_named = s->publish;
		s->publish = false;
		if (from == to && !is_named)
			break;
		pthread_mutex_unlock(&s->lock);
		if (is_named)
			publish(s);
		s->is_behind = to - from > BEHIND;
		for (uint64_t i = from; i < to && !atomic_load(&s->failed); i++)
			take_in(s, &s->place[i % SINK_PLACES]);
		write_out(s);
		keep(s);
		pthread_mutex_lock(&s->lock);
		s->stats.file_bytes = s->file.size;
		s->nr_done = to;
		pthread_cond_broadcast(&s->done);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* Signals are the other threads' business. */
static int start_thread(struct sink *s)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = pthread_create(&s->thread, NULL, work, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	s->has_thread = !error;
	return error;
}

/* ------------------------------------------------------------- its owner ---
 */

int sink_open(const char *path, const void *header, size_t header_len,
	      struct sink **ret, struct smco_err *err)
{
	struct sink *s = calloc(1, sizeof(*s));
	if (!s)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->work, NULL);
	pthread_cond_init(&s->done, NULL);
	s->file.fd = -1;
	s->pid = getpid();
	s->opened_ns = smco_now_ns();
	s->path = strdup(path);
	s->zstd = ZSTD_createCCtx();
	s->packer = packer_create();
	int rc = SMCO_OK;
	if (!s->path || !s->zstd || !s->packer)
		rc = smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	if (!rc)
		rc = outfile_open(&s->file, path, err);
	if (!rc) {
		bbuf_put(&s->out, header, header_len);
		write_out(s);
		rc = sink_failure(s, err);
		int error = rc ? 0 : start_thread(s);
		if (error)
			rc = smco_fail(err, SMCO_SYS, error,
				       "cannot start the trace's thread");
	}
	s->stats.file_bytes = s->file.size;
	if (rc)
		sink_destroy(s);
	else
		*ret = s;
	return rc;
}

int sink_publish(struct sink *s, struct smco_err *err)
{
	return outfile_publish(&s->file, err);
}

void sink_publish_soon(struct sink *s)
{
	pthread_mutex_lock(&s->lock);
	s->publish = true;
	pthread_cond_signal(&s->work);
	pthread_mutex_unlock(&s->lock);
}

struct chunk *sink_take(struct sink *s)
{
	pthread_mutex_lock(&s->lock);
	bool full = s->nr_put - s->nr_done == SINK_PLACES;
	struct chunk *c = &s->place[s->nr_put % SINK_PLACES];
	pthread_mutex_unlock(&s->lock);
	if (full)
		return NULL;
	bbuf_reset(&c->body);
	return c;
}

void sink_submit(struct sink *s)
{
	pthread_mutex_lock(&s->lock);
	s->nr_put++;
	pthread_cond_signal(&s->work);
	pthread_mutex_unlock(&s->lock);
}

int sink_failure(const struct sink *s, struct smco_err *err)
{
	if (!atomic_load(&s->failed))
		return SMCO_OK;
	if (err)
		*err = s->failure;
	return s->failure.code;
}

int sink_drain(struct sink *s, struct smco_err *err)
{
	pthread_mutex_lock(&s->lock);
	while (s->nr_done != s->nr_put)
		pthread_cond_wait(&s->done, &s->lock);
	pthread_mutex_unlock(&s->lock);
	return sink_failure(s, err);
}

bool sink_which(const struct sink *s, struct stat *ret)
{
	return !fstat(s->file.fd, ret);
}

void sink_stats(struct sink *s, struct trace_stats *add)
{
	pthread_mutex_lock(&s->lock);
	add->nr_chunks += s->stats.nr_chunks;
	add->raw_bytes += s->stats.raw_bytes;
	add->record_raw_bytes += s->stats.record_raw_bytes;
	add->record_stored_bytes += s->stats.record_stored_bytes;
	add->file_bytes += s->stats.file_bytes;
	pthread_mutex_unlock(&s->lock);
}

static void stop_thread(struct sink *s)
{
	if (!s->has_thread || s->pid != getpid())
		return;
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_signal(&s->work);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	s->has_thread = false;
}

int sink_close(struct sink *s, uint64_t nr_records, uint64_t nr_dropped,
	       struct smco_err *err)
{
	struct chunk end = {.type = CHUNK_END};
	stop_thread(s); /* it first does what there is */
	int rc = sink_failure(s, err);
	if (!rc) {
		put_index(s);
		bbuf_varint(&end.body, nr_records);
		bbuf_varint(&end.body, nr_dropped);
		seal(s, &end);
		bbuf_free(&end.body);
		write_out(s);
		rc = sink_failure(s, err);
	}
	/* A network file system may report a full disk only now. */
	int error = keeper_stop(s->keeper);
	s->keeper = NULL;
	int close_error = outfile_close(&s->file);
	error = error ? error : close_error;
	if (error && !rc)
		rc = smco_fail(err, SMCO_SYS, error, "cannot write trace %s",
			       s->path);
	sink_destroy(s);
	return rc;
}

void sink_destroy(struct sink *s)
{
	if (!s)
		return;
	stop_thread(s);
	if (s->pid == getpid())
		keeper_stop(s->keeper);
	else
		keeper_forget(s->keeper);
	outfile_close(&s->file);
	ZSTD_freeCCtx(s->zstd);
	for (size_t i = 0; i < SINK_PLACES; i++)
		bbuf_free(&s->place[i].body);
	packer_destroy(s->packer);
	bbuf_free(&s->coded);
	bbuf_free(&s->out);
	free(s->path);
	free(s);
}
