#!/bin/bash
# Variables that are subscripts outside of their arrays, and only those.
# shellcheck source=t/test-lib.sh
. "$(dirname "$0")/test-lib.sh"
need PTRACE

export LC_ALL=C.UTF-8

# build COMPILER FLAGS...
build() {
	local cc=$1
	shift
	"$cc" -std=gnu11 -w -g -o subscripts "$@" \
		"$SRC/t/fixtures/range/subscripts.c" -lpthread
}

# found - "SUBSCRIPT ARRAY SMALLEST LARGEST" as the report has them, sorted
found() {
	smco-report --ranges --json run.trace | perl -MJSON::PP -0777 -e '
		for (@{decode_json(<STDIN>)->{rows}}) {
			next if !defined $_->{array};
			die "$_->{variable}: $_->{finding}" if $_->{finding} ne "subscript";
			die "where?" if $_->{declared} !~ /subscripts\.c:\d+$/ ||
				$_->{array_declared} !~ /subscripts\.c:\d+$/;
			print "$_->{subscript} $_->{array} $_->{least_subscript} $_->{most_subscript}\n"
		}' | sort
}

run() {
	timeout 60 smco-trace -q -m range -o run.trace "$@" -- ./subscripts >out ||
		return 1
	sed -n 's/^OUTSIDE //p; s/^PERHAPS //p' out | sort >truth
	found >found.txt
	cat found.txt
	[ -s truth ]
}

exact() { build "$@" && run -t unlimited && diff truth found.txt; }

# true_at_least N - nothing but the truth, and so many of it
true_at_least() {
	perl -e 'open my $t, "<", "truth"; my (%lo, %hi);
		while (<$t>) { /^(.*) (\S+) (\S+)$/ or die; ($lo{$1}, $hi{$1}) = ($2, $3) }
		open my $f, "<", "found.txt"; my $n = 0;
		while (<$f>) { /^(.*) (\S+) (\S+)$/ or die; $n++;
			die "not true: $_" if !defined $lo{$1} || $2 < $lo{$1} || $3 > $hi{$1} }
		die "only $n\n" if $n < shift' "$1"
}

# some AT-LEAST COMPILER FLAGS...
some() {
	local least=$1
	shift
	build "$@" && run -t unlimited && true_at_least "$least"
}

ok "gcc -O0: all that are outside, and nothing that is right" exact gcc -O0
ok "gcc -O0, no PIE" exact gcc -O0 -no-pie -fno-pie
for flags in -O1 -O2 "-O2 -no-pie -fno-pie"; do
	# shellcheck disable=SC2086
	ok "gcc $flags: nothing that is right" some 2 gcc $flags
done
for flags in -O3 -Os -Og "-O2 -flto"; do
	# shellcheck disable=SC2086
	ok "gcc $flags: nothing that is right" some 0 gcc $flags
done
if command -v clang >/dev/null; then
	ok "clang -O0" exact clang -O0
	ok "clang -O0, no PIE" exact clang -O0 -no-pie -fno-pie
	ok "clang -O1: nothing that is right" some 1 clang -O1
	for flags in -O2 "-O2 -no-pie -fno-pie"; do
		# shellcheck disable=SC2086
		ok "clang $flags: nothing that is right" some 0 clang $flags
	done
fi

limited() { build gcc -O0 && run -t 10 && true_at_least 0; }
ok "with a limit: nothing that is right" limited

# Two runs: what is declared in one place is one.
text() {
	build gcc -O0 && run -t unlimited && smco-report run.trace run.trace | tee summary
	tr '\n' ' ' <summary | tr -s ' ' >line
	grep -q ' 1 before_it::b - 1: -1 to 4 subscript of behind\[100\], [^ ]*subscripts.c:[0-9]* int, ' line &&
		grep -q ' local::i: 0 to 8 subscript of local::in.a\[8\], ' line &&
		[ "$(grep -c "subscript of" summary)" = 8 ]
}
ok "the summary: first of all, with where both are declared" text
json() {
	smco-report --json run.trace | perl -MJSON::PP -0777 -e '
		my ($b) = grep { $_->{variable} eq "before_it::b" } @{decode_json(<STDIN>)->{ranges}};
		my $s = $b->{subscript};
		print "$b->{finding} $s->{of} $s->{array} $s->{elements} $s->{offset} $s->{smallest} $s->{largest} ",
			$s->{file} =~ /subscripts\.c$/ && $s->{line} > 0 ? "there" : "?", "\n"' | tee said
	[ "$(cat said)" = "subscript behind[100] behind[] 100 -1 -1 4 there" ]
}
ok "the JSON document" json
done_testing
