/* Which memory may be guarded, on maps made by hand. */
#include "t/unit/tap.h"
#include "supervisor/probe/guard.h"

#include <sys/mman.h>

#define RW (PROT_READ | PROT_WRITE)

static struct tmap maps_v[] = {
	{.start = 0x10000,
	 .end = 0x20000,
	 .prot = RW,
	 .path = (char *)"[heap]"},
	{.start = 0x20000, .end = 0x30000, .prot = RW, .path = (char *)""},
	{.start = 0x30000,
	 .end = 0x40000,
	 .prot = PROT_READ,
	 .path = (char *)""},
	{.start = 0x50000,
	 .end = 0x60000,
	 .prot = RW,
	 .shared = true,
	 .path = (char *)""},
	{.start = 0x60000,
	 .end = 0x70000,
	 .prot = RW,
	 .inode = 7,
	 .path = (char *)"/lib/x"},
	{.start = 0x70000,
	 .end = 0x80000,
	 .prot = RW | PROT_EXEC,
	 .path = (char *)""},
	{.start = 0x80000, .end = 0x90000, .prot = 0, .path = (char *)""},
	{.start = 0x90000,
	 .end = 0xa0000,
	 .prot = RW,
	 .path = (char *)"[stack]"},
};
static const struct tmaps maps = {maps_v, ARRAY_SIZE(maps_v)};
static struct guard g;

static const char *why(taddr_t start, taddr_t end)
{
	uint32_t prot;
	return guard_place_check(&g, &maps, start, end, &prot);
}

int main(void)
{
	uint32_t prot = 0;
	check(!why(0x10000, 0x20000));
	check(!why(0x18000, 0x28000)); /* two mappings, one protection */
	check(!guard_place_check(&g, &maps, 0x31000, 0x32000, &prot));
	check_int(prot, PROT_READ);
	check_str(why(0x28000, 0x31000), "several protections");
	check_str(why(0x38000, 0x48000), "not mapped to its end");
	check_str(why(0x40000, 0x41000), "not mapped");
	check_str(why(0x50000, 0x51000), "shared or a file");
	check_str(why(0x60000, 0x61000), "shared or a file");
	check_str(why(0x70000, 0x71000), "executable");
	check_str(why(0x80000, 0x81000), "not readable");
	check_str(why(0x90000, 0x91000), "a stack or the kernel's");
	check_str(why(0x10000, 0x10000), "not whole pages");
	check_str(why(0x10100, 0x11000), "not whole pages");
	check_str(why(0x11000, 0x10000), "not whole pages");
	check_str(why(0x9f000, 0xa1000), "a stack or the kernel's");

	/* around a stack pointer: frames below, what it belongs to above */
	guard_stack_add(&g, 0x18000);
	check_str(why(0x17000, 0x18000), "a thread's stack or thread area");
	check_str(why(0x10000, 0x11000), "a thread's stack or thread area");
	check(!why(0x19000, 0x1a000));
	addr_ranges_add(&g.kept, 0x25010, 0x25020);
	check(why(0x25000, 0x26000) != NULL);
	check(!why(0x26000, 0x27000));
	addr_ranges_free(&g.kept);
	addr_ranges_free(&g.stacks);
	return tap_done();
}
