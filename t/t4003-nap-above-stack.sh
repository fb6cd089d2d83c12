#!/bin/bash
# A block directly above the stack of a thread that is sampled: sampling copies
# beyond the stack's end, which is no use of the block.
. "$(dirname "$0")/test-lib.sh"
need PTRACE

smco-trace -q -m nap,samples --nap 1s --sample 99 -o probe.trace -- true \
	>/dev/null 2>probe.err || {
	cat probe.err
	grep -q 'may not be counted\|no performance events' probe.err &&
		echo "1..0 # SKIP no sampling here" && exit 0
}
smco-report --json probe.trace | grep -q '"mechanism": *"bits' || {
	echo "1..0 # SKIP no accessed bits here"
	exit 0
}

unused() {
	smco-trace -q -t 50 -m nap,samples --nap 1s --sample 199 -o s.trace \
		-- "$FIXTURES/above-stack" 8 >s.out &&
		grep -qx EXIT-SUCCESS s.out
}
ok "it is sampled" unused
ok "the block lies above the stack" grep -qx above s.out
# Nobody uses it after it was written: one nap, up to the end.
found() {
	smco-report --json s.trace | perl -MJSON::PP -0777 -ne '
		my $d = decode_json($_);
		my @n = grep { $_->{size} >= 20 << 20 } @{$d->{naps}};
		print "$_->{length_ns} ns, $_->{ended}, $_->{head_unseen}\n" for @n;
		print scalar(@{$d->{samples}{functions}}), " functions sampled\n";
		exit !(@{$d->{samples}{functions}} && @n == 1 &&
		       $n[0]{ended} eq "never" && $n[0]{head_unseen})'
}
ok "it is found unused, all but its beginning" found
ok "that is said" sh -c \
	'smco-report s.trace | tr -s " \n" " " | grep -q "1 of these naps the block.s beginning"'

done_testing
