#!/bin/bash
# smco-trace --phase: how often a program was in which phase, and how long.
# What is said of counts is exact; nothing here is about how long things take.
. "$(dirname "$0")/test-lib.sh"
. "$SRC/t/phase-lib.sh"

need PTRACE

both=(--phase sdt:work:load --phase sdt:work:step)
pairs() {
	trace a "${both[@]}" -- "$FIXTURES/phase-work" 50 20 0 1000 || return 1
	is "$(column a sdt:work:load count)" 50 && is "$(column a sdt:work:step count)" 1000 &&
		is "$(cat a.out)" EXIT-SUCCESS
}
ok "pairs of marks, and points, are counted" pairs
timed() { # some, and no more than there were
	local load step
	load=$(column a sdt:work:load timed)
	step=$(column a sdt:work:step timed)
	echo "$load $step"
	[ "$load" -ge 1 ] && [ "$load" -le 50 ] && [ "$step" -ge 1 ] && [ "$step" -lt 1000 ]
}
ok "and timed" timed
# told NAME PHASE FIELD - what records of its own and of intervals say together.
told() {
	smco-report --events --csv --where 'event ~ "phase"' "$1.trace" | perl -ne '
		next unless /,phase(-span)?,[^,]*,\d+,'"$2"',/;
		$n += defined $1 ? /\b'"$3"'=(\d+)/ ? $1 : 0 : "'"$3"'" eq "count" || !/\bflags=/; END { print $n + 0 }'
}
records() {
	smco-report --events --csv --where 'event == "phase"' a.trace >a.csv || return 1
	is "$(told a 0 nr_seen)" "$(column a sdt:work:load timed)" && is "$(told a 1 nr_seen)" "$(column a sdt:work:step timed)"
}
ok "each that was timed is a record, or is in one" records
everyone() { is "$(told a 0 count)" 50 && is "$(told a 1 count)" 1000; }
ok "of each that was counted a record tells when" everyone
# A step is in a load: seen so where the load's beginning was seen.
nested() { grep -q 'depth=1' a.csv && ! grep -q 'depth=2' a.csv; }
ok "phases nest" nested

