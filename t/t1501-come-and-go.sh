#!/bin/bash
# Attached to by smco-trace and left again, over and over, a program of 32
# threads that make and end threads all the time loses none of its work, and
# nothing of ours stays in it. SMCO_TEST_ATTACHES=200 for more.
. "$(dirname "$0")/test-lib.sh"
. "$SRC/t/engine-lib.sh"
need PTRACE

# What is executed, byte by byte as in the files it comes from; the vdso, which
# comes from none, as it was. Anything else that can be executed is not its own.
cat >text.pl <<'END'
use strict;
my ($pid, $vdso) = @ARGV;
open my $maps, '<', "/proc/$pid/maps" or die "maps: $!";
open my $mem, '<:raw', "/proc/$pid/mem" or die "mem: $!";
my $bad = 0;
while (<$maps>) {
	my ($from, $to, $prot, $at, $path) =
		/^(\w+)-(\w+) (\S+) (\w+) \S+ \d+\s*(.*)/ or die "what is $_";
	next if $prot !~ /x/ || $path eq '[vsyscall]';
	my $size = hex($to) - hex $from;
	sysseek $mem, hex $from, 0 or die "seek: $!";
	sysread($mem, my $is, $size) == $size or die "read $path: $!";
	my $was = '';
	if ($path eq '[vdso]') {
		unless (-e $vdso) {
			open my $f, '>:raw', $vdso or die;
			print $f $is;
			next;
		}
		open my $f, '<:raw', $vdso or die;
		sysread $f, $was, $size;
	} elsif ($path =~ m{^/}) {
		open my $f, '<:raw', $path or die "$path: $!";
		sysseek $f, hex $at, 0;
		my $n = sysread $f, $was, $size;
		$was .= "\0" x ($size - $n); # the last page is filled up
	} else {
		print "not its own: $_";
		$bad = 1;
		next;
	}
	next if $is eq $was;
	my @at = grep { substr($is, $_, 1) ne substr $was, $_, 1 }
		0 .. $size - 1;
	printf "%s: %d bytes differ, first at %#x\n", $path, scalar @at,
		$at[0] + hex $at;
	$bad = 1;
}
exit $bad;
END

# What the program has: descriptors, mappings, signals that are caught,
# blocked or ignored.
belongings() {
	find "/proc/$1/fd" -type l -printf '%f %l\n' | sort
	layout "$1"
	grep -E '^Sig(Blk|Ign|Cgt)' "/proc/$1/status"
}

comes_and_goes() {
	local times=$1 i
	shift
	rm -f vdso go.trace
	start thread_churn 0 || return
	belongings "$pid" >before
	perl text.pl "$pid" vdso || return
	for ((i = 0; i < times; i++)); do
		timeout -k 2 60 smco-trace -q -t 50 --nap 20ms -d 0.1 "$@" \
			-o go.trace -p "$pid" || { echo "attach $i: $?"; break; }
		untouched "$pid" || break
	done
	belongings "$pid" >after
	[ "$i" -eq "$times" ] && diff before after &&
		perl text.pl "$pid" vdso && smco-report go.trace >report &&
		kill -TERM "$pid" && finish
}
times=${SMCO_TEST_ATTACHES:-6}
ok "come and gone, it loses no count and nothing stays" comes_and_goes "$times"
ok "with protected pages" comes_and_goes "$times" --mechanism=mprotect
! prereq_ROOT || ok "with userfaultfd" \
	comes_and_goes "$times" --mechanism=uffd
ok "counted" comes_and_goes "$times" -m counters
ok "with sensors for ranges" comes_and_goes "$times" -m range

done_testing
