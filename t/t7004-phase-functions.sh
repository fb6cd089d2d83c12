#!/bin/bash
# smco-trace --phase FUNCTION: calls are counted exactly, whichever way they
# end; and probes of other people's headers, whose nop is one byte.
. "$(dirname "$0")/test-lib.sh"
. "$SRC/t/phase-lib.sh"

need PTRACE

count() { is "$(column "$1" "$2" count)" "$3"; }
timed() { # NAME PHASE: some were
	local nr
	nr=$(column "$1" "$2" timed)
	echo "$2: $nr timed"
	[ "$nr" -ge 1 ] && [ "$nr" -le "$(column "$1" "$2" count)" ]
}

all=()
for f in early_or_late calls_itself goes_over left nothing main; do all+=(--phase "$f"); done
ways() {
	trace a -t 50 "${all[@]}" -- "$FIXTURES/phase-calls" 3000 0 || return 1
	count a early_or_late 3000 && count a calls_itself 15000 && count a goes_over 3000 &&
		count a left 3000 && count a nothing 3000 && count a main 1 && is "$(cat a.out)" EXIT-SUCCESS
}
ok "calls are counted, however they end" ways
ends() { for f in early_or_late calls_itself goes_over left nothing main; do timed a $f || return 1; done; }
ok "and timed: early and late returns, recursion, tail calls, beside longjmp" ends
# All calls of a function lie in main's one, and none counts what lies in an inner one.
within() {
	smco-report --events --csv --where 'event == "phase"' a.trace >a.csv || return 1
	smco-report --phases --csv a.trace | tr -d '\r' | awk -F, '
		NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
		{ longest[$1] = $at["longest_ns"] }
		END { for (f in longest) { print f, longest[f]; bad += longest[f] > longest["main"] } exit bad > 0 }'
}
ok "no call is longer than the one it is in" within
threads() {
	trace t "${all[@]}" -- "$FIXTURES/phase-calls" 5000 7 || return 1
	count t early_or_late 40000 && count t calls_itself 200000 && count t left 40000 && count t nothing 40000
}
ok "no count is lost between threads" threads
many() {
	trace m --phase nothing -- "$FIXTURES/phase-calls" 100000 0 || return 1
	count m nothing 100000 && timed m nothing && [ "$(column m nothing timed)" -lt 100000 ]
}
ok "of many calls every one is counted, some are timed" many

cpp() {
	cat >e.cc <<-'EOF'
		#include <cstdio>
		#include <vector>
		namespace app {
		struct Loop {
			[[gnu::noipa]] void turn(int n) { if (n % 4 == 0) throw n; std::vector<int> v(8, n); sum += v[n % 8]; }
			[[gnu::noipa]] int turn(int a, int b) const { return a + b; }
			long sum = 0;
		};
		template <class T> [[gnu::noipa]] T twice(T a) { return a + a; }
		}
		int main()
		{
			app::Loop l;
			int caught = 0;
			for (int i = 0; i < 1000; i++) {
				try { l.turn(i); } catch (int) { caught++; }
				l.sum += l.turn(i, 1);
				l.sum += app::twice(i) + (long)app::twice(0.5 * i);
			}
			std::printf("%d\n", caught);
		}
	EOF
	g++ -O2 -o e e.cc || return 1
	trace e --phase app::Loop::turn --phase 'app::Loop::turn(int)' --phase app::twice --phase _ZN3app5twiceIiEET_S1_ -- ./e || return 1
	is "$(cat e.out)" 250 && count e app::Loop::turn 2000 && count e 'app::Loop::turn(int)' 1000 &&
		count e app::twice 2000 && count e _ZN3app5twiceIiEET_S1_ 1000 && timed e 'app::Loop::turn(int)'
}
ok "C++: exceptions go through, names with and without parameters, overloads, templates" cpp
cet() {
	${CC:-gcc} -O2 -fcf-protection=full -o cet "$SRC/t/fixtures/phase-calls.c" -lpthread || return 1
	trace c "${all[@]}" -- ./cet 1000 1 || return 1
	count c early_or_late 2000 && count c calls_itself 10000 && count c goes_over 2000 && count c left 2000
}
ok "functions that begin with endbr64" cet
plain() {
	${CC:-gcc} -O0 -o O0 "$SRC/t/fixtures/phase-calls.c" -lpthread || return 1
	trace o "${all[@]}" -- ./O0 1000 1 || return 1
	count o early_or_late 2000 && count o calls_itself 10000 && count o goes_over 2000 && timed o nothing
}
ok "code that nobody has optimised" plain
library() {
	echo 'int in_library(int n); int in_library(int n) { return n > 5 ? n * 3 : n; }' >lib.c
	echo 'int in_library(int); int main(void) { int s = 0; for (int i = 0; i < 300; i++) s += in_library(i); return s == 0; }' >main.c
	${CC:-gcc} -O2 -fPIC -shared -o libcalls.so lib.c && strip libcalls.so &&
		${CC:-gcc} -o main main.c -L. -lcalls -Wl,-rpath,"$PWD" || return 1
	trace lib --phase in_library -- ./main || return 1
	count lib in_library 300
}
ok "what a stripped library exports" library
# Copies of copies, each there long enough to be looked at, which then begin
# another program. With other monitors the space of the first one numbers its
# libraries otherwise than a copy's does.
copies() {
	cat >copies.c <<-'EOF'
		#include <stdlib.h>
		#include <sys/wait.h>
		#include <unistd.h>
		int main(void)
		{
			for (int i = 0; i < 3; i++) {
				int status;
				pid_t pid = fork();
				if (pid)
					return waitpid(pid, &status, 0) != pid || status;
				usleep(150000);
				for (int k = 0; k < 1000; k++)
					getppid();
			}
			execl("/bin/true", "true", (char *)0);
			return 3;
		}
	EOF
	${CC:-gcc} -O1 -o copies copies.c || return 1
	local opt
	for opt in "" "-m nap" "-m range"; do
		# shellcheck disable=SC2086
		trace cc $opt -t unlimited --phase getppid -- ./copies || return 1
		count cc getppid 3000 || return 1
	done
}
ok "what copies of copies call counts once" copies

