/*
 * What a supervisor that was killed in the middle of a call has left at the
 * end of the vdso is no hindrance for the next one: it makes its calls from
 * there, where its own death does no harm, and leaves nothing.
 */
#include <string.h>
#include <sys/syscall.h>

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

int main(void)
{
	uint8_t before[TPAGE_SIZE], after[TPAGE_SIZE];
	struct tracer *tr = NULL;
	struct smco_err err = {0};
	int64_t ret = 0;
	const uint64_t args[6] = {0};

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
	tracer_destroy(tr);
	puppet_end(&pup);
	return tap_done();
}
