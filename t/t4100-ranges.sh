#!/bin/bash
# Ranges of integer variables, against a program that keeps account of its own.
# shellcheck source=t/test-lib.sh
. "$(dirname "$0")/test-lib.sh"
need PTRACE
# shellcheck source=t/range-lib.sh
. "$SRC/t/range-lib.sh"

export LC_ALL=C.UTF-8

# build NAME FLAGS...
build() {
	local name=$1
	shift
	"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -g -o "$name" "$@" \
		"$SRC/t/fixtures/ranges.c" -lpthread
}

# [ARG=...] ranges PROGRAM OPTIONS... - run it with that, sort what it says
ranges() {
	local program=$1
	shift
	timeout 160 smco-trace -q -m range -o run.trace "$@" -- "./$program" \
		${ARG:+"$ARG"} >out || return 1
	sort out >truth
	found >found.txt
}

exact() { ranges "$@" && compare exact; }
# within PROGRAM OPTIONS... - on a busy machine nothing may be seen under a limit:
# three times lucky, but nothing wrong in any of them.
within() {
	local status
	for _ in 1 2 3; do
		ranges "$@" || return 1
		compare within
		status=$?
		[ $status -eq 2 ] || return $status
	done
	return 1
}

build plain -O0 || exit 1
ok "-O0, no limit: exactly the ranges that it had" exact plain -t unlimited
ok "with a limit: no value that it did not have" within plain -t 10
ok "by the global controller, too" within plain -t 5 --controller=global
build cet -O0 -fcf-protection=full -fno-pie -no-pie || exit 1
ok "-fcf-protection, no PIE" exact cet -t unlimited
build fast -O2 || exit 1
ok "-O2: no value that it did not have" within fast -t unlimited
if command -v clang >/dev/null; then
	CC=clang build clang -O0 || exit 1
	ok "clang -O0" exact clang -t unlimited
	for level in -O1 -O2 -O3 -Os; do
		CC=clang build clang $level || exit 1
		ok "clang $level: no value that it did not have" within clang -t unlimited
	done
	ok "clang -Os, with a limit" within clang -t 5
fi
for level in -O1 -O3 -Os; do
	build fast $level || exit 1
	ok "$level: no value that it did not have" within fast -t unlimited
done

# What globals had before the program's first instruction is among them, and all
# there is of those that it never assigns, which the report says.
build_firsts() {
	"${CC:-cc}" -g -o firsts "$@" "$SRC/t/fixtures/range/firsts.c"
}
firsts() {
	build_firsts -O0 && exact firsts -t unlimited &&
		smco-report --ranges --csv --where 'how == "initial"' run.trace | tee how &&
		grep ^unreached,42,42, how && grep ^limit,-32768,-32768, how &&
		! grep -E 'begins|,limit,' how
}
ok "first values of globals" firsts
ok "first values of globals, with a limit" within firsts -t 10
build_firsts -O2 || exit 1
ok "first values of globals, -O2: no value that it did not have" \
	within firsts -t unlimited
# What the file has in the place of an address is no value.
build_firsts -O0 -static-pie -Wl,-z,pack-relative-relocs || exit 1
links_itself() {
	ARG=1 within firsts -t unlimited && grep ^address found.txt >found &&
		cat found truth && grep -qE "^address 1 (2|$(sed -n 's/^address 1 //p' truth))$" found
}
ok "first values of a program that links itself" links_itself

# Members are written to by the address of their struct, too.
build_members() {
	"${CC:-cc}" -g -o members "$@" "$SRC/t/fixtures/range/members.c"
}
build_members -O0 || exit 1
ok "members of a struct whose address is taken" exact members -t unlimited
build_members -O1 || exit 1
ok "members of a struct whose address is taken, -O1" exact members -t unlimited

build_stacked() {
	"${CC:-cc}" -g -o stacked "$@" "$SRC/t/fixtures/range/stacked.c"
}
build_stacked -O0 || exit 1
ok "arrays on the stack, by a variable subscript" exact stacked -t unlimited
all_digits() {
	smco-report --ranges --json run.trace | grep '"arrays::wide\[\]"' | tee row
	grep -q '"smallest":16167311985727847140,"largest":16167311985727847140,' row &&
		smco-report --json run.trace | tr -d ' \n' >whole &&
		grep -q '"smallest":16167311985727847140,"largest":16167311985727847140,' whole
}
ok "64 bits without a sign, in JSON: all digits" all_digits
build_stacked -O2 -fno-tree-vectorize || exit 1
ok "arrays on the stack, -O2: no value that it did not have" within stacked -t unlimited
for level in -O0 -O2; do
	"${CC:-cc}" -g $level -o through "$SRC/t/fixtures/range/through.c" || exit 1
	ok "arrays on the stack, through pointers, $level" exact through -t unlimited
