/*
 * What must not hold a stop up: whether a module exports a name is answered
 * without reading its symbols; of a large table of frame information only what
 * is asked for is read, and where it cannot be, a stack does not wait for it.
 */
#include <pthread.h>

#include "symbols/gnuhash.h"
#include "symbols/module.h"
#include "unwindhelp.h"

static struct maps maps;

static void hash_of(struct gnuhash *h, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	check(elf != NULL);
	gnuhash_read(h, elf);
	elf_end(elf);
	close(fd);
}

/* Every line of @fmt's output is a name: how many does the hash have? */
static int nr_had(const struct gnuhash *h, const char *cmd, int *nr_ret)
{
	char line[4096];
	int had = 0;
	setenv("D", scratch, 1);
	FILE *f = popen(cmd, "r");
	for (*nr_ret = 0; f && fgets(line, sizeof(line), f); ++*nr_ret) {
		line[strcspn(line, "@\n")] = 0;
		had += gnuhash_may_have(h, line);
	}
	if (f)
		pclose(f);
	return had;
}

static void test_exports(void)
{
	printf("# --- what libc exports and what it does not\n");
	struct gnuhash h;
	int nr;
	hash_of(&h, "/lib/x86_64-linux-gnu/libc.so.6");
	check(h.data && h.nr_syms > 1000);
	int had = nr_had(&h,
			 "nm -D --defined-only /lib/x86_64-linux-gnu/libc.so.6"
			 " | awk '$2 != \"A\" { print $3 }'",
			 &nr);
	check(nr > 1000);
	check_int(had, nr);
	/* 32 bits of hash: none of a thousand is taken for another. */
	had = nr_had(&h, "seq -f no_such_name_%g 1000", &nr);
	check_int(nr, 1000);
	check_int(had, 0);
	check(!gnuhash_may_have(&h, ""));

	/* Any damage makes it answer something; that is all. */
	unsigned seed = 1;
	for (int i = 0; i < 20000; i++) {
		uint8_t *at =
			&h.data[(unsigned)rand_r(&seed) % (i % 2 ? 16 : h.len)];
		uint8_t was = *at;
		size_t len = h.len;
		*at = (uint8_t)rand_r(&seed);
		if (i % 3 == 0)
			h.len = (unsigned)rand_r(&seed) % (h.len + 1);
		gnuhash_may_have(&h, "malloc");
		gnuhash_may_have(&h, "no_such_name");
		*at = was;
		h.len = len;
	}
	check(gnuhash_may_have(&h, "malloc"));
	gnuhash_deinit(&h);
	check_msg(gnuhash_may_have(&h, "malloc"), "no section: who knows");
}

/* A program with enough frame information not to be read in a stop, and one
 * without the linker's table of it, in which that has to be read. */
static void make_large(void)
{
	check(!run("i=0; while [ $i -lt 30000 ]; do"
		   " echo \".globl f$i; f$i: .cfi_startproc;"
		   " push %%rbp; .cfi_adjust_cfa_offset 8; pop %%rbp;"
		   " .cfi_adjust_cfa_offset -8; ret; .cfi_endproc\";"
		   " i=$((i + 1)); done >\"$D\"/many.s;"
		   " echo '.section .note.GNU-stack' >>\"$D\"/many.s;"
		   " cc -O2 -fno-pie -no-pie -rdynamic -o \"$D\"/prog "
		   "\"$D\"/many.s " FIX "/names.c &&"
		   " cc -O2 -fno-pie -no-pie -rdynamic -o \"$D\"/bare "
		   "-Wl,--no-eh-frame-hdr \"$D\"/many.s " FIX "/names.c"));
}

static void test_undefined(const char *path)
{
	printf("# --- an address taken is no definition\n");
	struct gnuhash h;
	hash_of(&h, path);
	check(h.data != NULL);
	check(!gnuhash_may_have(&h, "malloc"));
	check(gnuhash_may_have(&h, "outer"));
	check(gnuhash_may_have(&h, "f29999"));
	gnuhash_deinit(&h);
}