million() {
	trace m "${both[@]}" -- "$FIXTURES/phase-work" 10 100000 0 10 || return 1
	is "$(column m sdt:work:load count)" 10 && is "$(column m sdt:work:step count)" 1000000 &&
		[ "$(column m sdt:work:step timed)" -lt 1000000 ]
}
ok "of a million every one is counted, some are timed" million
few() {
	is "$(told m 1 count)" 1000000 && smco-report --events --csv m.trace >m.csv || return 1
	[ "$(grep -c ',phase,' m.csv)" -le $((33 * ($(grep -c ',phase-span,.*,1,' m.csv) + 2))) ]
}
ok "and records are few" few
long() {
	smco-trace -q --phase main --phase sdt:work:load --interval 10ms -o long.trace -- "$FIXTURES/phase-work" 3 1 0 10000000 || return 1
	smco-report --events --csv --where 'event == "phase"' long.trace >long.csv
	is "$(grep -c ',phase,.*,1,' long.csv)" 3 && ! grep -q 'flags=' long.csv && is "$(told long 0 count)" 1
}
ok "long ones have records of their own" long
unended() {
	cat >u.c <<-'EOF'
		#include <smco-phase.h>
		int main(void)
		{
			SMCO_PHASE_BEGIN(u, all);
			for (volatile long i = 0; i < 10000000; i++);
			return 0;
		}
	EOF
	${CC:-gcc} -I "$SRC/supervisor/marks" -o u u.c || return 1
	trace u --phase sdt:u:all -- ./u || return 1
	smco-report --events --csv --where 'event == "phase"' u.trace >u.csv
	cat u.csv
	is "$(grep -c flags=1 u.csv)" 1 && is "$(column u sdt:u:all timed)" 0 && is "$(column u sdt:u:all count)" 1
}
ok "one that has no end lasts until its process ends" unended
# Nobody waits for memory while he is timed: what records go to is there.
populated() {
	cat >p.c <<-'EOF'
		#include <smco-phase.h>
		#include <stdio.h>
		#include <string.h>
		int main(void)
		{
			char line[512];
			int is_ours = 0, kb;
			FILE *f = fopen("/proc/self/smaps", "r");
			while (f && fgets(line, sizeof(line), f)) {
				if (strstr(line, "memfd:smco-trace"))
					is_ours = 1;
				if (is_ours && sscanf(line, "Rss: %d kB", &kb) == 1) {
					printf("%d\n", kb);
					is_ours = 0;
				}
			}
			SMCO_PHASE_POINT(p, all);
			return 0;
		}
	EOF
	${CC:-gcc} -I "$SRC/supervisor/marks" -o p p.c || return 1
	trace p --phase sdt:p:all -- ./p || return 1
	cat p.out
	[ "$(cat p.out)" -ge 256 ]
}
ok "memory for records is there from the first on" populated
# Where a passing is dear, as beside others, they may cost more than a tenth of a
# second has at 10 %, and counting ends.
threads() {
	trace t -t 300 "${both[@]}" -- "$FIXTURES/phase-work" 20 20000 7 0 || return 1
	is "$(column t sdt:work:load count)" 160 && is "$(column t sdt:work:step count)" 3200000
}
ok "no count is lost between threads" threads
# Two that have one number in memory pass the same mark at the same time, each
# 3 million times: a raw thread and its creator, a raw copy and its. Then the
# creator 1 million times more, alone.
one_number() { # HOW
	cat >one.c <<-'EOF'
		#include <sched.h>
		#include <signal.h>
		#include <smco-phase.h>
		#include <stdlib.h>
		#include <sys/mman.h>
		#include <sys/syscall.h>
		#include <sys/wait.h>
		#include <unistd.h>
		static char stack[1 << 16] __attribute__((aligned(4096)));
		static volatile int *ready;
		static void turns(long nr)
		{
			for (long i = 0; i < nr; i++)
				SMCO_PHASE_POINT(one, turn);
		}
		static void both(void)
		{
			for (int i = 1; i <= 100; i++) { /* side by side, not one after the other */
				__atomic_add_fetch(ready, 1, __ATOMIC_SEQ_CST);
				while (*ready < 2 * i)
					;
				turns(30000);
			}
		}
		static int run(void *unused)
		{
			both();
			__atomic_add_fetch(ready, 1, __ATOMIC_SEQ_CST);
			syscall(SYS_exit, 0);
			return unused != 0;
		}
		int main(int argc, char **argv)
		{
			int is_copy = argc > 1 && atoi(argv[1]);
			ready = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
			int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
			long t = is_copy ? syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : clone(run, stack + sizeof(stack), flags, 0);
			if (t < 0)
				return 1;
			if (is_copy && !t)
				run(0);
			both();
			while (*ready < 201)
				usleep(1000);
			usleep(100000);
			turns(1000000);
			return 0;
		}
	EOF
	${CC:-gcc} -O2 -D_GNU_SOURCE -I "$SRC/supervisor/marks" -o one one.c && trace one -t unlimited --phase sdt:one:turn -- ./one "$1" || return 1
	is "$(column one sdt:one:turn count)" 7000000
}
ok "nor between two that have one number" one_number 0
ok "nor between a program and a copy that has its number" one_number 1
handlers() {
	cat >h.c <<-'EOF'
		#include <signal.h>
		#include <smco-phase.h>
		#include <stdio.h>
		#include <sys/time.h>
		static volatile long nr;
		static void turn(void) { SMCO_PHASE_POINT(h, turn); }
		static void handler(int sig) { (void)sig; turn(); nr++; }
		int main(void)
		{
			struct itimerval every = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
			signal(SIGALRM, handler);
			setitimer(ITIMER_REAL, &every, 0);
			long own = 0;
			while (nr < 2000) {
				turn();
				own++;
			}
			setitimer(ITIMER_REAL, &never, 0);
			printf("%ld\n", own + nr);
			return 0;
		}
	EOF
	${CC:-gcc} -O2 -fno-inline -I "$SRC/supervisor/marks" -o h h.c && trace h -t unlimited --phase sdt:h:turn -- ./h || return 1
	is "$(column h sdt:h:turn count)" "$(cat h.out)"
}
ok "nor where a signal handler passes what it has interrupted" handlers
# Each child has its parent's number until it execs.
spawns() {
	cat >sp.c <<-'EOF'
		#include <smco-phase.h>
		#include <spawn.h>
		#include <sys/wait.h>
		extern char **environ;
		int main(void)
		{
			char *args[] = {"true", 0};
			pid_t pid;
			for (int i = 0; i < 100; i++) {
				SMCO_PHASE_BEGIN(sp, turn);
				if (posix_spawn(&pid, "/bin/true", 0, 0, args, environ))
					return 1;
				waitpid(pid, 0, 0);
				SMCO_PHASE_END(sp, turn);
			}
			return 0;
		}
	EOF
	${CC:-gcc} -I "$SRC/supervisor/marks" -o sp sp.c && trace sp -t unlimited --phase sdt:sp:turn -- ./sp || return 1
	is "$(column sp sdt:sp:turn count) $(column sp sdt:sp:turn timed)" "100 100"
}
ok "a hundred programs that it begins take no number away" spawns
# Threads that were made without a thread area of their own find their creator's
# number in it. $1 of them, and the creator itself; each takes turns.
raw_threads() {
	cat >raw.c <<-'EOF'
		#include <pthread.h>
		#include <sched.h>
		#include <smco-phase.h>
		#include <stdlib.h>
		#include <sys/syscall.h>
		#include <time.h>
		#include <unistd.h>
		#ifndef HOW
		#define HOW 0
		#endif
		enum { one_by_one = HOW == 1, within = HOW >= 2, is_open = HOW == 3 };
		static char stacks[2][1 << 17] __attribute__((aligned(4096)));
		static volatile int left, go, begun;
		static void turns(long us, int in_first)
		{
			struct timespec ts = {0, us * 1000};
			for (int i = 0; i < 20; i++) {
				if (i || !in_first)
					SMCO_PHASE_BEGIN(raw, turn);
				syscall(SYS_nanosleep, &ts, NULL);
				SMCO_PHASE_END(raw, turn);
			}
		}
		static int run(void *us)
		{
			__atomic_add_fetch(&begun, 1, __ATOMIC_SEQ_CST);
			while (!go)
				syscall(SYS_sched_yield);
			turns((long)us, 0);
			while (!one_by_one && go == 1) /* the creator cannot be told from it as long as it lives */
				syscall(SYS_sched_yield);
			__atomic_sub_fetch(&left, 1, __ATOMIC_SEQ_CST);
			syscall(SYS_exit, 0);
			return 0;
		}
		static int create(int nr, int seen)
		{
			left = nr;
			go = one_by_one;
			if (is_open) {
				SMCO_PHASE_BEGIN(raw, turn);
				usleep(100000); /* until it has been looked at */
			}
			for (long i = 0; i < nr; i++) {
				char *top = stacks[one_by_one ? 1 : nr - 1 - i] + sizeof(*stacks);
				int tid = clone(run, top, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
						CLONE_THREAD | CLONE_SYSVSEM, (void *)(6000 + i * 1000));
				while (one_by_one && !syscall(SYS_tkill, tid, 0)) /* until it has left its stack */
					usleep(1000);
				if (tid < 0)
					return 1;
			}
			while (!one_by_one && begun < nr) /* so that each was seen to begin */
				usleep(1000);
			char c;
			if (write(1, "made\n", 5) != 5 || (!seen && read(0, &c, 1) != 1))
				return 1;
			go = 1;
			turns(5000, is_open);
			go = 2;
			while (left)
				usleep(1000);
			return 0;
		}
		static void *in_thread(void *nr) { return (void *)(long)create(*(int *)nr, 1); }
		int main(int argc, char **argv)
		{
			int nr = atoi(argv[1]);
			void *result = NULL;
			pthread_attr_t attr;
			pthread_t t;
			if (!within)
				return create(nr, argc == 2);
			pthread_attr_init(&attr);
			pthread_attr_setstack(&attr, stacks[1], sizeof(*stacks));
			return pthread_create(&t, &attr, in_thread, &nr) || pthread_join(t, &result) || result;
		}
	EOF
	${CC:-gcc} -D_GNU_SOURCE "${@:2}" -I "$SRC/supervisor/marks" -o raw raw.c && trace r -t unlimited --phase sdt:raw:turn -- ./raw "$1" || return 1
	smco-report --phases r.trace
	is "$(column r sdt:raw:turn count)" $((20 * $1 + 20))
}
# Each has its own, and all were timed.
apart() { # OPTIONS: of the compiler
	raw_threads 2 "$@" && is "$(column r sdt:raw:turn timed)" 60 || return 1
	smco-report --events --csv --where 'event == "phase"' r.trace >r.csv
	is "$(tail -n +2 r.csv | cut -d, -f6 | sort -u | wc -l)" 3 && ! smco-report r.trace | grep 'not timed'
}
ok "threads that share their creator's area are told apart" apart
# Where they cannot be, none is taken for another.
left_out() { # NR
	is "$(column r sdt:raw:turn count) $(column r sdt:raw:turn timed)" "$1 0" || return 1
	smco-report r.trace | tr -s '\n ' ' ' >told
	cat told
	grep -q "not timed: $1 times that were recorded" told
}
# It was not seen where they began.
more_maps() { [ "$(grep -c . "/proc/$1/maps")" -gt "$2" ]; }
not_seen() {
	mkfifo raw.in
	./raw 1 wait <raw.in >raw.out &
	local pid=$!
	exec 7>raw.in
	wait_for 10 grep -q made raw.out
	local maps
	maps=$(grep -c . /proc/$pid/maps)
	smco-trace -q -t 50 --phase sdt:raw:turn -o r.trace -p $pid >r.out 2>&1 &
	wait_for 10 more_maps $pid "$maps"
	echo >&7
	exec 7>&-
	wait $pid && wait $! || return 1
	left_out 40
}
ok "or left out, where they began before us" not_seen
one_mapping() { raw_threads 1 -DHOW=2 && left_out 40; }
ok "one that has another's stack is told apart" apart -DHOW=1
ok "left out where their stacks and the creator's are in one mapping" one_mapping
# What the creator was in when the other one began counts with them.
was_open() { raw_threads 1 -DHOW=3 && left_out 40; }
ok "also where the creator was in a phase already" was_open
# Its threads have no number in memory when it begins.
no_number() { raw_threads 2 -static && left_out 60; }
ok "and where no thread's number is known" no_number
executed() {
	cat >e.c <<-'EOF'
		#include <smco-phase.h>
		#include <unistd.h>
		int main(int argc, char **argv)
		{
			for (int i = 0; i < 10; i++)
				SMCO_PHASE_POINT(e, turn);
			if (argc > 1 && argv[1][0]-- > '0')
				execv("./e", argv);
			return 0;
		}
	EOF
	${CC:-gcc} -I "$SRC/supervisor/marks" -o e e.c || return 1
	trace e --phase sdt:e:turn -- ./e 4 && is "$(column e sdt:e:turn count)" 50
}

