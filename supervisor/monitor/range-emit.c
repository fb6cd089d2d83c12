/* What the trace gets of variables and their ranges. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "supervisor/control/fixed.h"
#include "supervisor/monitor/range-private.h"
#include "supervisor/probe/range-hole.h"

/* Stack ids that stacks.c does not come to. */
#define DECL_ID	  0x40000000u
#define REASON_ID 0x7f000000u
/* What is written while the program runs may take one such part of the
 * target. */
#define EMIT_SHARE 20

enum unwatched {
	/* Those before are enum var_reason. */
	NO_SENSOR = VAR_NR_REASONS,
	NO_BREAK,
	NO_WRITES,
	IN_UNION,
	IS_CONST,
	TOO_LARGE,
	NO_TURN,
	EXPORTED,
	NOT_UNDERSTOOD,
};

static const char *unwatched_text(unsigned why)
{
	switch (why) {
	case NO_SENSOR:
		return "no room for a sensor where it is assigned";
	case NO_BREAK:
		return "no room for a sensor where it is assigned, and no "
		       "breakpoints to be had";
	case NO_WRITES:
		return "never assigned where that can be seen";
	case IN_UNION:
		return "shares its memory with other members of a union";
	case IS_CONST:
		return "constant";
	case TOO_LARGE:
		return "too large, or of unknown size, to be looked at";
	case EXPORTED:
		return "exported by a library that does not use it itself";
	case NOT_UNDERSTOOD:
		return "its function has data in it, or jumps whose targets "
		       "were not found";
	case NO_TURN:
		return "its function's turn had not come";
	default:
		return var_reason_text(why);
	}
}

static bool is_polled(const struct range_unit *u, uint32_t var)
{
	return u->is_polled[var / 8] & 1 << var % 8;
}

/* Is it in a function that is not planned yet? */
static bool is_in_unplanned(const struct range_unit *u,
			    const struct variable *var)
{
	if (!u->plan || range_plan_is_whole(u->plan))
		return false;
	for (uint32_t i = 0; i < var->nr_places; i++) {
		uint32_t f = u->vars->places[var->first_place + i].function;
		if (f != VAR_NO_FUNCTION && !range_plan_is_planned(u->plan, f))
			return true;
	}
	return false;
}

/* Is it in a function that is left alone whole? */
static bool is_in_refused(const struct range_unit *u,
			  const struct variable *var)
{
	for (uint32_t i = 0; u->plan && i < var->nr_places; i++) {
		uint32_t f = u->vars->places[var->first_place + i].function;
		if (f != VAR_NO_FUNCTION &&
		    range_plan_function(u->plan, f)->refused)
			return true;
	}
	return false;
}

/* Why variable @i is not watched; VAR_FINE if it is. */
static unsigned why_unwatched(const struct range_monitor *m,
			      const struct range_unit *u, uint32_t i)
{
	size_t nr_insns;
	range_insn_uses(u, i, &nr_insns);
	const struct variable *var = &u->vars->vars[i];
	const struct range_var_info *info =
		u->plan ? range_plan_variable(u->plan, i) : NULL;
	if (!var->nr_places)
		return var->reason;
	if ((info && info->nr_served) || is_polled(u, i) ||
	    (nr_insns && range_have_insns(m)))
		return VAR_FINE;
	if (var->type.is_const)
		return IS_CONST;
	if (var->flags & VAR_MIXED)
		return IN_UNION;
	uint64_t addr = (uint64_t)u->vars->places[var->first_place].offset;
	if (var->flags & VAR_STATIC && data_export_find(&u->slots, addr))
		return EXPORTED;
	if (var->flags & VAR_STATIC)
		return var->flags & VAR_IN_UNION ? IN_UNION : TOO_LARGE;
	if (is_in_unplanned(u, var))
		return NO_TURN;
	if (is_in_refused(u, var))
		return NOT_UNDERSTOOD;
	if (nr_insns)
		return NO_BREAK;
	return info && info->nr_sites ? NO_SENSOR : NO_WRITES;
}

static uint32_t reason_stack(struct range_monitor *m, unsigned why)
{
	if (why == VAR_FINE)
		return 0;
	const struct trace_frame f = {
		.function = unwatched_text(why),
		.file = "",
		.module = "",
		.build_id = "",
	};
	if (!(m->told_reasons & 1u << why))
		m->p.put_stack(m->p.ctx, REASON_ID + why, &f, 1);
	m->told_reasons |= 1u << why;
	return REASON_ID + why;
}

