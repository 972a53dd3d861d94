# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Rules to build a kernel module with C++ in it; included by the Kbuild of each such module, which first sets:
#
#   cxx-module  the module's name
#   cxx-srcs    *.cpp, freestanding C++20; never includes a kernel header
#   shim-srcs   *.c, the only code that C++ calls to reach the kernel; linked with the C++ by link-time optimisation,
#               so that its small functions inline
#   c-objs      *.o from plain C outside LTO: module_init, parameters, MODULE_*, tracepoints (section tricks)
#   layout-src  optional *.c of DEFINE(NAME, value) lines; their values reach C++ as <generated/layout.h>
#   probe-dir   optional directory of *.c snippets; each that compiles against the kernel's headers becomes
#               "#define SHIM_HAVE_<NAME> 1" in <generated/probes.h>
#
# SHIM_LTO=0 does without link-time optimisation, and so does clang: shims are called out of line, and the C++ is one
# translation unit, since ld -r can't drop second copies of inline functions that the kernel's
# -fpatchable-function-entry refers to.
# It never downloads or installs anything.

cxx-scripts := $(dir $(lastword $(MAKEFILE_LIST)))

# The headers and symbol versions of the ib_core of MLNX_OFED or DOCA-OFED, if the kernel has that one, come before
# those of the kernel's own. OFED= (empty) does without, OFED=DIR names another directory.
OFED ?= $(shell $(cxx-scripts)find-ofed $(KERNELRELEASE))
ifneq ($(OFED),)
NOSTDINC_FLAGS       += -I$(OFED)/include -I$(OFED)/include/uapi $(addprefix -include ,$(wildcard $(OFED)/include/linux/compat-2.6.h))
KBUILD_EXTRA_SYMBOLS += $(OFED)/Module.symvers
endif

SHIM_LTO ?= 1
# The link-time optimisation is gcc's.
clang    := $(findstring clang,$(notdir $(lastword $(CC))))
lto      := $(if $(clang),,$(filter 1,$(SHIM_LTO)))

unity     := $(cxx-module)_unity
cxx-objs  := $(if $(lto),$(cxx-srcs:.cpp=.cxx.o),$(unity).cxx.o)
core-objs := $(cxx-objs) $(shim-srcs:.c=.shim.o)
core      := $(cxx-module)_core.o

obj-m           := $(cxx-module).o
$(cxx-module)-y := $(c-objs) $(if $(lto),$(core),$(core-objs))
# On powerpc the C++ library's headers use formats of long double that need vector instructions, unless it has 64 bits;
# link-time optimisation demands one size in the whole module.
ccflags-y       += -I$(src)/include -I$(obj)/include -I$(src) $(if $(filter powerpc,$(SRCARCH)),-mlong-double-64)

