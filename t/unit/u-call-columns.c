/*
 * Which system calls are counted together: of each event just those that it
 * counts, whatever others there are, and no more columns than there is room
 * for. And the numbers of calls, by their tracepoints' names and by those of 32
 * bits.
 */
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "pmu/call-columns.h"
#include "pmu/event-private.h"
#include "t/unit/tap.h"

#define ALL ((1u << PMU_CALL_CLASSES) - 1)

static struct pmu_event of_classes(uint32_t classes)
{
	return (struct pmu_event){.call_classes = classes};
}

static struct pmu_event of_call(int nr)
{
	return (struct pmu_event){.call_plus_1 = nr + 1};
}

/* Calls that are in the event's columns and not in the event, or the other way
 * round. */
static int nr_wrong(const struct call_columns *c, const struct pmu_event *ev)
{
	uint32_t columns = call_columns_of(c, ev);
	int nr_wrong = 0;
	for (unsigned abi = 0; abi < PMU_CALL_ABIS; abi++)
		for (long nr = 0; nr <= CALL_NUMBERS; nr++)
			nr_wrong += (columns >> c->of[abi][nr] & 1) !=
				    pmu_counts_call(ev, abi, nr);
	return nr_wrong;
}

static void test_counts(void)
{
	struct pmu_event read = of_call(SYS_read), all = of_classes(ALL),
			 io = of_classes(1u << pmu_call_class(SYS_read)),
			 rest = of_classes(1u << (PMU_CALL_CLASSES - 1));
	check(pmu_counts_call(&read, PMU_CALL_NATIVE, SYS_read));
	check(!pmu_counts_call(&read, PMU_CALL_NATIVE, SYS_write));
	check(!pmu_counts_call(&read, PMU_CALL_I386, SYS_read));
	check(!pmu_counts_call(&read, PMU_CALL_I386, 3));
	check(pmu_counts_call(&io, PMU_CALL_NATIVE, SYS_read));
	check(!pmu_counts_call(&io, PMU_CALL_NATIVE, SYS_close));
	/* i386: 3 is read, 6 close, 140 _llseek, 180 pread64, 197 fstat64. */
	check(pmu_counts_call(&io, PMU_CALL_I386, 3));
	check(pmu_counts_call(&io, PMU_CALL_I386, 180));
	check(!pmu_counts_call(&io, PMU_CALL_I386, 6));
	check(!pmu_counts_call(&io, PMU_CALL_I386, SYS_read));
	for (long nr = -2; nr <= CALL_NUMBERS + 1; nr++) {
		if (pmu_counts_call(&all, PMU_CALL_NATIVE, nr) &&
		    pmu_counts_call(&all, PMU_CALL_I386, nr))
			continue;
		check_int(nr, 0);
	}
	check(pmu_counts_call(&rest, PMU_CALL_NATIVE, CALL_NUMBERS));
	check(pmu_counts_call(&rest, PMU_CALL_I386, CALL_NUMBERS));
	check(pmu_counts_call(&rest, PMU_CALL_NATIVE, -1));
}

static void test_columns(void)
{
	struct call_columns c;
	struct pmu_event ev[PMU_CALL_CLASSES + 3];
	size_t nr = 0;
	call_columns_init(&c);
	check_int(c.nr, 1);
	for (uint32_t i = 0; i < PMU_CALL_CLASSES; i++)
		ev[nr++] = of_classes(1u << i);
	ev[nr++] = of_classes(ALL);
	ev[nr++] = of_call(SYS_read);
	ev[nr++] = of_call(SYS_read);
	for (size_t i = 0; i < nr; i++)
		check(call_columns_add(&c, &ev[i]));
	for (size_t i = 0; i < nr; i++)
		check_int(nr_wrong(&c, &ev[i]), 0);
	check_int(c.nr, PMU_CALL_CLASSES + 1);
	check_int(__builtin_popcount(call_columns_of(&c, &ev[0])), 2); /* io */
	check_int(__builtin_popcount(call_columns_of(&c, &ev[nr - 1])), 1);
	check_int(call_columns_of(&c, &ev[PMU_CALL_CLASSES]), (1u << c.nr) - 1);
}

static void test_room(void)
{
	struct call_columns c, before;
	struct pmu_event all = of_classes(ALL);
	call_columns_init(&c);
	for (int i = 0; i < CALL_COLUMNS - 1; i++) {
		struct pmu_event ev = of_call(i);
		check(call_columns_add(&c, &ev));
	}
	before = c;
	struct pmu_event more = of_call(100), io = of_classes(1),
			 old = of_call(3);
	check(!call_columns_add(&c, &more));
	check(!call_columns_add(&c, &io));
	check(!memcmp(&c, &before, sizeof(c)));
	check(call_columns_add(&c, &old));
	check(call_columns_add(&c, &all));
	check_int(c.nr, CALL_COLUMNS);
	check_int(nr_wrong(&c, &all), 0);
	for (int i = 0; i < CALL_COLUMNS - 1; i++) {
		struct pmu_event ev = of_call(i);
		check_int(nr_wrong(&c, &ev), 0);
	}
}

/* What the kernel calls its functions is not always the call's name. */
static void test_numbers(void)
{
	static const struct {
		const char *function;
		int nr;
	} known[] = {
		{"read", SYS_read},
		{"newstat", SYS_stat},
		{"newfstat", SYS_fstat},
		{"newlstat", SYS_lstat},
		{"newfstatat", SYS_newfstatat},
		{"newuname", SYS_uname},
		{"umount", SYS_umount2},
		{"sendfile64", SYS_sendfile},
		{"pread64", SYS_pread64},
		{"exit_group", SYS_exit_group},
		{"socketcall", -1}, /* of i386 only */
		{"no_such_call", -1},
	};
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		check_int(syscall_number(known[i].function), known[i].nr);
	check_int(syscall_of_i386(3), SYS_read);
	check_int(syscall_of_i386(140), -1);	    /* _llseek */
	check_int(syscall_of_i386(192), SYS_mmap);  /* mmap2 */
	check_int(syscall_of_i386(197), SYS_fstat); /* fstat64 */
	check_int(syscall_of_i386(422), SYS_futex); /* futex_time64 */
	check_int(syscall_of_i386(511), -1);
}

int main(void)
{
	test_counts();
	test_columns();
	test_room();
	test_numbers();
	return tap_done();
}
