# One non-recursive Makefile. Knobs: O=DIR build directory, V=1 show commands,
# DEVELOPER=0 warnings are not errors, SANITIZE=address,undefined.

O ?= build
V ?= 0
DEVELOPER ?= 1
SANITIZE ?=
PREFIX ?= /usr/local
CC ?= gcc
CLANG ?= clang
PROVE ?= prove
JOBS ?= $(shell nproc)

VERSION := 0.1

ifeq ($(V),0)
Q := @
say = @echo '  $(1)	$(2)';
else
say =
endif

WARN := -Wall -Wextra -Wmissing-prototypes -Wstrict-prototypes -Wvla \
	-Wshadow -Wimplicit-fallthrough -Wformat=2 -Wundef -Wwrite-strings \
	-Wpointer-arith
ifeq ($(DEVELOPER),1)
WARN += -Werror
endif
OPT ?= -O2 -g
CPPFLAGS += -I. -I$(O) -D_GNU_SOURCE -DSMCO_VERSION='"$(VERSION)"'
CFLAGS := $(OPT) -std=gnu11 -fno-strict-aliasing $(WARN) $(CFLAGS)
LDLIBS := -ldw -lelf -lz -lzstd -lseccomp -lZydis -liberty -ljansson -lbpf -lpfm -lpthread -lm
ifneq ($(SANITIZE),)
CFLAGS += -fsanitize=$(SANITIZE) -fno-omit-frame-pointer -fno-sanitize-recover=all
LDFLAGS += -fsanitize=$(SANITIZE)
endif

# ---------------------------------------------------------------- sources --
TOOLS := smco-trace smco-report smco-diff
TOOL_SRC := supervisor/smco-trace.c reports/smco-report.c reports/smco-diff.c
SRC := $(filter-out $(TOOL_SRC),$(wildcard supervisor/*.c \
	supervisor/tracee/*.c supervisor/probe/*.c supervisor/control/*.c \
	supervisor/monitor/*.c pmu/*.c symbols/*.c reports/*.c))
SRC := $(filter-out %.bpf.c,$(SRC))
ASM := $(wildcard supervisor/probe/*.S reports/*.S)
BPF := $(wildcard supervisor/probe/*.bpf.c)
AGENT := $(wildcard supervisor/probe/agent/*.c supervisor/probe/agent/*.S)

OBJ := $(SRC:%.c=$(O)/%.o) $(ASM:%.S=$(O)/%.o)
LIB := $(O)/libsmco.a
UNIT := $(patsubst t/unit/%.c,$(O)/t/unit/%,$(wildcard t/unit/u-*.c))
FIXTURES := $(patsubst t/fixtures/%.c,$(O)/t/fixtures/%,$(wildcard t/fixtures/*.c))
HEADERS := $(wildcard supervisor/*.h supervisor/*/*.h pmu/*.h symbols/*.h reports/*.h)

.DELETE_ON_ERROR:
.PHONY: all tools unit fixtures check demo bench torture fuzz lint format \
	check-headers deps install uninstall clean
.SECONDARY:

all: tools
tools: $(patsubst %.c,$(O)/%,$(notdir $(wildcard $(TOOL_SRC))))
unit: $(UNIT)
fixtures: $(FIXTURES)

# Room-specific rules: how the agent image and the BPF objects are built.
-include supervisor/probe/build.mk
-include reports/html/build.mk
-include t/build.mk

$(O)/smco-trace: $(O)/supervisor/smco-trace.o $(LIB)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)
$(O)/smco-report $(O)/smco-diff: $(O)/%: $(O)/reports/%.o $(LIB)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(LIB): $(OBJ)
	$(call say,AR,$@)rm -f $@ && $(AR) rcs $@ $^

$(O)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<
$(O)/%.o: %.S
	@mkdir -p $(@D)
	$(call say,AS,$<)$(CC) $(CPPFLAGS) -MMD -MP -c -o $@ $<

$(O)/t/unit/%: t/unit/%.c t/unit/tap.h $(LIB)
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -MMD -MP \
		-MF $@.d -o $@ $< $(LIB) $(LDLIBS) -lm

# Fixtures stand for the user's programs: no optimiser, no sanitizer.
# A fixture's own flags stand in it: /* FLAGS: -static */
$(O)/t/fixtures/%: t/fixtures/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) -O0 -g3 -std=gnu11 -Wall -Werror -D_GNU_SOURCE \
		-MMD -MP -MF $@.d -o $@ $< -lpthread $$(sed -n 's,.*FLAGS: \(.*\) \*/.*,\1,p' $<)

check-headers:
	$(Q)for h in $(filter-out %.bpf.h,$(HEADERS)); do \
		$(CC) $(CPPFLAGS) -std=gnu11 $(WARN) -fsyntax-only -x c $$h \
		|| exit 1; done
	$(Q)for h in $(filter $(if $(HAVE_CLANG),%.bpf.h),$(HEADERS)); do \
		$(CLANG) $(BPF_CFLAGS) -Wno-unused-function -fsyntax-only \
		-x c $$h || exit 1; done

clean:
	rm -rf $(O)

-include $(OBJ:.o=.d) $(UNIT:%=%.d) $(FIXTURES:%=%.d) $(O)/supervisor/smco-trace.d \
	$(O)/reports/smco-report.d $(O)/reports/smco-diff.d
