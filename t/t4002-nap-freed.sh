#!/bin/bash
# A block that is freed was not used again, though the allocator writes into it
# then, and a guard tells of that.
. "$(dirname "$0")/test-lib.sh"
need PTRACE
prereq_UFFD() { [ "$(id -u)" = 0 ] && [ -e /dev/userfaultfd ]; }

# ended MECHANISM - how its naps ended, other than by the end of the program.
ended() {
	smco-trace -q -t 100 --nap 300ms --min-size 8K --mechanism="$1" \
		-o f.trace -- "$FIXTURES/frees" || return
	smco-report --json f.trace | perl -MJSON::PP -0777 -ne '
		my $e = decode_json($_)->{unused}{ended};
		print "$_ $e->{$_}\n" for grep { $e->{$_} } sort keys %$e;
		exit !($e->{freed} > $e->{unwatched} && !$e->{write} && !$e->{read})'
}
ok "pages under guard" ended mprotect
if prereq_UFFD; then
	ok "pages that userfaultfd protects" ended uffd
fi
ok "the best there is" ended auto

done_testing
