# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The commands of this project; `make help` lists them. Kbuild says what the module is made of.
SHELL := bash

KVER     ?= $(shell uname -r)
KDIR     ?= /lib/modules/$(KVER)/build
SHIM_LTO ?= 1
KERNEL   ?= 6.1
DRIVER   ?= ours
TESTS    ?=
MINUTES  ?= 1
# Number of parallel jobs. JOBS itself has no default: make would then hide the environment's JOBS from all recipes.
jobs      = $(or $(JOBS),$(shell nproc))

version  := $(shell scripts/version)
# The place of DKMS's sources, and those that it needs.
dkms-dir := $(DESTDIR)/usr/src/ib_ipoib-$(version)
dkms-files := dkms.conf Kbuild Makefile LICENSE include shim $(wildcard ipoib_*.cpp) \
              $(addprefix scripts/,check-tools cxx-module.mk dkms dkms-autoinstall.sh find-cxx find-ofed ipoib-report version)
# The packages' documentation, with all that it links to.
doc-files := README.md CHANGELOG.md CONTRIBUTING.md Documentation monitoring soft_ib/README.md soft_ib/ci.md $(wildcard tests/*/README.md)
# files, directory
copy      = mkdir -p $(2) && tar -c --exclude='*.o' --exclude='*.dbg' --exclude='.*' --exclude=generated $(1) | tar -x --no-same-owner -C $(2)
# A compiler that the command line names, as DKMS does for a kernel built with clang: CC=clang or LLVM=1.
cc       := $(if $(filter command%,$(origin CC)),$(CC),$(if $(LLVM),$(filter %/,$(LLVM))clang$(filter -%,$(LLVM))))
# Without LLVM=1 Kbuild uses gcc, even with the headers of a kernel that clang built.
llvm     := $(if $(cc),,$(if $(shell grep -s ^CONFIG_CC_IS_CLANG=y $(KDIR)/include/config/auto.conf),LLVM=1))
vm-args   = --kernel $(KERNEL) --driver $(DRIVER) $(if $(TESTS),--tests "$(TESTS)")

modules: ## build ib_ipoib.ko for KVER (default: the running kernel)
	@scripts/check-tools $(KVER) $(KDIR) "$(cc)"
	$(MAKE) -C $(KDIR) M=$(CURDIR) SHIM_LTO=$(SHIM_LTO) $(llvm) modules

install: modules ## install it into updates/, before the kernel's own
	$(MAKE) -C $(KDIR) M=$(CURDIR) $(llvm) INSTALL_MOD_DIR=updates modules_install
	depmod $(KVER)

dkms-install: ## install it through DKMS: rebuilt with every kernel update
	@scripts/dkms install $(KVER) "$(cc)"

dkms-remove: ## undo dkms-install
	@scripts/dkms remove

dkms-source: # the sources that DKMS builds from, under DESTDIR
	$(call copy,$(dkms-files),$(dkms-dir))

dkms-doc: # the packages' documentation, in DOCDIR under DESTDIR
	$(call copy,$(doc-files),$(DESTDIR)$(DOCDIR))

ipoib-report: # the packages' script that collects what a report of a fault needs, under DESTDIR
	install -D -m 755 scripts/ipoib-report $(DESTDIR)/usr/bin/ipoib-report

deb: ## the Debian package ib-ipoib-dkms, in build/deb/
	@packaging/build-deb ib_ipoib $(version)

rpm: ## the RPM package ib_ipoib-dkms, in build/rpm/; KMOD=1: one of the module compiled for KVER, in build/rpm-kmod/; KEY=file CERT=file sign it
	@packaging/build-rpm $(version) $(if $(KMOD),kernel=$(KVER) kernel_dir=$(KDIR) $(if $(cc),"cc=$(cc)") \
	    $(if $(KEY),"sign_key=$(abspath $(KEY))" "sign_cert=$(abspath $(CERT))"))

demo: vm-modules ## boot a VM with two ports and OpenSM; ping and iperf3 between them; charts in build/demo/index.html
	tests/vm/demo --kernel $(KERNEL) --driver $(DRIVER)

shell: vm-modules ## the console of that VM
	tests/vm/shell --kernel $(KERNEL) --driver $(DRIVER)

test: ## all tests: unit tests, threads, simulator, then the VM suites
	@scripts/sum-tests "$(MAKE) --no-print-directory test-unit" "$(MAKE) --no-print-directory test-threads" \
	    "$(MAKE) --no-print-directory test-sim" "$(MAKE) --no-print-directory test-vm"

test-unit: ## unit tests of driver, fabric and harness, under sanitizers; the fuzzers' kept inputs
	@tests/vm/need g++ libgtest-dev python3 tidy
	@scripts/sum-tests --at-once "$(MAKE) --no-print-directory -j$$(nproc) -C tests/unit" tests/vm/test-splat tests/vm/test-run \
	    tests/scripts/test-checks tests/scripts/test-sums tests/scripts/test-matrix tests/scripts/test-report tests/scripts/test-pages \
	    tests/monitoring/run tests/install/test-check-tools tests/install/test-dkms tests/install/test-nfs-top \
	    soft_ib/unit/test-topology soft_ib/unit/test-draw soft_ib/unit/test-cluster

test-threads: ## the driver on real threads, under ThreadSanitizer; ARCH=arm64: emulated, without it
	@tests/vm/need g++ libgtest-dev $(if $(ARCH),g++-12-aarch64-linux-gnu googletest qemu-user-static)
	@$(MAKE) --no-print-directory -j$$(nproc) -C tests/threads ARCH=$(ARCH)

test-sim: ## the simulator: 8 nodes, a fabric and its faults; SEEDS=n HOURS=n FIRST=n, or SEED=n to repeat one
	@tests/vm/need g++
	@$(MAKE) --no-print-directory -j$$(nproc) -C tests/sim all $(if $(SEED),,checked)
	@tests/sim/run "$(SEED)" "$(FAULTS)" "$(SALT)" "$(FIRST)" "$(SEEDS)" "$(HOURS)"

scale: ## the simulator with NODES="n...": start, first packets to PEERS=n each, SM restart; SA_US=n for each request
	@tests/vm/need g++ python3
	@$(MAKE) --no-print-directory -j$$(nproc) -C tests/sim all
	@mkdir -p build/scale
	@set -o pipefail; for nodes in $(or $(NODES),1000); do \
	    build/sim/simulator --nodes $$nodes --peers "$(PEERS)" --sa-us "$(SA_US)" || exit; done | tee build/scale/scale.log
	@scripts/page scale build/scale

coverage: ## lines of the driver that unit tests and simulator execute, in build/coverage/report/; SEEDS=n HOURS=n
	@tests/vm/need g++ libgtest-dev gcovr
	@scripts/coverage "$(SEEDS)" "$(HOURS)"

mutants: ## break the driver in one place at a time; a test must fail; TESTS="word..." JOBS=n, SIMULATOR=1: the simulator alone
	@tests/vm/need g++ libgtest-dev python3
	@JOBS=$(jobs) SEEDS=$(SEEDS) HOURS=$(HOURS) tests/mutants/run $(if $(SIMULATOR),--simulator) $(TESTS)

fuzz: ## fuzzers of external input; MINUTES=n for each TESTS="frame cm sa netlink sysfs operations" JOBS=n
	@tests/vm/need clang libclang-rt-14-dev g++ libgtest-dev
	@$(MAKE) --no-print-directory -j$(jobs) -C tests/fuzz
	@tests/fuzz/run $(MINUTES) $(jobs) $(TESTS)

test-vm: vm-modules ## the VM suites; KERNEL=5.10|6.1|6.12|7|trixie|debug|debug-rt|debug7|kcsan FLAVOUR=rt|16k|64k ARCH=arm64|ppc64el|s390x DRIVER=ours|stock TESTS="name..." JOBS=n
	tests/vm/run $(vm-args)

program-suites = $(basename $(notdir $(shell grep -l ^PACKAGES= tests/vm/suites/*.sh)))
test-programs: vm-modules ## VM suites of programs of clusters: netplan, Kea, keepalived, FRRouting, firewalld, ...; KERNEL, DRIVER, TESTS, JOBS as above
	LOGS=programs-$(KERNEL)-$(DRIVER) tests/vm/run --kernel $(KERNEL) --driver $(DRIVER) --tests "$(or $(TESTS),$(program-suites))"

# number, host with OpenSM, kernel here, kernel there, suite
interop = env LOGS=interop-$(1) SM_HOST=$(2) MINUTES=$(MINUTES) SUITE_TIMEOUT=$$((900 + 60 * $(MINUTES))) tests/vm/run --kernel $(3) --driver ours --peer-kernel $(4) --peer-driver stock --tests $(5)
test-interop: ## two VMs, this driver in one and the kernel's own in the other, for MINUTES=n of mixed traffic; and clusters of three and of one
	@for series in 6.1 6.12; do scripts/build-for-vm $$series; done
	@scripts/sum-tests "$(call interop,1,1,6.1,6.1,interop)" "$(call interop,2,2,6.12,6.1,interop)" \
	    "$(call interop,3,1,6.1,6.12,interop_mtu4k)" "$(call interop,4,1,6.12,6.12,interop_kinds)" \
	    "soft_ib/cluster 3 ./cluster-rows" "env HCAS=2 PACKAGES=hello soft_ib/cluster 1 ./cluster-rows"

soak-minutes = $(if $(filter file,$(origin MINUTES)),10,$(MINUTES))
soak: vm-modules ## eight hosts under traffic and repeated faults, for MINUTES=n (10), in the order of SEED=n; KERNEL, DRIVER as above
	@tests/vm/need python3
	LOGS=soak-$(KERNEL)-$(DRIVER) MINUTES=$(soak-minutes) SEED=$(SEED) SUITE_TIMEOUT=$$((1800 + 60 * $(soak-minutes))) \
	    tests/vm/run --kernel $(KERNEL) --driver $(DRIVER) --tests soak; status=$$?; \
	    scripts/page soak build/logs/soak-$(KERNEL)-$(DRIVER) && exit $$status

bench profile: KERNEL := $(if $(filter file,$(origin KERNEL)),6.12,$(KERNEL))
bench: ## compare this driver with the kernel's own, in instructions; KERNEL=6.12 TESTS="row..." PAIRS=n, or PROCESSORS=n: counting only
	@scripts/build-for-vm $(KERNEL)
	tests/vm/bench $(vm-args)

bench-hw: ## the same on real hardware, with a peer that runs iperf3 -s and qperf; IF=ib0 PEER=address
	@scripts/bench-hw '$(IF)' '$(PEER)'

profile: ## instructions of a row of the bench, by function; KERNEL=6.12 DRIVER=ours|stock TESTS="row..." PROCESSORS=n; OF=stores|transfers: bytes, cache lines
	@scripts/build-for-vm $(KERNEL)
	tests/vm/profile $(vm-args)

# KERNEL has a default, which chooses no row.
matrix-kernel = $(if $(filter file,$(origin KERNEL)),,$(KERNEL))
matrix-chosen = $(matrix-kernel)$(FLAVOUR)$(filter-out amd64,$(or $(ARCH),$(shell dpkg --print-architecture)))
test-matrix: ## the VM suites on Debian's newest 7, 6.12 and 6.1, with and without LTO, and threads on arm64, and a table; KERNEL="name..." FLAVOUR=rt|16k|64k ARCH=arm64|ppc64el|s390x choose; TESTS, JOBS as above
	@KERNEL="$(matrix-kernel)" scripts/sum-tests $(if $(matrix-chosen),,"$(MAKE) --no-print-directory test-threads ARCH=arm64") \
	    "env MAKE=$(MAKE) scripts/test-matrix"

test-builds: ## builds: for a kernel of each series, whose probes must answer as Documentation/kernels.md says, with PREEMPT_RT, for ppc64el and s390x, for another ib_core, of the fabric's package, by gcc 11, and with several versions of DKMS
	@scripts/check-probes
	@for arch in ppc64el s390x; do ARCH=$$arch scripts/build-for-vm 6.1 || exit 1; done
	@FLAVOUR=rt scripts/build-for-vm 6.12
	@FLAVOUR=rt scripts/build-for-vm 7
	@tests/install/test-ofed
	@tests/install/test-soft-ib
	@tests/install/test-gcc-11
	@tests/install/test-dkms-versions

# Suites that use memory and locks most, on a kernel that checks both.
test-debug: ## some VM suites on a kernel with KASAN, lockdep and kmemleak, which is built first, in 15 minutes
	@$(MAKE) --no-print-directory test-vm KERNEL=debug TESTS="$(or $(TESTS),lifecycle children_races leaks vnet_headers)"

pin-kernels: ## set the VMs' kernels (tests/vm/kernels) to the newest of the mirror
	@tests/vm/kernel --pin

vm-modules: # both modules for the VM's kernel, in build/modules/
	@scripts/build-for-vm $(KERNEL) SHIM_LTO=$(SHIM_LTO)

test-install: deb ## packages and DKMS in a Debian in a VM, the RPMs, root on NFS over ib0, Secure Boot; TESTS="run test-..."
	@scripts/sum-tests $(addprefix tests/install/,$(or $(TESTS),run test-kmod-rpm test-nfs-root test-secure-boot))

lint: ## formatting, clang-tidy, sparse, shellcheck, the project's own rules; FAST=1: without the two slow ones
	@scripts/lint

clean: ## remove build results, except the caches in build/
	@# Not Kbuild's: it would take the modules and archives out of build/ too.
	@find . \( -path ./build -o -path ./.git \) -prune -o -type f \( -name '*.o' -o -name '*.ko' -o -name '*.mod' -o -name '*.mod.c' \
	    -o -name '.*.cmd' -o -name '*.dbg' -o -name '*.probe*' -o -name '*_unity.cpp' -o -name modules.order -o -name Module.symvers \) -exec rm -f {} +
	@rm -rf include/generated soft_ib/include/generated

help: ## this list
	@printf 'ib_ipoib %s\n\n' '$(version)'
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1@\2/p' Makefile | awk -F@ '{ printf "  make %-13s %s\n", $$1, $$2 }'
	@printf '\n  KVER=%s  KERNEL=%s  DRIVER=%s  SHIM_LTO=%s\n' '$(KVER)' '$(KERNEL)' '$(DRIVER)' '$(SHIM_LTO)'

.DEFAULT_GOAL := modules
.PHONY: test-builds modules install dkms-install dkms-remove dkms-source dkms-doc ipoib-report deb rpm demo shell test-interop soak test test-unit test-threads test-sim scale coverage mutants fuzz test-vm test-programs test-debug test-matrix test-install pin-kernels bench bench-hw profile vm-modules lint clean help
