# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The commands of this project; `make help` lists them. Kbuild says what the module is made of.
SHELL := bash

KVER     ?= $(shell uname -r)
KDIR     ?= /lib/modules/$(KVER)/build
SHIM_LTO ?= 1
KERNEL   ?= 6.1
DRIVER   ?= ours
TESTS    ?=

version  := $(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)
dkms-dir := $(DESTDIR)/usr/src/ib_ipoib-$(version)
vm-args   = --kernel $(KERNEL) --driver $(DRIVER) $(if $(TESTS),--tests "$(TESTS)")

modules: ## build ib_ipoib.ko for KVER (default: the running kernel)
	@scripts/check-headers $(KVER) $(KDIR)
	$(MAKE) -C $(KDIR) M=$(CURDIR) SHIM_LTO=$(SHIM_LTO) modules

install: modules ## install it into updates/, before the kernel's own
	$(MAKE) -C $(KDIR) M=$(CURDIR) INSTALL_MOD_DIR=updates modules_install
	depmod $(KVER)

dkms-install: ## install it through DKMS: rebuilt with every kernel update
	@tests/vm/need dkms
	mkdir -p $(dkms-dir)
	cp -r dkms.conf Kbuild Makefile LICENSE README.md scripts shim include ipoib_*.cpp $(dkms-dir)/
	dkms add ib_ipoib/$(version)
	dkms install ib_ipoib/$(version) -k $(KVER)

dkms-remove: ## undo dkms-install
	dkms remove ib_ipoib/$(version) --all
	rm -rf $(dkms-dir)

demo: vm-modules ## a pinging, iperf3-ing IPoIB link in a VM, from nothing
	tests/vm/demo --kernel $(KERNEL) --driver $(DRIVER)

shell: vm-modules ## that VM's console
	tests/vm/shell --kernel $(KERNEL) --driver $(DRIVER)

test: ## the test command: unit tests, then the VM suites
	@scripts/sum-tests "$(MAKE) --no-print-directory test-unit" "$(MAKE) --no-print-directory test-vm"

test-unit: ## host tests of driver, fabric and harness, under sanitizers
	@tests/vm/need g++ libgtest-dev
	@scripts/sum-tests "$(MAKE) --no-print-directory -C tests/unit" "tests/vm/test-splat"

test-vm: vm-modules ## the VM suites; KERNEL=6.1|6.12 DRIVER=ours|stock TESTS="name..." JOBS=n
	tests/vm/run $(vm-args)

vm-modules: # both modules for the VM's kernel, in build/modules/
	@scripts/build-for-vm $(KERNEL) SHIM_LTO=$(SHIM_LTO)

lint: ## formatting, clang-tidy, thread-safety, shellcheck and the house's own rules
	@scripts/lint

clean: ## remove what make built, but for the caches in build/
	@# Not Kbuild's: it would take the modules and archives out of build/ too.
	@find . \( -path ./build -o -path ./.git \) -prune -o -type f \( -name '*.o' -o -name '*.ko' -o -name '*.mod' -o -name '*.mod.c' \
	    -o -name '.*.cmd' -o -name '*.dbg' -o -name '*.probe*' -o -name '*_unity.cpp' -o -name modules.order -o -name Module.symvers \) -exec rm -f {} +
	@rm -rf include/generated tests/fabric/include/generated

help: ## this list
	@printf 'ib_ipoib %s\n\n' '$(version)'
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1@\2/p' Makefile | awk -F@ '{ printf "  make %-13s %s\n", $$1, $$2 }'
	@printf '\n  KVER=%s  KERNEL=%s  DRIVER=%s  SHIM_LTO=%s\n' '$(KVER)' '$(KERNEL)' '$(DRIVER)' '$(SHIM_LTO)'

.DEFAULT_GOAL := modules
.PHONY: modules install dkms-install dkms-remove demo shell test test-unit test-vm vm-modules lint clean help
