#!/bin/bash
# Reports call processes what they are called last, not what their parents were
# when they forked them: servers say so what each of their workers is.
. "$(dirname "$0")/test-lib.sh"
need PTRACE

# The first changes its command line, the second only its name; the third ends as
# what it was forked as.
cat >workers.py <<'EOF'
import ctypes, os, sys, time
libc = ctypes.CDLL(None)
size = len(open("/proc/self/cmdline", "rb").read())
def title(text):
    start = int(open("/proc/self/stat").read().rsplit(")", 1)[1].split()[45])
    line = text.encode().ljust(size, b"\0")
    ctypes.memmove(start, line, size)
def name(text):
    libc.prctl(15, text.encode(), 0, 0, 0)
def wait(path):
    while not os.path.exists(path):
        time.sleep(0.01)
pids = []
for change in (lambda: title("server: worker"), lambda: name("counts"), lambda: 0):
    pids.append(os.fork())
    if not pids[-1]:
        wait("go")
        change()
        wait("end")
        os._exit(0)
for pid in pids:
    print(pid, flush=True)
wait("end")
for pid in pids:
    os.waitpid(pid, 0)
EOF
# called PID TEXT - in JSON.
called() {
	smco-report --json t.trace | perl -MJSON::PP -e 'local $/;
		my ($pid, $want) = @ARGV;
		for (@{JSON::PP->new->decode(<STDIN>)->{processes}}) {
			next if $_->{pid} != $pid;
			print "$pid is \"$_->{command}\", wanted $want\n";
			exit $_->{command} !~ /^$want$/;
		}
		exit 2;' "$@"
}
# watch OPTIONS... - the three begin, change what they are called, and end.
watch() {
	local smco status
	rm -f go end out
	smco-trace -q -m counters -o t.trace "$@" -- \
		/usr/bin/python3 workers.py one two three four five >out &
	smco=$!
	wait_for 10 are_there
	sleep 0.2
	: >go
	wait_for 20 grep -qx counts "/proc/$(sed -n 2p out)/comm"
	sleep 1
	: >end
	wait $smco
	status=$?
	[ $status = 0 ]
}
are_there() { [ "$(wc -l <out)" = 3 ]; }
names() {
	called "$(sed -n 1p out)" "server: worker" &&
		called "$(sed -n 2p out)" '/usr/bin/python3 workers.py one two three four five \[counts\]' &&
		called "$(sed -n 3p out)" '/usr/bin/python3 workers.py one two three four five'
}
ok "those that have ended, while watched" watch
ok "are called what they were" names

done_testing