# The C++ compiler that belongs to the kernel's C compiler: gcc-12 -> g++-12.
CXX := $(shell $(cxx-scripts)find-cxx "$(CC)")
ifeq ($(CXX),)
$(error $(cxx-module): no C++ compiler that goes with the kernel's $(CC))
endif

# The kernel's flags, less the C dialect, C warnings and everything that leads to kernel headers.
# (In filter-out a lone % matches every word: never write "-include %".)
# -mno-80387 is left out for clang, which needs the x87 for the functions of long double that the C++ library's headers
# declare. CC_FLAGS_LTO is left out: the checks below and layout.h cannot be made from clang's bitcode. The kernel's
# makefile of powerpc has a space between -I and this directory.
c-only    := $(if $(clang),-mno-%387) -nostdinc -std=% -I% -W% -D__KERNEL__ -fmacro-prefix-map=% -fplugin% -fms-extensions \
	     -include %.h $(CC_FLAGS_LTO) $(srctree)/arch/powerpc
# Options for the assembler are the same for all objects of a link. -mno-outline-atomics: the kernel has no libgcc, which
# would have the functions for atomics.
arch-flags = $(filter -Wa$(comma)%,$(c_flags)) $(if $(filter arm64,$(SRCARCH)),-mno-outline-atomics)
# On riscv the C library's headers, which the C++ library's include, are there for another ABI than the kernel's.
c++-only  := $(if $(filter riscv,$(SRCARCH)),-U__riscv_float_abi_soft -D__riscv_float_abi_double)
# gcc's plugins are for C, but for the one that changes functions in the end, which is at the link (STACKLEAK).
plugin-flags = $(filter %/stackleak_plugin.so -fplugin-arg-stackleak_plugin%,$(c_flags))
# Warnings are no errors for users, whose compilers may have others than ours: CXX_WERROR=1 is the tests'.
cxx-flags  = $(filter-out $(c-only),$(c_flags)) $(arch-flags) $(c++-only) $(plugin-flags) -Wp,-MMD,$(depfile) -I$(src)/include -I$(obj)/include -I$(src) \
	     -std=gnu++20 -ffreestanding -fbuiltin -fno-exceptions -fno-rtti -fno-threadsafe-statics \
	     -fno-use-cxa-atexit -fno-unwind-tables -fcheck-new -Wall -Wextra $(if $(CXX_WERROR),-Werror) -Wframe-larger-than=2048
shim-flags = $(c_flags)
lto-flags := $(if $(lto),-flto -fno-fat-lto-objects)
# The link repeats every code generation flag; exec (pie where modules are far from the kernel's data, as on s390) +
# whole-program drops the shims' out-of-line copies.
link-flags = $(filter-out $(c-only) -D%,$(c_flags)) $(arch-flags) $(plugin-flags) -r -nostdlib -flto -flto-partition=one \
	     -flinker-output=$(if $(filter -fPIC,$(c_flags)),pie,exec) -fwhole-program

# Static constructors never run in a module, unless the kernel has the compiler check memory (KASAN), which makes some
# of its own; and exceptions must not slip in.
check      = if $(OBJDUMP) -h $@ | grep -E ' \.($(if $(CONFIG_CONSTRUCTORS),,init_array|ctors|)gcc_except_table|tbss|tdata)'; then \
	     echo "$@: C++ static construction, exceptions or thread-locals" >&2; rm -f $@; exit 1; fi
# cmd_objtool begins or ends with a semicolon, depending on the kernel.
objtool-run = $(if $(strip $(cmd_objtool)),; $(patsubst %;,%,$(filter-out ;,$(cmd_objtool))))
# Kbuild's program that lists the calls of the function tracer, in kernels for which neither compiler nor objtool does
# (recordmcount). The command ends with a semicolon.
mcount-run  = $(if $(strip $(cmd_record_mcount)),; { $(cmd_record_mcount) })
# C++ DWARF breaks pahole where the kernel's headers bring vmlinux (6.12+): keep it beside the module.
strip      = cp $@ $(@:.o=.dbg) && $(OBJCOPY) --strip-debug $@

# Begins the command lines whose results depend on the kernel, so that a build for another kernel runs them again.
for-kernel := : $(KERNELRELEASE) ;

generated  := $(if $(layout-src),$(obj)/include/generated/layout.h) $(if $(probe-dir),$(obj)/include/generated/probes.h)
core-paths := $(addprefix $(obj)/,$(core-objs))
$(core-paths) $(obj)/$(core): part-of-module := y
$(core-paths) $(obj)/$(core): __modname := $(cxx-module)
# Up to 5.10, with MODVERSIONS, objtool would check a temporary file, which only Kbuild's own rules make.
$(core-paths) $(obj)/$(core): objtool_o = $@

quiet_cmd_cxx  = CXX [M]  $@
quiet_cmd_shim = SHIM [M] $@
ifneq ($(lto),)
      cmd_cxx  = $(CXX) $(cxx-flags) $(lto-flags) -c -o $@ $<
      cmd_shim = $(CC) $(shim-flags) $(lto-flags) -c -o $@ $<
quiet_cmd_core = LTO [M]  $@
      cmd_core = $(CXX) $(link-flags) -o $@ $(filter-out FORCE,$^) ; $(check) ; $(strip) $(objtool-run)$(mcount-run)
$(obj)/$(core): $(core-paths) FORCE
	$(call if_changed,core)
else
      cmd_cxx  = $(CXX) $(cxx-flags) -c -o $@ $< ; $(check) ; $(strip) $(objtool-run)$(mcount-run)
      cmd_shim = $(CC) $(shim-flags) -c -o $@ $< $(objtool-run)$(mcount-run)
quiet_cmd_unity = GEN      $@
      cmd_unity = printf '\#include <%s>\n' $(cxx-srcs) > $@
$(obj)/$(unity).cpp: FORCE
	$(call if_changed,unity)
$(obj)/$(unity).cxx.o: $(obj)/$(unity).cpp $(generated) FORCE
	$(call if_changed_dep,cxx)
endif

# Sizes of kernel objects that C++ objects embed, and error numbers, as seen by the compiler, as the kernel's
# asm-offsets are.
ifneq ($(layout-src),)
quiet_cmd_layout = GEN      $@
      cmd_layout = $(for-kernel) mkdir -p $(dir $@) && $(CC) $(filter-out -g% $(CC_FLAGS_LTO),$(shim-flags)) -S -o $@.s $< && { echo '\#pragma once' ; \
	sed -ne 's/^[[:space:]]*\.ascii[[:space:]]*"->\([A-Z_0-9]*\) [$$\#]*\([-0-9]*\) .*/\#define \1 \2/p' $@.s ; } > $@ && rm -f $@.s
$(obj)/include/generated/layout.h: $(src)/$(layout-src) $(filter %probes.h,$(generated)) FORCE
	$(call if_changed_dep,layout)
endif

# A probe that does not compile is an answer, not an error; what the compiler said stays beside it, in NAME.probe.log.
ifneq ($(probe-dir),)
probe-srcs  := $(sort $(wildcard $(src)/$(probe-dir)/*.c))
probe-names := $(patsubst $(src)/$(probe-dir)/%.c,%,$(probe-srcs))
probes      := $(probe-names:%=$(obj)/include/generated/%.probe)
quiet_cmd_probe = PROBE    $(notdir $(basename $@))
      cmd_probe = $(for-kernel) mkdir -p $(dir $@) && if $(CC) $(filter-out -Wp%,$(c_flags)) -Werror -fsyntax-only $< 2> $@.log ; \
	then echo "\#define SHIM_HAVE_$$(echo $(notdir $(basename $@)) | tr a-z A-Z) 1" ; \
	else echo "/* no $(notdir $(basename $@)) */" ; fi > $@
$(probes): $(obj)/include/generated/%.probe: $(src)/$(probe-dir)/%.c FORCE
	$(call if_changed,probe)
quiet_cmd_probes = GEN      $@
      cmd_probes = { echo '\#pragma once' ; cat $(probes) ; } > $@
$(obj)/include/generated/probes.h: $(probes) FORCE
	$(call if_changed,probes)
endif

$(obj)/%.cxx.o: $(src)/%.cpp $(generated) FORCE
	$(call if_changed_dep,cxx)
$(obj)/%.shim.o: $(src)/%.c $(generated) FORCE
	$(call if_changed_dep,shim)
	$(call cmd,$(if $(filter 2,$(KBUILD_CHECKSRC)),force_)checksrc)
$(addprefix $(obj)/,$(c-objs)): $(filter %probes.h,$(generated))

targets     += $(core-objs) $(core) $(if $(lto),,$(unity).cpp) $(patsubst $(obj)/%,%,$(generated) $(probes))
clean-files += $(unity).cpp include/generated *.dbg shim/*.dbg
