/* The table unwinder against libdwfl, on stacks of running programs. */
#include "unwindhelp.h"

#define SAMPLES 400

int main(int argc, char **argv)
{
	bool verbose = argc > 1 && !strcmp(argv[1], "-v");
	size_t want = argc > 2 ? strtoul(argv[2], NULL, 0) : SAMPLES;
	make_scratch();
	for (size_t i = 0; i < ARRAY_SIZE(sampled_programs); i++) {
		const struct sampled_program *p = &sampled_programs[i];
		struct comparison c = {0};
		char why[64];
		if (!have(p->needs)) {
			snprintf(why, sizeof(why), "no %s here", p->needs);
			tap_skip(why);
			continue;
		}
		sample(&c, p->start, want, verbose);
		printf("# %s: %zu stacks, %zu the same, %zu slots the same, "
		       "%zu (%zu) complete, %.1f frames; us: table %.1f then "
		       "%.1f, "
		       "libdwfl %.1f\n",
		       p->name, c.samples, c.same, c.same_slots, c.complete,
		       c.ref_complete, (double)c.frames / (double)c.samples,
		       (double)c.table_ns / 1e3 / (double)c.samples,
		       (double)c.again_ns / 1e3 / (double)c.samples,
		       (double)c.dwfl_ns / 1e3 / (double)c.samples);
		check_int(c.samples, want);
		/* Where a thrown exception lands nobody knows the way out. */
		check_msg((double)c.same >=
				  0.995 * (double)(c.samples - c.lost),
			  "%s: at least 99.5 %% of stacks are libdwfl's",
			  p->name);
		check_msg(c.complete + want / 100 >= c.ref_complete &&
				  (double)c.complete >=
					  0.95 * (double)c.samples,
			  "%s: stacks reach their outermost frame", p->name);
		check_msg(
			(double)c.same_slots >= 0.99 * (double)c.same,
			"%s: return addresses were read from where libdwfl did",
			p->name);
	}
	if (redis_load > 0)
		reap(redis_load);
	return finish();
}
