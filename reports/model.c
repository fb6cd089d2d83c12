#include "reports/model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reports/names.h"

enum nap_end model_nap_end(const struct ev_nap *nap)
{
	if (nap->flags & NAP_FREED)
		return END_FREED;
	if (nap->flags & (NAP_ONGOING | NAP_AT_EXIT))
		return END_NEVER;
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
		[END_READ] = "read",	   [END_WRITE] = "write",
		[END_SYSCALL] = "syscall", [END_ACCESS] = "access",
		[END_FREED] = "freed",	   [END_NEVER] = "never",
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
	if (nap->length_ns > sum->longest_ns)
		sum->longest_ns = nap->length_ns;
	sum->byte_seconds += (double)nap->size * (double)nap->length_ns / 1e9;
}

static void sum_add(struct nap_sum *to, const struct nap_sum *from)
{
	to->nr += from->nr;
	to->nr_objects += from->nr_objects;
	to->nr_never_accessed += from->nr_never_accessed;
	for (size_t i = 0; i < END_NR; i++)
		to->nr_by_end[i] += from->nr_by_end[i];
	to->unused_bytes += from->unused_bytes;
	if (from->longest_ns > to->longest_ns)
		to->longest_ns = from->longest_ns;
	to->byte_seconds += from->byte_seconds;
}

static void totals_add(struct ev_site *to, const struct ev_site *from)
{
	to->nr_allocs += from->nr_allocs;
	to->bytes += from->bytes;
	to->live_bytes += from->live_bytes;
	to->nr_live += from->nr_live;
	to->nr_watched += from->nr_watched;
	to->nr_naps += from->nr_naps;
}

/* -------------------------------------------------------------- loading --- */

