#include "reports/ahead.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "reports/codec.h"

#define NR_BATCHES    8
#define BATCH_RECORDS 2048
#define BATCH_BYTES   (64u << 10) /* of payloads, and one more of any size */

/* Records in a row, and what trace_next() said after them: 1 if it was not
 * asked. */
struct batch {
	struct record record[BATCH_RECORDS];
	uint32_t nr;
	int next;
	uint8_t *
		bytes; /* owned; their payloads; only what is used is touched */
};

struct ahead {
	struct trace_reader *reader;
	struct batch *batch; /* NR_BATCHES; NULL: there is no thread */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t nr_filled, nr_emptied; /* under the lock, as is */
	bool stop;
	/* of the owner, in the batch being emptied */
	uint32_t at;
	bool is_inside; /* there is one */
};

/* ------------------------------------------------------------- the thread ---
 */

static void fill(struct trace_reader *r, struct batch *b)
{
	struct record next;
	size_t used = 0;
	b->nr = 0;
	b->next = 1;
	while (b->nr < BATCH_RECORDS && used < BATCH_BYTES) {
		b->next = trace_next(r, &next, NULL);
		if (b->next <= 0)
			return;
		b->record[b->nr] = next;
		if (next.payload_len) {
			/* Aligned for every event structure. */
			uint8_t *to = b->bytes + used;
			memcpy(to, next.payload, next.payload_len);
			b->record[b->nr].payload = to;
			used += (next.payload_len + 15u) & ~(size_t)15;
		}
		b->nr++;
	}
}

/* When who waits for the other is woken: not for each batch, which would take
 * longer than what is in it. */
static bool is_half_full(const struct ahead *a)
{
	return a->nr_filled - a->nr_emptied == NR_BATCHES / 2;
}

static void *work(void *arg)
{
	struct ahead *a = arg;
	bool more = true;
	while (more) {
		pthread_mutex_lock(&a->lock);
		while (a->nr_filled - a->nr_emptied == NR_BATCHES && !a->stop)
			pthread_cond_wait(&a->changed, &a->lock);
		struct batch *b = &a->batch[a->nr_filled % NR_BATCHES];
		bool stop = a->stop;
		pthread_mutex_unlock(&a->lock);
		if (stop)
			break;
		fill(a->reader, b);
		more = b->next;
		pthread_mutex_lock(&a->lock);
		a->nr_filled++;
		if (is_half_full(a) || !more)
			pthread_cond_signal(&a->changed);
		pthread_mutex_unlock(&a->lock);
	}
	return NULL;
}

/* ------------------------------------------------------------- its owner ---
 */

static void free_batches(struct ahead *a)
{
	for (size_t i = 0; a->batch && i < NR_BATCHES; i++)
		free(a->batch[i].bytes);
	free(a->batch);
	a->batch = NULL;
}

/* Without it all is read here. */
static void start(struct ahead *a)
{
	sigset_t all, before;
	a->batch = calloc(NR_BATCHES, sizeof(*a->batch));
	bool ok = a->batch;
	for (size_t i = 0; ok && i < NR_BATCHES; i++) {
		a->batch[i].bytes = malloc(BATCH_BYTES + CODEC_MAX_PAYLOAD);
		ok = a->batch[i].bytes;
	}
	/* Signals are the owner's business. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ok = ok && !pthread_create(&a->thread, NULL, work, a);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!ok)
		free_batches(a);
}

struct ahead *ahead_begin(struct trace_reader *r, uint64_t at_least_bytes)
{
	struct ahead *a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	a->reader = r;
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->changed, NULL);
	if (!at_least_bytes)
		at_least_bytes = AHEAD_WORTH_BYTES;
	if (trace_file_bytes(r) >= at_least_bytes)
		start(a);
	return a;
}

/* The batch to go on in; the one that was emptied goes back. */
static struct batch *next_batch(struct ahead *a)
{
	pthread_mutex_lock(&a->lock);
	if (a->is_inside) {
		if (is_half_full(a))
			pthread_cond_signal(&a->changed);
		a->nr_emptied++;
	}
	while (a->nr_filled == a->nr_emptied)
		pthread_cond_wait(&a->changed, &a->lock);
	struct batch *b = &a->batch[a->nr_emptied % NR_BATCHES];
	pthread_mutex_unlock(&a->lock);
	a->is_inside = true;
	a->at = 0;
	return b;
}

int ahead_next(struct ahead *a, struct record *ret)
{
	if (!a->batch)
		return trace_next(a->reader, ret, NULL);
	struct batch *b = &a->batch[a->nr_emptied % NR_BATCHES];
	for (;;) {
		if (a->is_inside && a->at < b->nr) {
			*ret = b->record[a->at++];
			return 1;
		}
		if (a->is_inside && !b->next)
			return 0; /* it stays, and the thread has ended */
		if (a->is_inside && b->next < 0) {
			int damage = b->next;
			b->next = 1; /* told */
			return damage;
		}
		b = next_batch(a);
	}
}

void ahead_end(struct ahead *a)
{
	if (!a)
		return;
	if (a->batch) {
		pthread_mutex_lock(&a->lock);
		a->stop = true;
		pthread_cond_signal(&a->changed);
		pthread_mutex_unlock(&a->lock);
		pthread_join(a->thread, NULL);
		free_batches(a);
	}
	pthread_mutex_destroy(&a->lock);
	pthread_cond_destroy(&a->changed);
	free(a);
}
