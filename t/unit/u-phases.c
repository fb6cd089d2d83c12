/*
 * Probes of files, whole and damaged, and what reports make of phases.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "supervisor/marks/smco-phase.h"
#include "reports/model.h"
#include "supervisor/monitor/phases.h"
#include "symbols/sdt.h"
#include <gelf.h>
#include "t/unit/scratch.h"
#include "t/unit/tap.h"
#include "t/unit/trace-sample.h"

/* In this program itself. */
__attribute__((noinline)) static void marked(void)
{
	SMCO_PHASE_BEGIN(own, load);
	SMCO_PHASE_POINT(own, step);
	SMCO_PHASE_END(own, load);
}

static Elf *open_own(void)
{
	elf_version(EV_CURRENT);
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	elf_cntl(elf, ELF_C_FDREAD);
	close(fd);
	return elf;
}

static const struct sdt_probe *find(const struct sdt_list *l, const char *name)
{
	for (size_t i = 0; i < l->nr; i++)
		if (!strcmp(l->probe[i].name, name) &&
		    !strcmp(l->probe[i].provider, "own"))
			return &l->probe[i];
	return NULL;
}

extern const char __executable_start;

static void notes(void)
{
	static const uint8_t nop[] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
	struct sdt_list l;
	Elf *elf = open_own();
	check_int(sdt_read(elf, &l, NULL), 0);
	elf_end(elf);
	const struct sdt_probe *begin = find(&l, "load__begin"),
			       *end = find(&l, "load__end"),
			       *step = find(&l, "step");
	check(begin && end && step);
	if (begin && end && step) {
		check_int(begin->semaphore, 0);
		check(begin->addr < step->addr && step->addr < end->addr);
		check(!memcmp(&__executable_start + step->addr, nop,
			      sizeof(nop)));
	}
	sdt_deinit(&l);
	sdt_deinit(&l);
}

/* Every word of the notes changed, one after the other; cut at every place. */
static void damaged(void)
{
	Elf *elf = open_own();
	Elf_Scn *scn = NULL;
	size_t names, tried = 0;
	elf_getshdrstrndx(elf, &names);
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr sh;
		gelf_getshdr(scn, &sh);
		if (strcmp(elf_strptr(elf, names, sh.sh_name),
			   ".note.stapsdt") != 0)
			continue;
		Elf_Data *d = elf_getdata(scn, NULL);
		size_t size = d->d_size;
		void *whole = d->d_buf;
		for (size_t at = 0; at < size; at++) {
			/* As large as it says, so that a read behind it is
			 * seen. */
			uint8_t *copy = malloc(size);
			struct sdt_list l;
			memcpy(copy, whole, size);
			copy[at] ^= 0xff;
			d->d_buf = copy;
			tried += !sdt_read(elf, &l, NULL);
			sdt_deinit(&l);
			copy = realloc(copy, at + 1);
			d->d_buf = copy;
			d->d_size = at + 1;
			tried += !sdt_read(elf, &l, NULL);
			sdt_deinit(&l);
			free(copy);
			d->d_size = size;
			d->d_buf = whole;
		}
		check_int(tried, 2 * size);
		break;
	}
	check(tried > 100);
	elf_end(elf);
}

static void none(void)
{
	struct sdt_list l;
	elf_version(EV_CURRENT);
	char text[] = "no ELF at all";
	Elf *elf = elf_memory(text, sizeof(text));
	check_int(sdt_read(elf, &l, NULL), 0);
	check_int(l.nr, 0);
	sdt_deinit(&l);
	elf_end(elf);
}

static void spelled(void)
{
	check(phases_is_name("sdt:a:b"));
	check(!phases_is_name("sdt:a"));
	check(!phases_is_name("sdt::b"));
	check(!phases_is_name("sdt:a:"));
	check(!phases_is_name("sdt:a:b:c"));
	check(!phases_is_name("a:b"));
	char name[400];
	memset(name, 'x', sizeof(name));
	memcpy(name, "sdt:", 4);
	name[100] = ':';
	name[399] = '\0';
	check(!phases_is_name(name));
}

static void put(struct trace_writer *w, uint32_t id, uint64_t count,
		uint64_t seen, uint64_t ns, uint64_t longest)
{
	SAMPLE_PUT(w, EV_PHASE_TOTAL, count, id,
		   (struct ev_phase_total){count, seen, ns, longest});
}

static struct trace_writer *begin_trace(const char *name, const char *first)
{
	struct trace_writer *w = NULL;
	check_int(trace_writer_create(scratch_path(name), 1, &w, NULL), 0);
	trace_put_meta(w, "monitors", "phases");
	trace_put_meta(w, "phase.0", first);
	return w;
}

