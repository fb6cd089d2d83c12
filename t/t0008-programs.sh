#!/bin/bash
# Programs of many kinds do what they do without us: same output, same status.
# Short naps and a high target, so that as much as possible is going on.
. "$(dirname "$0")/test-lib.sh"
need PTRACE

perl -e 'srand 1; print join(" ", map { int rand 1e6 } 1 .. 8), "\n"
	for 1 .. 60000' >numbers

# same COMMAND... - output, standard error and status are those without us.
same() {
	local want got
	"$@" >native.out 2>native.err <numbers
	want=$?
	smco-trace -q -t 50 --nap 20ms -o t.trace -- "$@" >our.out 2>our.err \
		<numbers
	got=$?
	[ $want -eq $got ] || {
		echo "status $got, without us $want"
		tail -n 5 our.err
		return 1
	}
	cmp native.out our.out && cmp native.err our.err &&
		smco-report t.trace >report
}
watched() { grep -q '^coverage *watched' report || { cat report; false; }; }

ok "sort" same sort -n -k3 numbers
ok "its blocks were watched" watched
ok "sort by several threads and temporary files" same sort --parallel=4 \
	-S 200K -T . numbers
ok "gzip" same gzip -9c numbers
ok "bzip2" same bzip2 -9c numbers
ok "its blocks were watched" watched
ok "tar, with a child" same tar -cz --owner=0 --group=0 --mtime=@0 numbers
ok "awk" same awk '{ s += $1; a[$2] = $3 } END { print s, length(a) }' numbers
ok "perl" same perl -ne '$h{$_ % 1000} .= $_ for split;
	END { print length $h{$_}, "\n" for sort keys %h }' numbers
ok "its blocks were watched" watched
ok "a shell with pipes" same sh -c 'cat numbers | tr " " "\n" | sort -u | wc -l'
cat >Makefile <<'END'
all:
	@echo 'int main(void) { return 0; }' >a.c
	@$(CC) -O2 -o a.out a.c
	./a.out
END
ok "make, compiling" same make
# What is called python3 may be a script that looks for it.
python=$(python3 -c 'import sys; print(sys.executable)')
[ -z "$python" ] || ok "python3" same "$python" -c '
import sys, collections
c = collections.Counter(sys.stdin.read().split())
print(len(c), sorted(c.items())[:9])'
! command -v sqlite3 >/dev/null || ok "sqlite3" same sqlite3 :memory: \
	'create table t (a, b); with recursive n(i) as (select 1 union all
	select i + 1 from n limit 60000) insert into t select i, i * 7919 %
	1009 from n; select b, count(*), sum(a) from t group by b limit 20'

cat >exit.c <<'END'
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <time.h>
int main(int argc, char **argv)
{
	size_t n = 100000;
	char *p = malloc(n);
	int ms = argc > 1 ? atoi(argv[1]) : 600;
	while (clock() < CLOCKS_PER_SEC / 1000 * ms)
		memset(p, 7, n);
	printf("%d\n", p[n - 1]);
	return 3;
}
END
compile() { "${CC:-cc}" -O1 -o "$@"; }
ok "compile" compile plain exit.c
ok "a program of our own" same ./plain
ok "its block was watched" watched
ok "compile" compile static -static exit.c
ok "statically linked" same ./static
ok "its block was watched" watched
ok "compile" compile stripped -s exit.c
ok "stripped" same ./stripped
ok "its block was watched" watched
ok "compile" compile no-pie -no-pie exit.c
ok "not position-independent" same ./no-pie 50
ok "compile" compile pie -static-pie exit.c
ok "static and position-independent" same ./pie 50
printf '#!%s/plain\n' "$PWD" >script
chmod +x script
ok "by an interpreter line" same ./script 50
# The programs that know exactly what system calls and faults give them.
ok "each system call's result" same "$FIXTURES/guard_syscalls"
ok "its own faults, as its handlers see them" same "$FIXTURES/guard_signals"
ok "its own faults, fatal" same "$FIXTURES/guard_signals" null
ok "io_uring" same "$FIXTURES/guard_uring"
ok "io_uring with a polling kernel thread" same "$FIXTURES/guard_uring" poll
ok "an exec of another program" same sh -c 'exec ./plain 50'

# A program without a C library, and one that is not for this processor mode.
cat >tiny.s <<'END'
.globl _start
_start:	mov $60, %eax
	mov $9, %edi
	syscall
END
cat >old.s <<'END'
.globl _start
_start:	mov $1, %eax
	mov $7, %ebx
	int $0x80
END
ok "assemble" sh -c 'as -o tiny.o tiny.s && ld -o tiny tiny.o &&
	as --32 -o old.o old.s && ld -m elf_i386 -o old old.o'
ok "without a C library" same ./tiny
# Not every kernel runs 32-bit programs, nor does every virtual machine.
./old 2>ia32.err
ia32=$?
# ok32 DESCRIPTION COMMAND...
ok32() {
	if [ $ia32 -eq 7 ]; then
		ok "$@"
	else
		TAP_NR=$((TAP_NR + 1))
		echo "ok $TAP_NR # SKIP no 32-bit programs here"
	fi
}
refused() {
	local status
	smco-trace -o t32 -- ./old >out 2>err
	status=$?
	cat err
	[ $status -eq 125 ] && [ ! -s out ] && [ "$(wc -l <err)" -eq 1 ] &&
		grep -q '32-bit' err
}
ok32 "a 32-bit program is refused clearly" refused
# So is one that runs, and it runs on.
cat >pause.s <<'END'
.globl _start
_start:	mov $29, %eax
	int $0x80
