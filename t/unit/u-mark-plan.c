/*
 * Where functions of this very program begin and end, and the windows that are
 * found for it.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "supervisor/monitor/phase-name.h"
#include "supervisor/probe/mark-plan.h"
#include "symbols/symbols.h"
#include "t/unit/tap.h"

/* The first word of what is expected of each stands in its name. */
__asm__(".text\n"
	".macro begin name\n.p2align 4\n.globl \\name\n.type \\name, "
	"@function\n"
	"\\name:\n.cfi_startproc\n.endm\n"
	".macro finish name\n.cfi_endproc\n.size \\name, . - \\name\n.endm\n"
	/* A return at once: both in one window, with the padding behind. */
	"begin plan_at_once\nret\nfinish plan_at_once\n"
	/* The first return is a branch's target, with code behind it. */
	"begin plan_no_room\n"
	"test %edi, %edi\njne 1f\nmov $1, %eax\n1: ret\n2: mov $2, %eax\nret\n"
	"finish plan_no_room\n"
	/* Its beginning is a loop's. */
	"begin plan_loop\n"
	"dec %edi\njne plan_loop\nmov $1, %eax\nret\nfinish plan_loop\n"
	"begin plan_endbr\nendbr64\nlea 5(%rdi), %rax\nlea 6(%rdi), %rcx\n"
	"ret\nfinish plan_endbr\n"
	/* Four ways out: calls of others at the end, one of them conditional.
	 */
	"begin plan_tails\n"
	"test %edi, %edi\nje plan_at_once\ncmp $2, %edi\nje 1f\n"
	"mov 8(%rsi), %rax\njmp *%rax\n"
	"1: mov $7, %eax\ncmp $9, %edx\njne 2f\njmp plan_endbr\n"
	"2: mov $8, %eax\nret\nfinish plan_tails\n"
	/* What their first instruction has done when they are seen. */
	"begin plan_push\npush %rbx\nmov %edi, %ebx\nlea 9(%rbx), %rax\n"
	"mov $1, %ecx\npop %rbx\nret\nfinish plan_push\n"
	"begin plan_sub\nsub $24, %rsp\nmov %edi, 4(%rsp)\n"
	"mov 4(%rsp), %eax\nadd $24, %rsp\nret\nfinish plan_sub\n"
	"begin plan_mov\nmov %edi, %eax\nlea 9(%rax), %rcx\nadd %rcx, %rax\n"
	"ret\nfinish plan_mov\n"
	/* Those that do not stay: what leads back behind it; a stack pointer
	 * that is not to be known; one as long as a jump. */
	"begin plan_back\npush %rbx\n5: dec %edi\nlea 1(%rdi), %rax\njne 5b\n"
	"pop %rbx\nret\nfinish plan_back\n"
	"begin plan_and\nand $-64, %rsp\nmov %edi, %eax\nlea 1(%rdi), %rcx\n"
	"ret\nfinish plan_and\n"
	"begin plan_long\nmov $7, %eax\nlea 1(%rdi), %rcx\nret\nfinish "
	"plan_long\n"
	/* There is no room behind it. */
	"begin plan_tight\npush %rbx\nmov %edi, %ebx\nmov %ebx, %ecx\n"
	"6: dec %ecx\nmov $1, %eax\njne 6b\npop %rbx\nret\nfinish plan_tight\n"
	/* A probe, a nop, behind a call, and room for a jump from there on. */
	"begin plan_probe\npush %r12\npush %rbp\npush %rbx\ncall plan_at_once\n"
	"nop\npop %rbx\npop %rbp\npop %r12\nret\nfinish plan_probe\n"
	/* A switch does not leave. */
	"begin plan_switch\n"
	"and $1, %edi\nlea plan_table(%rip), %rdx\n"
	"movslq (%rdx,%rdi,4), %rax\nadd %rdx, %rax\njmp *%rax\n"
	"3: mov $1, %eax\nret\n4: mov $2, %eax\nret\nfinish plan_switch\n"
	".section .rodata\n.balign 4\nplan_table: .long 3b - plan_table\n"
	".long 4b - plan_table\n.text\n");

static Elf *elf;
static struct mark_code *code;
static struct mark_plan plan;
static const struct mark_spot begin = {.what = 1}, end = {.what = 2};

