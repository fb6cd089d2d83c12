#!/bin/bash
# The tables of smco-report: which rows, in which order, in which form; several
# traces; suppressions.
# shellcheck source=t/test-lib.sh
. "$(dirname "$0")/test-lib.sh"

export LC_ALL=C.UTF-8
unset PAGER SMCO_PAGER COLUMNS
"$BUILD/t/unit/u-summary-text" s.trace || exit 1

# csv COLUMN ARGUMENT... - that column of the table, one line a row.
csv() {
	local column=$1
	shift
	smco-report --csv "$@" >table || return 1
	perl -e 'my $want = shift; my ($nr, @cells);
		while (<STDIN>) { s/\r\n$//; @cells = ();
			push @cells, defined $1 ? $1 =~ s/""/"/gr : $2
				while /\G(?:"((?:[^"]|"")*)"|([^,]*))(?:,|$)/g;
			if ($. == 1) { ($nr) = grep { $cells[$_] eq $want }
				0 .. $#cells; defined $nr or exit 1; next }
			print "$cells[$nr]\n" }' "$column" <table
}
# rows WANT COLUMN ARGUMENT... - these values, blank separated, in this order.
rows() {
	local want=$1 got
	shift
	got=$(csv "$@" s.trace) || return 1
	got=$(echo "$got" | tr '\n' ' ')
	[ "$got" = "$want " ] || { echo "got $got" && return 1; }
}
usage() {
	local pattern=$1
	shift
	test_exit 2 smco-report "$@" s.trace >out 2>err || return 1
	cat err
	[ ! -s out ] && [ "$(wc -l <err)" = 1 ] && grep -q -- "$pattern" err
}

GB=67108864 MB=1048576
ok "naps, largest first" rows "$GB $GB $MB" size --naps --top 3
ok "by start, latest first" rows "22000000000 5000000000" start_ns \
	--naps --sort start --top 2
ok "smallest first" rows "1000000000 5000000000" start_ns --naps \
	--sort -start --top 2
ok "by a text" rows "freed freed never" ended --naps --sort ended --top 3
ok "a size" rows "$GB $GB" size --naps --where 'size > 1M'
ok "a site" rows "never read" ended --naps --where 'site ~ "^cache_fill"'
ok "any frame of it" rows "$GB $GB" size --naps --where \
	'site ~ "handle_request" && !(site ~ "buffer_grow")'
ok "who ended it" rows "$GB" size --naps \
	--where 'ended_by ~ "cache_scan" && ended == "read"'
ok "a system call" rows "write" syscall --naps --where 'syscall == "write"' \
	--top 1
ok "a process" rows "$GB $GB" size --naps --process 4711
ok "from" rows "39200000000" length_ns --naps --from 21.5s
ok "to" rows "20000000000" length_ns --naps --to 2
ok "from and to" rows "" length_ns --naps --from 100 --to 200
ok "sites" rows "2 12 1 1" naps --sites
ok "sites by naps" rows "12 2" naps --sites --sort naps --top 2
ok "sites by a condition" rows "17" allocations --sites --where 'unused > 0'
ok "overhead" rows "45296167 48109966" overhead_ppb --overhead
ok "overhead of a time" rows "61200000000" time_ns --overhead --from 31
ok "overhead above a share" rows "61200000000" time_ns --overhead \
	--where 'overhead > 4.6%'
ok "events" rows "process process process process nap" event --events --top 5
ok "events of a process" rows "process process" event --events \
	--process 4712 --where 'event == "process"'
ok "events of a time" rows "nap" event --events --from 3.5 --to 4.5
ok "events, sorted" rows "61200000000 61200000000" time_ns --events \
	--sort time --top 2
ok "events of the supervisor" rows "process" event --events --thread 0 --top 1
ok "events of no thread" rows "" event --events --thread 77

ok "unknown column" usage "there is no column 'sise' (" --naps --where 'sise > 1'
ok "where the mistake is" usage 'character 8: ' --naps --where 'size > 5s'
ok "unknown sort key" usage "no column nothing (" --naps --sort nothing
ok "sort key of the summary" usage "no column length (" --sort length
ok "two tables" usage 'not --naps and --sites' --naps --sites
ok "two forms" usage 'one of --json, --csv and --juwel' --csv --json
ok "--thread of naps" usage 'use --events, --juwel, --counters, --samples or --flamegraph' --naps --thread 1
ok "--to before --from" usage 'must be after' --from 2 --to 1
ok "a time that is none" usage "'x' is not a time" --from x
ok "--juwel cannot be sorted" usage '--events has' --juwel --sort time