text() { # PID: the text of all five functions, as it is in memory
	perl -e '
		my ($pid, $exe) = @ARGV;
		open my $m, "<", "/proc/$pid/maps" or die;
		my ($base) = <$m> =~ /^([0-9a-f]+)/;
		open my $mem, "<", "/proc/$pid/mem" or die;
		for (`nm -S $exe`) {
			my ($at, $size) = /^(\w+) (\w+) [tT] (?:early_or_late|calls_itself|goes_over|left|nothing)$/ or next;
			sysseek $mem, hex($base) + hex($at), 0;
			sysread $mem, my $bytes, hex($size);
			print unpack("H*", $bytes), "\n";
		}' "$1" "$FIXTURES/phase-calls"
}
leave() {
	"$FIXTURES/phase-calls" -1 2 >left &
	local pid=$! before maps
	wait_for 10 has_begun $pid "$FIXTURES/phase-calls"
	before=$(text $pid)
	maps=$(grep -c 'rwxp\|r-xp' /proc/$pid/maps)
	[ "$(wc -l <<<"$before")" = 5 ] || { kill $pid; return 1; }
	trace l "${all[@]}" -d 0.5 -p $pid || { kill $pid; return 1; }
	local after
	after=$(text $pid)
	maps="$(grep -c 'rwxp\|r-xp' /proc/$pid/maps) of $maps"
	kill $pid
	wait $pid || return 1
	is "$after" "$before" && is "${maps% of *}" "${maps#* of }" &&
		is "$(cat left)" EXIT-SUCCESS && [ "$(column l early_or_late count)" -gt 0 ]
}
ok "attached and left: the text is what it was" leave
death() {
	smco-trace -q "${all[@]}" -o d.trace -- "$FIXTURES/phase-calls" -1 2 >died &
	local pid=$! child
	wait_for 10 pgrep -P $pid phase-calls
	child=$(pgrep -P $pid phase-calls)
	wait_for 10 sh -c "! kill -0 $child 2>/dev/null || grep -q memfd /proc/$child/maps"
	kill -9 $pid
	wait $pid
	kill "$child"
	wait_for 60 grep -q EXIT-SUCCESS died
}
ok "our death does it no harm" death
# What counting alone costs is within the bound, too. A hundredth of a second has
# room for millions of counts, on a slow machine for some hundred thousand; how
# many exactly is u-phase-cost's.
dear() {
	cat >hot.c <<-'EOF'
		#include <signal.h>
		#include <stdio.h>
		#include <unistd.h>
		static volatile sig_atomic_t begun, over;
		static void begin(int sig) { begun = sig; }
		static void stop(int sig) { over = sig; }
		static volatile int sink;
		__attribute__((noipa)) static int hot(int n) { sink += n; return n + 1; }
		int main(void)
		{
			int n = 0;
			signal(SIGTERM, stop);
			signal(SIGUSR1, begin);
			puts("ready");
			fflush(stdout);
			while (!begun) usleep(1000);
			while (!over) n = hot(n);
			puts(n ? "done" : "");
			return 0;
		}
	EOF
	${CC:-gcc} -O2 -o hot hot.c || return 1
	smco-trace -o dear.trace --phase hot --phase main -- ./hot >dear 2>dear.err &
	local pid=$! child
	wait_for 10 pgrep -x -P $pid hot
	child=$(pgrep -x -P $pid hot)
	wait_for 60 grep -q ready dear &&
		wait_for 60 grep -q "memfd:smco" "/proc/$child/maps" &&
		kill -USR1 "$child" &&
		wait_for 60 sh -c "! grep -q memfd:smco /proc/$child/maps"
	local status=$?
	kill "$child"
	wait $pid || return 1
	cat dear.err
	[ $status = 0 ] && grep -q 'no longer counted in 1 module after .*: counting there cost' dear.err &&
		is "$(tail -1 dear)" "done" && [ "$(column dear hot count)" -gt 100000 ]
}
ok "what is too dear to count is not counted any more, and that is said" dear
# Both begin at the same place: the phase comes first and leads to the other.
beside() {
	cat >alloc.c <<-'EOF'
		#include <stdlib.h>
		static char *volatile kept;
		int main(void)
		{
			for (int i = 0; i < 3000; i++) {
				kept = malloc(i % 10 ? 100 : 20000);
				*kept = 1;
				free(kept);
			}
			return 0;
		}
	EOF
	${CC:-gcc} -O1 -fno-builtin -o alloc alloc.c || return 1
	trace a0 --phase malloc --phase free -- ./alloc &&
		trace a1 -m nap --min-size 8K --phase malloc --phase free -- ./alloc || return 1
	smco-report a1.trace >a1.txt
	cat a1.txt
	! grep -q 'somebody has changed it' a1.txt || return 1
	grep -q 'counted, not timed: calls that allocation sensors record' a1.txt &&
		grep -q 'sensors in glibc malloc, ' a1.txt && grep -q 'not 300 blocks' a1.txt || return 1
	[ "$(column a0 malloc count)" -ge 3000 ] && is "$(column a1 malloc count)" "$(column a0 malloc count)" &&
		is "$(column a1 free count)" "$(column a0 free count)" && timed a1 malloc && timed a1 free
}
ok "calls of the allocator are counted beside its own sensors" beside
allocator() { # PID: the beginning of libc's malloc, as it is in memory
	perl -e '
		my ($libc) = grep { m{/libc\.so} } do { open my $m, "<", "/proc/$ARGV[0]/maps" or die; <$m> } or die;
		my ($base, $file) = $libc =~ m{^([0-9a-f]+)-.* (/\S+)$} or die;
		my ($at) = map { /^\s*\d+: (\w+) .* malloc@@/ ? $1 : () } `readelf -W --dyn-syms $file` or die;
		open my $mem, "<", "/proc/$ARGV[0]/mem" or die;
		sysseek $mem, hex($base) + hex($at), 0;
		sysread $mem, my $bytes, 16;
		print unpack("H*", $bytes), "\n"' "$1"
}
beside_attached() {
	"$FIXTURES/phase-calls" -1 1 >left &
	local pid=$! before after
	wait_for 10 has_begun $pid "$FIXTURES/phase-calls"
	before=$(allocator $pid)
	trace ba -m nap --phase malloc -d 0.3 -p $pid || { kill $pid; return 1; }
	after=$(allocator $pid)
	kill $pid
	wait $pid && [ -n "$before" ] && is "$after" "$before"
}
ok "also in a program that we come to later, where nothing of either stays" beside_attached

