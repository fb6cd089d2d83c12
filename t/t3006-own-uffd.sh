#!/bin/bash
# A program that uses userfaultfd itself: memory can be registered with one
# only, and it is the program's.
. "$(dirname "$0")/test-lib.sh"
need PTRACE
prereq_UFFD() { "$FIXTURES/own_uffd" early device 2>&1 | grep -q '^faults 64$'; }
need UFFD

# own_uffd's arguments, then options. It waits most of its time.
its_own() {
	test_exit 0 smco-trace -q -t 100 --nap 300ms -o u.trace "${@:3}" -- \
		"$FIXTURES/own_uffd" "$1" "$2" >out 2>&1
	cat out
	[ "$(cat out)" = "faults 64" ]
}
# And it is said why.
because() {
	its_own "$@" || return
	smco-report u.trace >report
	cat report
	tr -s '\n ' ' ' <report | grep -q "it uses userfaultfd itself"
}
for how in call device; do
	for when in early late; do
		soon "$when, by $how" because $when $how
		for mechanism in uffd pagescan; do
			soon "$when, by $how, $mechanism" \
				because $when $how --mechanism=$mechanism
		done
	done
	told
done
soon "under page protection" its_own late call --mechanism=mprotect

# Of what has been watched until then that is known.
naps() {
	its_own late call "$@" || return
	smco-report --json u.trace | perl -MJSON::PP -0777 -ne '
		my $e = decode_json($_)->{unused}{ended};
		print "$_ $e->{$_}\n" for grep { $e->{$_} } sort keys %$e;
		exit !($e->{unwatched} == 1)'
}
soon "its nap is over, unwatched, with uffd" naps --mechanism=uffd
soon "its nap is over, unwatched, with page-scan" naps --mechanism=pagescan
told

done_testing
