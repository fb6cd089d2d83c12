#include "reports/model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reports/array.h"

enum nap_end model_nap_end(const struct ev_nap *nap)
{
	if (nap->flags & NAP_FREED)
		return END_FREED;
	if (nap->flags & (NAP_ONGOING | NAP_AT_EXIT))
		return END_NEVER;
	if (nap->flags & NAP_UNWATCHED)
		return END_UNWATCHED;
	if (nap->flags & NAP_ENDED_SYSCALL)
		return END_SYSCALL;
	if (nap->flags & NAP_ENDED_WRITE)
		return END_WRITE;
	if (nap->flags & NAP_ENDED_READ)
		return END_READ;
	return END_ACCESS;
}

const char *model_nap_end_name(enum nap_end end)
{
	static const char *const name[END_NR] = {
		[END_READ] = "read",	       [END_WRITE] = "write",
		[END_SYSCALL] = "syscall",     [END_ACCESS] = "access",
		[END_FREED] = "freed",	       [END_NEVER] = "never",
		[END_UNWATCHED] = "unwatched",
	};
	return name[end];
}

uint64_t model_meta_u64(const struct summary *s, const char *key,
			uint64_t fallback)
{
	const char *text = trace_meta(s->reader, key);
	char *end;
	if (!text || *text < '0' || *text > '9')
		return fallback;
	errno = 0;
	uint64_t v = strtoull(text, &end, 10);
	return *end || errno ? fallback : v;
}

const char *model_command(const struct summary *s,
			  const struct model_process *p)
{
	char key[40];
	snprintf(key, sizeof(key), "pid.%u.command", p->pid);
	const char *command = trace_meta(s->reader, key);
	if (!command && p == s->process && s->nr_processes == 1)
		command = trace_meta(s->reader, "command");
	return command && *command ? command : NULL;
}

int64_t model_overhead_ppb(const struct ev_ledger *l, uint64_t spent_ns)
{
	if (l->spent_ns >= l->run_ns)
		return -1;
	double ppb = (double)spent_ns / (double)(l->run_ns - l->spent_ns) * 1e9;
	return ppb < 9e18 ? (int64_t)(ppb + 0.5) : INT64_MAX;
}

/* ----------------------------------------------------------------- sums --- */

static void sum_nap(struct nap_sum *sum, const struct ev_nap *nap,
		    bool new_object)
{
	enum nap_end end = model_nap_end(nap);
	sum->nr++;
	sum->nr_objects += new_object;
	sum->nr_never_accessed += !!(nap->flags & NAP_NEVER_ACCESSED);
	sum->nr_by_end[end]++;
	if (end == END_NEVER)
		sum->unused_bytes += nap->size;
	sum->nr_writes_only += !!(nap->flags & NAP_WRITES_ONLY);
	if (nap->length_ns > sum->longest_ns) {
		sum->longest_ns = nap->length_ns;
		sum->longest_error_ns = nap->error_ns;
	}
	sum->byte_seconds += (double)nap->size * (double)nap->length_ns / 1e9;
}

/* -------------------------------------------------------------- loading --- */

struct id_key { /* a stack or a process */
	const struct summary *s;
	uint32_t id;
};

static bool same_stack_id(const void *ctx, uint32_t value)
{
	const struct id_key *key = ctx;
	return key->s->stack[value].id == key->id;
}

/* Index of the stack @id in s->stack; UINT32_MAX when out of memory. */
static uint32_t stack_of(struct summary *s, uint32_t id)
{
	uint64_t hash = hindex_hash(0, &id, sizeof(id));
	struct id_key key = {s, id};
	uint32_t found;
	if (hindex_find(&s->stack_index, hash, same_stack_id, &key, &found))
		return found;
	if (!ARRAY_ROOM(s->stack, s->nr_stacks, s->cap_stacks) ||
	    !hindex_add(&s->stack_index, hash, (uint32_t)s->nr_stacks))
		return UINT32_MAX;
	struct model_stack *new = &s->stack[s->nr_stacks];
	*new = (struct model_stack){.id = id};
	if (id)
		new->frames = trace_stack(s->reader, id, &new->nr_frames);
	return (uint32_t)s->nr_stacks++;
}