/* Room for one more in the array at @array; false if out of memory. */
static bool room(void *array, size_t *cap, size_t nr, size_t item)
{
	void *p;
	if (nr < *cap)
		return true;
	if (nr >= UINT32_MAX / 2)
		return false;
	size_t more = *cap ? *cap * 2 : 64;
	memcpy(&p, array, sizeof(p));
	p = reallocarray(p, more, item);
	if (!p)
		return false;
	memcpy(array, &p, sizeof(p));
	*cap = more;
	return true;
}

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
	if (!room(&s->stack, &s->cap_stacks, s->nr_stacks, sizeof(*s->stack)) ||
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
	if (!room(&s->nap, &s->cap_naps, s->nr_naps, sizeof(*s->nap)) ||
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
	if (!room(&s->ledger, &s->cap_ledger, s->nr_ledger, sizeof(*s->ledger)))
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
	    !room(&s->process, &s->cap_processes, s->nr_processes,
		  sizeof(*s->process)) ||
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
	s->duration_ns = model_meta_u64(s, "duration_ns", s->duration_ns);
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

/* ---------------------------------------------------------------- sites --- */

struct site_key {
	const struct summary *s;
	const struct model_site *sites;
	const struct model_stack *stack;
	unsigned depth;
};

static size_t shown_frames(const struct model_stack *stack, unsigned depth)
{
	return depth && stack->nr_frames > depth ? depth : stack->nr_frames;
}

static bool look_alike(const struct model_stack *a, const struct model_stack *b,
		       unsigned depth)
{
	size_t n = shown_frames(a, depth);
	if (n != shown_frames(b, depth))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!names_same_frame(&a->frames[i], &b->frames[i]))
			return false;
	return true;
}

static bool same_site(const void *ctx, uint32_t value)
{
	const struct site_key *k = ctx;
	return look_alike(k->sites[value].stack, k->stack, k->depth);
}

static uint64_t hash_site(const struct model_stack *stack, unsigned depth)
{
	uint64_t hash = 0;
	for (size_t i = 0; i < shown_frames(stack, depth); i++) {
		const struct trace_frame *f = &stack->frames[i];
		hash = hindex_hash(hash, f->function, strlen(f->function));
		hash = hindex_hash(hash, &f->line, sizeof(f->line));
		if (!*f->function)
			hash = hindex_hash(hash, &f->offset, sizeof(f->offset));
	}
	return hash;
}

static int compare_sites(const void *va, const void *vb)
{
	const struct model_site *a = va, *b = vb;
	if (a->sum.byte_seconds != b->sum.byte_seconds)
		return a->sum.byte_seconds > b->sum.byte_seconds ? -1 : 1;
	int c = -compare_u64(a->totals.bytes, b->totals.bytes);
	return c ? c : compare_u64(a->stack->id, b->stack->id);
}

static int join_site(struct summary const *s, uint32_t i, unsigned depth,
		     struct hindex *index, struct model_sites *sites)
{
	const struct model_stack *stack = &s->stack[i];
	struct site_key key = {s, sites->site, stack, depth};
	uint64_t hash = hash_site(stack, depth);
	uint32_t found;
	if (!hindex_find(index, hash, same_site, &key, &found)) {
		found = (uint32_t)sites->nr;
		if (!hindex_add(index, hash, found))
			return SMCO_NOMEM;
		sites->site[sites->nr++] = (struct model_site){
			.stack = stack,
		};
	}
	struct model_site *site = &sites->site[found];
	size_t n = site->nr_stacks;
	if (!(n & (n - 1))) { /* 0 or a power of two: full */
		uint32_t *m =
			reallocarray(site->member, n ? n * 2 : 1, sizeof(*m));
		if (!m)
			return SMCO_NOMEM;
		site->member = m;
	}
	site->member[site->nr_stacks++] = i;
	if (!look_alike(site->stack, stack, 0))
		site->cut_alike = true;
	totals_add(&site->totals, &stack->totals);
	sum_add(&site->sum, &stack->sum);
	return SMCO_OK;
}

int model_sites(const struct summary *s, unsigned depth,
		struct model_sites *ret)
{
	struct hindex index = {0};
	int rc = SMCO_OK;
	*ret = (struct model_sites){0};
	ret->site = calloc(s->nr_stacks ? s->nr_stacks : 1, sizeof(*ret->site));
	if (!ret->site)
		return SMCO_NOMEM;
	for (size_t i = 0; i < s->nr_stacks && !rc; i++)
		rc = join_site(s, (uint32_t)i, depth, &index, ret);
	hindex_free(&index);
	if (rc) {
		model_sites_free(ret);
		return rc;
	}
	if (ret->nr)
		qsort(ret->site, ret->nr, sizeof(*ret->site), compare_sites);
	return SMCO_OK;
}

void model_sites_free(struct model_sites *sites)
{
	for (size_t i = 0; i < sites->nr; i++)
		free(sites->site[i].member);
	free(sites->site);
	*sites = (struct model_sites){0};
}

/* ------------------------------------------------------------- culprits --- */

static int compare_culprits(const void *va, const void *vb)
{
	const struct model_culprit *a = va, *b = vb;
	int c = compare_u64(a->stack, b->stack);
	if (!c)
		c = compare_u64(a->end, b->end);
	return c ? c : compare_u64((uint32_t)a->syscall, (uint32_t)b->syscall);
}

/* Fold equal neighbours of a sorted array; the one with most naps. */
static struct model_culprit most_of(struct model_culprit *c, size_t nr)
{
	struct model_culprit best = {.syscall = -1};
	if (nr)
		qsort(c, nr, sizeof(*c), compare_culprits);
	for (size_t i = 0; i < nr;) {
		struct model_culprit group = c[i];
		size_t j = i + 1;
		for (; j < nr && !compare_culprits(&c[i], &c[j]); j++) {
			group.nr += c[j].nr;
			group.nr_nearby += c[j].nr_nearby;
		}
		if (group.nr > best.nr)
			best = group;
		i = j;
	}
	return best;
}

void model_culprits(const struct summary *s, const struct model_site *site,
		    struct model_culprit *ended_ret,
		    struct model_culprit *last_ret)
{
	*ended_ret = *last_ret = (struct model_culprit){.syscall = -1};
	size_t nr = site->sum.nr, nr_ended = 0, nr_last = 0;
	struct model_culprit *ended = calloc(nr ? nr : 1, sizeof(*ended));
	struct model_culprit *last = calloc(nr ? nr : 1, sizeof(*last));
	for (size_t i = 0; ended && last && i < site->nr_stacks; i++) {
		const struct model_stack *stack = &s->stack[site->member[i]];
		for (size_t j = 0; j < stack->nr_naps; j++) {
			const struct ev_nap *n =
				&s->nap[stack->first_nap + j].nap;
			enum nap_end end = model_nap_end(n);
			bool nearby = n->flags & NAP_END_NEARBY;
			/* A system call says something without a stack. */
			if (n->ended_stack || end == END_SYSCALL)
				ended[nr_ended++] = (struct model_culprit){
					n->ended_stack, 1, nearby, end,
					n->ended_syscall};
			if (n->last_stack)
				last[nr_last++] = (struct model_culprit){
					n->last_stack, 1, 0, END_ACCESS, -1};
		}
	}
	if (ended && last) {
		*ended_ret = most_of(ended, nr_ended);
		*last_ret = most_of(last, nr_last);
	}
	free(ended);
	free(last);
}