struct search {
	const char *name;
	struct sym_function found;
};

static bool is_it(void *ctx, const struct sym_function *f)
{
	struct search *s = ctx;
	if (strcmp(f->name, s->name) != 0)
		return true;
	s->found = *f;
	return false;
}

static struct sym_space *space;

static size_t spots(uint32_t what)
{
	size_t nr = 0;
	for (size_t i = 0; i < plan.nr_spots; i++)
		nr += plan.spot[i].what == what;
	return nr;
}

/* Every spot lies in its window, windows are apart and as the file has them. */
static bool is_sound(const struct mark_plan *p)
{
	uint64_t behind = 0;
	size_t spot = 0;
	for (size_t i = 0; i < p->nr_windows; i++) {
		const struct mark_window *w = &p->window[i];
		if (w->addr < behind || w->room < 5 || w->first_spot != spot ||
		    !w->nr_spots)
			return false;
		for (; spot < w->first_spot + w->nr_spots; spot++)
			if (p->spot[spot].addr < w->addr ||
			    p->spot[spot].addr >= w->addr + w->len)
				return false;
		behind = w->addr + (w->len > w->room ? w->len : w->room);
	}
	return spot == p->nr_spots;
}

static void plan_it(const char *name)
{
	struct search s = {.name = name};
	sym_each_function(space, 1, is_it, &s);
	check_msg(s.found.addr, "%s is there", name);
	mark_plan_deinit(&plan);
	check_int(mark_plan_function(&plan, code, s.found.addr, s.found.size,
				     &begin, &end, NULL),
		  0);
	check_int(mark_plan_place(&plan, code, NULL), 0);
	check(is_sound(&plan));
}

static void probe(void)
{
	struct search s = {.name = "plan_probe"};
	struct mark_spot spot = {.what = 1};
	sym_each_function(space, 1, is_it, &s);
	check(s.found.addr);
	spot.addr = s.found.addr + 9;
	mark_plan_deinit(&plan);
	check_int(mark_plan_spot(&plan, &spot, NULL), 0);
	check_int(mark_plan_place(&plan, code, NULL), 0);
	check(is_sound(&plan));
	if (check_int(plan.nr_windows, 1)) {
		check_int(plan.window[0].addr, spot.addr);
		check_int(plan.window[0].len, 5);
	}
}

static void functions(void)
{
	probe();
	plan_it("plan_at_once");
	check_int(plan.nr_spots, 2);
	check_int(plan.nr_windows, 1);
	check_int(plan.spot[0].what, 1);
	check(!plan.window[0].goes_on);
	check_int(plan.window[0].len, 1);
	plan_it("plan_no_room");
	check_int(spots(1), 1);
	check_int(spots(2), 1);
	check_int(plan.nr_refused, 1);
	check_str(plan.why_refused, "there is no room for a jump");
	plan_it("plan_loop");
	check_int(plan.nr_spots, 0);
	check_str(plan.why_refused, "a loop begins with it");
	plan_it("plan_endbr");
	check_int(spots(1), 1);
	check_int(spots(2), 1);
	check_int(plan.window[0].bytes[0], 0x48);
	check_int(plan.nr_windows, 1); /* there is no room for a second */
	check_int(plan.window[0].nr_insns, 3);
	plan_it("plan_tails");
	check_int(spots(1), 1);
	check_int(spots(2), 4);
	size_t taken = 0;
	for (size_t i = 0; i < plan.nr_spots; i++)
		taken += plan.spot[i].when == MARK_TAKEN;
	check_int(taken, 1);
	plan_it("plan_switch");
	check_int(spots(1), 1);
	check_int(spots(2), 2);
}

/* Where the function that was just planned is passed first. */
static void begins(unsigned behind, unsigned pushed)
{
	const struct mark_spot *s = &plan.spot[0];
	check_int(s->what, 1);
	check_int(s->behind, behind);
	check_int(s->pushed, pushed);
	check_int(plan.window[0].addr, s->addr);
	check_int(spots(2), 1);
}

