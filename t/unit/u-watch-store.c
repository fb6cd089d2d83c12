/*
 * What a store has written, by its instruction and the registers behind it: its
 * value where that is certain, and nothing otherwise.
 */
#include <string.h>

#include "supervisor/probe/watch-store.h"
#include "t/unit/tap.h"

#define AT   0x10000
#define IP   0x400100
#define NONE UINT64_MAX /* no value of these tests */

/* rdi is AT, rsi 3, each other register its number and a pattern. */
static uint64_t reg(unsigned i)
{
	return i == 7 ? AT : i == 6 ? 3 : 0x8090a0b0c0d0e0f0 + i;
}

static uint64_t wrote(const char *insn, size_t len, taddr_t addr,
		      unsigned bytes)
{
	struct watch_state s = {.ip = IP};
	uint64_t value;
	for (unsigned i = 0; i < 16; i++)
		s.reg[i] = reg(i);
	return watch_store_value((const uint8_t *)insn, len, &s, addr, bytes,
				 &value)
		       ? value
		       : NONE;
}
#define WROTE(insn, addr, bytes) wrote(insn, sizeof(insn) - 1, addr, bytes)

static void registers(void)
{
	check(WROTE("\x48\x89\x07", AT, 8) == reg(0));
	check(WROTE("\x89\x07", AT, 4) == (uint32_t)reg(0));
	check(WROTE("\x44\x89\x47\xf8", AT - 8, 4) == (uint32_t)reg(8));
	check(WROTE("\x4c\x89\x3f", AT, 8) == reg(15));
	check(WROTE("\x66\x89\x0f", AT, 2) == (uint16_t)reg(1));
	check(WROTE("\x88\x17", AT, 1) == (uint8_t)reg(2));
	check(WROTE("\x40\x88\x37", AT, 1) == 3);  /* sil */
	check(WROTE("\x88\x37", AT, 1) == NONE);   /* dh */
	check(WROTE("\x8c\x1f", AT, 2) == NONE);   /* ds */
	check(WROTE("\x48\x89\x3f", AT, 8) == AT); /* rdi to [rdi] */
	check(WROTE("\x89\x04\xb7", AT + 12, 4) == (uint32_t)reg(0));
	check(WROTE("\x89\x0d\x10\x00\x00\x00", IP + 16, 4) ==
	      (uint32_t)reg(1));
	check(WROTE("\x48\xa3\x00\x00\x01\x00\x00\x00\x00\x00", AT, 8) ==
	      reg(0));
}

static void constants(void)
{
	check(WROTE("\xc7\x07\x04\x03\x02\x01", AT, 4) == 0x01020304);
	check(WROTE("\x48\xc7\x07\xfe\xff\xff\xff", AT, 8) == UINT64_MAX - 1);
	check(WROTE("\xc7\x07\xfe\xff\xff\xff", AT, 4) == 0xfffffffe);
	check(WROTE("\x66\xc7\x07\x00\x80", AT, 2) == 0x8000);
	check(WROTE("\xc6\x07\x80", AT, 1) == 0x80);
}

static void parts(void)
{
	check(WROTE("\x48\x89\x07", AT + 4, 4) == reg(0) >> 32);
	check(WROTE("\x48\x89\x07", AT + 7, 1) == reg(0) >> 56);
	check(WROTE("\x89\x07", AT, 8) == NONE);
	check(WROTE("\x89\x07", AT + 2, 4) == NONE);
	check(WROTE("\x89\x07", AT - 2, 4) == NONE);
	check(WROTE("\x89\x07", AT + 4, 4) == NONE);
	check(WROTE("\x89\x07", AT - 4, 4) == NONE);
	check(WROTE("\x89\x07", 0, 4) == NONE);
}

/* Some of them would look like a store to that address. */
static void others(void)
{
	check(WROTE("\x01\x07", AT, 4) == NONE);	 /* add */
	check(WROTE("\xf0\x01\x07", AT, 4) == NONE);	 /* lock add */
	check(WROTE("\x87\x07", AT, 4) == NONE);	 /* xchg */
	check(WROTE("\x8b\x07", AT, 4) == NONE);	 /* a load */
	check(WROTE("\x89\xc7", AT, 4) == NONE);	 /* to edi */
	check(WROTE("\x64\x89\x07", AT, 4) == NONE);	 /* fs: */
	check(WROTE("\x67\x89\x07", AT, 4) == NONE);	 /* [edi] */
	check(WROTE("\xaa", AT - 1, 1) == NONE);	 /* stosb */
	check(WROTE("\x0f\x11\x07", AT, 8) == NONE);	 /* movups */
	check(WROTE("\x0f\x38\xf0\x07", AT, 4) == NONE); /* movbe load */
	check(WROTE("\x0f\x38\xf1\x07", AT, 4) == NONE); /* movbe */
	check(WROTE("\xff\x37", AT, 8) == NONE);	 /* push */
	check(WROTE("\x48\x89\x07\x90", AT, 8) == NONE); /* and a nop */
	check(wrote("\x48\x89\x07", 2, AT, 8) == NONE);	 /* cut off */
	check(wrote("\x06\x07", 1, AT, 8) == NONE);	 /* none */
	check(wrote("", 0, AT, 8) == NONE);
}

int main(void)
{
	registers();
	constants();
	parts();
	others();
	return tap_done();
}