struct nap_key {
	const struct summary *s;
	uint64_t id[4]; /* pid, address, allocation, start */
};

static struct nap_key nap_key(const struct summary *s, const struct ev_nap *n)
{
	return (struct nap_key){s, {n->pid, n->addr, n->alloc_ns, n->start_ns}};
}

static bool same_nap(const void *ctx, uint32_t value)
{
	const struct nap_key *k = ctx;
	struct nap_key other = nap_key(k->s, &k->s->nap[value].nap);
	return !memcmp(k->id, other.id, sizeof(k->id));
}

/* A nap is written when it begins to count, perhaps in between, and when it
 * ends; the last of these is what is known. */
static int take_nap(struct summary *s, const struct record *r)
{
	struct model_nap new = {.object = r->param};
	memcpy(&new.nap, r->payload, sizeof(new.nap));
	new.site = stack_of(s, new.nap.alloc_stack);
	if (new.site == UINT32_MAX)
		return SMCO_NOMEM;
	struct nap_key key = nap_key(s, &new.nap);
	uint64_t hash = hindex_hash(0, key.id, sizeof(key.id));
	uint32_t found;
	if (hindex_find(&s->nap_index, hash, same_nap, &key, &found)) {
		s->nap[found] = new;
		return SMCO_OK;
	}
	if (!ARRAY_ROOM(s->nap, s->nr_naps, s->cap_naps) ||
	    !hindex_add(&s->nap_index, hash, (uint32_t)s->nr_naps))
		return SMCO_NOMEM;
	s->nap[s->nr_naps++] = new;
	return SMCO_OK;
}

static int take_site(struct summary *s, const struct record *r)
{
	uint32_t i = stack_of(s, r->param);
	if (i == UINT32_MAX)
		return SMCO_NOMEM;
	memcpy(&s->stack[i].totals, r->payload, sizeof(s->stack[i].totals));
	return SMCO_OK;
}

static int take_ledger(struct summary *s, const struct record *r)
{
	if (!ARRAY_ROOM(s->ledger, s->nr_ledger, s->cap_ledger))
		return SMCO_NOMEM;
	struct model_ledger *l = &s->ledger[s->nr_ledger++];
	l->time_ns = r->time_ns;
	memcpy(&l->ledger, r->payload, sizeof(l->ledger));
	return SMCO_OK;
}

static bool same_pid(const void *ctx, uint32_t value)
{
	const struct id_key *key = ctx;
	return key->s->process[value].pid == key->id;
}

static struct model_process *process_of(struct summary *s, uint32_t pid,
					bool add)
{
	uint64_t hash = hindex_hash(0, &pid, sizeof(pid));
	struct id_key key = {s, pid};
	uint32_t found;
	if (hindex_find(&s->process_index, hash, same_pid, &key, &found))
		return &s->process[found];
	if (!add ||
	    !ARRAY_ROOM(s->process, s->nr_processes, s->cap_processes) ||
	    !hindex_add(&s->process_index, hash, (uint32_t)s->nr_processes))
		return NULL;
	struct model_process *p = &s->process[s->nr_processes++];
	*p = (struct model_process){.pid = pid, .exit_status = -1};
	return p;
}

static int take_process(struct summary *s, const struct record *r)
{
	struct ev_process ev;
	memcpy(&ev, r->payload, sizeof(ev));
	size_t before = s->nr_processes;
	struct model_process *p = process_of(s, ev.pid, true);
	if (!p)
		return SMCO_NOMEM;
	if (s->nr_processes > before) {
		p->ppid = ev.ppid;
		p->first_why = ev.why;
		p->start_ns = r->time_ns;
	}
	p->end_ns = r->time_ns;
	if (ev.why == 4) {
		p->has_ended = true;
		p->exit_status = ev.exit_status;
	}
	p->was_detached = ev.why == 5;
	return SMCO_OK;
}

