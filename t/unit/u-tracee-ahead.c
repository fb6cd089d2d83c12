/*
 * Memory that is read ahead: no call for what is within a stretch, what is
 * written is seen, what cannot be read is left out.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "t/unit/calls.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

#define PAGE 4096

static uint8_t *area; /* of a puppet, too: at the same place */

static bool is_there(struct tproc *p, size_t at, uint8_t want, size_t len)
{
	uint8_t got[2 * PAGE];
	if (tmem_read(p, (taddr_t)(uintptr_t)(area + at), got, len) < 0)
		return false;
	for (size_t i = 0; i < len; i++)
		if (got[i] != want)
			return false;
	return true;
}

static struct tstretch stretch(size_t at, size_t len)
{
	return (struct tstretch){(taddr_t)(uintptr_t)(area + at), len};
}

static void check_calls(struct tproc *p)
{
	const struct tstretch two[] = {stretch(100, 1000), stretch(5000, 3000)};
	bool same = true;
	unsigned long then = reading_calls();
	tmem_read_ahead(p, two, 2);
	check_int(reading_calls_since(then), 2);
	then = reading_calls();
	for (size_t i = 0; i < 200; i++)
		same &= is_there(p, 100 + 5 * i, 1, 5) &&
			is_there(p, 5000 + 15 * i, 1, 15);
	check(same);
	check_int(reading_calls_since(then), 0);
	then = reading_calls();
	check(is_there(p, 99, 1, 1));	   /* before the first */
	check(is_there(p, 1099, 1, 2));	   /* beyond its end */
	check(is_there(p, 7999, 1, 2));	   /* and the second's */
	check(is_there(p, 1000, 1, 4001)); /* of both */
	check_int(reading_calls_since(then), 4);
}

static int put(struct tproc *p, size_t at, uint8_t what, size_t len)
{
	uint8_t bytes[2 * PAGE];
	memset(bytes, what, len);
	return tmem_write(p, (taddr_t)(uintptr_t)(area + at), bytes, len);
}

static void check_writes(struct tproc *p)
{
	check_int(put(p, 500, 2, 5), 0);
	check(is_there(p, 495, 1, 5) && is_there(p, 500, 2, 5) &&
	      is_there(p, 505, 1, 5));
	/* From before the first one's end into the second. */
	check_int(put(p, 1050, 3, 4000), 0);
	check(is_there(p, 1045, 1, 5) && is_there(p, 1050, 3, 50) &&
	      is_there(p, 5000, 3, 50) && is_there(p, 5050, 1, 50));
	check_int(put(p, 90, 4, 20), 0);
	check(is_there(p, 100, 4, 10) && is_there(p, 110, 1, 5));
	tmem_forget_ahead(p);
	check(is_there(p, 500, 2, 5) && is_there(p, 1050, 3, 4000) &&
	      is_there(p, 90, 4, 20) && is_there(p, 110, 1, 5));
}

/* The page behind the area is nobody's. */
static void check_failures(struct tproc *p)
{
	const struct tstretch two[] = {stretch(4 * PAGE - 10, 20),
				       stretch(5 * PAGE, 10)};
	tmem_read_ahead(p, two, 2);
	check(is_there(p, 4 * PAGE - 10, 1, 10));
	check(!is_there(p, 4 * PAGE - 10, 1, 20));
	check(!is_there(p, 5 * PAGE, 1, 10));

	const struct tstretch last = stretch(3 * PAGE, PAGE);
	tmem_read_ahead(p, &last, 1);
	/* Half of it is there then, or nothing, and is seen. */
	check(put(p, 4 * PAGE - 5, 5, 10) < 0);
	uint8_t ours[5], theirs[5];
	check_int(tmem_read(p, (taddr_t)(uintptr_t)(area + 4 * PAGE - 5), ours,
			    5),
		  0);
	tmem_forget_ahead(p);
	check_int(tmem_read(p, (taddr_t)(uintptr_t)(area + 4 * PAGE - 5),
			    theirs, 5),
		  0);
	check(!memcmp(ours, theirs, 5));
	tmem_read_ahead(p, NULL, 0);
	check(is_there(p, 3 * PAGE, 1, 5));
}

int main(void)
{
	struct smco_err err = {0};
	struct tracer *tr;
	const struct tracer_options opts = {0};
	area = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(area + 4 * PAGE, 4 * PAGE);
	memset(area, 1, 4 * PAGE);
	struct puppet pup = puppet_start();
	if (!check_int(tracer_create(&tr, &opts, &err), 0))
		return tap_done();
	struct tproc *p = traced_must_attach(tr, pup.pid);
	tproc_resume_new(p);
	check_int(traced_stop(p, &err), 0);
	check(is_there(p, 0, 1, 5)); /* its file is open now */
	check(reading_calls() > 0);
	check_calls(p);
	check_writes(p);
	check_failures(p);
	tproc_cont(p);
	tracer_destroy(tr);
	puppet_end(&pup);
	return tap_done();
}
