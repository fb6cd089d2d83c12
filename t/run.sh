#!/bin/sh
# Runs one test for prove: a timeout is a failure, no core files. Called as
# `prove --exec t/run.sh TEST`, so TEST is a unit test binary or a script. What
# was running shortly before the timeout is said.
# shellcheck disable=SC3045 # every sh that Debian has knows -c
ulimit -c 0
# None takes two minutes on a machine that has nothing else to do.
limit=${SMCO_TEST_TIMEOUT:-900}
case $1 in
*.sh) set -- bash "$@" ;;
esac
# shellcheck disable=SC2016 # perl's
watch='
	my $late = shift() - 5;
	my $pid = fork() // die "cannot fork: $!\n";
	exec @ARGV or die "cannot run $ARGV[0]: $!\n" if !$pid;
	$SIG{ALRM} = sub {
		print STDERR "# $ARGV[-1], after $late s there are:\n";
		system "ps -eo pid,ppid,stat,wchan:24,etimes,args --forest |
			grep -v \" \\\\[\" | tail -n 60 >&2";
	};
	alarm $late if $late > 0;
	while (waitpid($pid, 0) != $pid) { }
	exit($? & 127 ? 128 + ($? & 127) : $? >> 8);'

# SMCO_TEST_TRIES=2 (.ci/run): what fails is tried once more, and what failed is
# said. A machine that others use, too, may do anything once; what is broken
# fails twice.
if [ "${SMCO_TEST_TRIES:-1}" -gt 1 ]; then
	first=$(mktemp) || exit 1
	trap 'rm -f "$first"' EXIT
	# Through a pipe, as always: a test may limit what it writes to files.
	status=$({ {
		timeout -k 5 "$limit" perl -e "$watch" "$limit" "$@" 3>&-
		echo $? >&3
	} | cat >"$first"; } 3>&1)
	if [ "$status" = 0 ] && ! grep -q '^not ok' "$first"; then
		cat "$first"
		exit 0
	fi
	echo "# FAILED THE FIRST TIME: $*"
	grep -A 4 '^not ok' "$first" | sed 's/^/#   /'
	rm -f "$first"
fi
exec timeout -k 5 "$limit" perl -e "$watch" "$limit" "$@"
