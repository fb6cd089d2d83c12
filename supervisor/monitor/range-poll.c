/* Looking at variables in memory now and then. */
#include <stdlib.h>
#include <string.h>

#include "supervisor/control/fixed.h"
#include "supervisor/monitor/range-private.h"

/* What lies further apart is not read together. */
#define GAP_BYTES 512
/* What polling may take of the target, at most this often. */
#define SHARE	    8
#define SHORTEST_NS NSEC_PER_MSEC
#define USUAL_NS    (10 * NSEC_PER_MSEC)
#define LONGEST_NS  NSEC_PER_SEC

/* Bytes from its first to its last element; 0 if that is not known, or its
 * elements overlap, as those of no compiler do. */
static uint64_t extent(const struct var_type *t)
{
	uint64_t len = t->width;
	for (unsigned i = t->nr_dims; i-- > 0;) {
		const struct var_dim *d = &t->dim[i];
		uint64_t more;
		if (!d->count || d->stride < len ||
		    __builtin_mul_overflow(d->count - 1, d->stride, &more) ||
		    __builtin_add_overflow(len, more, &len) ||
		    len > RANGE_POLL_MOST)
			return 0;
	}
	return len;
}

/* Others may have it instead, and nothing says who does. */
static bool is_nowhere(const struct range_unit *u, uint64_t addr)
{
	const struct data_export *x = data_export_find(&u->slots, addr);
	return x && !x->slot;
}

bool range_is_kept(const struct range_unit *u, uint32_t i)
{
	const struct variable *var = &u->vars->vars[i];
	return var->flags & VAR_STATIC && !(var->flags & VAR_IN_UNION) &&
	       !var->type.is_const && extent(&var->type) &&
	       !is_nowhere(u,
			   (uint64_t)u->vars->places[var->first_place].offset);
}

/* It is kept, and sensors do not see all of it. */
static bool is_pollable(const struct range_unit *u, uint32_t i)
{
	const struct variable *var = &u->vars->vars[i];
	if (!u->plan)
		return true;
	const struct range_var_info *info = range_plan_variable(u->plan, i);
	return !info->nr_served || info->shared_out || var->type.nr_dims;
}

static int by_addr(const void *pa, const void *pb)
{
	const struct range_poll *a = pa, *b = pb;
	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	return a->var < b->var ? -1 : a->var > b->var;
}

void range_polls_sort(struct range_poll *polls, size_t nr)
{
	if (nr)
		qsort(polls, nr, sizeof(*polls), by_addr);
}

int range_polls_find(struct range_unit *u)
{
	const struct variables *v = u->vars;
	uint64_t total = 0;
	u->polls = calloc(v->nr_vars + 1, sizeof(*u->polls));
	u->is_polled = calloc(v->nr_vars / 8 + 1, 1);
	u->kept = malloc((v->nr_vars + 1) * sizeof(*u->kept));
	if (!u->polls || !u->is_polled || !u->kept)
		return SMCO_NOMEM;
	for (uint32_t i = 0; i < v->nr_vars; i++) {
		if (!range_is_kept(u, i))
			continue;
		u->kept[u->nr_kept++] = i;
		if (!is_pollable(u, i))
			continue;
		uint64_t len = extent(&v->vars[i].type);
		if (total + len > RANGE_POLL_MOST)
			continue;
		uint64_t addr =
			(uint64_t)v->places[v->vars[i].first_place].offset;
		u->polls[u->nr_polls++] = (struct range_poll){
			.var = i,
			.addr = addr,
			.apart = data_export_find(&u->slots, addr),
			.len = len,
			.at = total,
		};
		u->is_polled[i / 8] |= (uint8_t)(1 << i % 8);
		total += len;
	}
	u->poll_bytes = total;
	range_polls_sort(u->polls, u->nr_polls);
	return 0;
}

static bool less(const struct var_type *t, int64_t a, int64_t b)
{
	return t->is_signed ? a < b : (uint64_t)a < (uint64_t)b;
}

void range_value_add(struct range_value *v, const struct var_type *t,
		     int64_t smallest, int64_t largest, uint32_t flags)
{
	bool first = !v->flags;
	if (first || less(t, smallest, v->smallest)) {
		v->smallest = smallest;
		v->is_new = true;
	}
	if (first || less(t, v->largest, largest)) {
		v->largest = largest;
		v->is_new = true;
	}
	v->is_new |= (v->flags | flags) != v->flags;
	v->flags |= flags;
}

