/*
 * What planting looks up while a program stands was read before: the names of
 * the C library, for a command, and of a process that is attached to.
 */
#include <gnu/lib-names.h>
#include <dlfcn.h>
#include <pthread.h>

#include "supervisor/tables.h"
#include "supervisor/watched.h"
#include "symbols/cfi.h"
#include "symbols/ehframe.h"
#include "symbols/module.h"
#include "symbols/space.h"
#include "t/unit/puppet.h"
#include "t/unit/scratch.h"
#include "t/unit/tap.h"

/* Modules are shared: what we see of it is what everybody has. */
static struct sym_space *libc_space(void)
{
	Dl_info info;
	check(dladdr(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"), &info) != 0);
	_cleanup_free_ char *path = realpath(info.dli_fname, NULL);
	return sym_space_of_file(path);
}

static bool is_read(struct sym_space *s)
{
	struct module *m = space_module(s, 1);
	return m && m->symtab_tried && m->gnuhash_tried;
}

static void a_command(void)
{
	struct sym_space *libc = libc_space();
	check(!is_read(libc));
	struct tables *t = tables_create(PPB);
	tables_expect(t, "/bin/true");
	check(is_read(libc));
	tables_destroy(t);
	sym_space_destroy(libc);
}

static void a_process(void)
{
	struct puppet pup = puppet_start();
	struct sym_space *libc = libc_space();
	check(!is_read(libc));
	struct sym_space *s = watched_expect(pup.pid);
	check(s != NULL);
	check(is_read(libc));
	sym_space_destroy(s);
	sym_space_destroy(libc);
	puppet_end(&pup);
}

static unsigned nr_pauses;

static bool count_pause(void *ctx)
{
	++*(unsigned *)ctx;
	return true;
}

/* A library that the linker has not left a table in: all is read. */
#define NR_FUNCTIONS 5000

static void make_bare(void)
{
	char cmd[700];
	FILE *f = fopen(scratch_path("bare.s"), "w");
	for (int i = 0; f && i < NR_FUNCTIONS; i++)
		fprintf(f, "f%d: .cfi_startproc; ret; .cfi_endproc\n", i);
	if (f)
		fclose(f);
	snprintf(cmd, sizeof(cmd),
		 "cd %s && as -o bare.o bare.s && "
		 "ld -shared --no-eh-frame-hdr -o bare.so bare.o",
		 scratch_dir());
	check_int(system(cmd), 0);
}

static struct sym_space *bare_space(void)
{
	return sym_space_of_file(scratch_path("bare.so"));
}

/* So many times somebody is asked while all its entries are read, the one that
 * all refer to first. */
#define NR_PAUSES ((NR_FUNCTIONS + 1) / EHFRAME_PAUSE + 1)

/* Who makes a large table may rest again and again, and does so where its CPU
 * is wanted. */
static void gives_way(void)
{
	struct sym_space *bare = bare_space();
	struct module *m = space_module(bare, 1);
	Elf *elf = module_elf(m);
	ehframe_set_pause(count_pause, &nr_pauses);
	cfi_destroy(cfi_create(elf, m->fd));
	check_int(nr_pauses, NR_PAUSES);
	ehframe_set_pause(NULL, NULL);
	cfi_destroy(cfi_create(elf, m->fd));
	check_int(nr_pauses, NR_PAUSES);
	elf_end(elf);
	sym_space_destroy(bare);

	int64_t tenth = PPB / 10;
	check_int(tables_rest_ns(NSEC_PER_MSEC, true, tenth),
		  9 * NSEC_PER_MSEC);
	check_int(tables_rest_ns(NSEC_PER_MSEC, false, tenth), 0);
	check_int(tables_rest_ns(NSEC_PER_MSEC, true, PPB), 0);
	check_int(tables_rest_ns(NSEC_PER_SEC, true, tenth),
		  50 * NSEC_PER_MSEC);
	check_int(tables_rest_ns(NSEC_PER_SEC, true, 0), 50 * NSEC_PER_MSEC);
}

static bool is_third(void *ctx)
{
	return ++*(unsigned *)ctx < 3;
}

/* Nobody waits at the end for tables that are not needed any more; whoever does
 * need one afterwards makes it. */
static void gives_up(void)
{
	struct sym_space *s = bare_space();
	struct module *m = space_module(s, 1);
	nr_pauses = 0;
	ehframe_set_pause(is_third, &nr_pauses);
	sym_prepare_unwind(s);
	check_int(nr_pauses, 3);
	check(!m->cfi_tried && !m->cfi);
	sym_prepare_unwind(s);
	check(!m->cfi_tried && !m->cfi);
	ehframe_set_pause(NULL, NULL);
	sym_prepare_unwind(s);
	check(m->cfi_tried && m->cfi);
	sym_space_destroy(s);
}

static uint64_t patience(int64_t m_t_ppb)
{
	struct tables *t = tables_create(m_t_ppb);
	uint64_t ns = tables_patience_ns(t);
	tables_destroy(t);
	return ns;
}

/* No stop waits for longer than a program of a moment can pay for. */
static void is_patient_in_proportion(void)
{
	check_int(patience(PPB / 10), 2500 * NSEC_PER_USEC);
	check_int(patience(PPB / 100), 250 * NSEC_PER_USEC);
	check_int(patience(0), 0);
	check_int(patience(PPB), 10 * NSEC_PER_MSEC);
}

static struct module *shared;
static int has_begun;

static bool rest_until_awaited(void *unused)
{
	(void)unused;
	__atomic_store_n(&has_begun, 1, __ATOMIC_RELEASE);
	while (module_cfi_begin_rest()) {
		module_cfi_end_rest();
		usleep(1000);
	}
	return true;
}

static void *make(void *pause)
{
	ehframe_set_pause((bool (*)(void *))pause, NULL);
	return module_cfi(shared);
}

static pthread_t begin_to_make(struct sym_space *bare,
			       bool (*pause)(void *unused))
{
	pthread_t thread;
	has_begun = 0;
	shared = space_module(bare, 1);
	check_int(pthread_create(&thread, NULL, make, (void *)pause), 0);
	while (!__atomic_load_n(&has_begun, __ATOMIC_ACQUIRE))
		usleep(1000);
	return thread;
}

/* But not while somebody waits for the table: this would not end. */
static void is_awaited(void)
{
	void *made = NULL;
	struct sym_space *bare = bare_space();
	pthread_t thread = begin_to_make(bare, rest_until_awaited);
	struct cfi_table *table = module_cfi(shared);
	check_int(pthread_join(thread, &made), 0);
	check(table && table == made);
	check(module_cfi_begin_rest());
	module_cfi_end_rest();
	sym_space_destroy(bare);
}

static int may_go_on;

static bool rest_until_told(void *unused)
{
	(void)unused;
	bool rests = !__atomic_load_n(&may_go_on, __ATOMIC_ACQUIRE) &&
		     module_cfi_begin_rest();
	__atomic_store_n(&has_begun, 1, __ATOMIC_RELEASE);
	while (rests && !__atomic_load_n(&may_go_on, __ATOMIC_ACQUIRE))
		usleep(1000);
	if (rests)
		module_cfi_end_rest();
	return true;
}

/* A stop does not wait for who rests: this would take an hour. But it does for
 * who works, until the table is there. */
static void is_not_waited_for(void)
{
	bool is_late;
	void *made = NULL;
	struct sym_space *bare = bare_space();
	pthread_t thread = begin_to_make(bare, rest_until_told);
	uint64_t hour_ns = smco_now_ns() + 3600 * NSEC_PER_SEC;
	check(!module_cfi_by(shared, hour_ns, &is_late));
	check(is_late);
	__atomic_store_n(&may_go_on, 1, __ATOMIC_RELEASE);
	check_int(pthread_join(thread, &made), 0);
	check(made && module_cfi_by(shared, 0, &is_late) == made);
	check(!is_late);
	sym_space_destroy(bare);

	bare = bare_space();
	thread = begin_to_make(bare, rest_until_awaited);
	struct cfi_table *table = module_cfi_by(shared, hour_ns, &is_late);
	check_int(pthread_join(thread, &made), 0);
	check(table && table == made);
	check(!is_late);
	sym_space_destroy(bare);
}

int main(void)
{
	make_bare();
	a_command();
	a_process();
	gives_way();
	gives_up();
	is_patient_in_proportion();
	is_awaited();
	is_not_waited_for();
	return tap_done();
}
