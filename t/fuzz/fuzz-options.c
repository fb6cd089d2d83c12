/*
 * The command line from arbitrary bytes: arguments separated by NUL. What is
 * accepted must be within the documented bounds.
 */
#include <stdlib.h>
#include <string.h>

#include "supervisor/options.h"
#include "supervisor/output.h"

#define MAX_ARGS 64

static void expect(bool cond)
{
	if (!cond)
		abort();
}

static void check_result(const struct options *o, int argc, char **argv)
{
	if (o->action != ACTION_TRACE)
		return;
	expect(!o->command == (o->nr_pids > 0));
	expect(o->target_ppb >= 0);
	expect(o->is_unlimited ||
	       o->target_ppb <= OPTIONS_MAX_PERCENT * 10000000LL);
	expect(o->nap_ns >= OPTIONS_MIN_NAP_NS);
	expect(o->min_size_bytes >= OPTIONS_MIN_SIZE);
	expect(o->nr_pids <= OPTIONS_MAX_PIDS);
	for (size_t i = 0; i < o->nr_pids; i++)
		expect(o->pids[i] > 0);
	if (o->command)
		expect(o->command > argv && o->command < argv + argc);
	char *path;
	expect(!output_expand(o->output, 1, argv[0], &path, NULL));
	free(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *buf = malloc(size + 1), *argv[MAX_ARGS + 1];
	char name[] = "smco-trace";
	int argc = 0;
	if (!buf)
		return 0;
	memcpy(buf, data, size);
	buf[size] = '\0';
	argv[argc++] = name;
	for (char *p = buf; p < buf + size && argc < MAX_ARGS;
	     p += strlen(p) + 1)
		argv[argc++] = p;
	argv[argc] = NULL;

	struct options o;
	struct smco_err err = {.code = SMCO_OK};
	int rc = options_parse(argc, argv, &o, &err);
	if (!rc) {
		check_result(&o, argc, argv);
		options_deinit(&o);
	} else {
		expect(err.code == rc && *err.msg);
		expect(strlen(err.msg) < sizeof(err.msg));
		for (const char *p = err.msg; *p; p++)
			expect(*p >= ' ' && *p <= '~');
	}
	free(buf);
	return 0;
}
