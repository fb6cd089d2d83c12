#!/bin/bash
# -p and -d: watch what runs, for a while, and leave it as it was.
. "$(dirname "$0")/test-lib.sh"
need PTRACE

# A program with something to find; any ancestor-less tracer may attach. It runs
# for a part of the time: of four that always do, smco-trace and these checks get
# a fifth of what CPUs there are.
start() {
	"$FIXTURES/forgetful-server" 600 2 >server.out &
	pids+=($!)
}
pids=()
trap 'kill "${pids[@]}" 2>/dev/null' EXIT
traced() { [ "$(sed -n 's/^TracerPid:\t//p' "/proc/$1/status")" != 0 ]; }
untraced() { ! traced "$1"; }
start
sleep 0.3

ok "-p -d: status 0" test_exit 0 smco-trace -q -o a.trace -d 1.5 -p "${pids[0]}"
ok "the program runs on, untraced" untraced "${pids[0]}"
ok "there is a trace" test_exit 0 smco-report a.trace

attach_until_signal() {
	local smco status
	# A background job of a script ignores SIGINT, and so would ours.
	perl -e '$SIG{INT} = "DEFAULT"; exec @ARGV' \
		smco-trace -o b.trace -p "${pids[0]}" 2>err &
	smco=$!
	wait_for 10 traced "${pids[0]}" || return 1
	sleep 0.3
	kill "-$1" $smco
	wait $smco
	status=$?
	cat err
	[ $status -eq 0 ] && untraced "${pids[0]}" && kill -0 "${pids[0]}" &&
		grep -q smco-report err && smco-report b.trace >/dev/null
}
for signal in INT TERM HUP; do
	ok "SIG$signal leaves it, with a summary" attach_until_signal $signal
done

start
start
# How they are named has nothing to do with naps: counters begin in a third of the
# time.
several() {
	local smco status pid
	smco-trace -q "${monitor[@]}" -o c.trace -p "$@" &
	smco=$!
	for pid in "${pids[@]}"; do
		wait_for 10 traced "$pid" || { kill $smco && return 1; }
	done
	kill $smco
	wait $smco
	status=$?
	for pid in "${pids[@]}"; do
		kill -0 "$pid" && untraced "$pid" || return 1
	done
	return $status
}
monitor=()
ok "several pids with commas" several "${pids[0]},${pids[1]},${pids[2]}"
monitor=(-m counters)
ok "several -p" several "${pids[0]}" -p "${pids[1]}" -p "${pids[2]}"
ok "the output of pgrep" several "$(pgrep -P $$ -x forgetful-serve)"
ok "the output of pidof's kind" several "${pids[*]}"

# Each stands for its own start only: nobody is made to stand before the one
# before it goes on.
in_turn() {
	SMCO_DEBUG=ptrace,stop smco-trace -q -o c.trace -d 0.1 -p "$1" 2>said
	perl -ne '
		$stands{$1} = 1 if /gather: (\d+) interrupt/ && !$started{$1};
		delete $stands{$1}, $started{$1} = 1 if /attached to (\d+):/;
		exit print "together: @{[keys %stands]}\n" if keys %stands > 1;
		END { $? ||= keys %started != 3 }' said
}
ok "they stand one after the other" in_turn \
	"${pids[0]},${pids[1]},${pids[2]}"

# The first asks for a call stack while others are started, soon or late. Its
# answer does not wait for the last of them.
answered() {
	local list try
	start
	list=$(printf '%s,' "${pids[@]}")
	for try in {1..20}; do
		SMCO_DEBUG=ptrace,stop smco-trace -q -o c.trace -d 0.1 \
			-p "${list%,}" 2>said || return
		perl -ne '
			$started++ if /attached to (\d+):/;
			$first //= $1;
			$answers++ if $first && $started < 4 &&
				/act: act $first signal/;
			END { exit !($started == 4 && $answers) }' said &&
			echo "try $try" && return
	done
	cat said
	return 1
}
ok "who was started first has its answer before the last is started" answered

# One is enough for what follows.
kill "${pids[@]:1}"
wait "${pids[@]:1}" 2>/dev/null
pids=("${pids[0]}")