bool range_emit_record(struct range_monitor *m, uint32_t event, uint32_t id,
		       uint64_t now_ns, const void *payload, size_t len)
{
	const struct record r = {
		.event = event,
		.time_ns = in_units(sat_sub_u64(now_ns, m->p.start_ns),
				    FLUSH_UNIT_NS),
		.cpu = UINT32_MAX,
		.param = id,
		.payload_len = (uint32_t)len,
		.payload = payload,
	};
	return m->p.emit(m->p.ctx, &r);
}

static uint32_t flags_of(const struct variable *var)
{
	return (var->type.is_signed ? VARIABLE_SIGNED : 0u) |
	       (var->flags & VAR_PARAMETER ? VARIABLE_PARAMETER : 0u) |
	       (var->flags & VAR_GLOBAL ? VARIABLE_GLOBAL : 0u) |
	       (var->flags & VAR_STATIC ? VARIABLE_STATIC : 0u) |
	       (var->type.nr_dims ? VARIABLE_ARRAY : 0u);
}

static uint64_t elements_of(const struct var_type *t)
{
	uint64_t n = t->nr_dims ? 1 : 0;
	for (unsigned i = 0; i < t->nr_dims; i++)
		if (__builtin_mul_overflow(n, t->dim[i].count, &n))
			return 0;
	return n;
}

static struct trace_frame frame_of(const struct range_unit *u, uint32_t i)
{
	const struct variable *var = &u->vars->vars[i];
	return (struct trace_frame){
		.function = var->qualified,
		.file = var->file,
		.line = var->line,
		.module = u->module_path ? u->module_path : "",
		.build_id = u->build_id ? u->build_id : "",
	};
}

static struct trace_frame type_frame(const struct variable *var)
{
	return (struct trace_frame){.function = var->type.name,
				    .file = "",
				    .module = "",
				    .build_id = ""};
}

static const uint32_t classes[] = {
	[VAR_INT] = VARIABLE_INT,
	[VAR_CHAR] = VARIABLE_CHAR,
	[VAR_BOOL] = VARIABLE_BOOL,
	[VAR_ENUM] = VARIABLE_ENUM,
};

static bool tell_variable(struct range_monitor *m, const struct range_unit *u,
			  uint32_t i, uint64_t now_ns)
{
	const struct variable *var = &u->vars->vars[i];
	const struct var_type *t = &var->type;
	uint32_t id = u->first_id + i;
	const struct trace_frame f[] = {frame_of(u, i), type_frame(var)};
	m->p.put_stack(m->p.ctx, DECL_ID + id, f, ARRAY_SIZE(f));
	const struct ev_variable ev = {
		.elements = elements_of(t),
		.decl = DECL_ID + id,
		.bits = t->bit_size ? t->bit_size : 8u * t->width,
		.class_ = classes[t->class_],
		.flags = flags_of(var),
		.unwatched = reason_stack(m, why_unwatched(m, u, i)),
	};
	return range_emit_record(m, EV_VARIABLE, id, now_ns, &ev, sizeof(ev));
}

static bool tell_subscript(struct range_monitor *m, const struct range_unit *u,
			   uint32_t i, uint64_t now_ns)
{
	const struct range_subscript *s = &u->subscripts[i];
	const struct variable *var = &u->vars->vars[s->var];
	const struct variable *array = &u->vars->vars[s->array];
	uint32_t id = u->first_id + (uint32_t)u->vars->nr_vars + i;
	const struct trace_frame f[] = {frame_of(u, s->var), type_frame(var),
					frame_of(u, s->array)};
	m->p.put_stack(m->p.ctx, DECL_ID + id, f, ARRAY_SIZE(f));
	const struct ev_variable ev = {
		.elements = array->type.dim[0].count,
		.decl = DECL_ID + id,
		.bits = 64,
		.class_ = VARIABLE_INT,
		.flags = VARIABLE_SIGNED | VARIABLE_SUBSCRIPT |
			 (s->sure ? VARIABLE_SURE_ARRAY : 0u),
		.offset = (int32_t)s->offset,
	};
	return range_emit_record(m, EV_VARIABLE, id, now_ns, &ev, sizeof(ev));
}

static bool tell_pointee(struct range_monitor *m, const struct range_unit *u,
			 uint32_t i, uint64_t now_ns)
{
	const struct pointee *p = range_pointee_at(u, i);
	uint32_t id = u->first_id + i;
	const struct trace_frame f[] = {
		{
			.function = p->name,
			.file = p->file,
			.line = p->line,
			.module = u->module_path ? u->module_path : "",
			.build_id = u->build_id ? u->build_id : "",
		},
		{
			.function = p->type_name,
			.file = "",
			.module = "",
			.build_id = "",
		},
	};
	m->p.put_stack(m->p.ctx, DECL_ID + id, f, ARRAY_SIZE(f));
	const struct ev_variable ev = {
		.decl = DECL_ID + id,
		.bits = 8u * p->type.width,
		.class_ = classes[p->type.class_],
		.flags = p->type.is_signed ? VARIABLE_SIGNED : 0u,
	};
	return range_emit_record(m, EV_VARIABLE, id, now_ns, &ev, sizeof(ev));
}

