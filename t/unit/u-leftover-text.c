/*
 * Jumps that a killed supervisor has left in a text are taken out as a whole:
 * those of five bytes, also where the distance looks like a jump of two to
 * their own first byte, and those of two that lead to another.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "supervisor/probe/leftover.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

#define TEXT	 0x510000000000ULL /* outside of what sanitizers use */
#define LOOKS	 0x100 /* a jump, -0x31465 bytes, whose distance looks so */
#define SHORT	 0x200
#define PADDING	 0x280
#define DISTANCE ((int32_t)0xfffceb9b)
#define AREA	 ((TEXT + LOOKS + 5 + (int64_t)DISTANCE) & ~(TPAGE_SIZE - 1))
#define NOP	 0x90

static bool make_area(void)
{
	char name[64];
	const int fixed = MAP_FIXED_NOREPLACE;
	snprintf(name, sizeof(name), "smco-trace@%llx", AREA);
	_cleanup_close_ int fd = memfd_create(name, MFD_CLOEXEC);
	void *own = (void *)AREA, *shared = (void *)(AREA + TPAGE_SIZE);
	return fd >= 0 && !ftruncate(fd, TPAGE_SIZE) &&
	       mmap(own, TPAGE_SIZE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0) == own &&
	       mmap(shared, TPAGE_SIZE, PROT_READ, MAP_SHARED | fixed, fd, 0) ==
		       shared;
}

static void put_jump(uint8_t *at, taddr_t to)
{
	int32_t distance = (int32_t)(to - (taddr_t)(uintptr_t)at - 5);
	at[0] = 0xe9;
	memcpy(at + 1, &distance, sizeof(distance));
}

/* Whose file has nothing but NOPs. */
static bool make_text(const char *path)
{
	uint8_t nops[TPAGE_SIZE], *text = (uint8_t *)TEXT;
	_cleanup_close_ int fd =
		open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	memset(nops, NOP, sizeof(nops));
	if (fd < 0 || write(fd, nops, sizeof(nops)) != (ssize_t)sizeof(nops) ||
	    mmap(text, TPAGE_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC,
		 MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0) != text)
		return false;
	put_jump(text + LOOKS, TEXT + LOOKS + 5 + (int64_t)DISTANCE);
	text[SHORT] = 0xeb;
	text[SHORT + 1] = PADDING - SHORT - 2;
	put_jump(text + PADDING, AREA);
	return true;
}

int main(void)
{
	char path[64];
	uint8_t text[TPAGE_SIZE] = {0}, nops[TPAGE_SIZE];
	struct smco_err err = {0};
	struct tracer *tr = NULL;
	struct puppet pup;

	snprintf(path, sizeof(path), "/tmp/u-leftover-text.%d", (int)getpid());
	if (!check(make_area()) || !check(make_text(path)))
		return tap_done();
	memset(nops, NOP, sizeof(nops));
	pup = puppet_start();
	check_int(tracer_create(&tr, NULL, &err), 0);
	struct tproc *p = traced_must_attach(tr, pup.pid);
	check(leftover_is_there(p));
	int r = leftover_remove(p, &err);
	check_msg(r == 1, "one area taken out: %d %s", r, err.msg);
	check_int(tmem_read(p, TEXT, text, sizeof(text)), 0);
	check(!memcmp(text + LOOKS, nops, 5));
	check(!memcmp(text + SHORT, nops, 2));
	check(!memcmp(text, nops, sizeof(text)));
	check(!leftover_is_there(p));
	check_int(tproc_detach(p, &err), 0);
	tracer_destroy(tr);
	puppet_end(&pup);
	unlink(path);
	return tap_done();
}
