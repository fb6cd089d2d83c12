/*
 * What a supervisor that was killed in the middle of a call has left at the
 * end of the vdso is no hindrance for the next one: it makes its calls from
 * there, where its own death does no harm, and leaves nothing. Nor does the
 * page stay where a thread still was when the next one came; nor the code of
 * one who was killed before the libraries were there.
 */
#include <string.h>
#include <sys/syscall.h>

#include "supervisor/probe/leftover.h"
#include "supervisor/tracee/internal.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

static struct puppet pup;

/* The vdso's last page. */
static taddr_t read_page(uint8_t page[TPAGE_SIZE], struct tproc *p)
{
	struct tmaps maps;
	taddr_t at = 0;
	if (tmaps_read(pup.pid, &maps, NULL))
		return 0;
	for (size_t i = 0; i < maps.nr; i++)
		if (!strcmp(maps.maps[i].path, "[vdso]"))
			at = maps.maps[i].end - TPAGE_SIZE;
	tmaps_deinit(&maps);
	check_int(tmem_read(p, at, page, TPAGE_SIZE), 0);
	return at;
}

/* Its code, and data of a call that it never came back from. */
static void leave_code(struct tproc *p, taddr_t page)
{
	uint8_t image[ARCH_BOOT_DATA + ARCH_BOOT_SAVED];
	const uint8_t *code;
	size_t done, len = arch.boot_code(&code, &done);
	taddr_t at = (page + TPAGE_SIZE - sizeof(image)) & ~15ULL;

	memset(image, 0, sizeof(image));
	memset(image + ARCH_BOOT_DATA, 77, ARCH_BOOT_SAVED);
	memcpy(image, code, len);
	check_int(tmem_write(p, at, image, sizeof(image)), 0);
}

static int hold[2]; /* a pipe: the call of one who is killed waits for it */
static char byte;

static long act_add(long a, long b)
{
	return a + b;
}

