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

static void count_pause(void *ctx)
{
	++*(unsigned *)ctx;
}

/* Who makes a large table may rest again and again, and does so where its CPU
 * is wanted. */
static void gives_way(void)
{
	struct sym_space *libc = libc_space();
	struct ehframe_section section;
	struct ehframe e;
	Elf *elf = module_elf(space_module(libc, 1));
	check(ehframe_load(&section, elf) && ehframe_parse(&e, &section));
	cfi_set_pause(count_pause, &nr_pauses);
	cfi_destroy(cfi_create(elf));
	check_int(nr_pauses, (e.nr_fdes + 127) / 128);
	cfi_set_pause(NULL, NULL);
	cfi_destroy(cfi_create(elf));
	check_int(nr_pauses, (e.nr_fdes + 127) / 128);
	ehframe_deinit(&e);
	ehframe_section_deinit(&section);
	elf_end(elf);
	sym_space_destroy(libc);

	int64_t tenth = PPB / 10;
	check_int(tables_rest_ns(NSEC_PER_MSEC, true, tenth),
		  9 * NSEC_PER_MSEC);
	check_int(tables_rest_ns(NSEC_PER_MSEC, false, tenth), 0);
	check_int(tables_rest_ns(NSEC_PER_MSEC, true, PPB), 0);
	check_int(tables_rest_ns(NSEC_PER_SEC, true, tenth),
		  50 * NSEC_PER_MSEC);
	check_int(tables_rest_ns(NSEC_PER_SEC, true, 0), 50 * NSEC_PER_MSEC);
}

static struct module *shared;
static int has_begun;

static void rest_until_awaited(void *unused)
{
	(void)unused;
	__atomic_store_n(&has_begun, 1, __ATOMIC_RELEASE);
	while (!module_cfi_is_awaited())
		usleep(1000);
}

static void *make(void *unused)
{
	(void)unused;
	cfi_set_pause(rest_until_awaited, NULL);
	return module_cfi(shared);
}

/* But not while somebody waits for the table: this would not end. */
static void is_awaited(void)
{
	pthread_t thread;
	void *made = NULL;
	struct sym_space *libc = libc_space();
	shared = space_module(libc, 1);
	check_int(pthread_create(&thread, NULL, make, NULL), 0);
	while (!__atomic_load_n(&has_begun, __ATOMIC_ACQUIRE))
		usleep(1000);
	check(!module_cfi_is_awaited());
	struct cfi_table *table = module_cfi(shared);
	check(!module_cfi_is_awaited());
	check_int(pthread_join(thread, &made), 0);
	check(table && table == made);
	sym_space_destroy(libc);
}

int main(void)
{
	a_command();
	a_process();
	gives_way();
	is_awaited();
	return tap_done();
}