static void *prepare(void *space)
{
	sym_prepare_unwind(space);
	return NULL;
}

/* It stands deep in libc, with its own functions around. */
struct standing {
	struct prog p;
	struct sym_regs regs;
};

static void stand(struct standing *st, const char *path)
{
	taddr_t skip;
	struct user_regs_struct u;
	prog_start(&st->p, (char *[]){(char *)path, NULL});
	for (int i = 0; i < 5; i++)
		prog_ask(&st->p, NULL,
			 (const char *[]){"outer", "middle", "inner", "malloc",
					  "memalign"}[i],
			 &skip, NULL);
	maps_read(&maps, st->p.pid);
	check(!ptrace(PTRACE_SEIZE, st->p.pid, 0, 0) && stop(st->p.pid));
	ptrace(PTRACE_GETREGS, st->p.pid, 0, &u);
	regs_from_user(&st->regs, &u);
}

static struct sym_space *standing_space(struct standing *st)
{
	struct sym_space *s =
		sym_space_create(st->p.pid, "", read_pid, &st->p.pid);
	check_int(sym_space_update(s, maps.map, maps.nr, NULL), 0);
	return s;
}

static void check_same(struct standing *st, struct sym_space *s,
		       const taddr_t *frames, size_t nr)
{
	bool complete;
	taddr_t want[64], slots[64];
	size_t nr_want =
		sym_unwind_dwfl(s, &st->regs, want, slots, 64, &complete);
	check_int(nr, nr_want);
	check(nr > 4 && !memcmp(frames, want, nr * sizeof(*want)));
}

static void test_at_once(const char *path)
{
	printf("# --- a large table, and where everything is in it\n");
	struct standing st;
	taddr_t frames[64], slots[64];
	bool complete;
	stand(&st, path);
	struct sym_space *s = standing_space(&st);
	sym_space_set_patience(s, 0);
	size_t nr = sym_unwind(s, &st.regs, frames, slots, 64, &complete);
	check(complete && !sym_unwind_late(s));
	check_same(&st, s, frames, nr);
	prog_end(&st.p);
	sym_space_destroy(s);
}

static void test_late(const char *path)
{
	printf("# --- a large table that has to be read\n");
	struct standing st;
	taddr_t frames[64], slots[64];
	bool complete;
	stand(&st, path);
	struct sym_space *s = standing_space(&st);
	sym_space_set_patience(s, 0);
	size_t nr = sym_unwind(s, &st.regs, frames, slots, 64, &complete);
	check(sym_unwind_late(s) && !complete && nr >= 1);
	nr = sym_unwind(s, &st.regs, frames, slots, 64, &complete);
	check_msg(sym_unwind_late(s), "not kept as having no table");

	pthread_t thread;
	check_int(pthread_create(&thread, NULL, prepare, s), 0);
	size_t tries = 0;
	do {
		nr = sym_unwind(s, &st.regs, frames, slots, 64, &complete);
		tries++;
	} while (sym_unwind_late(s));
	pthread_join(thread, NULL);
	printf("# %zu tries\n", tries);
	check(complete);
	check_same(&st, s, frames, nr);
	sym_space_destroy(s);

	/* Who has patience builds it. */
	s = standing_space(&st);
	check_int(sym_unwind(s, &st.regs, frames, slots, 64, &complete), nr);
	check(complete && !sym_unwind_late(s));
	prog_end(&st.p);
	sym_space_destroy(s);
}

int main(void)
{
	char path[256];
	elf_version(EV_CURRENT);
	make_scratch();
	test_exports();
	make_large();
	snprintf(path, sizeof(path), "%s/prog", scratch);
	test_undefined(path);
	test_at_once(path);
	snprintf(path, sizeof(path), "%s/bare", scratch);
	test_late(path);
	return finish();
}
