#!/bin/bash
# The machine's end, in the middle of a run: what ext4 had not made durable yet
# is thrown away, as by a power cut. The trace is there and readable up to its
# last seconds; the program goes on.
# shellcheck source=t/test-lib.sh
. "$(dirname "$0")/test-lib.sh"
prereq_LOOP() {
	truncate -s 16M loop.img && mkfs.ext4 -qF loop.img && mkdir -p loop.d &&
		unshare -m mount -o loop loop.img loop.d
}
need PTRACE ROOT LOOP

cat >cut.pl <<'EOF2'
# FS_IOC_SHUTDOWN, without writing the journal out
my $how = pack "L", 2;
open my $f, "<", $ARGV[0] or die "$ARGV[0]: $!\n";
ioctl $f, 0x8004587d, $how or die "shutdown: $!\n";
EOF2
cat >run.sh <<'EOF2'
truncate -s 64M img && mkfs.ext4 -qF img && mkdir disk && mount -o loop img disk || exit 1
smco-trace -m nap,counters --interval 10ms -o disk/t -- "$FIXTURES/forgetful-server" 9 >out 2>err &
sleep 6
perl cut.pl disk/t && date +%s%N >cut
wait $!
echo $? >status
umount disk && mount -o loop img disk || exit 1
smco-report --json disk/t >report.json
echo $? >report.status
EOF2
export FIXTURES
# The mounts are this script's alone.
ok "the disk is cut off, and there again" unshare -m bash run.sh
ok "it was cut off while smco-trace ran" test -s cut
ok "the command's own status" test "$(cat status)" = 0
ok "its output" grep -q '^handled' out
ok "said, and once" test "$(grep -c 'cannot write trace' err)" = 1
ok "the trace is there, without its end" test "$(cat report.status)" = 10
# Without fdatasync there is nothing at all, or what was there 5 s before.
ok "up to the last seconds" perl -MJSON::PP -e '
	local $/;
	my $run = decode_json(<STDIN>)->{run};
	my $missing = ($ARGV[0] - $run->{start_real_ns} - $run->{duration_ns}) / 1e9;
	print "# $missing s of it are missing, $run->{records} records are there\n";
	exit !($missing < 3 && $run->{records} > 0 && !$run->{damaged_chunks})' \
	"$(cat cut)" <report.json

done_testing