sdt() {
	cat >p.c <<-'EOF'
		#include <stdio.h>
		#include <stdlib.h>
		#ifdef WITH_SEMAPHORES
		#define _SDT_HAS_SEMAPHORES 1
		#endif
		#include <sys/sdt.h>
		#ifdef WITH_SEMAPHORES
		#define SEMAPHORE(name) __extension__ unsigned short name __attribute__((unused, section(".probes")))
		SEMAPHORE(shop_order__begin_semaphore); SEMAPHORE(shop_order__end_semaphore); SEMAPHORE(shop_item_semaphore);
		#define HEARD() (*(volatile unsigned short *)&shop_item_semaphore)
		#else
		#define HEARD() 1
		#endif
		__attribute__((noipa)) static int item(int n)
		{
			if (n & 1)
				DTRACE_PROBE2(shop, item, n, "odd");
			else
				DTRACE_PROBE2(shop, item, n, "even");
			return n * 2;
		}
		int main(int argc, char **argv)
		{
			int turns = atoi(argv[1]), heard = 0, sum = 0;
			for (int i = 0; i < turns; i++) {
				DTRACE_PROBE1(shop, order__begin, i);
				for (int k = 0; k < 10; k++)
					sum += item(k);
				heard += HEARD();
				DTRACE_PROBE(shop, order__end);
			}
			printf("%d %s\n", sum, heard ? "heard" : "not heard");
			return argc == 0;
		}
	EOF
	local opt
	for opt in -O0 -O2 "-O2 -DWITH_SEMAPHORES" "-O3 -fcf-protection=full"; do
		# shellcheck disable=SC2086
		${CC:-gcc} $opt -o p p.c || return 1
		readelf -n p | grep -q shop || return 1
		trace p --phase sdt:shop:order --phase sdt:shop:item -- ./p 1000 || return 1
		is "$(cat p.out)" "90000 heard" && count p sdt:shop:order 1000 && count p sdt:shop:item 10000 &&
			timed p sdt:shop:order && timed p sdt:shop:item || return 1
	done
	${CC:-gcc} -O2 -DWITH_SEMAPHORES -o p p.c && is "$(./p 10)" "900 not heard"
}
ok "systemtap's own probes: a nop of one byte, semaphores" sdt