keeps() {
	trace k -t 50 --phase sdt:keeps:pass -- "$FIXTURES/phase-keeps" 1000000 || return 1
	is "$(cat k.out)" "0 differences, heard by 1, at the end 1" &&
		is "$(column k sdt:keeps:pass count)" 1000000
}
ok "registers, flags and red zone are kept, a semaphore says that somebody listens" keeps
alone() { is "$("$FIXTURES/phase-keeps" 1000)" "0 differences, heard by 0, at the end 0"; }
ok "nobody listens without" alone

text_at() { # PID: the mark's five bytes, as they are in memory
	perl -e '
		my ($pid, $exe) = @ARGV;
		my ($at) = `readelf -n $exe` =~ /Location: 0x([0-9a-f]+)/ or die;
		open my $m, "<", "/proc/$pid/maps" or die;
		my ($base) = <$m> =~ /^([0-9a-f]+)/;
		open my $mem, "<", "/proc/$pid/mem" or die;
		sysseek $mem, hex($base) + hex($at), 0;
		sysread $mem, my $bytes, 5;
		print unpack("H*", $bytes), "\n"' "$1" "$FIXTURES/$2"
}
leave() {
	"$FIXTURES/phase-keeps" 1000000000000 >left &
	local pid=$!
	wait_for 10 has_begun $pid "$FIXTURES/phase-keeps"
	is "$(text_at $pid phase-keeps)" 0f1f440000 || return 1
	local maps
	maps=$(grep -c . /proc/$pid/maps)
	trace l --phase sdt:keeps:pass -d 0.5 -p $pid || return 1
	is "$(text_at $pid phase-keeps)" 0f1f440000 && is "$(grep -c . /proc/$pid/maps)" "$maps" || return 1
	kill -USR1 $pid
	wait $pid || return 1
	is "$(cat left)" "0 differences, heard by 1, at the end 0" && [ "$(column l sdt:keeps:pass count)" -gt 0 ]
}
ok "attached and left: nothing stays behind, the semaphore is put back" leave
has_stubs() { grep -q memfd:smco "/proc/$1/maps"; }
used_since() { [ "$(awk '{ print $14 }' "/proc/$1/stat")" -gt $(($2 + 10)) ]; }
death() {
	smco-trace -q --phase sdt:keeps:pass -o d.trace -- "$FIXTURES/phase-keeps" 1000000000000 >died &
	local pid=$! child used
	wait_for 10 pgrep -P $pid phase-keeps
	child=$(pgrep -P $pid phase-keeps)
	wait_for 10 has_stubs "$child" || {
		kill "$pid" && return 1
	}
	kill -9 $pid
	wait $pid
	used=$(awk '{ print $14 }' "/proc/$child/stat")
	wait_for 60 used_since "$child" "$used"
	kill -USR1 "$child"
	wait_for 60 grep -q differences died
	cat died
	grep -q '^0 differences' died
}
ok "our death does it no harm" death

