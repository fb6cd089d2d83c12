#include "reports/html.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reports/asleep.h"
#include "reports/html-head.h"
#include "reports/html-image.h"
#include "reports/json-values.h"
#include "reports/model.h"
#include "reports/shortage.h"
#include "reports/terse.h"

#define ASLEEP_BUCKETS 2048
#define ASLEEP_SITES   100 /* with a strip of their own */

/* What bounds the page's size. */
static const struct summary_limits limits = {
	.sites = 1000,
	.naps = 10000,
	.processes = 1000,
	.threads = 250,
	.ranges = 5000,
	.samples = 1500,
	.pieces = 60000,
	.ledger = 4000,
};

/* ------------------------------------------------------------- the strips ---
 */

struct strips {
	const struct summary *s;
	struct model_sites sites;
	size_t nr_sites; /* of these, in the document */
	struct shelf_window naps;
	struct asleep asleep;
	double *value; /* of a strip */
	FILE *out;
	bool failed;
};

static void put(struct strips *w, json_t *v)
{
	if (!v || json_write(v, w->out, JSON_COMPACT | JSON_ENCODE_ANY))
		w->failed = true;
	json_decref(v);
}

static void add_stack(struct strips *w, const struct model_stack *stack)
{
	for (uint64_t i = 0; i < stack->nr_naps; i++) {
		const struct model_nap *m =
			shelf_at(&w->naps, stack->first_nap + i);
		if (!m) {
			w->failed = true;
			return;
		}
		asleep_add(&w->asleep, m->nap.start_ns, m->nap.length_ns,
			   m->nap.size);
	}
}

/* What was added as {"first": N, "bytes": [...]}, without the zeros around. */
static void put_asleep(struct strips *w)
{
	size_t first = 0, end = w->asleep.nr;
	asleep_read(&w->asleep, w->value);
	while (end && w->value[end - 1] < 0.5)
		end--;
	while (first < end && w->value[first] < 0.5)
		first++;
	fprintf(w->out, "{\"first\":%zu,\"bytes\":[", first);
	for (size_t i = first; i < end; i++)
		fprintf(w->out, "%s%.0f", i > first ? "," : "", w->value[i]);
	fputs("]}", w->out);
}

static void put_site(struct strips *w, uint32_t file, size_t index)
{
	const struct model_site *site = &w->sites.site[index];
	double byte_seconds = 0;
	uint64_t nr = 0, longest = 0, unused = 0, allocs = 0, bytes = 0;
	asleep_clear(&w->asleep);
	for (size_t i = 0; i < site->nr_stacks; i++) {
		const struct model_stack *m = &w->s->stack[site->member[i]];
		if (m->file != file)
			continue;
		byte_seconds += m->sum.byte_seconds;
		nr += m->sum.nr;
		unused += m->sum.unused_bytes;
		allocs += m->totals.nr_allocs;
		bytes += m->totals.bytes;
		if (m->sum.longest_ns > longest)
			longest = m->sum.longest_ns;
		if (index < ASLEEP_SITES)
			add_stack(w, m);
	}
	put(w, JSON_OBJECT_OF({"byte_seconds", json_real(byte_seconds)},
			      {"naps", json_of_u64(nr)},
			      {"longest_ns", json_of_u64(longest)},
			      {"unused_bytes", json_of_u64(unused)},
			      {"allocations", json_of_u64(allocs)},
			      {"bytes", json_of_u64(bytes)}));
	fputs(",", w->out);
	if (index < ASLEEP_SITES && nr)
		put_asleep(w);
	else
		fputs("null", w->out);
}

/* Keys that are many, one for each process, are in "processes". */
static json_t *meta_json(struct trace_reader *r)
{
	json_t *meta = json_object();
	const char *key, *value;
	for (size_t i = 0; meta && trace_meta_at(r, i, &key, &value); i++) {
		if (!strncmp(key, "pid.", 4))
			continue;
		json_t *k = json_of_text(key);
		if (!k || json_object_set_new(meta, json_string_value(k),
					      json_of_text(value))) {
			json_decref(meta);
			meta = NULL;
		}
		json_decref(k);
	}
	return meta;
}

static void put_file(struct strips *w, uint32_t file)
{
	const struct model_file *f = &w->s->file[file];
	uint64_t target = model_reader_u64(f->reader, "target_ppb", UINT64_MAX);
	fputs("{\"target_ppb\":", w->out);
	put(w, target >= INT64_MAX ? json_null() : json_of_u64(target));
	fputs(",\"meta\":", w->out);
	put(w, meta_json(f->reader));
	fprintf(w->out, ",\"bucket_ns\":%llu,\"asleep\":",
		(unsigned long long)w->asleep.bucket_ns);
	asleep_clear(&w->asleep);
	for (size_t i = 0; i < w->s->nr_stacks; i++)
		if (w->s->stack[i].file == file)
			add_stack(w, &w->s->stack[i]);
	put_asleep(w);
	fputs(",\"sites\":[", w->out);
	for (size_t i = 0; i < w->nr_sites; i++) {
		fputs(i ? ",\n[" : "\n[", w->out);
		put_site(w, file, i);
		fputs("]", w->out);
	}
	fputs("]}", w->out);
}

static int put_strips(const struct summary *s, FILE *out)
{
	struct strips w = {.s = s, .out = out, .naps.shelf = &s->naps};
	int rc = model_sites(s, 0, &w.sites);
	if (rc)
		return rc;
	w.nr_sites = w.sites.nr < limits.sites ? w.sites.nr : limits.sites;
	fputs("[", out);
	for (size_t i = 0; i < s->nr_files && !rc; i++) {
		rc = asleep_init(&w.asleep, s->file[i].duration_ns,
				 ASLEEP_BUCKETS);
		if (rc)
			break;
		w.value = calloc(w.asleep.nr, sizeof(*w.value));
		fputs(i ? ",\n" : "\n", out);
		if (w.value)
			put_file(&w, (uint32_t)i);
		else
			rc = SMCO_NOMEM;
		free(w.value);
		asleep_deinit(&w.asleep);
	}
	fputs("\n]", out);
	shelf_window_close(&w.naps);
	model_sites_free(&w.sites);
	return w.failed ? SMCO_NOMEM : rc;
}

int html_print(const struct summary *s, FILE *out, struct smco_err *err)
{
	html_image_write(html_page_start, html_page_runs, out);
	if (html_head_print(s, out))
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	html_image_write(html_page_runs, html_page_data, out);
	FILE *data = terse_open(out);
	if (!data)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	int rc = summary_print_json_some(s, &limits, data, err);
	if (!rc) {
		fputs("{\"strips\":", data);
		rc = put_strips(s, data);
		if (rc)
			smco_fail(err, rc, 0, "out of memory for the page");
		else
			fputs("}", data);
	}
	if (fclose(data) && !rc)
		rc = smco_fail(err, SMCO_SYS, errno, "cannot write");
	if (!rc)
		rc = shortage_check(err);
	if (!rc)
		html_image_write(html_page_data, html_page_end, out);
	if (!rc && ferror(out))
		rc = smco_fail(err, SMCO_SYS, errno, "cannot write");
	return rc;
}