summary() {
	smco-report --where 'site ~ "^cache_fill"' s.trace >out &&
		grep -q 'in 2 naps of at least 2 s at 1 allocation' out &&
		grep -q '^ *14 other naps not selected' out &&
		! grep -q '^2 ' out
}
ok "the summary of what was selected" summary
by_naps() {
	smco-report --sort naps s.trace | grep -A 4 '^[12] ' >out &&
		sed -n 3p out | grep -q buffer_grow
}
ok "the summary's sites sorted" by_naps
by_allocations() {
	smco-report --sort -byte_seconds s.trace | grep '^1 ' | grep -q 'MiB·s'
}
ok "the summary's sites reversed" by_allocations

text() {
	smco-report --naps --width 80 s.trace >out && head -n 1 out | grep -q '^ *pid .* site$' &&
		! grep -q '.\{81,\}' out && [ "$(wc -l <out)" = 17 ]
}
ok "a table as text" text
# one_nap WIDTH - the table of one nap, of 64 MiB and 39.2 s, is what is read.
one_nap() {
	smco-report --naps --sort length --where 'length == 39.2s' --width "$1" s.trace >out
	diff -u - out
}
ok "what has no room on a line is on the next one" one_nap 60 <<'EOF'
    pid      size      start     length  ended
    site
   4711    64 MiB       22 s     39.2 s  never
    cache_fill src/cache.c:212 < handle_request src/cache.c…
EOF
ok "on as many as it takes" one_nap 16 <<'EOF'
    pid
        size
        start
       length
    ended
site
   4711
      64 MiB
         22 s
       39.2 s
    never
cache_fill src/…
EOF
ok "numbers are not cut" one_nap 4 <<'EOF'
 pid
size
…
…
end…
site
4711
…
22 s
…
nev…
cac…
EOF
"$BUILD/t/unit/u-html" 127 9 all.trace >/dev/null || exit 1
# What is too long for its column moves the rest, or has a line to itself.
ranges_80() {
	smco-report --ranges --width 80 all.trace >out
	diff -u - out
}
ok "at 80 columns each range is there with all of its columns" ranges_80 <<'EOF'
variable                         smallest      largest  type
    how          watched  finding   declared
fill::size                             -5           99  </script><script>docume…
    sensors            -  negative  src/cache.c:9
turn::<img src=x onerror="document.title='pwned'">'\&amp;
                                       -5           99  int
    sensors            -  -         src/cache.c:7
EOF
# At no width is a column lost, nor a line too long.
all_columns() {
	local table width column
	for table in naps sites ranges counters phases phase-counters phase-ranges samples overhead; do
		smco-report --$table --width 0 all.trace | head -n 1 | tr -s ' ' '\n' | grep . >columns
		for width in 200 100 80 60 40 30; do
			smco-report --$table --width $width all.trace >out || return 1
			! grep ".\{$((width + 1)),\}" out || return 1
			while read -r column; do
				grep -qw "$column" out || { echo "--$table, $width: no $column" && return 1; }
			done <columns
		done
	done
}
ok "at no width is a column lost" all_columns
more() { smco-report --naps --top 2 s.trace | tail -n 1 | grep -q '14 more (--top)'; }
ok "what --top cuts off is said" more
none() { smco-report --naps --where 'size > 1T' s.trace | tail -n 1 | grep -qx none; }
ok "no row" none
# Also no head of a table: what has none is not shown at all.
nothing() {
	local table form
	for table in phases phase-counters phase-ranges ranges counters; do
		for form in --color=never --json --csv; do
			test_exit 9 smco-report --$table $form s.trace >out 2>err &&
				[ ! -s out ] && [ "$(wc -l <err)" = 1 ] || return 1
		done
	done
}
ok "a table that the trace has nothing for" nothing
json() {
	smco-report --naps --json --top 1 s.trace | perl -MJSON::PP -e 'local $/;
		my $d = JSON::PP->new->decode(<STDIN>);
		my $r = $d->{rows}[0];
		exit !($d->{schema} == 1 && $d->{section} eq "naps" &&
			@{$d->{rows}} == 1 && $r->{size} == 67108864 &&
			$r->{addr} eq "0x7f0000000000" && !$r->{syscall} &&
			$r->{length_ns} == 39200000000)'
}
ok "a table as JSON" json
no_rows() {
	smco-report --naps --json --where 'size > 1T' s.trace |
		perl -MJSON::PP -e 'local $/; exit @{decode_json(<STDIN>)->{rows}}'
}
ok "JSON without rows" no_rows
juwel() {
	smco-report --juwel s.trace >out && [ "$(wc -l <out)" = 31 ] &&
		head -n 1 out | grep -qx '5 0 4294967295 0 4711 6712000001000000ffffffff00000000' &&
		! grep -qv '^[0-9]* [0-9]* [0-9]* [0-9]* [0-9]* [0-9a-f]*$' out
}
ok "the plain records" juwel
juwel_some() { [ "$(smco-report --juwel --from 3.5s --to 7.5s s.trace | wc -l)" = 1 ]; }
ok "some of the plain records" juwel_some
full() { test_exit 1 smco-report "$@" s.trace >/dev/full 2>err && grep -q 'No space' err; }
for form in --naps "--naps --json" --csv --juwel; do
	# shellcheck disable=SC2086 # words
	ok "$form to a full disk" full $form
