#!/bin/bash
# Windows that cost much go out for a moment, to see what the program loses by
# them: at large targets only, and what they see is not less for that.
# shellcheck source=t/test-lib.sh
. "$(dirname "$0")/test-lib.sh"
need PTRACE

run() {
	SMCO_DEBUG=range smco-trace -q -m range -t "$@" -o run.trace -- \
		./trials >out 2>log && cmp -s out plain
}

nr_trials() {
	grep -c 'by [0-9]* trials hits cost' log
}

# 49 is the last level, and one more is in it now and then.
all_seen() {
	smco-report --ranges --json run.trace >ranges.json &&
		perl -MJSON::PP -0777 -ne '
		my %v = map { ($_->{variable} =~ s{^.*::}{}r => $_) } @{decode_json($_)->{rows}};
		print "# $_: $v{$_}{smallest} to $v{$_}{largest}\n" for "part", "more";
		exit !($v{part}{smallest} == 0 && $v{part}{largest} == 50 &&
		       $v{more}{smallest} == 1000 && $v{more}{largest} == 1050)' \
			ranges.json
}

# On a busy machine stops may take too long for a while.
tried() {
	for _ in 1 2 3; do
		run 100 && all_seen || return 1
		[ "$(nr_trials)" -eq 0 ] || return 0
	done
	return 1
}

not_tried() {
	run unlimited && [ "$(nr_trials)" -eq 0 ] && all_seen &&
		run 13 --var hot::part --var main::turn &&
		[ "$(nr_trials)" -eq 0 ]
}
"${CC:-cc}" -g -O1 -o trials "$SRC/t/fixtures/range/trials.c"
./trials >plain
ok "at a large target they go out and come back, and all is seen" tried
ok "without a target, or at a small one, they do not go" not_tried
done_testing
