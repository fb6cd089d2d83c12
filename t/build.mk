# Targets around the build: dependencies, tests, fuzzing, linting, benches,
# installation. The ones a user types run t/deps.sh first and make again after
# it, since the Makefile may look at tools that were not there before.

UNIT_TESTS := $(UNIT)
SHELL_TESTS := $(sort $(wildcard t/t[0-9]*.sh))
FUZZ := $(sort $(wildcard t/fuzz/fuzz-*.c))
FUZZ_BIN := $(FUZZ:t/fuzz/%.c=$(O)/t/fuzz/%)
FUZZ_SECONDS ?= 20
# One more than there are CPUs: a test waits a fifth of its time.
PROVE_JOBS ?= $(shell expr $(JOBS) + 1)
# --comments as well shows what the failed ones had to say.
PROVE_FLAGS ?= --failures
# Machine-written or generated files are nobody's style.
C_FILES = $(shell git ls-files -co --exclude-standard '*.c' '*.h' | \
	grep -v vmlinux.h)
SH_FILES = $(shell git ls-files -co --exclude-standard '*.sh') .ci/run

# The tests need not make their drivers (t/engine-lib.sh): that is done.
RUN_PROVE = env SMCO_TEST_BUILT=1 O=$(O) CC="$(CC)" SMCO_VERSION=$(VERSION) \
	$(PROVE) $(PROVE_FLAGS) -j$(PROVE_JOBS) --exec t/run.sh

.PHONY: check-run check-unit asan fuzz-run demo-run bench-run

deps:
	@t/deps.sh build check

check:
	@t/deps.sh build check
	+$(Q)$(MAKE) --no-print-directory check-run

# One prove for all, so that its last lines are the sum of everything. The short
# tests last: then no long one is left for a single CPU.
check-run: tools unit fixtures
	$(Q)$(RUN_PROVE) $(SHELL_TESTS) $(UNIT_TESTS)

check-unit: unit fixtures
	$(Q)$(RUN_PROVE) $(UNIT_TESTS)

# Our own code under the sanitizers, in a build directory of its own.
asan:
	+$(Q)$(MAKE) --no-print-directory O=$(O)/asan SANITIZE=address,undefined \
		check-unit

# ---------------------------------------------------------------- fuzzing --
# libFuzzer needs the library instrumented by the same compiler.
fuzz:
	@t/deps.sh build fuzz
	+$(Q)$(MAKE) --no-print-directory O=$(O)/fuzz CC=$(CLANG) OPT="-O1 -g" \
		SANITIZE=address,undefined,fuzzer-no-link fuzz-run

$(O)/t/fuzz/%: t/fuzz/%.c $(LIB)
	@mkdir -p $(@D)
	$(call say,FUZZ,$<)$(CC) $(CPPFLAGS) $(CFLAGS) -fsanitize=fuzzer \
		-Wno-missing-prototypes -Wno-format-nonliteral -o $@ $< $(LIB) $(LDLIBS)

# FUZZ_SECONDS is for all targets together; FUZZ_ONLY=options picks one.
fuzz-run: $(FUZZ_BIN)
	$(Q)t/fuzz/run.sh "$(FUZZ_SECONDS)" $(if $(FUZZ_ONLY),\
		$(O)/t/fuzz/fuzz-$(FUZZ_ONLY),$(FUZZ_BIN))

# ---------------------------------------------------------------- linting --
lint: check-headers
	@t/deps.sh lint
	$(Q)clang-format --dry-run -Werror $(C_FILES)
	$(Q)cppcheck --quiet --error-exitcode=1 --inline-suppr -j2 \
		--enable=warning,portability -I. -DSMCO_VERSION='""' \
		-D'LIBBPF_OPTS(type,name,...)=struct type name' \
		--suppressions-list=.cppcheck $(filter-out %.bpf.c t/%,\
		$(filter %.c,$(C_FILES)))
	$(Q)shellcheck -x $(SH_FILES)

format:
	$(Q)clang-format -i $(C_FILES)

# ---------------------------------------------------------------- benches --
$(O)/t/bench/%: t/bench/%.c $(LIB)
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -MMD -MP \
		-MF $@.d -o $@ $< $(LIB) $(LDLIBS) -lm

.PHONY: bench-control
bench-control: $(O)/t/bench/control-bench
	$(Q)$<

# What traces take, how fast they are; needs strace and redis for all of it.
.PHONY: bench-codec
bench-codec: tools $(O)/t/bench/codec-bench
	$(Q)O=$(O) t/bench/codec.sh

# What the page of a 1 GB trace takes.
.PHONY: bench-html
bench-html: tools $(O)/t/bench/large-trace
	$(Q)O=$(O) t/bench/html.sh

.PHONY: bench-access
bench-access: $(O)/t/bench/access-bench
	$(Q)$<

.PHONY: bench-unwind
bench-unwind: $(O)/t/bench/unwind-bench
	$(Q)$<

# Every write of one variable: gdb, sensors, watchpoints side by side; a
# breakpoint event beside a ptrace stop.
.PHONY: bench-watch
bench-watch: tools $(O)/t/bench/break-bench
	@mkdir -p $(O)/t/bench
	$(Q)$(CC) -g -O2 -o $(O)/t/bench/writes t/bench/writes.c
	$(Q)O=$(O) t/bench/watch.sh

