/*
 * Files that cannot be opened, as deleted ones without privilege: what is
 * loaded of them must do for look-up and unwinding.
 */
#include "unwindhelp.h"

static struct maps maps;

/* A space that has nothing but the memory. */
static struct sym_space *memory_only(pid_t *pid)
{
	struct sym_space *s = sym_space_create(0, "", read_pid, pid);
	maps_read(&maps, *pid);
	for (size_t i = 0; i < maps.nr; i++)
		maps.map[i].deleted = maps.map[i].path[0] == '/';
	check_int(sym_space_update(s, maps.map, maps.nr, NULL), 0);
	return s;
}

static taddr_t find(struct sym_space *s, const char *name, const char *anchor)
{
	return sym_find(s, name, anchor, NULL, NULL, NULL);
}

static void test_program(const char *flags)
{
	printf("# --- cc %s\n", flags);
	check(!run("cc -O2 -g %s -o \"$D\"/prog " FIX "/names.c", flags));
	char path[256];
	snprintf(path, sizeof(path), "%s/prog", scratch);
	struct prog p;
	prog_start(&p, (char *[]){path, NULL});
	taddr_t outer, skip, malloc_at;
	check(prog_ask(&p, NULL, "outer", &outer, NULL));
	prog_ask(&p, NULL, "middle", &skip, NULL);
	prog_ask(&p, NULL, "inner", &skip, NULL);
	check(prog_ask(&p, NULL, "malloc", &malloc_at, NULL));
	prog_ask(&p, NULL, "memalign", &skip, NULL);
	struct sym_space *s = memory_only(&p.pid);
	struct sym_space *whole = sym_space_create(p.pid, "", read_pid, &p.pid);
	maps_read(&maps, p.pid);
	sym_space_update(whole, maps.map, maps.nr, NULL);

	check_int(find(s, "malloc", "malloc"), find(whole, "malloc", "malloc"));
	check(find(s, "malloc", "malloc") != 0);
	check_int(find(s, "memalign", "malloc"),
		  find(whole, "memalign", "malloc"));
	check_int(find(s, "_dl_debug_state", NULL),
		  find(whole, "_dl_debug_state", NULL));
	check_int(find(s, "_dl_allocate_tls", "_dl_debug_state"), 0);
	struct sym_name n[SYM_MAX_INLINE];
	struct sym_place at = sym_pin(s, outer);
	check_int(at.offset, sym_pin(whole, outer).offset);
	check_int(sym_name(s, at, false, n), 1);
	check_str(n[0].function, "outer");
	struct sym_module_info a, b;
	sym_module_info(s, at.module, &a);
	sym_module_info(whole, sym_pin(whole, outer).module, &b);
	check_str(a.build_id, b.build_id);

	/* It waits for its stdin, deep in libc. */
	struct user_regs_struct u;
	struct sym_regs regs;
	check(!ptrace(PTRACE_SEIZE, p.pid, 0, 0) && stop(p.pid));
	ptrace(PTRACE_GETREGS, p.pid, 0, &u);
	regs_from_user(&regs, &u);
	taddr_t frames[64], want[64], slots[64];
	bool complete;
	size_t nr = sym_unwind(whole, &regs, want, slots, 64, &complete);
	check(complete && nr > 4);
	check_int(sym_unwind(s, &regs, frames, slots, 64, &complete), nr);
	check(complete && !memcmp(frames, want, nr * sizeof(*want)));
	prog_end(&p);
	sym_space_destroy(s);
	sym_space_destroy(whole);
}

/* Headers in memory that lie. */
static uint8_t page[8192];
static ssize_t read_page(void *ctx, taddr_t addr, void *buf, size_t len)
{
	(void)ctx;
	if (addr < 0x10000 || addr >= 0x10000 + sizeof(page))
		return -1;
	size_t left = 0x10000 + sizeof(page) - addr,
	       n = len < left ? len : left;
	memcpy(buf, page + (addr - 0x10000), n);
	return (ssize_t)n;
}

static void test_lies(void)
{
	printf("# --- damaged headers\n");
	char path[256];
	snprintf(path, sizeof(path), "%s/prog", scratch);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t sound[sizeof(page)];
	check(read(fd, sound, sizeof(sound)) == sizeof(sound));
	close(fd);
	struct sym_mapping map = {.start = 0x10000,
				  .end = 0x12000,
				  .inode = 1,
				  .exec = true,
				  .deleted = true,
				  .path = "/gone"};
	unsigned seed = 1;
	for (int i = 0; i < 2000; i++) {
		memcpy(page, sound, sizeof(page));
		for (int k = 0; k < i % 9; k++)
			page[(unsigned)rand_r(&seed) % 900] =
				(uint8_t)rand_r(&seed);
		struct sym_space *s = sym_space_create(0, "", read_page, NULL);
		sym_space_update(s, &map, 1, NULL);
		struct sym_name n[SYM_MAX_INLINE];
		sym_name(s, sym_pin(s, 0x11234), true, n);
		find(s, "outer", NULL);
		sym_prepare_unwind(s);
		sym_space_destroy(s);
	}
	check_msg(true, "2000 damaged headers");
}

int main(void)
{
	make_scratch();
	test_program("-rdynamic");
	test_program("-rdynamic -no-pie");
	test_lies();
	return finish();
}
