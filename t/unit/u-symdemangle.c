/* Readable names, and mangled ones that mean no good. */
#include <stdlib.h>

#include "symbols/demangle.h"
#include "tap.h"

static const struct {
	const char *mangled, *readable; /* NULL: not a mangled name */
} samples[] = {
	{"main", NULL},
	{"", NULL},
	{"_", NULL},
	{"_Z", NULL},
	{"_ZN", NULL},
	{"_R", NULL},
	{"_RNv", NULL},
	{"_start", NULL},
	{"_ZN3foo", NULL},
	{"_Znwm", "operator new(unsigned long)"},
	{"_ZdlPv", "operator delete(void*)"},
	{"_ZNSt6vectorIiSaIiEE9push_backERKi",
	 "std::vector<int, std::allocator<int> >::push_back(int const&)"},
	{"_ZN3net6ServerC1EPKct",
	 "net::Server::Server(char const*, unsigned short)"},
	{"_ZZ4mainENKUliE_clEi",
	 "main::{lambda(int)#1}::operator()(int) const"},
	{"_Z3foov.constprop.0", "foo() [clone .constprop.0]"},
	{"_Z3maxIiET_S0_S0_", "max<int>(int, int)"},
	/* Rust, legacy: the hash is left out. */
	{"_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE",
	 "core::fmt::Formatter::write_str"},
	{"_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test"
	 "$GT$$GT$3bar17h930b740aa94f1d3aE",
	 "<Test + 'static as foo::Bar<Test>>::bar"},
	/* Rust, v0. */
	{"_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar"},
	{"_RNvMsr_NtCs3ssYzQotkvD_3std4pathNtB5_7PathBuf3newCs15kBYyAo9fc_"
	 "7mycrate",
	 "<std::path::PathBuf>::new"},
	{"_RNCNvCs1234_7mycrate4main0B3_", "mycrate::main::{closure#0}"},
};

/* P<P<...>, P<...>>: each level twice as long as the one inside. */
static void test_bomb(unsigned levels, bool fits)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char name[1024] = "_Z1f1PI";
	for (unsigned i = 1; i < levels; i++)
		strcat(name, "S_I");
	strcat(name, "1AS0_E");
	for (unsigned i = 1; i < levels; i++) {
		char part[8] = {'S', digits[i], '_', 'E', 0};
		strcat(name, part);
	}
	char *got = sym_demangle(name);
	check_msg((got != NULL) == fits, "%u levels are %s", levels,
		  fits ? "written out" : "refused");
	if (got)
		check(strlen(got) > 1u << levels);
	free(got);
}

int main(void)
{
	for (size_t i = 0; i < sizeof(samples) / sizeof(*samples); i++) {
		char *got = sym_demangle(samples[i].mangled);
		check_msg(got && samples[i].readable
				  ? !strcmp(got, samples[i].readable)
				  : !got == !samples[i].readable,
			  "%s", samples[i].mangled);
		if (tap_failed && got)
			printf("# %s\n", got);
		free(got);
	}
	test_bomb(4, true);
	test_bomb(9, true);
	test_bomb(25, false);
	test_bomb(34, false);
	/* Very long and very deep. */
	size_t len = 1 << 20;
	char *deep = malloc(len + 1);
	for (const char *p = "PNKRSIX"; *p; p++) {
		memset(deep, *p, len);
		memcpy(deep, "_Z1f", 4);
		deep[len] = 0;
		check(!sym_demangle(deep));
		deep[8000] = 0;
		free(sym_demangle(deep));
	}
	free(deep);
	return tap_done();
}