library() {
	cat >lib.c <<-'EOF'
		#include <smco-phase.h>
		void in_library(void);
		void in_library(void) { SMCO_PHASE_BEGIN(lib, turn); SMCO_PHASE_END(lib, turn); }
	EOF
	cat >main.c <<-'EOF'
		void in_library(void);
		int main(void) { for (int i = 0; i < 300; i++) in_library(); return 0; }
	EOF
	${CC:-gcc} -I "$SRC/supervisor/marks" -fPIC -shared -o libturn.so lib.c &&
		${CC:-gcc} -o main main.c -L. -lturn -Wl,-rpath,"$PWD" || return 1
	trace lib --phase sdt:lib:turn -- ./main || return 1
	is "$(column lib sdt:lib:turn count)" 300
}
ok "marks in a library" library
static_one() {
	cat >s.c <<-'EOF'
		#include <smco-phase.h>
		int main(void) { for (int i = 0; i < 300; i++) SMCO_PHASE_POINT(s, turn); return 0; }
	EOF
	${CC:-gcc} -I "$SRC/supervisor/marks" -static -o s s.c || return 1
	trace s --phase sdt:s:turn -- ./s || return 1
	is "$(column s sdt:s:turn count)" 300 && [ "$(column s sdt:s:turn timed)" -ge 1 ] &&
		[ "$(column s sdt:s:turn timed)" -le 299 ]
}
ok "a static program" static_one
ok "each that is executed anew has its own" executed
forked() {
	cat >f.c <<-'EOF'
		#include <smco-phase.h>
		#include <sys/wait.h>
		#include <unistd.h>
		static void turns(int nr) { for (int i = 0; i < nr; i++) SMCO_PHASE_POINT(f, turn); }
		int main(void)
		{
			turns(10);
			for (int i = 0; i < 3; i++) {
				if (!fork()) { turns(100); _exit(0); }
				wait(0);
			}
			turns(1000);
			return 0;
		}
	EOF
	${CC:-gcc} -I "$SRC/supervisor/marks" -o f f.c || return 1
	trace f --phase sdt:f:turn -- ./f && is "$(column f sdt:f:turn count)" 1310 || return 1
	trace nf --no-follow --phase sdt:f:turn -- ./f || return 1
	[ "$(column nf sdt:f:turn count)" -ge 1010 ]
}
ok "and so are those of copies" forked