/* Variable, subscript or what is behind a pointer, once. False: it is not in
 * the trace. */
static bool tell(struct range_monitor *m, const struct range_unit *u,
		 uint32_t i, uint64_t now_ns)
{
	uint32_t nr_vars = (uint32_t)u->vars->nr_vars;
	uint8_t bit = (uint8_t)(1 << i % 8);
	if (u->told[i / 8] & bit)
		return true;
	if (!(i < nr_vars ? tell_variable(m, u, i, now_ns)
	      : range_pointee_at(u, i)
		      ? tell_pointee(m, u, i, now_ns)
		      : tell_subscript(m, u, i - nr_vars, now_ns)))
		return false;
	u->told[i / 8] |= bit;
	return true;
}

/* What of the file's debug information is not to be understood. */
static void tell_damage(struct range_monitor *m, const struct range_unit *u)
{
	char text[400];
	snprintf(text, sizeof(text),
		 "%.200s: %zu part%s of its debug information %s damaged and "
		 "left out",
		 u->path, u->vars->nr_damaged,
		 u->vars->nr_damaged == 1 ? "" : "s",
		 u->vars->nr_damaged == 1 ? "is" : "are");
	m->p.put_meta(m->p.ctx, "range.missing", text);
}

static void tell_unit(struct range_monitor *m, struct range_unit *u,
		      uint64_t now_ns)
{
	u->is_told = true;
	if (!u->vars && u->is_library)
		return;
	if (!u->vars) {
		m->p.put_meta(m->p.ctx, "range.missing", u->why);
		return;
	}
	if (u->vars->nr_damaged)
		tell_damage(m, u);
	size_t nr_known = u->vars->nr_vars + u->nr_subscripts;
	for (uint32_t i = 0; i < range_unit_nr(u); i++)
		if (i < nr_known || range_pointee_at(u, i))
			tell(m, u, i, now_ns);
}

static const struct var_type subscript_type = {.is_signed = true};

/* What is taken must not be lost. */
static void take(struct range_part *rp, uint32_t i)
{
	const struct var_type *t = &rp->unit->vars->vars[i].type;
	int64_t seen[2];
	unsigned nr = ranges_take(rp->ranges, i, seen);
	for (unsigned k = 0; k < nr; k++) {
		range_value_add(&rp->value[i], t, seen[k], seen[k],
				RANGE_SENSED);
		range_value_add(&rp->fresh[i], t, seen[k], seen[k],
				RANGE_SENSED);
	}
}

/* One that names no enumerator. */
static void take_hole(struct range_part *rp, uint32_t i)
{
	struct range_value *v = &rp->value[i];
	int64_t odd;
	if (!ranges_read_hole(rp->ranges, i, &odd) ||
	    (v->flags & RANGE_ODD_BETWEEN && v->odd <= odd))
		return;
	v->odd = odd;
	v->flags |= RANGE_ODD_BETWEEN;
	v->is_new = true;
}

void range_collect(struct range_part *rp)
{
	const struct range_unit *u = rp->unit;
	int64_t smallest, largest;
	range_watch_collect(rp);
	for (uint32_t i = 0; rp->ranges && i < u->vars->nr_vars; i++) {
		if (rp->fresh)
			take(rp, i);
		else if (ranges_read(rp->ranges, i, &smallest, &largest))
			range_value_add(&rp->value[i], &u->vars->vars[i].type,
					smallest, largest, RANGE_SENSED);
	}
	range_firsts_collect(rp);
	for (uint32_t i = 0; rp->ranges && i < u->vars->nr_vars; i++)
		take_hole(rp, i);
	for (uint32_t i = 0; rp->ranges && i < u->nr_subscripts; i++)
		if (ranges_read_subscript(rp->ranges, i, &smallest, &largest))
			range_value_add(&rp->value[u->vars->nr_vars + i],
					&subscript_type, smallest, largest,
					RANGE_SENSED);
}

/* Does @value name no enumerator of the enum, nor a sum of its flags? */
static bool is_odd(const struct variables *v, const struct var_type *t,
		   int64_t value)
{
	const struct var_enumerator *e = &v->enumerators[t->first_enumerator];
	if (t->class_ != VAR_ENUM || !t->nr_enumerators)
		return false;
	for (size_t i = 0; i < t->nr_enumerators; i++)
		if (e[i].value == value)
			return false;
	int64_t bits = range_bits_of(e, t->nr_enumerators);
	return !bits || value & ~bits;
}