# How much of the ranges of bzip2 and grep is found.
.PHONY: bench-accuracy
bench-accuracy: tools
	$(Q)O=$(O) t/bench/ranges.sh

# One variable, four, all there are: see t/bench/RESULTS.md.
.PHONY: bench-ranges
bench-ranges: $(O)/t/bench/range-bench
	$(Q)$(CC) -g -O2 -o $(O)/t/bench/hits t/fixtures/range/hits.c
	$(Q)$< -v a $(O)/t/bench/hits 1
	$(Q)$< -v a,b,c,d $(O)/t/bench/hits 4
	$(Q)$< $(O)/t/bench/hits 4

# The driver of the guard tests.
DRIVERS := $(patsubst t/drive/%.c,$(O)/t/drive/%,$(wildcard t/drive/*.c))
check-run: $(DRIVERS)
$(O)/t/drive/%: t/drive/%.c t/fixtures/guard_ctl.h t/unit/scratch.h $(LIB)
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $< $(LIB) $(LDLIBS)

# ------------------------------------------------------- demo and measuring --
demo:
	@t/deps.sh build
	+$(Q)$(MAKE) --no-print-directory demo-run

DEMO := $(O)/t/fixtures/forgetful-server
demo-run: tools $(DEMO)
	$(O)/smco-trace -t 10 -o $(O)/demo.trace -- $(DEMO)

# Never passes or fails by a time; see t/bench/bench.sh for what can be chosen.
bench:
	@t/deps.sh build bench
	+$(Q)$(MAKE) --no-print-directory bench-run
bench-run: tools fixtures $(O)/t/bench/lap
	$(Q)O=$(O) t/bench/memory.sh
	$(Q)O=$(O) t/bench/bench.sh
	+$(Q)$(MAKE) --no-print-directory bench-attach
	$(Q)O=$(O) t/bench/naps.sh
	+$(Q)$(MAKE) --no-print-directory bench-access bench-unwind bench-control \
		bench-accuracy bench-watch
.PHONY: bench-naps
bench-naps: tools fixtures
	$(Q)O=$(O) t/bench/naps.sh

# What reading the counters of many threads costs.
.PHONY: bench-counters
bench-counters: tools fixtures
	$(Q)O=$(O) t/bench/counters.sh

# What programs lose while they are watched, beside while they are left alone.
.PHONY: bench-turns
bench-turns: tools fixtures
	$(Q)O=$(O) t/bench/turns.sh

# What programs lose, beside the same ones that are not watched, in turns.
.PHONY: bench-beside
bench-beside: tools fixtures
	$(Q)O=$(O) t/bench/beside.sh

# What whole runs lose, each in turns with the same run that is not watched.
.PHONY: bench-abreast
bench-abreast: tools fixtures $(O)/t/bench/abreast
	$(Q)O=$(O) t/bench/abreast.sh

# Every event that can be counted here, beside perf stat.
.PHONY: bench-events
bench-events: tools
	$(Q)O=$(O) t/bench/events.sh

# The same, of one run that both count.
.PHONY: bench-same-run
bench-same-run: tools fixtures
	$(Q)O=$(O) t/bench/same-run.sh

# What sampling costs, and how true its shares are.
.PHONY: bench-samples
bench-samples: tools fixtures $(O)/t/bench/abreast
	$(Q)O=$(O) t/bench/samples.sh

# Coming and going: many threads, much memory.
.PHONY: bench-attach
bench-attach: tools fixtures $(DRIVERS)
	$(Q)O=$(O) t/bench/attach.sh

# Long and rough: what takes too long for every change.
TIMES ?= 200
torture:
	@t/deps.sh build check bench chroot
	+$(Q)$(MAKE) --no-print-directory tools unit fixtures \
		$(DRIVERS)
	+$(Q)O=$(O) TIMES=$(TIMES) PARTS="$(PARTS)" MAKE="$(MAKE)" t/torture.sh

# ------------------------------------------------------------- installation --
BINDIR ?= $(PREFIX)/bin
MANDIR ?= $(PREFIX)/share/man
INCLUDEDIR ?= $(PREFIX)/include
SCHEMADIR ?= $(PREFIX)/share/smco
install: tools
	install -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(MANDIR)/man1
	install $(TOOLS:%=$(O)/%) $(DESTDIR)$(BINDIR)
	install -m 644 $(wildcard supervisor/*.1 reports/*.1) \
		$(DESTDIR)$(MANDIR)/man1
	install -d $(DESTDIR)$(INCLUDEDIR)
	install -m 644 supervisor/marks/smco-phase.h $(DESTDIR)$(INCLUDEDIR)
	install -d $(DESTDIR)$(SCHEMADIR)
	install -m 644 $(wildcard reports/schema/*.json) $(DESTDIR)$(SCHEMADIR)
uninstall:
	rm -f $(DESTDIR)$(INCLUDEDIR)/smco-phase.h \
		$(patsubst reports/schema/%,$(DESTDIR)$(SCHEMADIR)/%,\
		$(wildcard reports/schema/*.json)) \
		$(TOOLS:%=$(DESTDIR)$(BINDIR)/%) $(patsubst %,\
		$(DESTDIR)$(MANDIR)/man1/%,$(notdir $(wildcard \
		supervisor/*.1 reports/*.1)))
