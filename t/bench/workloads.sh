# shellcheck shell=bash
# The workloads: for NAME, prepare_NAME is called once in the bench's scratch
# directory, and run_NAME with the supervisor's command line (or nothing) for one
# run. A run appends one line to the file "lap" as t/bench/lap does. Sizes are
# for about five to ten seconds a run here; the environment can change them.

lap() { "$BUILD/t/bench/lap" lap "$@" >>out 2>>err; }

# fetch_source PACKAGE - Debian's source of it, to apt-src. The private apt state
# leaves the machine's alone.
fetch_source() {
	local apt=$PWD/apt f
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" \
		"$apt/parts" apt-src
	for f in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
		case $f in
		*.list) sed -n 's/^deb /deb-src /p' "$f" ;;
		esac
	done >"$apt/sources.list" 2>/dev/null
	for f in /etc/apt/sources.list.d/*.sources; do
		[ ! -e "$f" ] || sed 's/^Types:.*/Types: deb-src/' "$f" \
			>"$apt/parts/${f##*/}"
	done
	local options=(-q -o "Dir::Etc::SourceList=$apt/sources.list"
		-o "Dir::Etc::SourceParts=$apt/parts"
		-o "Dir::State::Lists=$apt/lists" -o "Dir::Cache=$apt/cache")
	# One source without source packages must not spoil the others.
	[ -e "$apt/updated" ] || apt-get "${options[@]}" update || :
	touch "$apt/updated"
	(cd apt-src && apt-get "${options[@]}" source --download-only "$1")
}
# unpack_source PACKAGE DIRECTORY
unpack_source() {
	mkdir -p "$2" && tar -C "$2" -xf apt-src/"$1"_*.orig.tar.*[z2] \
		--strip-components=1
}

# ------------------------------------------------------------------- bzip2 --
# Built as a user would to debug it.
prepare_bzip2() {
	[ -e mixed ] || "$SRC/t/bench/mixed-file.pl" "${BENCH_BZIP2_MB:-50}" \
		>mixed
	if [ ! -x bzip2 ]; then
		if fetch_source bzip2 >fetch.log 2>&1 &&
			unpack_source bzip2 src >>fetch.log 2>&1 &&
			make -C src CFLAGS="-g -O2 -D_FILE_OFFSET_BITS=64" \
				bzip2 >>fetch.log 2>&1; then
			cp src/bzip2 bzip2
			NOTES+=("bzip2: $(./bzip2 --help 2>&1 | sed -n 's/.*Version \([0-9.]*\),.*/\1/p;q') from Debian's source, -g -O2")
		else
			cp "$(type -P bzip2)" bzip2
			NOTES+=("bzip2: the installed one, its source could not be fetched")
		fi
	fi
	[ -e mixed.bz2 ] || ./bzip2 -k9 mixed
}
run_bzip2() { lap "$@" ./bzip2 -9c mixed; }
prepare_bunzip2() { prepare_bzip2; }
run_bunzip2() { lap "$@" ./bzip2 -dc mixed.bz2; }

# -------------------------------------------------------------------- grep --
# A tree of files is searched, from memory or (grep-cold) from the disk.
: "${TREE:=/usr/share}"
grep_tree() { "$@" -rcE '(static|struct) [a-z_]+[0-9]{2,}|colou?r$' "$TREE"; }
build_grep() { # DIRECTORY FLAGS [LDFLAGS] - to DIRECTORY/grep
	(cd "$1" && FORCE_UNSAFE_CONFIGURE=1 ./configure --disable-nls -q &&
		make CFLAGS="-g $2" LDFLAGS="$3") && cp "$1/src/grep" "$1/grep"
}
prepare_grep() {
	[ -x grep ] || { fetch_source grep && unpack_source grep grep.src &&
		build_grep grep.src -O2 && cp grep.src/grep grep; } >fetch.log 2>&1 ||
		return
	NOTES+=("grep: built from Debian's source, -g -O2; $TREE: $(
		du -sm "$TREE" | cut -f1) MB")
}
run_grep() { # 2: some files cannot be read
	grep_tree lap "$@" ./grep || [ $? -eq 2 ]
}
prepare_grep-cold() { prepare_grep; }
run_grep-cold() {
	sync && echo 3 >/proc/sys/vm/drop_caches && run_grep "$@"
}

