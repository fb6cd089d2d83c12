#!/bin/bash
# Ranges of programs that the command begins: wrappers, scripts.
# shellcheck source=t/test-lib.sh
. "$(dirname "$0")/test-lib.sh"
need PTRACE
# shellcheck source=t/range-lib.sh
. "$SRC/t/range-lib.sh"

export LC_ALL=C.UTF-8
"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -g -O0 -o plain \
	"$SRC/t/fixtures/ranges.c" -lpthread || exit 1

# ranges OPTIONS... -- COMMAND... - run it, sort what it says
ranges() {
	timeout 60 smco-trace -q -m range -o run.trace "$@" >out 2>err || return 1
	sort out >truth
	found >found.txt
	cat err
}

exact() { ranges -t unlimited -- "$@" && compare exact; }
printf '#!/bin/sh\n./plain\n:\n' >calls
printf '#!/bin/sh -e\nexec ./plain\n' >becomes
printf '#! ./becomes\n' >twice
chmod +x calls becomes twice
ok "a shell that becomes the program" exact sh -c 'exec ./plain'
ok "env" exact env A=1 ./plain
ok "a script that calls it" exact ./calls
ok "one that becomes it" exact ./becomes
ok "a script whose interpreter is one" exact ./twice

# refused COMMAND... - for a name that the program behind it has not, before
# anything runs
refused() {
	smco-trace -q -m range --var 'constantt' -o run.trace -- "$@" >out 2>err
	[ $? = 125 ] && [ ! -s out ] && cat err &&
		grep 'plain has no such variable.*nearest: constant' err
}
names_behind() {
	refused env A=1 ./plain &&
		refused env -u A nice -n 1 taskset -c 0 ./plain &&
		refused timeout -s KILL 10 ./plain &&
		smco-trace -q -m range --var 'constantt' --if-available \
			-o run.trace -- env A=1 ./plain
}
ok "what begins another one: names are that one's" names_behind
others_behind() {
	timeout 60 smco-trace -q -m range --var constantt -o run.trace \
		-- sh -c 'exec "$@"' sh ./plain &&
		timeout 60 smco-trace -q -o run.trace -- env A=1
}
ok "of others, and of none, it is not asked" others_behind

interpreter_named() {
	ranges -t 10 -- ./calls
	smco-report run.trace >report
	grep 'debug information' report
	! grep "not an ELF file" report
}
ok "a script stands for its interpreter" interpreter_named

# Begun when more is spent than may be: when there is room again.
cat >late.c <<'E2'
#include <unistd.h>
volatile int counted;
int main(int nr, char **arg)
{
	(void)arg;
	for (int i = 0; nr > 1 && getppid() != 1; i = (i + 1) % 1000)
		counted = i;
	return 0;
}
E2
"${CC:-cc}" -g -O0 -o late late.c || exit 1
cat >many <<'E2'
#!/bin/sh
for i in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19; do ./late; done
echo $$ >pid
exec ./late for_long
E2
chmod +x many
known() { found | grep '^counted 0 999$'; }
late() {
	rm -f run.trace pid
	smco-trace -q -m range -t 4 -o run.trace -- ./many &
	local smco=$! good=1
	wait_for 60 test -s pid && wait_for 60 test -s run.trace &&
		wait_for 60 known && good=0
	kill "$(cat pid)"
	wait $smco
	smco-report run.trace
	return $good
}
ok "begun when there was no room: later" late
done_testing
