#!/bin/bash
# smco-trace ends as its command ends.
. "$(dirname "$0")/test-lib.sh"
need PTRACE

run() { smco-trace -q -o t.trace "$@"; }
# What is watched for does not matter to what a command begins with and how it
# ends: naps are for the first of each kind, counters take a third of the time.
counted() { smco-trace -q -m counters -o t.trace "$@"; }

ok "exit status 7" test_exit 7 run -- sh -c "exit 7"
for status in 0 125 255; do
	ok "exit status $status" test_exit $status counted -- sh -c "exit $status"
done

# dies SIGNAL COMMAND... - by that signal, for real and not by 128 + SIGNAL.
dies() {
	perl -e 'my $want = shift; system @ARGV;
		my $got = $? & 127; print "signal $got, status ", $? >> 8, "\n";
		exit($got != $want)' "$@"
}
# The command ends itself, so that nothing but its death is passed through.
ok "death by signal 11" dies 11 smco-trace -q -o t.trace -- sh -c "kill -11 \$\$"
for signal in 15 9 10; do
	ok "death by signal $signal" dies $signal \
		smco-trace -q -m counters -o t.trace -- sh -c "kill -$signal \$\$"
done
# shellcheck disable=SC2016
ok "the shell sees 143 after SIGTERM" \
	test_exit 143 counted -- sh -c 'kill -TERM $$'
ok "no core file is left" absent core*

# fails_to_start STATUS PATTERN COMMAND...
fails_to_start() {
	local want=$1 pattern=$2 status
	shift 2
	smco-trace -m "${monitor:-counters}" -o t2.trace "$@" >out 2>err
	status=$?
	cat err
	[ $status -eq "$want" ] || { echo "status $status" && return 1; }
	[ ! -s out ] && [ "$(wc -l <err)" -eq 1 ] && grep -q "$pattern" err
}
: >not-executable
mkdir directory
printf '#!/no/such/interpreter\n' >bad-interpreter
chmod +x bad-interpreter
# A directory that may not be searched would make it "permission denied", for
# us as for env.
PATH=$BUILD:/usr/bin:/bin
not_found() {
	fails_to_start 127 \
		'^smco-trace: cannot run no-such-command: command not found$' \
		-- no-such-command --arg
}
ok "127: not found in PATH" eval 'not_found && monitor=nap not_found'
ok "127: no such file" fails_to_start 127 \
	'^smco-trace: cannot run /no/such/file: No such file or directory$' \
	-- /no/such/file
ok "127: empty name" fails_to_start 127 '^smco-trace: ' -- ''
ok "126: not executable" fails_to_start 126 \
	'^smco-trace: .*\./not-executable' -- ./not-executable
ok "126: a directory" fails_to_start 126 '^smco-trace: .*\./directory' \
	-- ./directory
ok "127: its interpreter is missing, as env says" fails_to_start 127 \
	'^smco-trace: .*bad-interpreter' -- ./bad-interpreter
ok "no trace of a command that did not start" absent t2.trace

# What the command is started with is what it would have without us.
same_as_native() {
	"$@" >native 2>&1
	smco-trace -q -m "${monitor:-counters}" -o t.trace -- "$@" >monitored 2>&1
	diff native monitored
}
ok "arguments" same_as_native printf '<%s>\n' '' ' a  b ' '*' '$HOME' --help
# All of it from one start, each with its name, by the command itself: what others
# would have from it is not asked.
cat >have.pl <<'END'
print "environment: $_=$ENV{$_}\n" for grep { $_ ne "_" } sort keys %ENV;
opendir my $d, "/proc/self/fd";
print "descriptors: ", join(" ", sort readdir $d), "\n";
for my $file (qw(limits personality)) {
	open my $f, "<", "/proc/self/$file" or die;
	print "$file: $_" for <$f>;
}
open my $f, "<", "/proc/self/stat" or die;
my @stat = split / /, <$f> =~ s/.*\) //r;
print "process group and session: @stat[2, 3]\n",
	"priority, nice value, real time, policy: @stat[15, 16, 37, 38]\n";
printf "umask: %o\n", umask;
print "directory: ", readlink "/proc/self/cwd", "\n";
END
ok "environment, descriptors, limits, scheduling, group, session, umask, directory" \
	eval 'monitor=nap same_as_native perl have.pl'
all_there() {
	local what
	for what in environment descriptors limits personality umask directory \
		"process group and session" "priority, nice value, real time, policy"; do
		grep -q "^$what: ." native || return
	done
}
ok "none of these was left out" all_there
# Perl ignores SIGFPE by itself.
ok "signal mask and dispositions" eval 'monitor=nap same_as_native \
	grep -E "^Sig(Blk|Ign|Cgt)" /proc/self/status'
# It takes what it may itself, and gives the command what that would have.
nofile() (
	ulimit -Sn 64 && ulimit -Hn 512 || return 1
	smco-trace -q -o t.trace -- sh -c 'ulimit -Sn; ulimit -Hn
		sed -n "s/^Max open files *\([0-9]*\) .*/\1/p" /proc/$PPID/limits' \
		>limits
	cat limits
	[ "$(tr '\n' ' ' <limits)" = "64 512 512 " ]
)
ok "open files: all for us, its own limit for the command" nofile
# Naming lines takes more than that.
small_stack() (
	ulimit -s 128 || return 1
	smco-trace --sample 1999 -t unlimited -o t.trace -- \
		sh -c 'ulimit -s; "$1" 300 2 0' - "$FIXTURES/sample-work" >out 2>summary
	status=$?
	cat out summary
	[ $status = 0 ] && grep -qx 128 out && grep -q ' often  ' summary
)
ok "stack: room for us, its own limit for the command" small_stack
ok "ignored signals stay ignored" sh -c 'trap "" INT PIPE; exec "$@"' - \
	bash -c '. "$1"; '"$(declare -f same_as_native)"';
		same_as_native grep ^SigIgn /proc/self/status' - /dev/null

# Three stops or so at least: that cannot have cost nothing.
short() {
	smco-trace -o t.trace -- true 2>summary
	cat summary
	grep -q '^overhead .*too short to judge (at most 10 % wanted): .* cost [1-9]' summary
}
ok "what a short command cost is said, but not as a share" short

# The two that libc keeps for itself, as many a parent leaves them.
hidden() {
	monitor=$1 perl -e 'my $ign = pack("QQQQ", 1, 0, 0, 0);
		syscall(13, $_, $ign, 0, 8) == 0 or die "$!" for 32, 33;
		exec @ARGV' bash -c '. "$1"; '"$(declare -f same_as_native)"';
			same_as_native grep ^SigIgn /proc/self/status &&
			grep -q "SigIgn:.*18......." native' - /dev/null
}
ok "so do those that libc hides" hidden counters
ok "with threads of ours as well" hidden nap

done_testing
