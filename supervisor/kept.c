#include "supervisor/kept.h"

#include <cpuid.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "supervisor/cachedir.h"
#include "symbols/store.h"

#define FILE_NAME  "costs"
#define HEAD	   "smco-trace costs 2 of %016" PRIx64 "\n"
#define MOST_BYTES 4096
/* No figure of a machine that is in order is more. */
#define MOST_NS NSEC_PER_SEC

static const char *const names[KEPT_NR] = {
	[KEPT_BITS] = "bits",
	[KEPT_WAKE] = "wake",
	[KEPT_SAMPLE] = "sample",
	[KEPT_SAMPLE_USER] = "usample",
};

struct measured {
	int64_t at_s; /* the wall's clock */
	uint64_t figures[KEPT_FIGURES];
};

static struct kept {
	int dir; /* closed if >= 0; otherwise nothing is kept */
	uint64_t key;
	int64_t now_s;
	bool is_new;
	unsigned nr[KEPT_NR];
	struct measured measured[KEPT_NR][KEPT_TIMES]; /* the latest, in turn */
} kept = {.dir = -1};

/* What this machine is, and what of it is ours; 0: not known. */
static uint64_t machine(uint64_t build)
{
	char boot[64];
	struct utsname un = {0};
	cpu_set_t cpus;
	uint32_t cpu[4 * 4] = {0};
	ssize_t len = smco_slurp("/proc/sys/kernel/random/boot_id", boot,
				 sizeof(boot));
	CPU_ZERO(&cpus);
	if (!build || len <= 0 || uname(&un) ||
	    sched_getaffinity(0, sizeof(cpus), &cpus))
		return 0;
	for (unsigned i = 0; i < 4; i++) /* family and steps, then its name */
		__get_cpuid(i ? 0x80000001 + i : 1, &cpu[4 * i],
			    &cpu[4 * i + 1], &cpu[4 * i + 2], &cpu[4 * i + 3]);
	cpu[1] = 0; /* the number of the CPU that we are on */
	struct store_sum sum;
	store_sum_init(&sum);
	store_sum_add(&sum, &build, sizeof(build));
	store_sum_add(&sum, boot, (size_t)len);
	store_sum_add(&sum, un.release, sizeof(un.release));
	store_sum_add(&sum, un.version, sizeof(un.version));
	store_sum_add(&sum, &cpus, sizeof(cpus));
	store_sum_add(&sum, cpu, sizeof(cpu));
	return store_sum_end(&sum);
}

/* It may have been measured again since: the oldest goes. */
static void note(enum kept_what what, const struct measured *m)
{
	struct measured *all = kept.measured[what];
	if (kept.nr[what] == KEPT_TIMES) {
		memmove(all, all + 1, (KEPT_TIMES - 1) * sizeof(*all));
		kept.nr[what]--;
	}
	all[kept.nr[what]++] = *m;
}

/* False: it is no line of ours. */
static bool take_line(const char *line)
{
	char name[8];
	struct measured m;
	int end = 0;
	_Static_assert(KEPT_FIGURES == 4, "so many are read");
	if (sscanf(line,
		   "%7s %" SCNd64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		   " %" SCNu64 "%n",
		   name, &m.at_s, &m.figures[0], &m.figures[1], &m.figures[2],
		   &m.figures[3], &end) != 6 ||
	    line[end])
		return false;
	for (size_t i = 0; i < KEPT_FIGURES; i++)
		if (m.figures[i] > MOST_NS)
			return false;
	for (unsigned i = 0; i < KEPT_NR; i++)
		if (!strcmp(name, names[i])) {
			if (m.at_s <= kept.now_s &&
			    m.at_s > kept.now_s - KEPT_S)
				note(i, &m);
			return true;
		}
	return false;
}

static void take_file(char *text)
{
	char head[64];
	snprintf(head, sizeof(head), HEAD, kept.key);
	if (strncmp(text, head, strlen(head)))
		return;
	char *rest = text + strlen(head), *line;
	while ((line = strsep(&rest, "\n")) && *line)
		if (!take_line(line)) {
			memset(kept.nr, 0, sizeof(kept.nr));
			return;
		}
}

void kept_open(uint64_t build, time_t now_s)
{
	char text[MOST_BYTES + 1];
	size_t len;
	kept_close();
	kept = (struct kept){.dir = -1, .key = machine(build), .now_s = now_s};
	if (kept.key)
		kept.dir = cachedir_open();
	if (kept.dir < 0)
		return;
	int fd _cleanup_close_ = cachedir_find(kept.dir, FILE_NAME, &len);
	if (fd < 0)
		return;
	ssize_t n = read(fd, text, MOST_BYTES);
	text[n < 0 ? 0 : n] = '\0';
	take_file(text);
}

static int by_size(const void *pa, const void *pb)
{
	const uint64_t *a = pa, *b = pb;
	return *a < *b ? -1 : *a > *b;
}

bool kept_get(enum kept_what what, uint64_t ret[KEPT_FIGURES])
{
	if (kept.dir < 0 || kept.nr[what] < KEPT_TIMES)
		return false;
	for (size_t i = 0; i < KEPT_FIGURES; i++) {
		uint64_t v[KEPT_TIMES];
		for (size_t k = 0; k < KEPT_TIMES; k++)
			v[k] = kept.measured[what][k].figures[i];
		qsort(v, KEPT_TIMES, sizeof(*v), by_size);
		ret[i] = v[KEPT_TIMES / 2];
	}
	return true;
}

bool kept_latest(enum kept_what what, uint64_t ret[KEPT_FIGURES])
{
	if (kept.dir < 0 || !kept.nr[what])
		return false;
	memcpy(ret, kept.measured[what][kept.nr[what] - 1].figures,
	       sizeof(kept.measured[what][0].figures));
	return true;
}

bool kept_wants(enum kept_what what)
{
	return kept.dir >= 0 && kept.nr[what] < KEPT_TIMES;
}

void kept_add(enum kept_what what, const uint64_t figures[KEPT_FIGURES])
{
	struct measured m = {.at_s = kept.now_s};
	memcpy(m.figures, figures, sizeof(m.figures));
	note(what, &m);
	kept.is_new = true;
}

static void write_all(void)
{
	char text[MOST_BYTES];
	struct cachefile f;
	int len = snprintf(text, sizeof(text), HEAD, kept.key);
	for (unsigned i = 0; i < KEPT_NR; i++)
		for (unsigned k = 0; k < kept.nr[i]; k++) {
			const struct measured *m = &kept.measured[i][k];
			len += snprintf(text + len, sizeof(text) - (size_t)len,
					"%s %" PRId64 " %" PRIu64 " %" PRIu64
					" %" PRIu64 " %" PRIu64 "\n",
					names[i], m->at_s, m->figures[0],
					m->figures[1], m->figures[2],
					m->figures[3]);
		}
	if (cachefile_create(&f, kept.dir))
		cachefile_close(&f, FILE_NAME,
				!outfile_append(&f.out, text, (size_t)len),
				CACHEDIR_MOST_BYTES);
}

void kept_close(void)
{
	if (kept.dir < 0)
		return;
	if (kept.is_new)
		write_all();
	close(kept.dir);
	kept = (struct kept){.dir = -1};
}
