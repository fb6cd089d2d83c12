/*
 * Where five bytes do not fit, a jump of two leads to a function's padding:
 * which, and who gets it where there is little.
 */
#include "supervisor/probe/range-relay.h"
#include "t/unit/range-code.h"

static const struct var_place always_ebx = {HERE, .kind = VAR_REG, .reg = 3};

/* Where the one short jump's relay is; 0: there is none, or more. */
static uint64_t relay_of_ebx(void)
{
	find(int4, always_ebx);
	return windows.nr == 1 && windows.nr_sites == 1
		       ? windows.window[0].relay
		       : 0;
}

/* Jumps of two bytes to padding, where five do not fit. */
static void relays(void)
{
	uint8_t far[160];
	/* 0 inc %ebx; 2 jmp 0; 4 mov %eax,%ecx; 6 ret; nine bytes of padding
	 * to where the next function may begin */
	behind = 0xcc;
	LOAD(0xff, 0xc3, 0xeb, 0xfc, 0x89, 0xc1, 0xc3);
	check_int(relay_of_ebx(), TEXT + 7);
	check_int(windows.nr_refused[RR_NO_ROOM], 0);
	check(range_relays_fit(&code, &img, &windows));
	/* Somebody else's bytes, out of reach, no padding: as from a file. */
	for (uint64_t at = TEXT; at < TEXT + 200; at++) {
		windows.window[0].relay = at;
		if (range_relays_fit(&code, &img, &windows) !=
		    (at >= TEXT + 7 && at + 5 <= TEXT + 16))
			check_int(at, 0);
	}
	/* Four bytes are too few: 0 inc %ebx; 2 jmp 0; 4 mov...; 11 ret */
	LOAD(0xff, 0xc3, 0xeb, 0xfc, 0xc7, 0x45, 0xec, 0, 0, 0, 0, 0xc3);
	check_int(relay_of_ebx(), 0);
	check_int(windows.nr_refused[RR_NO_ROOM], 1);
	/* One that goes on into it: 4 call 0x1100; 9 nop */
	behind = 0x50;
	LOAD(0xff, 0xc3, 0xeb, 0xfc, 0xe8, 0xf7, 0, 0, 0, 0x90, 0x90, 0x90,
	     0x90, 0x90, 0x90);
	check_int(relay_of_ebx(), 0);
	/* 4 jmp 12; 6 nops of 3 + 3; 12 ret: padding inside */
	LOAD(0xff, 0xc3, 0xeb, 0xfc, 0xeb, 6, 0x0f, 0x1f, 0, 0x0f, 0x1f, 0,
	     0xc3);
	check_int(relay_of_ebx(), TEXT + 6);
	/* The same, and somebody jumps there: 12 jmp 9 */
	LOAD(0xff, 0xc3, 0xeb, 0xfc, 0xeb, 6, 0x0f, 0x1f, 0, 0x0f, 0x1f, 0,
	     0xeb, 0xfb);
	check_int(relay_of_ebx(), 0);
	/* Reach: the jump goes to where the inc is, or behind it. */
	for (unsigned n = 120; n <= 140; n++) {
		memset(far, 0xc9, sizeof(far)); /* leave */
		memcpy(far, (uint8_t[]){0xff, 0xc3, 0xeb, 0xfc}, 4);
		far[n - 1] = 0xc3;
		memset(far + n, 0x90, 5);
		far[n + 5] = 0xc3;
		load(far, n + 6, NULL, 0);
		uint64_t want = n <= 131 ? TEXT + n : 0;
		if (relay_of_ebx() != want)
			check_int(n, 0);
		if (want && !check(range_relays_fit(&code, &img, &windows)))
			printf("# at %u\n", n);
	}
}

/* Each has padding of its own, and a long jump's end is not there. */
static void many_relays(void)
{
	behind = 0x50;
	/* 0 inc %ebx; 2 jmp 4; 4 dec %ebx; 6 jmp 8; 8 ret; 9 six bytes; 15 */
	LOAD(0xff, 0xc3, 0xeb, 0, 0xff, 0xcb, 0xeb, 0, 0xc3, 0x90, 0x90, 0x90,
	     0x90, 0x90, 0x90, 0xc3);
	find(int4, always_ebx);
	check_int(sites.nr, 2);
	check_int(windows.nr_sites, 1);
	check_int(windows.nr_refused[RR_NO_ROOM], 1);
	/* ... and with ten. */
	LOAD(0xff, 0xc3, 0xeb, 0, 0xff, 0xcb, 0xeb, 0, 0xc3, 0x90, 0x90, 0x90,
	     0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3);
	find(int4, always_ebx);
	check_int(windows.nr_refused[RR_NO_ROOM], 0);
	if (check_int(windows.nr, 2)) {
		check_int(windows.window[0].relay, TEXT + 9);
		check_int(windows.window[1].relay, TEXT + 14);
		check(range_relays_fit(&code, &img, &windows));
		windows.window[1].relay--;
		check(!range_relays_fit(&code, &img, &windows));
	}
	/* 0 inc %ebx; 2 jmp 4; 4 dec %ebx; 6 ret; 7 eight bytes, of which a
	 * long jump at 6 takes four */
	LOAD(0xff, 0xc3, 0xeb, 0, 0xff, 0xcb, 0xc3, 0x90, 0x90, 0x90, 0x90,
	     0x90, 0x90, 0x90, 0x90, 0xc3);
	find(int4, always_ebx);
	check_int(windows.nr_sites, 1);
	check_int(windows.window[0].relay, 0);
	/* ... and nine. */
	LOAD(0xff, 0xc3, 0xeb, 0, 0xff, 0xcb, 0xc3, 0x90, 0x90, 0x90, 0x90,
	     0x90, 0x90, 0x90, 0x90, 0x90, 0xc3);
	find(int4, always_ebx);
	if (check_int(windows.nr, 2)) {
		check_int(windows.window[0].relay, TEXT + 11);
		check_int(windows.window[1].relay, 0);
	}
}

int main(void)
{
	relays();
	many_relays();
	forget_code();
	return tap_done();
}