static uint32_t odd_flags(const struct variables *v, uint32_t i,
			  const struct range_value *value)
{
	if (i >= v->nr_vars)
		return 0;
	const struct var_type *t = &v->vars[i].type;
	return (is_odd(v, t, value->smallest) ? RANGE_ODD_SMALLEST : 0u) |
	       (is_odd(v, t, value->largest) ? RANGE_ODD_LARGEST : 0u);
}

/* False: not all of it had room. */
static bool emit_proc(struct range_monitor *m, struct range_part *rp,
		      uint64_t now_ns, bool all)
{
	const struct range_unit *u = rp->unit;
	uint64_t end_ns = rp->died_ns ? rp->died_ns : now_ns;
	range_collect(rp);
	if (u->plan)
		range_plan_settle(u->plan);
	for (uint32_t i = all ? rp->next_told : 0; i < range_unit_nr(u); i++) {
		struct range_value *v = &rp->value[i];
		if (all)
			rp->next_told = i;
		if (!v->flags || (!v->is_new && !all))
			continue;
		if (!tell(m, u, i, now_ns))
			return false;
		uint64_t hits, writes;
		bool by_insn;
		uint64_t ns = range_sites_ns(rp, i, end_ns, &hits, &by_insn);
		uint64_t watch_ns = range_watch_ns(rp, i, end_ns, &writes);
		ns = max_u64(ns, watch_ns);
		hits = sat_add_u64(hits, writes);
		uint64_t alive = sat_sub_u64(end_ns, rp->born_ns);
		uint64_t unit = unit_for(10 * alive, RANGE_UNIT_NS);
		const struct ev_range ev = {
			.smallest = v->smallest,
			.largest = v->largest,
			.hits = sat_add_u64(v->hits, hits),
			.watched_ns = in_units(ns, unit),
			.alive_ns = in_units(alive, unit),
			.pid = rp->pid,
			/* What nobody wrote to was watched all the same. */
			.odd = v->flags & RANGE_ODD_BETWEEN ? v->odd : 0,
			.flags = v->flags | odd_flags(u->vars, i, v) |
				 (watch_ns ? RANGE_WATCHPOINT : 0u) |
				 (by_insn && v->flags != RANGE_INITIAL
					  ? RANGE_BREAKPOINT
					  : 0u),
		};
		if (!range_emit_record(m, EV_RANGE, u->first_id + i, now_ns,
				       &ev, sizeof(ev)))
			return false;
		v->is_new = false;
	}
	return range_phases_emit(m, rp, now_ns);
}

/* Processes that are gone say it once more, and for the last time. */
static void emit_gone(struct range_monitor *m, uint64_t now_ns)
{
	for (struct range_part **p = &m->parts; *p;) {
		struct range_part *rp = *p;
		if (!rp->proc)
			range_firsts_settle(rp);
		if (rp->proc || !emit_proc(m, rp, now_ns, true)) {
			p = &rp->next;
			continue;
		}
		*p = rp->next;
		range_part_free(rp);
	}
}

static void emit_all(struct range_monitor *m, uint64_t now_ns)
{
	emit_gone(m, now_ns);
	for (struct range_part *rp = m->parts; rp; rp = rp->next)
		if (rp->proc && !emit_proc(m, rp, now_ns, false))
			break;
}

void range_emit(struct range_monitor *m, uint64_t now_ns)
{
	if (now_ns < m->next_emit_ns)
		return;
	uint64_t before_ns = smco_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	emit_all(m, now_ns);
	uint64_t ns = smco_clock_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns;
	int64_t share_ppb = m->p.target_overhead_ppb / EMIT_SHARE;
	u128 pause_ns = (u128)ns * PPB / (u128)(share_ppb > 0 ? share_ppb : 1);
	m->next_emit_ns = sat_add_u64(now_ns, sat_u64(pause_ns));
}

void range_finish(struct range_monitor *m, uint64_t now_ns)
{
	range_reader_busy(m, UINT64_MAX);
	for (struct range_part *rp = m->parts; rp; rp = rp->next) {
		range_collect(rp);
		range_firsts_settle(rp);
	}
	emit_all(m, now_ns);
	for (struct range_unit *u = m->units; u; u = u->next)
		if (!u->is_told)
			tell_unit(m, u, now_ns);
	range_watch_tell(m);
	range_beside_tell(m);
	range_units_keep(m);
}