done

# Two runs, the second one as the first but for its name.
cp s.trace t.trace
twice() {
	smco-report s.trace t.trace >out || return 1
	grep -q '^s.trace: ./server --port 7000: ran 61.2 s' out &&
		grep -q '^t.trace: ./server' out &&
		grep -q '28 462 stops, the longest 1.2 ms' out &&
		grep -q '^unused *128 MiB in 2 blocks' out &&
		grep -q '34 allocations of 544 MiB, 4 naps of 2 blocks' out &&
		grep -q '240 events' out &&
		grep -q 'in cache_scan src/cache.c:301' out && [ "$(grep -c '^[1-9] ' out)" = 4 ]
}
ok "two traces are one" twice
twice_json() {
	smco-report --json s.trace t.trace | perl -MJSON::PP -e 'local $/;
		my $d = JSON::PP->new->decode(<STDIN>);
		my %stacks = map { $_->{id} => $_ } @{$d->{stacks}};
		my $bad = grep { $_->{alloc_stack} && !$stacks{$_->{alloc_stack}} }
			@{$d->{naps}};
		exit !(@{$d->{files}} == 2 && $d->{files}[1]{file} eq "t.trace" &&
			@{$d->{naps}} == 32 && !$bad && @{$d->{sites}} == 4 &&
			$d->{sites}[0]{unused}{naps} == 4 &&
			$d->{overhead}{stops} == 28462 &&
			@{$d->{processes}} == 8 && $d->{processes}[4]{file} == 1)'
}
ok "two traces as JSON" twice_json
twice_events() { [ "$(smco-report --juwel s.trace t.trace | wc -l)" = 62 ]; }
ok "the records of two traces" twice_events

printf '# known\nleak:buffer_*\n' >known.txt
suppressed() {
	smco-report --suppressions known.txt s.trace >out || return 1
	! grep -q 'buffer_grow' out && grep -q 'in 4 naps' out &&
		grep -q '^ *12 naps with 30 MiB·s suppressed' out
}
ok "suppressions" suppressed
suppressed_json() {
	smco-report --json --suppressions known.txt s.trace |
		perl -MJSON::PP -e 'local $/; my $d = decode_json(<STDIN>);
			exit !($d->{suppressed}{naps} == 12 && @{$d->{naps}} == 4)'
}
ok "suppressions in JSON" suppressed_json
echo 'race:x' >bad.txt
ok "a line that is no suppression" usage "bad.txt:1: 'race:x' is no suppr" \
	--suppressions bad.txt
no_file() { test_exit 9 smco-report --suppressions none.txt s.trace 2>err && grep -q none.txt err; }
ok "no such suppressions" no_file

# The manual lists the columns of each table: all of them, in their order, and no
# others.
columns() {
	sed 's/\\-/-/g' "$SRC/reports/smco-report.1" |
		sed -n "/^\.SS \"--$1\"/,/^\.S[SH] [^\"]*\"*[A-Z]/{/^\.SS \"--$1\"/!{/^\.S[SH]/q};p}" |
		sed -n 's/^\.B \([a-z_]*\)$/\1/p' >listed
	smco-report --csv "--$1" all.trace | head -n 1 | tr -d '\r' |
		tr ',' '\n' | sed 's/_ns$//; s/_ppb$//' >names
	[ -s names ] && diff names listed
}
tables=$(smco-report --help | sed -n '/^What, instead/,/^Which/s/^  *--\([a-z-]*\)  .*/\1/p' | grep -v juwel)
ok "there are ten tables" test "$(echo "$tables" | wc -l)" = 10
for table in $tables; do
	ok "the columns of --$table are those in the manual" columns "$table"
done

done_testing
