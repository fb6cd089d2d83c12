# ------------------------------------------------------------ BPF programs --
# Compiled here by clang, embedded by NAME-object.S. Without clang the build
# works and the mechanisms that need them say why they are not available.
BPF_OBJ := $(BPF:%.bpf.c=$(O)/%.bpf.o)
BPF_CFLAGS := -target bpf -O2 -g -Wall -Wextra -Wno-unused-parameter \
	-Wno-missing-declarations -I. \
	-I/usr/include/$(shell $(CC) -print-multiarch 2>/dev/null)

$(O)/%.bpf.o: %.bpf.c
	@mkdir -p $(@D)
	$(call say,BPF,$<)$(CLANG) $(BPF_CFLAGS) -MMD -MP -c -o $@ $<

HAVE_CLANG := $(shell command -v $(CLANG) 2>/dev/null)
ifneq ($(HAVE_CLANG),)
$(O)/supervisor/probe/ptread-object.o: $(O)/supervisor/probe/ptread.bpf.o
$(O)/supervisor/probe/ptread-object.o: CPPFLAGS += \
	-DPTREAD_OBJECT='"$(O)/supervisor/probe/ptread.bpf.o"'
endif
-include $(BPF_OBJ:.o=.d)
# -------------------------------------------------------- end of BPF block --