summary() {
	smco-trace -m nap,counters --sample 99 "${both[@]}" -o sum.trace -- "$FIXTURES/phase-work" 30 20 0 100000 >out 2>err || return 1
	cat err
	grep -q '^phases  *sdt:work:load: 30 times' err && grep -q 'sdt:work:step: 600 times' err &&
		grep -q '^unused' err && grep -q '^counters' err && grep -q '^samples' err
}
ok "beside everything else, in the summary" summary
columns() { # SECTION TRACE
	smco-report "--$1" --csv "$2" >table
	sed 's/\\-/-/g' "$SRC/reports/smco-report.1" | sed -n '/^\.SS "--'"$1"'"/,/^\.S[SH]/p' >part
	head -n 1 table | tr -d '\r' | tr ',' '\n' | sed 's/_ns$//; s/_ppb$//' >names
	while read -r c; do grep -qxF -- ".B $c" part || { echo "$c" && return 1; }; done <names
	[ "$(wc -l <names)" -gt 4 ]
}
ok "the table's columns are in the manual" columns phases a.trace
ok "and those of its counters" columns phase-counters sum.trace
counted() {
	smco-report --json sum.trace | perl -MJSON::PP -0777 -e '
		my $d = decode_json(<STDIN>); my $n = @{$d->{counters}[0]{events}}; my $all = $d->{counters}[0]{series}{scaled};
		for my $p (@{$d->{phases}}) { my $f = $p->{files}[0]; my $c = $f->{counts};
			@$c == $n or die "events"; $c->[0] > 0 or die "no CPU time in $p->{phase}";
			for my $e (0 .. $#$c) { my $sum = 0; $sum += $_ for @{$all->[$e]}; $c->[$e] <= 1.000001 * $sum or die "more than all" }
			$f->{samples} <= $d->{samples}{samples} or die "samples";
			my ($last, $shares) = (1e9, 0);
			for (@{$f->{functions}}) { $_->{self_ppb} <= $last or die "order"; $last = $_->{self_ppb}; $shares += $last }
			$shares <= 1e9 && ($f->{samples} < 0.01 || @{$f->{functions}} == 20 || $shares > 999999900) or die "functions: $shares";
			my $in = 0; my $nr = 0; for my $w (@{$p->{when}}) { my $at = 0;
				for (@{$w->{pieces}}) { $_->[0] >= $at && $_->[2] <= $_->[1] or die "pieces"; $at = $_->[0] + $_->[1]; $in += $_->[2]; $nr += $_->[3] } }
			abs($in - $f->{in_ns}) < 10 or die "time"; $nr == $p->{count} or die "$nr entries" }'
}
ok "counters and samples are the phases', and pieces are all there is" counted
# CPU time is told as time, also each time's.
in_words() { smco-report --phase-counters --width 0 sum.trace | grep -qE '^sdt:work:load  *task-clock  *[0-9.]+ m?s  .* [0-9.]+ [mu]?s$'; }
ok "time that was counted is told as time" in_words
no_counters() { test_exit 9 smco-report --phase-counters a.trace 2>err && grep -q 'no counters in the trace' err; }
ok "what was not counted" no_counters

# What a variable is given in the phases, and between them, are other numbers; each phase lasts for many looks.
ranges() {
	cat >two.c <<-'EOF'
		#include <smco-phase.h>
		#include <time.h>
		static volatile long sink;
		static long ms(void) { struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); return t.tv_sec * 1000 + t.tv_nsec / 1000000; }
		__attribute__((noinline)) static void fill(int from, int to) { for (int level = from; level < to; level++) sink += level; }
		int main(void)
		{
			for (int turn = 0; turn < 3; turn++) {
				SMCO_PHASE_BEGIN(two, low);
				for (long end = ms() + 200; ms() < end;) fill(10, 100);
				SMCO_PHASE_END(two, low);
				for (long end = ms() + 20; ms() < end;) fill(-5, 5);
				SMCO_PHASE_BEGIN(two, high);
				for (long end = ms() + 200; ms() < end;) fill(1000, 2000);
				SMCO_PHASE_END(two, high);
			}
			return 0;
		}
	EOF
	${CC:-gcc} -g -O1 -I "$SRC/supervisor/marks" -o two two.c || return 1
	trace two -t unlimited --no-cache -m range --phase sdt:two:low --phase sdt:two:high -- ./two &&
		smco-report --phase-ranges --csv two.trace | tr -d '\r' | tee two.csv
	is "$(column two sdt:two:low count) $(column two sdt:two:high count)" "3 3" || return 1
	is "$(awk -F, '$2 == "fill::level" { print $1, $5, $6 }' two.csv | sort | paste -sd ' ')" "sdt:two:high 1000 1999 sdt:two:low 10 99" || return 1
	# Those that may have been are more, and no less.
	awk -F, '$2 == "fill::level" { n++; bad += $3 > $5 || $4 < $6 } END { exit n != 2 || bad }' two.csv
}
ok "ranges of variables in each phase" ranges
ok "their columns are in the manual" columns phase-ranges two.trace
in_json() {
	smco-report --json two.trace | perl -MJSON::PP -0777 -e '
		my $d = decode_json(<STDIN>); my %p = map { $_->{phase} => $_->{ranges} } @{$d->{phases}};
		my ($r) = grep { $_->{variable} eq "fill::level" } @{$p{"sdt:two:high"}};
		$r->{sure_smallest} == 1000 && $r->{sure_largest} == 1999 && $r->{smallest} <= 1000 && $r->{type} eq "int" && $r->{line} > 0 or die %$r'
}
ok "and they are in the document" in_json
no_ranges() { test_exit 9 smco-report --phase-ranges a.trace 2>err && grep -q 'no ranges in the trace' err; }
ok "what had no ranges" no_ranges

ok "a phase that names nothing" refused "no probe 'sdt:work:laod' in the program and its libraries; near to it: sdt:work:load" \
	--phase sdt:work:laod -- "$FIXTURES/phase-work" 1 1 0 1
ok "the second of two" refused "no probe 'sdt:work:stp'" --phase sdt:work:load --phase sdt:work:stp -- "$FIXTURES/phase-work" 1 1 0 1
ok "none in a program without any" refused "no probe 'sdt:a:b' in the program and its libraries" --phase sdt:a:b -- true
for bad in a:b 4x -x sdt: sdt:a sdt:a: sdt::b sdt:a:b:c ''; do
	ok "--phase '$bad'" refused "is neither the name of a function nor sdt:PROVIDER:NAME" --phase "$bad" -- true
done
ok "--target 0" refused "phases cost something" -t 0 --phase sdt:work:load -- "$FIXTURES/phase-work" 1 1 0 1
ok "nothing was started" absent bad.trace
none() {
	smco-trace -q -m nap -o nap.trace -- true
	test_exit 9 smco-report --phases nap.trace >out 2>err && grep -q 'no phases in the trace' err
}
ok "a trace without phases says so" none
done_testing
