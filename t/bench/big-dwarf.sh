#!/bin/bash
# t/bench/big-dwarf.sh OUT [MB] - makes a program with about so many MB (100) of
# debug information, the same every time with one compiler: a unit of 120
# functions with blocks, inlined calls, statics and many types, as C++ programs
# have them, linked again and again under other names. OUT [TIMES] runs all
# functions, those of three units so many times (2000).
set -e
out=$(realpath -m "$1") mb=${2:-100}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
perl -e '
	srand 1;
	sub any { int rand $_[0] }
	my @types = ("int", "unsigned", "long", "short", "unsigned char", "char");
	for my $s (0 .. 799) {
		print "enum kind$s { ", join(", ", map { "K${s}_$_" } 0 .. 5), " };\n";
		print "struct part$s { struct part$s *next_of_$s; ", join("", map { "$types[any 6] member${s}_$_; " }
			0 .. 3 + any 8), "enum kind$s kind; };\n";
	}
	print "static $types[any 6] counter$_;\nstruct part$_ table$_\[8];\n" for 0 .. 59;
	print "struct part$_ *seen$_;\n" for 0 .. 799;
	for my $f (0 .. 119) {
		my ($s, $t) = (any(60), any(60));
		my $how = $f % 4 ? "__attribute__((noinline)) " : "static inline ";
		print "${how}int work$f(int first, unsigned second, struct part$s *part)\n{\n";
		print "\tint sum = first; unsigned mix = second * ", 3 + any(1000), ";\n";
		for my $l (0 .. 2 + any 3) {
			print "\tfor (int i$l = 0; i$l < (first & 7); i$l++) {\n";
			print "\t\tlong step$l = sum + i$l * (long)mix; short low$l = (short)step$l;\n";
			print "\t\tpart->member${s}_", any(3), " += low$l; mix ^= (unsigned)step$l >> 3;\n";
			print "\t\tif (mix & ", 1 << any(8), ") { counter$t += low$l; table$t\[i$l].member${t}_1 = low$l; }\n";
			print "\t\tsum += (int)(step$l >> ", 1 + any(5), ");\n\t}\n";
		}
		print "\tsum += work", $_, "(sum & 3, mix, (void *)table$f);\n"
			for grep { $f % 4 && $f % 3 == 0 } 4 * int(($f - 1) / 4);
		print "\treturn sum ^ (int)mix;\n}\n" if $f < 60;
		print "\treturn sum - (int)mix;\n}\n" if $f >= 60;
	}
	print "int all(int n)\n{\n\tint sum = 0;\n";
	print "\tsum += work$_(n + $_, (unsigned)sum, (void *)table0);\n" for 0 .. 119;
	print "\treturn sum;\n}\n"' | sed 's/(void \*)table[0-9]*)/room)/; s/^struct part0 table0/static char room_[4096] __attribute__((aligned(16)));\nstatic void *room = room_;\n&/' >unit.c
"${CC:-gcc}" -g -O2 -w -c unit.c -o unit.o
one=$(size -A unit.o | awk '/^\.debug_/ { n += $2 } END { print n }')
nr=$(((mb * 1000000 + one - 1) / one))
{
	for ((i = 0; i < nr; i++)); do echo "int u${i}_all(int);"; done
	echo '#include <stdio.h>'
	echo '#include <stdlib.h>'
	echo 'int main(int argc, char **argv) { int sum = 0, times = argc > 1 ? atoi(argv[1]) : 2000;'
	echo 'for (int i = 0; i < times; i++) sum += u0_all(i) + u1_all(i) + u2_all(i);'
	for ((i = 0; i < nr; i++)); do echo "sum += u${i}_all(1);"; done
	printf '%s\n' 'printf("%d\n", sum); return 0; }'
} >main.c
for ((i = 0; i < nr; i++)); do objcopy --prefix-symbols="u${i}_" unit.o "u$i.o"; done
"${CC:-gcc}" -g -O2 -w main.c u*.o -o "$out"
echo "$nr units of $one bytes"
