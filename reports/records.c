#include "reports/records.h"

#include <errno.h>
#include <string.h>

#include "reports/bytes.h"
#include "reports/schema.h"

#define WRITE_BYTES (64u << 10)

bool record_process(const struct record *r, uint32_t *pid_ret)
{
	const struct schema_event *e = schema_event(r->event);
	if (!e || e->size != r->payload_len)
		return false;
	for (size_t i = 0; i < e->nr_fields; i++)
		if (!strcmp(e->field[i].name, "pid")) {
			*pid_ret =
				(uint32_t)schema_load(&e->field[i], r->payload);
			return true;
		}
	return false;
}

bool select_record(const struct select *s, const struct record *r)
{
	uint32_t pid;
	if (!select_time(s, r->time_ns))
		return false;
	if (s->has_thread && r->tid != s->thread)
		return false;
	return !s->has_process ||
	       (record_process(r, &pid) && pid == s->process);
}

void select_narrow(const struct select *s, struct trace_reader *r)
{
	trace_narrow(r, s->from_ns, s->to_ns,
		     s->has_thread ? &s->thread : NULL);
}

static void put_decimal(struct bbuf *b, uint64_t v)
{
	char digits[21];
	size_t at = sizeof(digits);
	digits[--at] = ' ';
	do {
		digits[--at] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	bbuf_put(b, digits + at, sizeof(digits) - at);
}

static void put_record(struct bbuf *b, const struct record *r)
{
	static const char hex[] = "0123456789abcdef";
	put_decimal(b, r->event);
	put_decimal(b, r->time_ns);
	put_decimal(b, r->cpu);
	put_decimal(b, r->tid);
	put_decimal(b, r->param);
	const uint8_t *from = r->payload;
	uint8_t *to = bbuf_reserve(b, 2 * (size_t)r->payload_len + 2);
	if (!to)
		return;
	if (!r->payload_len)
		*to++ = '-';
	for (uint32_t i = 0; i < r->payload_len; i++) {
		*to++ = (uint8_t)hex[from[i] >> 4];
		*to++ = (uint8_t)hex[from[i] & 15];
	}
	*to++ = '\n';
	b->len = (size_t)(to - b->data);
}

int records_print_juwel(const struct summary_input *input, size_t nr,
			const struct select *select, FILE *out,
			struct smco_err *err)
{
	struct bbuf b = {0};
	struct record r;
	bool failed = false;
	int rc;
	for (size_t i = 0; i < nr && !failed; i++) {
		select_narrow(select, input[i].reader);
		while ((rc = trace_next(input[i].reader, &r, NULL)) &&
		       !failed) {
			if (rc < 0 || !select_record(select, &r))
				continue;
			put_record(&b, &r);
			if (b.len < WRITE_BYTES)
				continue;
			failed = fwrite(b.data, 1, b.len, out) != b.len;
			failed |= b.failed;
			bbuf_reset(&b);
		}
	}
	if (b.len)
		failed |= fwrite(b.data, 1, b.len, out) != b.len;
	failed |= b.failed;
	bbuf_free(&b);
	if (ferror(out))
		return smco_fail(err, SMCO_SYS, errno, "cannot write");
	return failed ? smco_fail(err, SMCO_NOMEM, 0, "out of memory")
		      : SMCO_OK;
}
