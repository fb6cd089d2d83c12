#!/bin/bash
# kill -9 of smco-trace at a random moment, attached to redis-server under
# load: it answers afterwards and every byte is what it should be.
# SMCO_TEST_KILLS=200 for more.
. "$(dirname "$0")/test-lib.sh"
need PTRACE
# Its binary is also in redis-tools, under another name.
server=$(command -v redis-server || command -v redis-check-rdb) || {
	echo "1..0 # SKIP no redis-server here"
	exit 0
}
ln -s "$server" redis-server

# Sets values of up to 40 KB, gets others and compares every byte, until told
# to end; then all of them once more.
cat >client.pl <<'END'
use strict;
use IO::Socket::UNIX;
my $s = IO::Socket::UNIX->new(Peer => shift) or die "connect: $!";
my (@generation, $n);
sub command {
	my $c = "*" . @_ . "\r\n";
	$c .= "\$" . length($_) . "\r\n$_\r\n" for @_;
	print $s $c or die "write: $!";
	$s->flush;
	my $line = <$s> // die "the server has hung up after $n commands";
	$n++;
	return $line unless $line =~ /^\$(-?\d+)/;
	return undef if $1 < 0;
	my $v = '';
	my $want = $1 + 2;
	while (length $v < $want) {
		read($s, $v, $want - length $v, length $v) or die "read: $!";
	}
	return substr $v, 0, -2;
}
sub value {
	my ($key) = @_;
	return "$key $generation[$key];" x (1 + $key * 7919 % 4000);
}
sub verify {
	my ($key) = @_;
	my $got = command('GET', "k$key");
	die "key $key differs after $n commands" if $got ne value($key);
}
srand 1;
for my $key (0 .. 799) {
	$generation[$key] = 0;
	command('SET', "k$key", value($key)) =~ /OK/ or die "SET";
}
open my $ready, '>', 'client.ready' or die;
until (-e 'client.end') {
	for (1 .. 50) {
		my $key = int rand 800;
		$generation[$key]++;
		command('SET', "k$key", value($key)) =~ /OK/ or die "SET";
		verify(int rand 800);
	}
}
verify($_) for 0 .. 799;
print "EXIT-SUCCESS after $n commands\n";
END

traced() { [ "$(sed -n 's/^TracerPid:\t//p' "/proc/$1/status")" != 0 ]; }

# survives KILLS OPTIONS... - so many deaths, at most a second into each run
survives() {
	local kills=$1 i server client smco died=0 attached=0
	shift
	rm -f socket client.end client.ready smco.err
	./redis-server --port 0 --unixsocket "$PWD/socket" --save '' \
		--appendonly no >server.out 2>&1 &
	server=$!
	wait_for 10 test -S socket || return 1
	perl client.pl socket >client.out 2>&1 &
	client=$!
	wait_for 20 test -e client.ready || return 1
	for ((i = 0; i < kills && !died; i++)); do
		smco-trace -q -t 50 --nap 20ms -o t.trace "$@" -p $server \
			2>>smco.err &
		smco=$!
		# One in three while it attaches, maybe.
		[ $((i % 3)) = 0 ] || wait_for 10 traced $server
		sleep "0.$((RANDOM % 6))$((RANDOM % 10))$((RANDOM % 10))"
		traced $server && attached=$((attached + 1))
		kill -9 $smco
		wait $smco 2>/dev/null
		kill -0 $server && kill -0 $client || died=1
	done
	# The next one finds nothing in its way.
	[ $died = 1 ] || smco-trace -q -o t.trace "$@" -d 0.5 -p $server ||
		died=1
	touch client.end
	wait $client || died=1
	cat client.out smco.err
	echo "attached at $attached of $i deaths"
	kill -0 $server && ! traced $server || died=1
	[ $died = 0 ] || { echo "death $i"; tail -n 40 server.out; }
	kill $server
	wait $server
	[ $died = 0 ] && [ $attached -gt $((kills / 3)) ] && grep -q EXIT-SUCCESS client.out
}
kills=${SMCO_TEST_KILLS:-3}
ok "redis-server under load" survives "$kills"
for mechanism in uffd mprotect; do
	ok "with $mechanism guards" survives "$kills" --mechanism=$mechanism
done

done_testing