done

only() {
	ranges plain -t unlimited --function kinds --var 's.*' &&
		cut -d' ' -f1 found.txt | tr '\n' ' ' >names &&
		cat names && [ "$(cat names)" = "kinds::s.len kinds::s.low " ]
}
ok "--function and --var" only

updates() {
	ranges plain -t unlimited --var below &&
		smco-report --ranges --where 'hits > 0' --csv run.trace | tee hits &&
		smco-report --ranges --where 'hits == 9' --csv run.trace |
		grep -q "^recurse::below,"
}
ok "how often it was assigned is counted" updates

# refused PATTERN OPTIONS... - said in one line, and nothing runs
refused() {
	local pattern=$1
	shift
	test_exit 125 smco-trace -m range "$@" -- ./plain >out 2>err || return 1
	cat err
	[ ! -s out ] && [ "$(wc -l <err)" = 1 ] && grep -q -- "$pattern" err
}
ok "no such variable: the nearest are named" \
	refused "nearest: .*below" --var belwo
ok "no such function" refused "nearest: recurse" --function recurze
ok "no such file" refused "nearest: ranges.c" --file rangse.c

nothing_known() {
	cp plain stripped && strip stripped &&
		smco-trace -m range -o run.trace -- ./stripped >out 2>err &&
		grep -q "^recurse::below" out &&
		tr '\n' ' ' <err | tr -s ' ' |
		grep -q "no debug information: compile it with -g"
}
ok "no debug information: it runs, and it is said" nothing_known

# What it is asked for it looks up among the symbols, which have no types: "zero"
# has its sign, too.
build_symbols() { build_firsts -O0 -g0; }
symbols() {
	local status
	ranges firsts -t unlimited --var begins --var zero --var wide --var limit
	grep -E '^(begins|zero|wide|limit) ' truth >some && mv some truth
	compare "$1"
	status=$?
	smco-report --ranges --csv run.trace | tee table
	[ $status = 0 ] && grep -q '^begins,[^,]*,[^,]*,4 bytes,' table &&
		! grep -q 'no debug' table
}
build_symbols || exit 1
if prereq_WATCHPOINTS; then
	ok "no debug information: what the symbol table has sizes for" symbols exact
else
	ok "no debug information: what the symbol table has sizes for" symbols within
fi
symbols_refused() {
	test_exit 125 smco-trace -m range --var begin -- ./firsts >out 2>err || return 1
	cat err
	[ ! -s out ] && [ "$(wc -l <err)" = 1 ] && grep -q 'nearest: begins' err
}
ok "no debug information, no such symbol: the nearest are named" symbols_refused

not_understood() {
	cat >odd.c <<-EOF
		int odd(int n) {
			int twice = 2 * n;
			__asm__ volatile("jmp 1f; .byte 6, 7; 1:" : "+r"(twice));
			return twice; }
		int main(void) { return odd(4) - 8; }
	EOF
	"${CC:-cc}" -g -o odd odd.c &&
		smco-trace -q -m range -t unlimited -o run.trace -- ./odd &&
		smco-report --ranges --csv run.trace | tee said &&
		grep '^odd::twice,.*its function has data in it' said
}
ok "data in a function: it is left alone, and it is said" not_understood

# broken SECTION AT... - with bytes of it overwritten, from its start
broken() {
	local section=$1 at
	shift
	objcopy --dump-section "$section=part" plain && for at; do
		printf '\377\377\377\377' | dd of=part bs=1 seek="$at" conv=notrunc 2>/dev/null
	done && objcopy --update-section "$section=part" plain broken &&
		smco-trace -q -m range -t unlimited --no-cache -o run.trace -- \
			./broken >out 2>err && grep -q '^recurse::below' out &&
		smco-report run.trace | tr -s '\n ' ' ' | grep -o '[^ ]*/broken: .*'
}
damage_said() {
	local at
	at=$(readelf --debug-dump=info plain 2>/dev/null |
		sed -n 's/^ <1><\([0-9a-f]*\)>.*DW_TAG_subprogram.*/\1/p' | tail -n 3 | head -n 1)
	broken .debug_info $((0x$at)) | tee said
	grep 'broken: 1 part of its debug information is damaged and left out' said || return 1
	broken .debug_info 12 | tee said
	grep 'broken has no integer variables: its debug information is damaged' said
}
ok "damaged debug information: it runs, and how much was left out is said" damage_said

