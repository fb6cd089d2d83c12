/* What of ranges has no room in the trace comes later: nothing is lost. */
#include <stdlib.h>

#include "supervisor/monitor/range-private.h"
#include "tap.h"

#define NR 20

static unsigned calls, every, variables[NR], ranges[NR];
static int64_t largest[NR];

/* Each so manyth has no room. */
static bool emit(void *ctx, const struct record *r)
{
	(void)ctx;
	if (++calls % every == 0)
		return false;
	if (r->param >= NR)
		return true;
	if (r->event == EV_VARIABLE) {
		variables[r->param]++;
	} else {
		check_msg(variables[r->param], "variable %u is known",
			  r->param);
		ranges[r->param]++;
		largest[r->param] =
			((const struct ev_range *)r->payload)->largest;
	}
	return true;
}

static void put_stack(void *ctx, uint32_t id, const struct trace_frame *frames,
		      size_t nr)
{
	(void)ctx;
	(void)id;
	(void)frames;
	(void)nr;
}

static void put_meta(void *ctx, const char *key, const char *value)
{
	(void)ctx;
	(void)key;
	(void)value;
}

/* A process with a value of each but the last; it is gone if @gone. */
static void test(unsigned refuse, bool gone)
{
	static struct variable vars[NR];
	struct range_value *value = calloc(NR, sizeof(*value));
	uint8_t told[NR / 8 + 1] = {0}, polled[NR / 8 + 1] = {0};
	struct var_place place = {.kind = VAR_ADDR};
	struct variables v = {.vars = vars, .nr_vars = NR, .places = &place};
	struct range_unit u = {.vars = &v, .told = told, .is_polled = polled};
	struct range_part *rp = calloc(1, sizeof(*rp));
	struct range_monitor m = {.units = &u, .parts = rp, .cache_dir = -1};
	unsigned wrong = 0;
	m.p = (struct range_params){.emit = emit,
				    .put_stack = put_stack,
				    .put_meta = put_meta,
				    .target_overhead_ppb = INT64_MAX};
	*rp = (struct range_part){
		.unit = &u,
		.value = value,
		.proc = gone ? NULL : (struct tproc *)&m,
		.died_ns = gone,
	};
	for (unsigned i = 0; i < NR; i++) {
		vars[i] = (struct variable){
			.name = "v",
			.qualified = "v",
			.file = "",
			.scope = "",
			.nr_places = 1,
			.type = {.name = "int", .width = 4, .is_signed = true}};
		if (i + 1 < NR)
			range_value_add(&value[i], &vars[i].type, -1, i,
					RANGE_SENSED);
		variables[i] = ranges[i] = 0;
	}
	calls = 0;
	every = refuse;
	for (unsigned i = 1; i <= NR; i++) {
		m.next_emit_ns = 0;
		range_emit(&m, i);
	}
	every = UINT32_MAX;
	range_finish(&m, 100);
	for (unsigned i = 0; i < NR; i++) {
		wrong += variables[i] != 1;
		wrong += i + 1 < NR ? !ranges[i] || largest[i] != i
				    : ranges[i] != 0;
		wrong += ranges[i] > 1;
	}
	check_msg(!wrong, "each %uth has no room", refuse);
	check(gone == !m.parts);
	if (m.parts) {
		free(value);
		free(rp);
	}
}

int main(void)
{
	for (unsigned refuse = 2; refuse <= 2 * NR + 2; refuse++) {
		test(refuse, false);
		test(refuse, true);
	}
	return tap_done();
}