static void first_stays(void)
{
	static const struct {
		const char *name;
		unsigned behind, pushed;
	} all[] = {{"plan_push", 1, 8}, {"plan_sub", 4, 24},
		   {"plan_mov", 2, 0},	{"plan_and", 0, 0},
		   {"plan_long", 0, 0}, {"plan_tight", 0, 0}};
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		struct search s = {.name = all[i].name};
		plan_it(all[i].name);
		begins(all[i].behind, all[i].pushed);
		sym_each_function(space, 1, is_it, &s);
		check_int(plan.spot[0].addr, s.found.addr + all[i].behind);
	}
	plan_it("plan_back"); /* behind it a loop begins: not counted */
	check_int(spots(1), 0);
}

struct all {
	size_t nr, nr_placed, nr_stay;
	bool sound;
};

static bool one_of_all(void *ctx, const struct sym_function *f)
{
	struct all *a = ctx;
	struct mark_plan p;
	mark_plan_init(&p);
	a->sound &= !mark_plan_function(&p, code, f->addr, f->size, &begin,
					&end, NULL) &&
		    !mark_plan_place(&p, code, NULL) && is_sound(&p);
	a->nr_placed += p.nr_spots != 0;
	a->nr_stay += p.nr_spots && p.spot[0].behind;
	a->nr++;
	mark_plan_deinit(&p);
	return a->nr < 2000;
}

static void everything(void)
{
	struct all a = {.sound = true};
	sym_each_function(space, 1, one_of_all, &a);
	check(a.sound);
	check_msg(a.nr > 20 && a.nr_placed > a.nr / 2, "%zu of %zu",
		  a.nr_placed, a.nr);
	check_msg(a.nr_stay > a.nr_placed / 2,
		  "the first instruction stays "
		  "in %zu of %zu",
		  a.nr_stay, a.nr_placed);
}

/* Places that are no functions, and none at all. */
static void nonsense(void)
{
	static const uint64_t at[] = {0, 1, 0x40, UINT64_MAX, INT64_MAX};
	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		struct mark_spot s = {.addr = at[i]};
		mark_plan_deinit(&plan);
		check_int(mark_plan_function(&plan, code, at[i], 5, &begin,
					     &end, NULL),
			  0);
		check_int(mark_plan_spot(&plan, &s, NULL), 0);
		check_int(mark_plan_place(&plan, code, NULL), 0);
		check_int(plan.nr_windows, 0);
		check(plan.nr_refused > 0 && *plan.why_refused);
	}
	mark_plan_deinit(&plan);
}

static bool means(const char *name, const char *symbol)
{
	struct phase_name n;
	return phase_name_split(name, &n) && phase_name_is_function(&n, symbol);
}

static void names(void)
{
	check(means("main_loop", "main_loop"));
	check(!means("main_loop", "main_loop2"));
	check(!means("main_loop2", "main_loop"));
	check(means("main_loop", "main_loop.constprop.0"));
	check(means("main_loop", "main_loop.isra.0.lto_priv.3"));
	check(!means("main_loop", "main_loop.cold"));
	check(!means("main_loop", "main_loop.part.0"));
	check(means("app::run", "_ZN3app3runEi"));
	check(means("app::run(int)", "_ZN3app3runEi"));
	check(!means("app::run(long)", "_ZN3app3runEi"));
	check(!means("run", "_ZN3app3runEi"));
	check(!means("app", "_ZN3app3runEi"));
	check(means("app::twice", "_ZN3app5twiceIiEET_S1_"));
	check(means("app::get", "_ZNK3app3getEv"));
	check(!means("sdt:main_loop", "main_loop"));
	check(!means("sdt:a:b", "sdt:a:b"));
	check(phase_name_is_part("f.cold"));
	check(phase_name_is_part("f.cold.3"));
	check(!phase_name_is_part("f.coldest"));
	struct nearest n;
	nearest_init(&n, "app::rnu");
	phase_name_offer_function(&n, "_ZN3app3runEi");
	check_int(n.nr, 1);
	check_str(n.name[0], "app::run");
}

int main(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	path[len > 0 ? len : 0] = '\0';
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	space = sym_space_of_file(path);
	code = mark_code_create(elf, NULL, 0);
	mark_plan_init(&plan);
	if (check(elf && space && code)) {
		functions();
		first_stays();
		everything();
		nonsense();
	}
	names();
	mark_plan_deinit(&plan);
	mark_code_destroy(code);
	sym_space_destroy(space);
	elf_end(elf);
	close(fd);
	return tap_done();
}