# attached_for SECONDS - 1: not as it should be; 2: nothing was seen in that time
attached_for() {
	./plain "$1" >out &
	local pid=$!
	sleep 0.5
	: >found.txt
	if timeout 60 smco-trace -q -m range -t unlimited -d 2 -o run.trace \
		-p $pid; then
		found >found.txt
	fi
	wait $pid && sort out >truth || return 1
	[ -s found.txt ] || return 2
	compare within || return
	grep -q kinds::i64 found.txt || return 2
}
attached() { # where coming takes long, once more
	attached_for 5
	local status=$?
	[ $status -eq 2 ] || return $status
	attached_for 20
}
ok "attached and left: it goes on, no wrong value" attached

# What is only looked at: what it was before, and what it became.
changed() {
	"$BUILD/t/fixtures/polled" >out &
	local pid=$! smco good=1
	wait_for 60 grep -q ready out
	rm -f run.trace
	smco-trace -q -m range -o run.trace -p $pid &
	smco=$!
	wait_for 60 test -s run.trace && wait_for 60 knows 1 8 &&
		kill -USR1 $pid && wait_for 60 grep -q changed out &&
		kill -TERM $smco && wait $smco && knows 1 100 && good=0
	found
	kill $pid
	return $good
}
# knows SMALLEST LARGEST - of the table
knows() { found | grep -q "^table\[\] $1 $2$"; }
ok "attached: what changes through a pointer is seen to" changed

