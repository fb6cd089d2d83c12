/*
 * What a stack costs: the table unwinder against libdwfl on running programs,
 * how many stacks are the same, and how long the tables take to build.
 *
 *	unwind-bench [SAMPLES]
 */
#include "t/unit/unwindhelp.h"

#include "symbols/cfi.h"
#include "symbols/module.h"

static double per_16(uint64_t ns, const struct comparison *c)
{
	return (double)ns / 1e3 / (double)c->frames * 16;
}

/* A fresh space over our own mappings, one table after the other. */
static void bench_file(const char *path)
{
	struct sym_mapping map = {
		.start = 0x1000, .end = 0x2000, .exec = true, .path = path};
	struct module *m = module_get(&map, 0, 0, ROOT_OURS, NULL, NULL);
	Elf *elf = m ? module_elf(m) : NULL;
	uint64_t t0 = smco_now_ns();
	struct cfi_table *t = elf ? cfi_create(elf) : NULL;
	double ms = (double)(smco_now_ns() - t0) / 1e6;
	if (t)
		printf("%-44s %8.2f ms %8zu rows %6zu rules %7.1f KiB\n", path,
		       ms, t->nr, t->nr_rules,
		       ((double)t->nr * 8 +
			(double)t->nr_rules * sizeof(struct cfi_rule)) /
			       1024);
	else
		printf("%-44s no table\n", path);
	cfi_destroy(t);
	if (elf)
		elf_end(elf);
	if (m)
		module_put(m);
}

int main(int argc, char **argv)
{
	size_t want = argc > 1 ? strtoul(argv[1], NULL, 0) : 1000;
	make_scratch();
	printf("%-14s %7s %9s %7s  %s\n", "program", "stacks", "the same",
	       "frames", "us for 16 frames: warm, in passing, libdwfl");
	for (size_t i = 0; i < ARRAY_SIZE(sampled_programs); i++) {
		const struct sampled_program *p = &sampled_programs[i];
		struct comparison c = {0};
		if (!have(p->needs)) {
			printf("%-14s needs %s\n", p->name, p->needs);
			continue;
		}
		sample(&c, p->start, want, false);
		if (!c.samples)
			continue;
		printf("%-14s %7zu %7.2f %% %7.1f  %.2f  %.2f  %.1f\n", p->name,
		       c.samples, 100 * (double)c.same / (double)c.samples,
		       (double)c.frames / (double)c.samples,
		       per_16(c.again_ns, &c), per_16(c.table_ns, &c),
		       per_16(c.dwfl_ns, &c));
	}
	if (redis_load > 0)
		reap(redis_load);
	printf("\ntables\n");
	bench_file("/lib/x86_64-linux-gnu/libc.so.6");
	bench_file("/usr/lib/x86_64-linux-gnu/libstdc++.so.6");
	bench_file("/usr/bin/python3");
	bench_file("/usr/bin/redis-server");
	bench_file("/usr/bin/gdb");
	run("rm -rf \"$D\"");
	return 0;
}
