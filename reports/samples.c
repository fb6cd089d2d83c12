#include "reports/samples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/array.h"
#include "reports/model.h"
#include "reports/names.h"
#include "reports/units.h"

static const struct trace_frame unknown = {
	.function = "", .file = "", .module = "", .build_id = ""};

bool sample_is_kernel(const struct trace_frame *f)
{
	return f->module[0] == '[' && strcmp(f->module, "[vdso]") != 0;
}

const char *sample_function_name(const struct trace_frame *f, char *buf)
{
	if (*f->function)
		return f->function;
	if (!*f->module)
		return "[unknown]";
	if (*f->module == '[')
		return f->module;
	snprintf(buf, NAMES_MAX, "[%.250s]", names_file(f->module));
	return buf;
}

bool samples_were_taken(const struct summary *s)
{
	for (size_t i = 0; i < s->nr_files; i++)
		if (model_file_has_monitor(s->file[i].reader, "samples"))
			return true;
	return false;
}

int samples_none(const struct summary *s, struct smco_err *err)
{
	if (samples_were_taken(s))
		return smco_fail(err, SMCO_NOTFOUND, 0,
				 select_is_all(&s->select)
					 ? "no samples in the trace"
					 : "no samples are selected");
	return smco_fail(err, SMCO_NOTFOUND, 0,
			 "no samples in the trace: they are recorded by "
			 "smco-trace --sample 999");
}

int64_t sample_share_ppb(const struct model_samples *m, double weight)
{
	return m->weight > 0 ? (int64_t)(weight / m->weight * 1e9 + 0.5) : 0;
}

/* --- taking in --- */

struct stack_key {
	const struct model_samples *m;
	uint32_t id[3]; /* file, pid, stack */
};

static bool same_stack(const void *ctx, uint32_t value)
{
	const struct stack_key *k = ctx;
	const struct sample_stack *s = &k->m->stack[value];
	return s->file == k->id[0] && s->pid == k->id[1] && s->id == k->id[2];
}

static struct sample_stack *stack_of(struct model_samples *m,
				     struct trace_reader *reader,
				     const struct stack_key *k,
				     uint32_t id_in_file)
{
	/* There are few stacks, and many samples. */
	uint32_t *recent = &m->recent[k->id[2] % SAMPLE_RECENT];
	if (*recent && same_stack(k, *recent - 1))
		return &m->stack[*recent - 1];
	uint64_t hash = hindex_hash(0, k->id, sizeof(k->id));
	uint32_t found;
	if (hindex_find(&m->stack_index, hash, same_stack, k, &found)) {
		*recent = found + 1;
		return &m->stack[found];
	}
	if (!ARRAY_ROOM(m->stack, m->nr_stacks, m->cap_stacks) ||
	    !hindex_add(&m->stack_index, hash, (uint32_t)m->nr_stacks))
		return NULL;
	struct sample_stack *s = &m->stack[m->nr_stacks++];
	*s = (struct sample_stack){
		.file = k->id[0], .pid = k->id[1], .id = k->id[2]};
	if (id_in_file)
		s->frame = trace_stack(reader, id_in_file, &s->nr_frames);
	if (!s->frame || !s->nr_frames) {
		s->frame = &unknown;
		s->nr_frames = 1;
	}
	return s;
}

static void add_to_light(struct model_samples *m, double weight)
{
	if (m->nr == 1 || weight < m->least)
		m->least = weight;
	if (weight > m->most)
		m->most = weight;
	if (weight >= 2 * m->least)
		return;
	if (m->light_sum >= 2 * m->least * (double)m->nr_light) {
		m->light_sum = 0;
		m->nr_light = 0;
	}
	m->light_sum += weight;
	m->nr_light++;
}

uint64_t model_samples_of(const struct model_samples *m,
			  const struct sample_stack *stack)
{
	if (m->most < 2 * m->least || m->light_sum <= 0)
		return stack->nr;
	uint64_t nr =
		units_whole(stack->weight / m->light_sum * (double)m->nr_light);
	return nr ? nr : 1;
}