# ------------------------------------------------------------------- redis --
# The server is watched, the load is not. Its binary is also in redis-tools,
# under a name by which it knows what to be.
prepare_redis() {
	ln -sf "$(command -v redis-server || command -v redis-check-rdb)" \
		redis-server
	REDIS_PORT=$((20000 + $$ % 20000))
}
redis_cpu() { # s of CPU time that the server has used
	redis-cli -p "$REDIS_PORT" info cpu | tr -d '\r' |
		awk -F: '/^used_cpu_(sys|user):/ { s += $2 } END { print s }'
}
run_redis() {
	local server begin end cpu
	"$@" ./redis-server --port "$REDIS_PORT" --save '' --appendonly no \
		--bind 127.0.0.1 --daemonize no >>out 2>>err &
	server=$!
	until redis-cli -p "$REDIS_PORT" ping >/dev/null 2>&1; do
		kill -0 $server 2>/dev/null || return 1
		sleep 0.05
	done
	redis-benchmark -p "$REDIS_PORT" -q -t set -n 50000 -r 50000 -d 10000 \
		-c 20 >>out
	cpu=$(redis_cpu)
	begin=$(date +%s.%N)
	redis-benchmark -p "$REDIS_PORT" -q -t set,get -r 50000 -d 10000 -c 20 \
		-n "${BENCH_REDIS_REQUESTS:-250000}" >>out
	end=$(date +%s.%N)
	cpu="$cpu $(redis_cpu)"
	redis-cli -p "$REDIS_PORT" shutdown nosave >>out 2>&1
	wait $server
	# shellcheck disable=SC2086 # two words
	perl -e 'printf "%.6f %.6f 0 0 %.6f\n", ($ARGV[1] - $ARGV[0]) x 2,
		$ARGV[3] - $ARGV[2]' "$begin" "$end" $cpu >>lap
}

# ------------------------------------------------------- python3 and sqlite --
prepare_python() {
	[ -e text ] || "$SRC/t/bench/mixed-file.pl" "${BENCH_PYTHON_MB:-96}" >text
}
run_python() { lap "$@" /usr/bin/python3 "$SRC/t/bench/index.py" text; }

prepare_sqlite() {
	cat >fill.sql <<-END
	PRAGMA journal_mode = OFF;
	PRAGMA synchronous = OFF;
	PRAGMA cache_size = -262144;
	CREATE TABLE t (id INTEGER PRIMARY KEY, k INTEGER, v BLOB);
	WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n
		LIMIT ${BENCH_SQLITE_MB:-1024} * 1000)
	INSERT INTO t SELECT i, (i * 7919) % 1000003, zeroblob(1000) FROM n;
	CREATE INDEX by_k ON t (k);
	END
	for _ in 1 2 3; do
		cat >>fill.sql <<-END
		SELECT count(*), sum(length(v)) FROM t WHERE k % 3 = 0;
		SELECT sum(k) FROM t WHERE id IN (SELECT id FROM t
			WHERE k BETWEEN 1000 AND 400000);
		END
	done
}
run_sqlite() {
	rm -f db
	lap "$@" sqlite3 -batch -init fill.sql db .quit
}

# ---------------------------------------------------------------- fixtures --
prepare_small-malloc() { :; }
run_small-malloc() {
	lap "$@" "$BUILD/t/fixtures/small-malloc" "${BENCH_MALLOC_M:-60}"
}
prepare_touch-4g() { :; }
run_touch-4g() {
	lap "$@" "$BUILD/t/fixtures/touch-4g" "${BENCH_TOUCH_GIB:-4}" \
		"${BENCH_TOUCH_M:-200}"
}
prepare_many-blocks() { :; }
run_many-blocks() {
	lap "$@" "$BUILD/t/fixtures/many-blocks" 100000 "${BENCH_BLOCKS_M:-120}"
}
# Nothing but system calls.
prepare_dd() { :; }
run_dd() {
	lap "$@" /bin/dd if=/dev/zero of=/dev/null bs=512 \
		count="${BENCH_DD_COUNT:-10000000}"
}
# Small reads beside blocks that are guarded: OPTIONS=--mechanism=mprotect.
prepare_reads() { :; }
run_reads() {
	lap "$@" "$BUILD/t/fixtures/guard_reads" 0 \
		"${BENCH_READS:-20000000}"
}
# What it costs to start and stop: not part of the others' figures.
prepare_true() { :; }
run_true() { lap "$@" /bin/true; }