END
as --32 -o pause.o pause.s && ld -m elf_i386 -o pause32 pause.o
refused_running() {
	local status pid
	./pause32 &
	pid=$!
	smco-trace -o t32 -p "$pid" -d 1 >out 2>err
	status=$?
	cat err "/proc/$pid/status"
	[ $status -eq 125 ] && [ "$(wc -l <err)" -eq 1 ] && [ ! -e t32 ] &&
		grep -q "$pid.*32-bit" err &&
		grep -q '^TracerPid:.0$' "/proc/$pid/status" &&
		grep -q '^State:.S' "/proc/$pid/status" && kill "$pid"
}
ok32 "also one that is attached to" refused_running

printf '#!%s\n' "$PWD/old" >script && chmod +x script
refused_script() {
	local status
	smco-trace -o t32 -- ./script >out 2>err
	status=$?
	[ $status -eq 125 ] && [ "$(wc -l <err)" -eq 1 ] && grep -q 'script.*32-bit' err
}
ok32 "also as the interpreter of a script" refused_script

# Begun by a program that is watched already, it runs as ever; that nobody
# watches it is said.
becomes() {
	local program=$1 status=$2 said=$3 output=$4
	smco-trace --nap 100ms -o t32 -- sh -c "$program" >out 2>err
	local got=$?
	cat out err
	[ $got -eq "$status" ] && [ "$(cat out)" = "$output" ] &&
		grep -q "^smco-trace: $said" err && smco-report t32 >report &&
		tr -s '\n ' ' ' <report | grep -q "$said" || return
	smco-report --json t32 | grep -q "\"exit_status\": *$status"
}
ok32 "exec of a 32-bit program" becomes 'exec ./old' 7 '1 32-bit program was' ''
ok32 "exec of a script that one interprets" \
	becomes 'exec ./script' 7 '1 32-bit program was' ''
ok32 "32-bit children" becomes './old; echo $?; (exec ./old); sleep 0.5; exit 3' \
	3 '2 32-bit programs were' 7
killed_later() {
	local us status pid
	smco-trace -q -o t32 -- sh -c 'echo $$ >pid; exec ./pause32' 2>err &
	us=$!
	wait_for 10 pause_runs || return
	pid=$(cat pid)
	kill -0 $us && grep -q '^TracerPid:.0$' "/proc/$pid/status" || return
	kill -USR1 "$pid"
	wait $us
	status=$?
	[ "$(kill -l $status)" = USR1 ]
}
pause_runs() {
	[ -s pid ] && [ "$(readlink "/proc/$(cat pid)/exe")" = "$PWD/pause32" ]
}
ok32 "one that goes on for long is waited for" killed_later
left_later() {
	smco-trace -q -d 1 -o t32 -- sh -c 'echo $$ >pid; exec ./pause32' 2>err &&
		pause_runs && kill "$(cat pid)"
}
ok32 "no longer than -d says" left_later

# x32: 64-bit calls, 32-bit memory. Many kernels do not run that at all.
cat >x32.s <<'END'
.globl _start
_start:	mov $0x4000003c, %eax
	mov $7, %edi
	syscall
END
x32() {
	local got want=125
	as --x32 -o x32.o x32.s && ld -m elf32_x86_64 -o x32 x32.o || return
	env ./x32 2>err
	got=$?
	[ $got -eq 7 ] || want=$got
	smco-trace -q -o t32 -- ./x32 2>err
	got=$?
	cat err
	[ $got -eq $want ] && { [ $want -ne 125 ] || grep -q '32-bit' err; }
}
ok "an x32 program" x32

# Traced by somebody who is not root, a setuid program runs without its
# privilege: the kernel wants it so, and we say it.
setuid() {
	local status
	[ "$(id -u)" = 0 ] || return 0
	mkdir -p open && cp "$(command -v id)" open/ids && chmod 4755 open/ids &&
		chmod 755 . && chmod 777 open && cp "$BUILD/smco-trace" open || return 1
	# A file system mounted nosuid has no such programs.
	[ "$(setpriv --reuid=65534 --clear-groups open/ids -u)" = 0 ] ||
		return 0
	(cd open && setpriv --reuid=65534 --clear-groups ./smco-trace "$@" \
		-o t.trace -- ./ids -u >out 2>err)
	status=$?
	cat open/out open/err
	[ $status -eq 0 ] && [ "$(cat open/out)" = 65534 ] &&
		[ "$(grep -c "ids is setuid, but runs without" open/err)" = 1 ]
}
ok "a setuid program: without privilege, and that is said" setuid
ok "also when quiet" setuid -q
setuid_by_root() {
	[ "$(id -u)" = 0 ] || return 0
	chown 65534 open/ids && chmod 4755 open/ids &&
		[ "$(smco-trace -q -o t.trace -- open/ids -u 2>err)" = 65534 ] &&
		[ ! -s err ]
}
ok "as root: with it" setuid_by_root

done_testing