int model_samples_take(struct model_samples *m, struct trace_reader *reader,
		       uint32_t file, uint32_t id, const struct record *r)
{
	struct ev_sample ev;
	memcpy(&ev, r->payload, sizeof(ev));
	struct stack_key key = {m, {file, ev.pid, id}};
	struct sample_stack *s = stack_of(m, reader, &key, r->param);
	if (!s)
		return SMCO_NOMEM;
	double weight = (double)ev.weight;
	s->nr++;
	s->weight += weight;
	m->nr++;
	m->weight += weight;
	add_to_light(m, weight);
	m->nr_kernel += !!(ev.flags & SAMPLE_KERNEL);
	m->nr_cut += !!(ev.flags & SAMPLE_CUT);
	return SMCO_OK;
}

/* --- by function --- */

struct function_key {
	const struct model_samples *m;
	const struct trace_frame *frame;
};

static bool same_function(const void *ctx, uint32_t value)
{
	const struct function_key *k = ctx;
	const struct trace_frame *f = k->m->function[value].frame;
	return !strcmp(f->function, k->frame->function) &&
	       !strcmp(f->module, k->frame->module);
}

static uint64_t hash_function(const struct trace_frame *frame)
{
	uint64_t hash =
		hindex_hash(0, frame->function, strlen(frame->function));
	return hindex_hash(hash, frame->module, strlen(frame->module));
}

uint32_t model_samples_function(const struct model_samples *m,
				const struct trace_frame *frame)
{
	struct function_key key = {m, frame ? frame : &unknown};
	uint32_t found;
	return hindex_find(&m->function_index, hash_function(key.frame),
			   same_function, &key, &found)
		       ? found
		       : UINT32_MAX;
}

static struct sample_function *function_of(struct model_samples *m,
					   const struct trace_frame *frame)
{
	struct function_key key = {m, frame};
	uint64_t hash = hash_function(frame);
	uint32_t found;
	if (hindex_find(&m->function_index, hash, same_function, &key, &found))
		return &m->function[found];
	if (!ARRAY_ROOM(m->function, m->nr_functions, m->cap_functions) ||
	    !hindex_add(&m->function_index, hash, (uint32_t)m->nr_functions))
		return NULL;
	m->function[m->nr_functions] = (struct sample_function){.frame = frame};
	return &m->function[m->nr_functions++];
}

static int compare_functions(const void *va, const void *vb)
{
	const struct sample_function *a = va, *b = vb;
	if (a->self != b->self)
		return a->self > b->self ? -1 : 1;
	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	int c = strcmp(a->frame->function, b->frame->function);
	return c ? c : strcmp(a->frame->module, b->frame->module);
}

/* Most weight first. */
static int compare_stacks(const void *va, const void *vb)
{
	const struct sample_stack *a = va, *b = vb;
	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return a->pid < b->pid ? -1 : a->pid > b->pid;
}

int model_samples_finish(struct model_samples *m)
{
	hindex_free(&m->stack_index); /* of the order until now */
	memset(m->recent, 0, sizeof(m->recent));
	if (m->nr_stacks)
		qsort(m->stack, m->nr_stacks, sizeof(*m->stack),
		      compare_stacks);
	for (size_t i = 0; i < m->nr_stacks; i++) {
		const struct sample_stack *s = &m->stack[i];
		for (size_t k = 0; k < s->nr_frames; k++) {
			struct sample_function *f =
				function_of(m, &s->frame[k]);
			if (!f)
				return SMCO_NOMEM;
			if (!k) {
				f->nr_self += s->nr;
				f->self += s->weight;
			}
			if (f->last_stack == i + 1)
				continue;
			f->last_stack = i + 1;
			f->nr_total += s->nr;
			f->total += s->weight;
		}
	}
	if (m->nr_functions)
		qsort(m->function, m->nr_functions, sizeof(*m->function),
		      compare_functions);
	hindex_free(&m->function_index); /* of the order until now */
	for (size_t i = 0; i < m->nr_functions; i++)
		if (!hindex_add(&m->function_index,
				hash_function(m->function[i].frame),
				(uint32_t)i))
			return SMCO_NOMEM;
	return SMCO_OK;
}

void model_samples_free(struct model_samples *m)
{
	free(m->stack);
	free(m->function);
	hindex_free(&m->stack_index);
	hindex_free(&m->function_index);
}