static struct trace_reader *end_trace(struct trace_writer *w, const char *name)
{
	struct trace_reader *r = NULL;
	trace_writer_close(w, NULL);
	check_int(trace_reader_open(scratch_path(name), &r, NULL), 0);
	return r;
}

static struct trace_reader *write_trace(const char *name, const char *first)
{
	struct trace_writer *w = begin_trace(name, first);
	trace_put_meta(w, "phase.1", "sdt:a:\033never");
	put(w, 0, 10, 10, 1000, 200);
	put(w, 1, 0, 0, 0, 0);
	SAMPLE_PUT(w, EV_PHASE, 11, 0,
		   (struct ev_phase){.length_ns = 100, .pid = 7});
	put(w, 0, 1000, 100, 50000, 900);
	put(w, 9, 5, 0, 0, 0); /* whose name was lost */
	put(w, 1, 4, 0, 0, 0);
	return end_trace(w, name);
}

/* One that was timed in part; @about_ns: what the run says of all, or NULL. */
static struct trace_reader *write_part(const char *name, const char *about_ns)
{
	struct trace_writer *w = begin_trace(name, "f");
	put(w, 0, 1000, 100, 50000, 900);
	if (about_ns)
		trace_put_meta(w, "phase.0.about_ns", about_ns);
	return end_trace(w, name);
}

static uint64_t total_of(const char *first_ns, const char *second_ns)
{
	struct summary_input in[2] = {{write_part("c", first_ns), NULL},
				      {write_part("d", second_ns), NULL}};
	struct summary *s = NULL;
	check_int(summary_load_files(in, 2, NULL, &s, NULL), 0);
	uint64_t ns = phase_total_ns(&s->phases.phase[0]);
	uint64_t first = first_ns ? strtoull(first_ns, NULL, 10) : 0;
	check_int(phase_about_ns(&s->phases, 0, 0), first);
	check_range(phase_mean_ns(&s->phases.phase[0]) / ((double)ns / 2000),
		    0.999999, 1.000001);
	summary_free(s);
	for (int i = 0; i < 2; i++)
		trace_reader_close(in[i].reader);
	return ns;
}

/* What the run says of those that it did not time; if all of them do. */
static void estimated(void)
{
	check_int(total_of("70000", "80000"), 150000);
	check_int(total_of("70000", NULL), 1000000);
	check_int(total_of(NULL, NULL), 1000000);
	check_int(total_of("-", "18446744073709551615"), 1000000);
	check_int(total_of("18446744073709551615", "1"), UINT64_MAX);
}

static void reported(void)
{
	struct summary_input in[2] = {{write_trace("a", "sdt:a:b"), NULL},
				      {write_trace("b", "sdt:a:b"), NULL}};
	struct summary *s = NULL;
	char *text = NULL;
	size_t size;
	check_int(summary_load_files(in, 2, NULL, &s, NULL), 0);
	const struct model_phases *m = &s->phases;
	check_int(m->nr, 3);
	check_str(m->phase[0].name, "sdt:a:b");
	/* Cumulative in a file, added up over files. */
	check_int(m->phase[0].sum.count, 2000);
	check_int(m->phase[0].sum.nr_seen, 200);
	check_int(m->phase[0].sum.longest_ns, 900);
	check_int(phase_mean_ns(&m->phase[0]), 500);
	check_int(phase_total_ns(&m->phase[0]), 1000000);
	check_int(m->phase[1].sum.count, 8);
	check_int(phase_mean_ns(&m->phase[1]), 0);
	check_str(m->phase[2].name, "?");
	check_int(s->nr_unknown, 0);
	FILE *f = open_memstream(&text, &size);
	summary_print(s, f, NULL, &(struct summary_style){0});
	check_int(summary_print_json(s, f, NULL), 0);
	fclose(f);
	check(strstr(text, "sdt:a:b: 2000 times, about 1 ms, each 500 ns, the "
			   "longest 900 ns, timed 10 %"));
	check(strstr(text, "never: 8 times, never timed"));
	check(strstr(text, "\"count\":2000,\"timed\":200,"));
	check(!strchr(text, '\033'));
	free(text);
	summary_free(s);
	for (int i = 0; i < 2; i++)
		trace_reader_close(in[i].reader);
}

int main(void)
{
	marked();
	notes();
	damaged();
	none();
	spelled();
	reported();
	estimated();
	return tap_done();
}