# Of those that compute all the time the second and third are started when the
# budget can pay for that: never, soon, at once.
planted() {
	local pid nr=0
	for pid in "${busy[@]}"; do
		! grep -q 'memfd:smco-trace@' "/proc/$pid/maps" || nr=$((nr + 1))
	done
	[ $nr -eq "$1" ]
}
in_time() {
	local smco pid busy=() status=0
	for _ in 1 2 3; do
		perl -e '1 while kill 0, $ARGV[0]' $$ &
		busy+=($!)
	done
	pids+=("${busy[@]}")
	# One that execs after we have come may owe its start.
	for pid in "${busy[@]}"; do
		wait_for 10 grep -qx perl "/proc/$pid/comm" || return 1
	done
	smco-trace -q -t "$1" -o c.trace -p "${busy[*]}" &
	smco=$!
	for pid in "${busy[@]}"; do
		wait_for 10 traced "$pid" || status=1
	done
	wait_for 20 planted "$2" || status=1
	sleep 0.5
	planted "$2" || status=1
	kill $smco
	wait $smco || status=1
	planted 0 || status=1
	kill "${busy[@]}"
	wait "${busy[@]}" 2>/dev/null
	return $status
}
ok "several that compute: one is started where the budget is for one" \
	in_time 0.01 1
ok "all, as the budget grows" in_time 20 3
ok "all, at once, without one" in_time unlimited 3

# Where processes come and go, what pgrep prints is old.
some_gone() {
	local status
	sh -c 'echo $$' >gone
	smco-trace -q -o d.trace -d 0.3 -p "$(cat gone) ${pids[0]}" 2>err
	status=$?
	cat err
	smco-report d.trace >report
	head -1 report
	[ $status -eq 0 ] && untraced "${pids[0]}" && grep -q "$(cat gone)" err &&
		grep -q "watched for" report
}
ok "one of two pids is gone: said, and the other watched" some_gone
# refused PIDS WHY
refused() {
	local status
	smco-trace -q -o d.trace -d 20 -p "$1" 2>err
	status=$?
	cat err
	[ $status -eq 125 ] && grep -q "$2" err
}
ok "both are gone: an error" refused "$(cat gone),$(sh -c 'echo $$')" "no process "
all_or_nothing() {
	refused "${pids[0]},2" "process 2 " && untraced "${pids[0]}"
}
ok "one of two cannot be watched: said, and the other left alone" all_or_nothing

second_tracer() {
	local smco status
	smco-trace -q -o e.trace -p "${pids[0]}" &
	smco=$!
	wait_for 10 traced "${pids[0]}" || return 1
	smco-trace -q -o f.trace -p "${pids[0]}" 2>err
	status=$?
	kill $smco
	wait $smco
	cat err
	[ $status -eq 125 ] && [ "$(wc -l <err)" -eq 1 ] && grep -q "\b$smco\b" err
}
ok "the second smco-trace says who has it" second_tracer

# Both come at once: one has it, and the other says so.
at_once() {
	local ended other status
	for _ in 1 2 3; do
		smco-trace -q -o e.trace -p "${pids[0]}" 2>err.1 &
		other=$!
		smco-trace -q -o f.trace -p "${pids[0]}" 2>err.2 &
		wait -n -p ended $other $!
		status=$?
		cat err.1 err.2
		[ "$ended" = $other ] && other=$!
		kill $other
		wait $other && [ $status -eq 125 ] &&
			cat err.1 err.2 | grep -q "\b$other\b" || return
	done
	untraced "${pids[0]}"
}
ok "of two at once one does" at_once

# A signal that comes as soon as the program has a tracer: left in order, and the
# trace has its end.
left_at_once() {
	local smco
	for _ in 1 2 3 4 5; do
		smco-trace -q -o e.trace -p "${pids[0]}" 2>err &
		smco=$!
		until grep -q "TracerPid:.$smco$" "/proc/${pids[0]}/status"; do
			kill -0 $smco || return
		done
		kill $smco
		wait $smco || return
		smco-report e.trace >report || return
	done
	untraced "${pids[0]}"
}
ok "a signal right after it has come" left_at_once

# -d with a command: it runs on when we leave.
runs_on() {
	local status
	# shellcheck disable=SC2016
	smco-trace -q -o g.trace -d 0.5 -- sh -c 'echo $$ >pid
		while [ ! -e go ]; do sleep 0.05; done; touch went-on'
	status=$?
	untraced "$(cat pid)" || return 1
	touch go
	wait_for 5 test -e went-on && [ $status -eq 0 ]
}
soon "-d with a command leaves it running" runs_on
soon "-d longer than the command: the command's status" \
	test_exit 4 smco-trace -q -o h.trace -d 60 -- sh -c 'exit 4'
