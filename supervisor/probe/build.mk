# ------------------------------------------------------------ BPF programs --
# Compiled here by clang, embedded by bpf-objects.S. Without clang the build
# works and what needs them says why it is not available.
BPF_OBJ := $(BPF:%.bpf.c=$(O)/%.bpf.o)
BPF_CFLAGS := -target bpf -O2 -g -Wall -Wextra -Wno-unused-parameter \
	-Wno-missing-declarations -I. \
	-I/usr/include/$(shell $(CC) -print-multiarch 2>/dev/null)

$(O)/%.bpf.o: %.bpf.c
	@mkdir -p $(@D)
	$(call say,BPF,$<)$(CLANG) $(BPF_CFLAGS) -MMD -MP -c -o $@ $<

# Atomic operations that return what was there.
$(O)/supervisor/probe/watch.bpf.o: BPF_CFLAGS += -mcpu=v3

HAVE_CLANG := $(shell command -v $(CLANG) 2>/dev/null)
ifneq ($(HAVE_CLANG),)
$(O)/supervisor/probe/bpf-objects.o: $(BPF_OBJ)
$(O)/supervisor/probe/bpf-objects.o: CPPFLAGS += \
	-DPTREAD_OBJECT='"$(O)/supervisor/probe/ptread.bpf.o"' \
	-DSTOPCLOCK_OBJECT='"$(O)/supervisor/probe/stopclock.bpf.o"' \
	-DWATCH_OBJECT='"$(O)/supervisor/probe/watch.bpf.o"' \
	-DJOT_OBJECT='"$(O)/supervisor/probe/jot.bpf.o"' \
	-DSIEVE_OBJECT='"$(O)/supervisor/probe/sieve.bpf.o"' \
	-DPAST_OBJECT='"$(O)/supervisor/probe/past.bpf.o"' \
	-DTALLY_OBJECT='"$(O)/supervisor/probe/tally.bpf.o"' \
	-DUNFOLLOWED_OBJECT='"$(O)/supervisor/probe/unfollowed.bpf.o"'
endif
-include $(BPF_OBJ:.o=.d)
# -------------------------------------------------------- end of BPF block --

# ------------------------------------------------------------------ agent --
# Code for inside the tracee, linked at 0, flat, embedded in the
# supervisor. It must reach everything relative to its program counter: any
# other kind of relocation in its objects stops the build.

# Both images want gcc's flags, also when clang builds the rest for fuzzing.
AGENT_CC ?= gcc

AGENT_DIR := $(O)/supervisor/probe/agent
AGENT_OBJ := $(patsubst %,$(O)/%.o,$(basename $(AGENT)))
AGENT_CFLAGS := -std=gnu11 -O2 -g0 -fPIC -ffreestanding -nostdlib \
	-mgeneral-regs-only -fno-stack-protector -fcf-protection=none \
	-fno-asynchronous-unwind-tables -fno-jump-tables \
	-fno-tree-loop-distribute-patterns -fno-strict-aliasing \
	-fno-common -fomit-frame-pointer -fvisibility=hidden $(WARN)

$(AGENT_DIR)/%.o: supervisor/probe/agent/%.c
	@mkdir -p $(@D)
	$(call say,AGENT,$<)$(AGENT_CC) -I. $(AGENT_CFLAGS) -MMD -MP -c -o $@ $<
$(AGENT_DIR)/%.o: supervisor/probe/agent/%.S supervisor/probe/agent_abi.h
	@mkdir -p $(@D)
	$(call say,AGENT,$<)$(AGENT_CC) -I. -c -o $@ $<

$(AGENT_DIR)/agent.elf: $(AGENT_OBJ) supervisor/probe/agent/agent.lds
	$(Q)if readelf -rW $(AGENT_OBJ) | grep R_X86_64 | \
		grep -vE 'R_X86_64_(PC32|PLT32)|\.header'; then \
		echo 'agent: relocation that needs a loader' >&2; exit 1; fi
	$(call say,LINK,$@)$(LD) -nostdlib -z noexecstack -T supervisor/probe/agent/agent.lds \
		-o $@ $(AGENT_OBJ)
$(AGENT_DIR)/agent.bin: $(AGENT_DIR)/agent.elf
	$(call say,COPY,$@)$(OBJCOPY) -O binary -j .text $< $@

OBJCOPY ?= objcopy
$(O)/supervisor/probe/hook-image.o: CPPFLAGS += \
	-DAGENT_IMAGE='"$(AGENT_DIR)/agent.bin"'
$(O)/supervisor/probe/hook-image.o: $(AGENT_DIR)/agent.bin

-include $(AGENT_OBJ:.o=.d)
# ----------------------------------------------------------------- warden --
# The warden: the resident helper of the page guards (warden/abi.h).
WARDEN_BIN := $(O)/supervisor/probe/warden/warden.bin
$(WARDEN_BIN): supervisor/probe/warden/warden.c supervisor/probe/warden/entry.S \
		supervisor/probe/warden/warden.lds supervisor/probe/warden/abi.h \
		supervisor/probe/rawcall.h
	@mkdir -p $(@D)
	$(call say,WARDEN,$@)$(AGENT_CC) -I. -std=gnu11 -Os $(WARN) -ffreestanding -fpie \
		-fno-stack-protector -fcf-protection=none -mgeneral-regs-only \
		-fno-asynchronous-unwind-tables -fno-builtin -fno-jump-tables \
		-fno-tree-loop-distribute-patterns -nostdlib -static -no-pie \
		-Wl,-T,supervisor/probe/warden/warden.lds -Wl,--build-id=none \
		-Wl,-z,noexecstack -o $(@:.bin=.elf) \
		supervisor/probe/warden/entry.S supervisor/probe/warden/warden.c
	$(Q)objcopy -O binary -j .image $(@:.bin=.elf) $@
$(O)/supervisor/probe/warden_image.o: $(WARDEN_BIN)
