/* tables-drive FILE - keys and stacks of a trace, a line each: what breaks
 * lines in them as \n. */
#include <inttypes.h>
#include <stdio.h>

#include "reports/trace.h"

static void show_stack(struct trace_reader *r, uint32_t id)
{
	size_t nr = 0;
	const struct trace_frame *f = trace_stack(r, id, &nr);
	printf("stack %" PRIu32 " ", id);
	for (size_t i = 0; i < nr; i++)
		printf("%s%s|%s|%s|%s|%" PRIu32 "|%d|0x%" PRIx64,
		       i ? " < " : "", f[i].function, f[i].file, f[i].module,
		       f[i].build_id, f[i].line, (int)f[i].inlined,
		       f[i].offset);
	putchar('\n');
}

static void show_text(const char *s)
{
	for (; *s; s++)
		if (*s == '\n')
			fputs("\\n", stdout);
		else
			putchar(*s);
}

int main(int argc, char **argv)
{
	struct trace_reader *r;
	const char *key, *value;
	uint32_t id;
	if (argc != 2 || trace_reader_open(argv[1], &r, NULL))
		return 2;
	struct record record;
	while (trace_next(r, &record, NULL))
		continue; /* the tables are whole at the end */
	for (size_t i = 0; trace_meta_at(r, i, &key, &value); i++) {
		printf("key %s ", key);
		show_text(value);
		putchar('\n');
	}
	for (size_t i = 0; trace_stack_at(r, i, &id); i++)
		show_stack(r, id);
	trace_reader_close(r);
	return 0;
}
