#include "reports/folded.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "reports/bytes.h"
#include "reports/line.h"
#include "reports/model.h"
#include "reports/names.h"
#include "reports/units.h"

struct folded {
	char *text; /* owned */
	uint64_t nr;
};

/* No separator, control character or broken UTF-8 gets through. */
static void put_clean(struct bbuf *b, const char *s)
{
	while (*s) {
		bool ok;
		size_t n = line_char(s, &ok);
		if (ok && *s == ';')
			bbuf_put(b, ":", 1);
		else if (ok)
			bbuf_put(b, s, n);
		else
			bbuf_put(b, "?", 1);
		s += n;
	}
}

/* The base name of what the process runs. */
static void put_command(struct bbuf *b, const struct summary *s, uint32_t file,
			uint32_t pid)
{
	char word[256], key[40];
	struct model_process p = {.file = file, .pid = pid};
	const char *command = model_command(s, &p);
	if (!command) {
		snprintf(key, sizeof(key), "%" PRIu32, pid);
		command = key;
	}
	size_t n = strcspn(command, " ");
	if (n >= sizeof(word))
		n = sizeof(word) - 1;
	memcpy(word, command, n);
	word[n] = '\0';
	put_clean(b, names_file(word));
}

/* The frames behind the command that is in @b; the text is the caller's, @b is
 * freed. NULL when out of memory. */
static char *fold(struct bbuf *b, const struct trace_frame *frame, size_t nr)
{
	char name[NAMES_MAX];
	for (size_t i = nr; i--;) {
		const struct trace_frame *f = &frame[i];
		bbuf_put(b, ";", 1);
		put_clean(b, sample_function_name(f, name));
		if (sample_is_kernel(f))
			bbuf_put(b, "_[k]", 4);
		else if (f->inlined)
			bbuf_put(b, "_[i]", 4);
	}
	bbuf_put(b, "", 1);
	char *text = b->failed ? NULL : strdup((const char *)b->data);
	bbuf_free(b);
	return text;
}

static int by_text(const void *va, const void *vb)
{
	const struct folded *a = va, *b = vb;
	return strcmp(a->text, b->text);
}

static void print_joined(struct folded *all, size_t nr, FILE *out)
{
	qsort(all, nr, sizeof(*all), by_text);
	for (size_t i = 0; i < nr; i++) {
		uint64_t sum = all[i].nr;
		while (i + 1 < nr && !strcmp(all[i].text, all[i + 1].text))
			sum += all[++i].nr;
		fprintf(out, "%s %" PRIu64 "\n", all[i].text, sum);
	}
}

/* Print @all (freed) of @nr lines, one of which has no text where memory ran
 * out. */
static int print(struct folded *all, size_t nr, FILE *out, struct smco_err *err)
{
	bool failed = false;
	for (size_t i = 0; i < nr; i++)
		failed |= !all[i].text;
	if (!failed)
		print_joined(all, nr, out);
	while (nr)
		free(all[--nr].text);
	free(all);
	if (failed)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	if (ferror(out))
		return smco_fail(err, SMCO_SYS, errno, "cannot write");
	return SMCO_OK;
}

int folded_print_samples(const struct summary *s, FILE *out,
			 struct smco_err *err)
{
	const struct model_samples *m = &s->samples;
	if (!m->nr_stacks)
		return samples_none(s, err);
	struct folded *all = calloc(m->nr_stacks, sizeof(*all));
	if (!all)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	for (size_t i = 0; i < m->nr_stacks; i++) {
		const struct sample_stack *stack = &m->stack[i];
		struct bbuf b = {0};
		put_command(&b, s, stack->file, stack->pid);
		all[i].text = fold(&b, stack->frame, stack->nr_frames);
		all[i].nr = model_samples_of(m, stack);
	}
	return print(all, m->nr_stacks, out, err);
}

int folded_print_naps(const struct summary *s, FILE *out, struct smco_err *err)
{
	static const struct trace_frame unknown = {.function = "",
						   .module = ""};
	if (!s->sum.nr)
		return smco_fail(err, SMCO_NOTFOUND, 0,
				 s->nr_left_out || s->suppressed.nr
					 ? "no naps are selected to make a "
					   "flame graph of"
					 : "no naps in the trace to make a "
					   "flame graph of");
	struct folded *all = calloc(s->nr_stacks, sizeof(*all));
	size_t nr = 0;
	if (!all)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	for (size_t i = 0; i < s->nr_stacks; i++) {
		const struct model_stack *stack = &s->stack[i];
		const struct model_process *root = model_root(s, stack->file);
		struct bbuf b = {0};
		if (!stack->sum.nr)
			continue;
		put_command(&b, s, stack->file, root ? root->pid : 0);
		all[nr].text = stack->nr_frames ? fold(&b, stack->frames,
						       stack->nr_frames)
						: fold(&b, &unknown, 1);
		all[nr++].nr = units_whole(stack->sum.byte_seconds);
	}
	return print(all, nr, out, err);
}