# Written through pointers, by threads, the kernel, a child: four at a time.
build_pointed() {
	"${CC:-cc}" -g -O0 -o pointed "$SRC/t/fixtures/range/pointed.c" -lpthread &&
		smco-trace -q -m range -o run.trace -- ./pointed >out &&
		smco-report run.trace | tee summary | grep -q "watchpoints: "
}
ok "watchpoints: how many there are is said, or why there are none" build_pointed
# by_watchpoint VARIABLE... - exactly what was written, and by nothing else
by_watchpoint() {
	local vars=()
	for v; do vars+=(--var "$v"); done
	ranges pointed -t unlimited "${vars[@]}" || return 1
	printf '%s\n' "$@" | sort | join - truth >some && mv some truth
	smco-report --ranges --csv --where 'how == "watchpoint"' run.trace | tee table
	[ "$(wc -l <table)" = $(($# + 1)) ] && [ "$(wc -l <truth)" = $# ] && compare exact
}
if prereq_WATCHPOINTS; then
	ok "watchpoints: exact, through pointers, by threads and a child" \
		by_watchpoint number large half still
	ok "watchpoints: exact, bit-fields, written by the kernel" \
		by_watchpoint bits.low bits.high from_kernel two
	in_turns() {
		ARG=enough run_until turns_seen ranges pointed -t unlimited &&
			turns_seen && compare within
	}
	turns_seen() {
		smco-report --ranges --csv --where 'how == "watchpoint"' run.trace | grep -v '^#' | tee table
		[ "$(wc -l <table)" -gt 8 ]
	}
	ok "watchpoints: more than four each have their turn" in_turns
fi

ok "watchpoints: with a limit, no value that it did not have" within pointed -t 10

# Debug registers that stayed would end it with SIGTRAP.
killed() {
	smco-trace -q -m range -t unlimited -o run.trace -- ./pointed 400 >out &
	local pid=$!
	wait_for 60 pgrep -x -P $pid pointed
	sleep 0.2
	[ ! -s out ] && kill -9 $pid
	wait $pid
	wait_for 60 grep -q '^four ' out && [ "$(wc -l <out)" = 11 ]
}
ok "watchpoints: killed, the program goes on to its end" killed

# --watch: members behind pointers, of objects that come and go.
build_behind() {
	"${CC:-cc}" -g -O0 "$@" -o behind "$SRC/t/fixtures/range/behind.c"
}
behind() {
	build_behind "$@" && ranges behind -t unlimited --watch 'server.conf->in->limit' \
		--watch ' server . conf -> level' --var server.count || return 1
	smco-report --ranges --csv run.trace | tee table
	compare exact && grep -q '^server.conf->level,.*behind.c:' table
}
# Even where it is only looked at: nothing that is there no more.
behind_at_times() {
	within behind -t 2 --watch 'server.conf->in->limit' --watch 'server.conf->level'
}
if prereq_WATCHPOINTS; then
	ok "--watch: exactly what was written while the pointers led there" behind
	ok "--watch: DWARF 4" behind -gdwarf-4
fi
build_behind || exit 1
ok "--watch: with a limit, no value that it did not have" behind_at_times
# wrong PATH PATTERN
wrong() {
	test_exit 125 smco-trace -m range --watch "$1" -- ./behind >out 2>err || return 1
	cat err
	[ ! -s out ] && [ "$(wc -l <err)" = 1 ] && grep -q -- "$2" err
}
wrongs() {
	wrong 'sever.conf' "no variable 'sever'" &&
		wrong 'server.conf->inn' "no member 'inn' of struct conf" &&
		wrong 'server.conf.in' "before '.in' is a pointer" &&
		wrong 'server->conf' "before '->conf' is no pointer" &&
		wrong 'server.conf->in' "is no integer" &&
		wrong 'server.conf->in->bits' "is no integer, or a bit-field" &&
		wrong 'server.conf->in->both.one' "no member 'one'" &&
		wrong 'server.conf->name[0]' "write it as"
}
ok "--watch: what is wrong with it is said" wrongs

both() {
	timeout 60 smco-trace -m range,nap -t 20 -o run.trace -- ./plain 2 \
		>out 2>err && grep -q "^ranges " err && grep -q "^unused " err &&
		found >found.txt && sort out >truth && compare within
}
ok "naps and ranges in one run" both

# accuracy_of RUN - against the reference, as Perl's $d; then the expression $2.
accuracy_of() {
	smco-diff --accuracy --json "$1" reference.trace | perl -MJSON::PP -0777 -e '
		our $d = decode_json(<STDIN>); print eval shift, "\n"; die $@ if $@' "$2"
}
accuracy() {
	ranges plain -t unlimited && mv run.trace reference.trace &&
		ranges plain -t unlimited --function kinds && cat found.txt || return 1
	# All of what was watched, and nothing of the rest.
	accuracy_of run.trace 'my ($n, $found, $wrong) = (0, 0, 0);
		for (@{$d->{ranges}}) { my $want = $_->{variable} =~ /^kinds::/ ? 1 : 0;
			$n++; $found += $want; $wrong += $_->{accuracy} != $want }
		my $in = 0; $in += $_->{variables} for @{$d->{decades}};
		join " ", $wrong, $found > 5, $n > $found, $d->{found} == $found,
		$in == $n, abs($d->{accuracy} - $found / $n) < 1e-9,
		abs($d->{decades}[-1]{cumulative} - $d->{accuracy}) < 1e-9' | tee said
	[ "$(cat said)" = "0 1 1 1 1 1 1" ] &&
		smco-diff --accuracy run.trace reference.trace | tee table &&
		grep -q '^10 to 99 ' table && tail -n 1 table | grep -q '^all ' &&
		[ "$(accuracy_of reference.trace '$d->{accuracy}')" = 1 ] &&
		smco-diff --accuracy reference.trace reference.trace | tail -n 1 | grep -q ' 100 %$'
}
ok "smco-diff --accuracy: what was watched of a reference run" accuracy
limited() {
	smco-diff --accuracy reference.trace run.trace | grep -q 'reference was limited' && return 1
	ranges plain -t 10 && smco-diff --accuracy reference.trace run.trace | tee table &&
		tr '\n' ' ' <table | tr -s ' ' | grep -q 'the reference was limited, too'
}
ok "a reference that was limited is said" limited
damaged() {
	{ head -c 64 reference.trace && echo harm && tail -c +65 reference.trace; } >bad
	test_exit 11 smco-diff --accuracy run.trace bad >out 2>err || return 1
	tr '\n' ' ' <out | tr -s ' ' | grep -q 'the reference is damaged: 1 part skipped' &&
		[ "$(wc -l <err)" = 1 ] && grep -q '^smco-diff: bad is damaged: 1 part' err || return 1
	test_exit 11 smco-diff --accuracy --json run.trace bad >out 2>err &&
		tr -d ' \n' <out | grep -q '"damaged_chunks":0,.*"file":"bad",.*"damaged_chunks":1,'
}
ok "smco-diff --accuracy of a damaged trace: it is said, and in the status" damaged
no_ranges() {
	smco-trace -q -t 0 -o nap.trace -- ./plain >out
	test_exit 2 smco-diff --accuracy nap.trace reference.trace >out 2>err
	local status=$?
	cat err
	[ $status = 0 ] && [ ! -s out ] && grep -q 'nap.trace: no ranges.*-m range$' err
}
ok "a trace without ranges: it says how to get them" no_ranges

# The budget is a share of the program's time: one thread cannot have had more
# of it than went by, however often that was looked at.
own_time() {
	"${CC:-cc}" -std=gnu11 -g -O2 "$SRC/t/bench/writes.c" -o writes &&
		timeout 60 smco-trace -q -m range -t 20 -o run.trace -- ./writes "$@" >out &&
		smco-report --json run.trace | perl -MJSON::PP -0777 -e '
			my $o = decode_json(<STDIN>)->{overhead};
			print "ran $o->{run_ns} of $o->{time_ns}\n";
			exit($o->{run_ns} > $o->{time_ns} + 250e6)'
}
ok "the time that the budget is a share of is the program's" own_time direct 1.5

done_testing