ok "a function that does not exist" refused "no function 'calls_itslef' in the program and its libraries; near to it: calls_itself" \
	--phase calls_itslef -- "$FIXTURES/phase-calls" 1 0
ok "C++: as people write it" refused "near to it: app::Loop::turn" --phase app::loop::trun -- ./e
ok "nothing was started" absent bad.trace
# Libraries that are loaded later: the program waits until its library's code
# is another than the file's, so that what it then does is counted whole.
plugin() {
	cat >plug.c <<-'EOF'
		#include <smco-phase.h>
		int in_plugin(int);
		int in_plugin(int v) { SMCO_PHASE_BEGIN(plug, turn); v++; SMCO_PHASE_END(plug, turn); return v; }
	EOF
	cat >host.c <<-'EOF'
		#define _GNU_SOURCE
		#include <dlfcn.h>
		#include <stdio.h>
		#include <stdlib.h>
		#include <string.h>
		#include <sys/mman.h>
		#include <unistd.h>
		/* With "away" something else is where the library was. */
		static void *load(int turns, int waits)
		{
			char was[16];
			void *lib = dlopen("./libplug.so", RTLD_NOW);
			int (*f)(int) = (int (*)(int))dlsym(lib, "in_plugin");
			memcpy(was, (void *)f, 16);
			for (int i = 0; waits && i < 20000 && !memcmp(was, (void *)f, 16); i++)
				usleep(1000);
			/* All of its places, not only the first. */
			for (int i = 0; waits && i < 20; i++)
				usleep(1000);
			for (int i = 0, v = 0; i < turns; i++)
				if ((v = f(v)) != i + 1)
					exit(3);
			if (dlclose(lib))
				exit(4);
			return (void *)((unsigned long)f & ~4095ul);
		}
		int main(int argc, char **argv)
		{
			int waits = argc < 3;
			void *at = load(300, waits);
			if (argc > 1 && !strcmp(argv[1], "away"))
				for (long i = -4; i < 5; i++)
					mmap((char *)at + i * 4096, 4096, PROT_READ | PROT_WRITE,
					     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
			load(200, waits);
			for (int i = 0; argc > 1 && !strcmp(argv[1], "often") && i < 300; i++)
				load(20, 0);
			puts("EXIT-SUCCESS");
			return 0;
		}
	EOF
	${CC:-gcc} -I "$SRC/supervisor/marks" -fPIC -shared -o libplug.so plug.c &&
		${CC:-gcc} -o host host.c -ldl
}
late() { # NAME [ARGUMENT]
	local name=$1
	shift
	trace "$name" -t 50 --if-available --phase in_plugin --phase sdt:plug:turn -- ./host "$@" || return 1
	set -- "$name"
	smco-report --width 300 "$1.trace" | tee "$1.text"
	count "$1" in_plugin 500 && count "$1" sdt:plug:turn 500 &&
		is "$(cat "$1.out")" EXIT-SUCCESS &&
		grep -q 'loaded later: libplug.so since .* s, at most .* ms after it was loaded, and 1 more' "$1.text"
}
if plugin; then
	ok "a library that is loaded later, unloaded, and loaded again" late dlopen
	ok "and elsewhere" late elsewhere away
	often() {
		trace often -t 50 --if-available --phase in_plugin --phase sdt:plug:turn -- ./host often now || return 1
		is "$(cat often.out)" EXIT-SUCCESS
	}
	ok "one that comes and goes all the time is not harmed" often
	never() {
		trace never --if-available --phase sdt:no:such -- ./host x now || return 1
		smco-report --width 300 never.trace | tee never.text
		count never sdt:no:such 0 && grep -q "in none of the program's libraries: sdt:no:such" never.text &&
			refused '--if-available waits' --phase in_plugin -- ./host
	}
	ok "what never comes is said; without --if-available it is refused" never
else
	TAP_NR=$((TAP_NR + 1))
	echo "ok $TAP_NR # SKIP no compiler"
fi

# The last places of variables in a function give way to its end: what comes
# before them in the same stub does not.
prereq_CC() { command -v gcc; }
with_ranges() {
	cat >last.c <<-'EOF'
		#include <stdio.h>
		static int first, second, third, turns;
		__attribute__((noipa)) static void turn(int n)
		{
			first = n - 5;
			second = first + n;
			third = second - 3 * n;
			turns++;
		}
		int main(void)
		{
			for (int i = 0; i < 1000; i++)
				turn(i);
			return printf("%d %d %d %d\n", first, second, third, turns) < 0;
		}
	EOF
	gcc -g -O0 -o last last.c || return 1
	for target in 50 unlimited; do
		trace last -m range -t $target --phase turn -- ./last || return 1
		count last turn 1000 && is "$(cat last.out)" '994 1993 -1004 1000' || return 1
	done
	is "$(column last turn timed)" 1000 || return 1
	smco-report --ranges --csv last.trace | awk -F, '{ print $1, $2, $3 }' | tee last.ranges
	grep -qx 'first -5 994' last.ranges && grep -qx 'second -5 1993' last.ranges &&
		grep -qx 'third -1004 0' last.ranges || return 1
	smco-report --width 200 last.trace | tee last.text
	grep -q 'not all that turns is assigned is seen by sensors' last.text
}
! prereq_CC || ok "beside ranges every end is seen, and what of those is not is said" with_ranges

# Another linker, which jumps to the program's entry: constructors come after that.
prereq_MUSL() { command -v musl-gcc; }
musl() {
	cat >own.c <<-'EOF'
		static volatile int nr;
		__attribute__((noipa)) int in_library(int n) { nr += n; return nr; }
		__attribute__((constructor)) static void first(void) { for (int i = 0; i < 7; i++) in_library(i); }
	EOF
	cat >user.c <<-'EOF'
		#include <stdio.h>
		int in_library(int n);
		int main(void) { for (int i = 0; i < 1000; i++) in_library(i); return puts("EXIT-SUCCESS") < 0; }
	EOF
	musl-gcc -g -O1 -shared -fPIC -o libown.so own.c && musl-gcc -g -O1 -o user user.c ./libown.so || return 1
	trace musl -t 50 --if-available --phase in_library -- ./user || return 1
	count musl in_library 1007 && is "$(cat musl.out)" EXIT-SUCCESS
}
! prereq_MUSL || ok "of a library of musl's linker, constructors too" musl

done_testing