/* Has a call made that does not end, and is killed then. */
static void start_and_kill(void)
{
	const uint64_t args[6] = {(uint64_t)hold[0], (uint64_t)&byte, 1};
	struct tracer *tr;
	int64_t ret;
	fflush(stdout);
	pid_t pid = fork();
	if (!pid) {
		struct tproc *p = tracer_create(&tr, NULL, NULL)
					  ? NULL
					  : traced_attach(tr, pup.pid, NULL);
		if (p)
			tproc_syscall(p, SYS_read, args, &ret, NULL);
		_exit(1);
	}
	char path[64], line[256], call[32];
	snprintf(path, sizeof(path), "/proc/%d/syscall", (int)pup.pid);
	snprintf(call, sizeof(call), "%d %#x ", SYS_read, hold[0]);
	do
		usleep(1000);
	while (smco_slurp(path, line, sizeof(line)) <= 0 ||
	       strncmp(line, call, strlen(call)) != 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Executable memory that comes from nowhere. */
static int nr_stubs(void)
{
	struct tmaps maps;
	int nr = 0;
	if (tmaps_read(pup.pid, &maps, NULL))
		return -1;
	for (size_t i = 0; i < maps.nr; i++)
		nr += (maps.maps[i].prot & PROT_EXEC) && !maps.maps[i].path[0];
	tmaps_deinit(&maps);
	return nr;
}

static void check_busy_stub(struct tracer *tr)
{
	const uint64_t args[6] = {0};
	struct smco_err err = {0};
	int64_t ret = 0;
	start_and_kill();
	check_int(nr_stubs(), 1);

	struct tproc *p = traced_attach(tr, pup.pid, &err);
	if (!check_msg(p != NULL, "attached to a busy one %s", err.msg))
		return;
	check_int(tproc_syscall(p, SYS_getpid, args, &ret, &err), 0);
	check_int(ret, pup.pid);
	check_int(nr_stubs(), 2); /* a thread is in the first */
	tproc_resume_new(p);
	check_int(write(hold[1], "x", 1), 1);
	check_int(traced_do(tr, &pup, act_add, 40, 2), 42);
	check_int(tproc_detach(p, &err), 0);
	check_int(nr_stubs(), 0);
}

static taddr_t way; /* leads on from the linker */

/* A task stands @in bytes into the code when the next one comes, -1 = in none
 * of it, and is sent home. */
static void check_linker_call(struct tracer *tr, int in, bool comes_home)
{
	const taddr_t home = (taddr_t)(uintptr_t)act_add;
	const struct arch_raise raise = {.sig = SIGWINCH,
					 .slot = (taddr_t)(uintptr_t)&way,
					 .home = home};
	uint8_t code[ARCH_RAISE_MAX] = {0}, is[ARCH_RAISE_MAX];
	static const uint8_t zeros[ARCH_RAISE_MAX];
	struct smco_err err = {0};
	struct user_regs_struct own, regs;
	size_t done;
	struct tproc *p = traced_attach(tr, pup.pid, &err);
	if (!check_msg(p != NULL, "attached for the linker %s", err.msg))
		return;
	struct task *t = tproc_first_task(p);
	const taddr_t at = inject_libs_place(p);
	arch.raise_code(code, &raise, &done);
	check(!tproc_has_left_call(p));
	check(!leftover_is_there(p));
	check_int(tmem_write(p, at, code, sizeof(code)), 0);
	check_int(tmem_write(p, raise.slot, &at, sizeof(at)), 0);
	check(leftover_is_there(p));
	check_int(task_get_regs(t, &own), 0);
	regs = own;
	if (in >= 0)
		arch.set_pc(&regs, at + (taddr_t)in);
	check_int(task_set_regs(t, &regs), 0);
	check_int(leftover_remove(p, &err), comes_home ? 0 : SMCO_BUSY);
	check_int(task_get_regs(t, &regs), 0);
	taddr_t to = arch.pc(&own);
	if (in >= 0)
		to = comes_home ? home : at + (taddr_t)in;
	check(arch.pc(&regs) == to);
	check_int(task_set_regs(t, &own), 0);
	check_int(tmem_read(p, raise.slot, &to, sizeof(to)), 0);
	check(to == home);
	check_int(tmem_read(p, at, is, sizeof(is)), 0);
	check(!memcmp(is, comes_home ? zeros : code, sizeof(is)));
	/* Not quite that code. */
	code[0] ^= 1;
	check_int(tmem_write(p, at, code, sizeof(code)), 0);
	check(!tproc_has_left_call(p));
	check_int(tmem_write(p, at, zeros, sizeof(zeros)), 0);
	check_int(tproc_detach(p, &err), 0);
}

int main(void)
{
	uint8_t before[TPAGE_SIZE], after[TPAGE_SIZE];
	struct tracer *tr = NULL;
	struct smco_err err = {0};
	int64_t ret = 0;
	const uint64_t args[6] = {0};

	if (pipe(hold))
		return 2;
	pup = puppet_start();
	check_int(tracer_create(&tr, NULL, &err), 0);
	struct tproc *p = traced_attach(tr, pup.pid, &err);
	if (!check_msg(p != NULL, "attached %s", err.msg))
		return tap_done();
	taddr_t page = read_page(before, p);
	check(inject_spare_code(p, 16) != 0);
	leave_code(p, page);
	check_int(tproc_detach(p, &err), 0);

	p = traced_attach(tr, pup.pid, &err);
	if (!check_msg(p != NULL, "attached again %s", err.msg))
		return tap_done();
	/* 0: no place */
	check(inject_spare_code(p, 16) != 0);
	check_int(tproc_syscall(p, SYS_getpid, args, &ret, &err), 0);
	check_int(ret, pup.pid);
	check_int(tproc_detach(p, &err), 0);

	p = traced_attach(tr, pup.pid, &err);
	if (check_msg(p != NULL, "attached once more %s", err.msg)) {
		read_page(after, p);
		check(!memcmp(before, after, sizeof(after)));
		check_int(tproc_detach(p, &err), 0);
	}
	check_busy_stub(tr);
	check_linker_call(tr, -1, true);
	check_linker_call(tr, 0, true);
	check_linker_call(tr, 5, false);
	tracer_destroy(tr);
	puppet_end(&pup);
	return tap_done();
}