static int take_record(struct summary *s, const struct record *r)
{
	static const size_t size[EV_NR] = {
		[EV_NAP] = sizeof(struct ev_nap),
		[EV_SITE] = sizeof(struct ev_site),
		[EV_LEDGER] = sizeof(struct ev_ledger),
		[EV_COVERAGE] = sizeof(struct ev_coverage),
		[EV_PROCESS] = sizeof(struct ev_process),
	};
	s->nr_records++;
	if (r->event >= EV_NR || !size[r->event] ||
	    r->payload_len != size[r->event]) {
		s->nr_unknown++;
		return SMCO_OK;
	}
	if (r->time_ns > s->duration_ns)
		s->duration_ns = r->time_ns;
	switch ((enum event_id)r->event) {
	case EV_NAP:
		return take_nap(s, r);
	case EV_SITE:
		return take_site(s, r);
	case EV_LEDGER:
		return take_ledger(s, r);
	case EV_PROCESS:
		return take_process(s, r);
	case EV_COVERAGE:
		if (r->param < COVER_NR) {
			memcpy(&s->coverage[r->param], r->payload,
			       sizeof(s->coverage[r->param]));
			s->has_coverage[r->param] = true;
		}
		return SMCO_OK;
	case EV_NR:
		break;
	}
	return SMCO_OK;
}

static int compare_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_naps(const void *va, const void *vb)
{
	const struct model_nap *a = va, *b = vb;
	int c = compare_u64(a->site, b->site);
	if (!c)
		c = compare_u64(a->nap.pid, b->nap.pid);
	if (!c)
		c = compare_u64(a->nap.addr, b->nap.addr);
	if (!c)
		c = compare_u64(a->nap.alloc_ns, b->nap.alloc_ns);
	return c ? c : compare_u64(a->nap.start_ns, b->nap.start_ns);
}

static bool same_object(const struct model_nap *a, const struct model_nap *b)
{
	return a->site == b->site && a->nap.pid == b->nap.pid &&
	       a->nap.addr == b->nap.addr && a->nap.alloc_ns == b->nap.alloc_ns;
}

static void add_up(struct summary *s)
{
	if (s->nr_naps)
		qsort(s->nap, s->nr_naps, sizeof(*s->nap), compare_naps);
	for (size_t i = 0; i < s->nr_naps; i++) {
		const struct model_nap *n = &s->nap[i];
		struct model_stack *stack = &s->stack[n->site];
		struct model_process *p = process_of(s, n->nap.pid, false);
		bool is_new = !i || !same_object(n, n - 1);
		if (!stack->nr_naps++)
			stack->first_nap = i;
		sum_nap(&stack->sum, &n->nap, is_new);
		sum_nap(&s->sum, &n->nap, is_new);
		if (p)
			sum_nap(&p->sum, &n->nap, is_new);
	}
	s->duration_ns = model_meta_u64(s, "elapsed_ns", s->duration_ns);
}

int summary_load(struct trace_reader *r, struct summary **ret,
		 struct smco_err *err)
{
	struct summary *s = calloc(1, sizeof(*s));
	if (!s)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	s->reader = trace_reader_ref(r);
	struct record record;
	int rc;
	while ((rc = trace_next(r, &record, NULL)) != 0) {
		if (rc < 0)
			continue; /* counted; the next chunk may be whole */
		rc = take_record(s, &record);
		if (rc) {
			summary_free(s);
			return smco_fail(err, rc, 0,
					 "the trace does not fit into memory");
		}
	}
	add_up(s);
	*ret = s;
	return SMCO_OK;
}

void summary_free(struct summary *s)
{
	if (!s)
		return;
	hindex_free(&s->nap_index);
	hindex_free(&s->stack_index);
	hindex_free(&s->process_index);
	free(s->nap);
	free(s->stack);
	free(s->ledger);
	free(s->process);
	trace_reader_close(s->reader);
	free(s);
}