int64_t range_value_at(const struct var_type *t, const uint8_t *bytes)
{
	uint64_t word = 0;
	unsigned bits = t->bit_size ? t->bit_size : 8u * t->width;
	memcpy(&word, bytes, t->width);
	word = word >> t->bit_offset << (64 - bits);
	return t->is_signed ? (int64_t)word >> (64 - bits)
			    : (int64_t)(word >> (64 - bits));
}

/* What is there now. */
static void saw(struct range_part *rp, const struct range_poll *p,
		const uint8_t *now)
{
	struct range_value *v = &rp->value[p->var];
	/* Most of them sit still. */
	if (v->hits++ && !memcmp(now, rp->polled + p->at, p->len))
		return;
	const struct var_type *t = &rp->unit->vars->vars[p->var].type;
	int64_t smallest, largest;
	range_elements(t, now, &smallest, &largest);
	range_value_add(v, t, smallest, largest, RANGE_POLLED);
	memcpy(rp->polled + p->at, now, p->len);
}

static void read_apart(struct range_part *rp, const struct range_poll *p,
		       range_poll_see *see, uint8_t *buf)
{
	taddr_t addr;
	uint8_t *own = buf;
	if (!range_part_static(rp, p->addr, &addr) ||
	    (p->len > RANGE_POLL_BYTES && !(own = malloc(p->len))))
		return;
	if (!tmem_read(rp->proc, addr, own, p->len) && range_loaded_still(rp))
		see(rp, p, own);
	if (own != buf)
		free(own);
}

/* The first of @nr that are read together; returns how many. */
static size_t read_some(struct range_part *rp, const struct range_poll *polls,
			size_t nr, range_poll_see *see, uint8_t *buf)
{
	if (polls->apart) {
		read_apart(rp, polls, see, buf);
		return 1;
	}
	uint64_t from = polls->addr, to = from;
	size_t n = 0;
	for (; n < nr; n++) {
		const struct range_poll *p = &polls[n];
		uint64_t end = p->addr + p->len;
		if (n && (p->apart || p->addr > to + GAP_BYTES ||
			  end - from > RANGE_POLL_BYTES))
			break;
		to = end > to ? end : to;
	}
	uint8_t *own = buf;
	if (to - from > RANGE_POLL_BYTES && !(own = malloc(to - from)))
		return n;
	if (!tmem_read(rp->proc, from + rp->bias, own, to - from) &&
	    range_loaded_still(rp))
		for (size_t k = 0; k < n; k++)
			see(rp, &polls[k], own + (polls[k].addr - from));
	if (own != buf)
		free(own);
	return n;
}

void range_polls_read(struct range_part *rp, const struct range_poll *polls,
		      size_t nr, range_poll_see *see, uint8_t *buf)
{
	for (size_t i = 0; i < nr;)
		i += read_some(rp, polls + i, nr - i, see, buf);
}

void range_poll(struct range_monitor *m, struct range_part *rp, uint64_t now_ns)
{
	const struct range_unit *u = rp->unit;
	int64_t target = m->p.target_overhead_ppb;
	if (!rp->proc || rp->is_unloaded || (!u->nr_polls && !u->nr_pointees) ||
	    !target || now_ns < rp->next_poll_ns)
		return;
	uint64_t start_ns = smco_now_ns();
	if (range_loaded(rp)) {
		range_polls_read(rp, u->polls, u->nr_polls, saw, m->buf);
		range_pointees_poll(rp);
	}
	uint64_t took_ns = smco_now_ns() - start_ns, gap_ns = USUAL_NS;
	uint64_t cost_ns = took_ns + m->wake_ns * m->taken.ppk / TAKEN_ALL;
	if (target_is_unlimited(target)) {
		gap_ns = SHORTEST_NS;
	} else {
		int64_t share = control_m_from_overhead(target) / SHARE /
				range_part_sharing(m, rp);
		uint64_t least =
			sat_u64((u128)cost_ns * PPB / ((uint64_t)share + 1));
		gap_ns = min_u64(max_u64(gap_ns, least), LONGEST_NS);
	}
	rp->next_poll_ns = now_ns + max_u64(gap_ns, 2 * took_ns);
}
