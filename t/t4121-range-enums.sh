#!/bin/bash
# Values of an enum that lie between its enumerators and name none.
# shellcheck source=t/test-lib.sh
. "$(dirname "$0")/test-lib.sh"
need PTRACE
# shellcheck source=t/range-lib.sh
. "$SRC/t/range-lib.sh"

export LC_ALL=C.UTF-8
build() { "${CC:-cc}" -std=gnu11 -g "$@" -o enums "$SRC/t/fixtures/range/enums.c"; }

# unnamed - "VARIABLE VALUE" of run.trace; "-": none
unnamed() {
	smco-report --json run.trace | perl -MJSON::PP -0777 -e '
		for (@{decode_json(<STDIN>)->{ranges}}) {
			my $v = $_->{unnamed} // "-";
			$_->{finding} eq "enum" or die if $v ne "-";
			print "$_->{variable} $v\n" if $_->{type} =~ /^enum/;
		}' | sort
}
# seen OPTIONS... -- ARGUMENTS... - what it has is what it should
seen() { watch ./enums "$@" && unnamed >found.txt; }
exact() { seen -t unlimited -- "$@" && diff truth found.txt; }

build -O0 || exit 1
ok "-O0: each" exact
ok "those of a child, too" exact fork
cached() {
	mkdir -p cache && export XDG_CACHE_HOME=$PWD/cache
	exact && exact fork
}
ok "the same from the cache" cached
said() {
	smco-report run.trace | tr -s '\n ' ' ' >said
	cat said
	grep -q 'paint: -1 to 300 a value that names no enumerator: 4 enum color' said &&
		grep -q 'local::mixed: 9 to 299 a value that names no enumerator enum color' said
}
ok "which is said" said
compared() {
	cp run.trace base.trace && sed 's/i % 3 ? NONE/i % 3 == 1 ? 20 : &/' \
		"$SRC/t/fixtures/range/enums.c" >enums.c &&
		"${CC:-cc}" -std=gnu11 -g -O0 -o enums enums.c &&
		seen -t unlimited -- fork && smco-diff base.trace run.trace | tr -s '\n ' ' ' >said
	cat said
	grep -q 'local::named.* names no enumerator: 20 (-1 to 300)' said
}
ok "a diff says it of one that has become such" compared
build -O2 || exit 1
ok "-O2" exact fork
limited() {
	seen -t 10 -- fork && awk 'NR == FNR { want[$1] = $2; next }
		$2 != "-" { n++; if ($2 < want[$1] || want[$1] == "-") bad++ }
		END { exit bad || !n }' truth found.txt
}
ok "with a limit: nothing that they did not have" limited
done_testing