# Not before we are there, however long that takes, nor in the middle of it.
# shellcheck disable=SC2016
ends='until grep -q "^TracerPid:.*[1-9]" /proc/$$/status; do sleep 0.05; done; sleep 1'
# shellcheck disable=SC2016
soon "-p of a program that ends by itself: status 0" sh -c \
	'sh -c "$1" & exec smco-trace -q -o i.trace -p $!' - "$ends"
told

# What it used before us is nothing that we may have a share of. One thread has
# no more processor time than there is time.
lived() {
	perl -e 'until ((times)[0] > 1.5) { $n++ for 1 .. 1e5 }
		open F, ">", "burnt"; sleep 600' &
	pids+=($!)
	wait_for 60 test -e burnt &&
		smco-trace -q -o j.trace -d 0.5 -p "${pids[-1]}" || return 1
	smco-report --json j.trace >j.json
	perl -MJSON::PP -0777 -ne '
		my $o = decode_json($_)->{overhead};
		print "$o->{run_ns} ns used in $o->{time_ns}\n";
		exit($o->{run_ns} > $o->{time_ns} + 7e8)' j.json
}
ok "what was used before the attach does not count" lived
first_gone() { # nobody has the process's number as his own any more
	"$FIXTURES/first-thread-gone" 8 &
	local pid=$!
	wait_for 10 grep -q '^State:.*zombie' /proc/$pid/status &&
		test_exit 0 smco-trace -q -o f.trace -d 0.5 -p $pid &&
		test_exit 0 smco-trace -q -o f.trace -p $pid &&
		smco-report f.trace && test_exit 3 wait $pid
}
soon "one whose first thread has ended" first_gone
# Memory, files and descriptors are had by its other thread's number.
watched_first_gone() {
	"$FIXTURES/first-thread-gone" 4 &
	local pid=$!
	wait_for 10 grep -q '^State:.*zombie' /proc/$pid/status &&
		test_exit 0 smco-trace -q -t 50 -m nap,range --nap 1s --mechanism=mprotect -o f.trace -p $pid &&
		smco-report f.trace && test_exit 3 wait $pid || return 1
	smco-report --json f.trace | perl -MJSON::PP -0777 -ne '
		my $d = decode_json($_);
		my @unused = grep { $_->{size} >= 1 << 20 } @{$d->{naps}};
		my ($i) = grep { $_->{variable} eq "work::i" } @{$d->{ranges}};
		print scalar(@unused), " naps of the block, i from $i->{smallest} to $i->{largest}\n";
		exit !(@unused == 1 && $i->{largest} > 5 && $i->{largest} <= 40)'
}
soon "its memory and variables are watched, too" watched_first_gone
told

counts() { smco-report --json "$1" | grep -q '"time_ns":[1-9][0-9]*,"run_ns"'; }
# What it stands at a stop signal is no time in which we may spend, and there is
# next to nothing to look at: some wake-ups a second instead of fifty.
wakes() { sed -n 's/^voluntary_ctxt_switches:\s*//p' "/proc/$1/status"; }
stood() {
	local program smco woken
	"$FIXTURES/many_threads" 3 >k.out &
	program=$!
	pids+=("$program")
	wait_for 20 test -s k.out || return 1
	smco-trace -q -t 100 -o k.trace -p "$program" &
	smco=$!
	# Not before its time begins to count.
	wait_for 20 counts k.trace || return 1
	kill -STOP "$program"
	sleep 1
	woken=$(wakes $smco)
	sleep 2
	woken=$(($(wakes $smco) - woken))
	kill -CONT "$program"
	sleep 0.2
	kill $smco
	wait $smco || return 1
	smco-report --json k.trace >k.json
	perl -MJSON::PP -0777 -ne '
		my $o = decode_json($_)->{overhead};
		print "$o->{run_ns} ns its own of $o->{time_ns}\n";
		exit($o->{run_ns} > $o->{time_ns} - 2e9)' k.json || return 1
	echo "woken $woken times"
	[ "$woken" -lt 40 ]
}
ok "nor what it is stopped by signals, in which it is left alone" stood

done_testing
