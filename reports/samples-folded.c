/* Stacks in the form that flamegraph.pl and its kin read. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "reports/bytes.h"
#include "reports/line.h"
#include "reports/model.h"
#include "reports/names.h"

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
static void put_command(struct bbuf *b, const struct summary *s,
			const struct sample_stack *stack)
{
	char word[256], key[40];
	struct model_process p = {.file = stack->file, .pid = stack->pid};
	const char *command = model_command(s, &p);
	if (!command) {
		snprintf(key, sizeof(key), "%" PRIu32, stack->pid);
		command = key;
	}
	size_t n = strcspn(command, " ");
	if (n >= sizeof(word))
		n = sizeof(word) - 1;
	memcpy(word, command, n);
	word[n] = '\0';
	const char *slash = strrchr(word, '/');
	put_clean(b, slash && slash[1] ? slash + 1 : word);
}

static char *fold(const struct summary *s, const struct sample_stack *stack)
{
	struct bbuf b = {0};
	char name[NAMES_MAX];
	put_command(&b, s, stack);
	for (size_t i = stack->nr_frames; i--;) {
		const struct trace_frame *f = &stack->frame[i];
		bbuf_put(&b, ";", 1);
		put_clean(&b, sample_function_name(f, name));
		if (sample_is_kernel(f))
			bbuf_put(&b, "_[k]", 4);
		else if (f->inlined)
			bbuf_put(&b, "_[i]", 4);
	}
	bbuf_put(&b, "", 1);
	char *text = b.failed ? NULL : strdup((const char *)b.data);
	bbuf_free(&b);
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

int samples_print_folded(const struct summary *s, FILE *out,
			 struct smco_err *err)
{
	const struct model_samples *m = &s->samples;
	if (!m->nr_stacks)
		return samples_none(err);
	struct folded *all = calloc(m->nr_stacks, sizeof(*all));
	size_t nr = 0;
	int rc = all ? SMCO_OK : SMCO_NOMEM;
	for (; !rc && nr < m->nr_stacks; nr++) {
		all[nr] = (struct folded){fold(s, &m->stack[nr]),
					  m->stack[nr].nr};
		if (!all[nr].text)
			rc = SMCO_NOMEM;
	}
	if (!rc)
		print_joined(all, nr, out);
	while (all && nr)
		free(all[--nr].text);
	free(all);
	if (rc)
		return smco_fail(err, rc, 0, "out of memory");
	if (ferror(out))
		return smco_fail(err, SMCO_SYS, errno, "cannot write");
	return SMCO_OK;
}
