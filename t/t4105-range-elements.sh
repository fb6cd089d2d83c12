#!/bin/bash
# Elements of arrays, each with a range of its own.
# shellcheck source=t/test-lib.sh
. "$(dirname "$0")/test-lib.sh"
need PTRACE
# shellcheck source=t/range-lib.sh
. "$SRC/t/range-lib.sh"

export LC_ALL=C.UTF-8

build() {
	"${CC:-cc}" -std=gnu11 -g "$@" -o elements "$SRC/t/fixtures/range/elements.c"
}

# ranges OPTIONS...
ranges() {
	timeout 60 smco-trace -q -m range -o run.trace "$@" -- ./elements >out ||
		return 1
	sort out >truth
	found >found.txt
}

all=(--elements small --elements large --elements 'ta*' --elements grid
	--elements 'local::own' --elements moved --elements 'both*')

build -O0 || exit 1
exact() { ranges -t unlimited "${all[@]}" && compare exact; }
ok "-O0, no limit: exactly what each was given" exact
whole() {
	# One range for all is there as well, and of unions nothing else.
	grep '\[\]' found.txt && grep -q '^small\[\] ' found.txt &&
		grep -q '^large\[\] ' found.txt &&
		! smco-report --ranges --csv run.trace | grep 'whole\[[01]\]'
}
ok "the array as a whole, too; unions are not taken apart" whole
pointed() {
	grep 'moved' found.txt
	! grep '^moved\[0\]' found.txt | grep -v ' 0 0$' &&
		! grep '^moved\[1\]' found.txt |
		grep -Exv 'moved\[1\] (0|1000|2000) (0|1000|2000)'
}
ok "written through a pointer: no other's value" pointed
same() { # with elements and without: all the rest is the same
	grep -v '\[[0-9]' found.txt | cut -d' ' -f1 >with
	ranges -t unlimited && cut -d' ' -f1 found.txt | diff - with
}
ok "without it arrays are as they were" same
within() {
	ranges -t 10 "${all[@]}" || return
	compare within
	[ $? -ne 1 ]
}
ok "with a limit: no value that they did not have" within
fast() { build -O2 && ranges -t unlimited "${all[@]}" && compare within; }
ok "-O2: no value that they did not have" fast
reported() {
	build -O0 && ranges -t unlimited "${all[@]}" && smco-report --json run.trace | perl -MJSON::PP -0777 -e '
		my ($r) = grep { $_->{variable} eq "table[1].len" }
			@{decode_json(<STDIN>)->{ranges}};
		print "$r->{smallest} $r->{largest} $r->{watched_ppb}\n"' | tee said
	# All of the time: while what it begins with is planted it stands.
	[ "$(cat said)" = "0 1600 1000000000" ]
}
ok "in JSON, and how much of the time they were watched" reported
changed() {
	cp run.trace before.trace && sed 's/i \* i/2 * i * i/' \
		"$SRC/t/fixtures/range/elements.c" >elements.c &&
		"${CC:-cc}" -std=gnu11 -g -O0 -o elements elements.c &&
		ranges -t unlimited "${all[@]}" &&
		smco-diff before.trace run.trace >said
	cat said
	grep -q 'table\[1\]\.len' said && ! grep -q 'table\[0\]\.len' said
}
ok "a diff says which element" changed
nobody() {
	test_exit 125 smco-trace -m range --elements tabel -- ./elements >out 2>err ||
		return 1
	cat err
	[ ! -s out ] && [ "$(wc -l <err)" = 1 ] && grep -q "'tabel'.*; nearest: table" err
}
ok "no such array is an error, and the nearest are named" nobody

done_testing
