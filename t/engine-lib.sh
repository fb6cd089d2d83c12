# shellcheck shell=bash
# Sourced by t1*.sh after test-lib.sh: programs under nothing but the engine.

DRIVE=$BUILD/t/drive/engine-drive
[ -n "$SMCO_TEST_BUILT" ] || make -s -C "$SRC" O="$O" "$O/t/drive/engine-drive" >build.out 2>&1 ||
	sed 's/^/# /' build.out

# start FIXTURE ARGS... - in the background, until it has said "ready"; its
# pid is in $pid, its output in ./out.
start() {
	local fixture=$1
	shift
	rm -f out err # or the last one's "ready" would do
	"$FIXTURES/$fixture" "$@" >out 2>err &
	pid=$!
	wait_for 10 grep -q ready out
}

# finish - the started program ends well and said so.
finish() {
	wait "$pid"
	local status=$?
	[ $status -eq 0 ] && grep -q EXIT-SUCCESS out && return
	echo "status $status:"
	head -n 20 out
	return 1
}

# drive ARGS... - our own driver, whose errors count.
drive() {
	timeout 300 "$DRIVE" "$@" 2>drive.err || {
		cat drive.err
		return 1
	}
	cat drive.err >&2
	! grep -q engine-drive: drive.err
}

# state PID - letter of /proc/PID/stat
state() {
	sed 's/.*) \(.\).*/\1/' "/proc/$1/stat"
}

# untouched PID - nobody traces any thread, and none is left in a trace stop. By
# one process, for it shares the CPUs with all of those threads.
untouched() {
	perl - "$1" <<-'END'
	use strict;
	my $bad = 0;
	for my $task (glob "/proc/$ARGV[0]/task/*") {
		open my $f, '<', "$task/status" or next;
		# Empty if it has ended just now.
		my $status = join '', <$f>;
		my $how = $status =~ /^TracerPid:\s*[1-9]/m ? 'is traced' :
			$status =~ /^State:\s*t/m ? 'is left in a trace stop' :
			next;
		print "$task $how:\n",
			grep { /^(Name|State|Tgid|TracerPid)/ } $status =~ /.*\n/g;
		$bad = 1;
	}
	exit $bad;
	END
}

# layout PID - its mappings without their sizes of stacks and heaps: names,
# protections of what comes from files.
layout() {
	awk '$6 ~ /^\// || $6 ~ /vdso/ { print $2, $3, $6 }' "/proc/$1/maps"
	awk '$6 == "" { n[$2]++ } END { for (p in n) if (p ~ /x/) print p, n[p] }' \
		"/proc/$1/maps"
}

# text_is_own PID VDSO - what is executed is byte by byte as in the files it
# comes from; the vdso, which comes from none, as in the file VDSO, made the
# first time. Anything else that can be executed is not its own.
text_is_own() {
	perl - "$@" <<-'END'
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
}

# What the program has: descriptors, mappings, signals that are caught,
# blocked or ignored.
belongings() {
	find "/proc/$1/fd" -type l -printf '%f %l\n' | sort
	layout "$1"
	grep -E '^Sig(Blk|Ign|Cgt)' "/proc/$1/status"
}
