#!/bin/bash
# ^Z at a shell that has job control: what is watched stands as it would without
# us, after what it does before that, and the shell gets its prompt back; whoever
# is attached to does not stand at all.
. "$(dirname "$0")/test-lib.sh"
need PTRACE

cat >editor.pl <<'E2'
# As editors do: the screen is put in order first.
use POSIX qw(:signal_h);
$| = 1;
my $unblocked = POSIX::SigSet->new(SIGTSTP);
sub stop {
	print "in order\n";
	$SIG{TSTP} = "DEFAULT";
	kill TSTP => $$;
	sigprocmask(SIG_UNBLOCK, $unblocked);
	$SIG{TSTP} = \&stop;
	print "drawn anew\n";
	open my $f, ">", "drawn";
}
$SIG{TSTP} = \&stop if $ARGV[0] eq "editor";
$SIG{TSTP} = "IGNORE" if $ARGV[0] eq "stubborn";
open my $f, ">", "pid" or die; print $f $$; close $f;
print "ready\n";
until (-e "finish") { select undef, undef, undef, 0.02 }
exit 7;
E2
cat >ticking.pl <<'E2'
# Gets signals all the time, as servers do.
use Time::HiRes qw(setitimer ITIMER_REAL);
my $n = 0;
open my $f, ">", "ticks" or die;
$SIG{ALRM} = sub { $n++; seek $f, 0, 0; syswrite $f, sprintf("%9d\n", $n) };
setitimer(ITIMER_REAL, 0.01, 0.01);
1 while select(undef, undef, undef, 1) || 1;
E2

mkfifo keys
# A background job of a script ignores SIGINT.
perl -e '$SIG{INT} = $SIG{QUIT} = "DEFAULT"; exec @ARGV' \
	script -aqfec 'env PS1="prompt " bash --norc -i' screen <keys >out 2>&1 &
terminal=$!
exec 5>keys
at_exit() { kill $terminal ${ticking:-} 2>/dev/null; }
keys() { printf '%b' "$1" >&5; }
on_screen() { grep -q "$1" screen; }
ok "a shell" wait_for 20 on_screen prompt

begins() { # HOW
	rm -f pid finish drawn
	keys "clear; smco-trace -q -o t -- perl editor.pl $1; echo \"status \$?\"\n"
	wait_for 20 test -s pid && pid=$(cat pid) && wait_for 20 on_screen ready
}
stands() { # the supervisor, too
	wait_for 20 grep -q '^State:.*T (' "/proc/$(parent_of "$pid")/status" &&
		grep -q '^State:.*[tT] (' "/proc/$pid/status"
}
parent_of() { sed -n 's/^PPid:\t//p' "/proc/$1/status"; }
ends() {
	: >finish
	wait_for 20 on_screen 'status 7'
}

ok "an editor" begins editor
ok "is suspended" eval 'keys "\032" && wait_for 20 on_screen "Stopped"'
ok "after it has put the screen in order" perl -0777 -ne \
	'exit !/in order.*Stopped/s' screen
ok "stands" stands
goes_on() {
	keys 'fg\n'
	wait_for 20 test -e drawn && : >finish && wait_for 20 test ! -e "/proc/$pid"
}
ok "goes on in the foreground" goes_on
keys 'echo "again $?"\n'
ok "and ends with its status" wait_for 20 on_screen 'again 7'

ok "another program" begins plain
: >screen
ok "is suspended by default" eval 'keys "\032" && wait_for 20 on_screen "Stopped"'
ok "and stands" stands
in_background() {
	keys 'bg\n'
	: >finish
	wait_for 20 test ! -e "/proc/$pid"
}
ok "goes on in the background" in_background

: >screen
ok "one that ignores it" begins stubborn
: >screen
keys '\032'
ok "goes on, as without us" ends

perl ticking.pl &
ticking=$!
ok "a program that gets signals" wait_for 20 test -s ticks
: >screen
keys "smco-trace -q -p $ticking -o attached; echo \"left \$?\"\n"
attached() { grep -q '^TracerPid:	[1-9]' "/proc/$ticking/status"; }
ok "is attached to" wait_for 20 attached
ticks_on() {
	local was
	was=$(cat ticks)
	wait_for 20 later $((was + 50))
}
later() { [ "$(cat ticks)" -gt "$1" ]; }
ok "^Z there is answered" eval \
	'keys "\032" && wait_for 20 on_screen "not suspended"'
ok "and the program goes on" ticks_on
ok "^C leaves it" eval 'keys "\003" && wait_for 20 on_screen "left 0"'
ok "and it goes on" ticks_on
done_testing
