#!/bin/bash
# Ranges of what `let` binds, of Rust programs optimised or not.
# shellcheck source=t/test-lib.sh
. "$(dirname "$0")/test-lib.sh"
prereq_RUSTC() { rustc --version; }
need PTRACE RUSTC
# shellcheck source=t/range-lib.sh
. "$SRC/t/range-lib.sh"

export LC_ALL=C.UTF-8

# build FLAGS...
build() { "$RUSTC" --edition 2021 -g "$@" -o lets "$SRC/t/fixtures/range/lets.rs"; }

# ranges OPTIONS... - the program says what it says, and what its ranges are
ranges() {
	./lets >truth && timeout 60 smco-trace -q -m range -o run.trace "$@" -- \
		./lets >out && cmp truth out && found >found.txt
}

# exact FLAGS... - of all variables that are known, those of one name apart
exact() {
	build "$@" && ranges -t unlimited && sort truth >known &&
		awk 'NR == FNR { known[$1]; next } $1 in known' truth found.txt |
		sort | diff known -
}

# within FLAGS... - each lies in what one variable of its name had
within() {
	build "$@" && ranges -t unlimited && inside 1
}
# inside MIN - of so many, at least
inside() {
	awk -v min="$1" 'NR == FNR { lo[$1, FNR] = $2; hi[$1, FNR] = $3; n = FNR; next }
		{ known = good = 0
		  for (i = 1; i <= n; i++) if (($1, i) in lo) { known = 1
			good += $2 >= lo[$1, i] && $3 <= hi[$1, i] }
		  seen += known
		  if (known && !good) { print; bad++ } }
		END { print seen + 0, "seen"; exit bad || seen < min }' \
		truth found.txt
}
limited() { ranges -t 10 && inside 0; }

# Each compiler that there is: they place what `let` binds in different ways.
seen=
for RUSTC in $(type -ap rustc); do
	version=$("$RUSTC" --version 2>/dev/null | cut -d" " -f1,2) || continue
	case "$seen" in *"<$version>"*) continue ;; esac
	[ "$version" ] || continue
	seen="$seen<$version>"
	ok "$version: not optimised: exactly the ranges that they had" exact -C opt-level=0
	ok "$version: with a limit: no value that they did not have" limited
	ok "$version: with frame pointers" exact -C opt-level=0 -C force-frame-pointers=yes
	ok "$version: unchecked" exact -C opt-level=0 -C overflow-checks=no
	ok "$version: in one piece" exact -C opt-level=0 -C codegen-units=1
	ok "$version: a little optimised: no value that they did not have" within -C opt-level=1
	ok "$version: optimised" within -C opt-level=2
	ok "$version: for size" within -C opt-level=s
done

done_testing
