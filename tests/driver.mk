# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Included by the makefiles of the tests: the driver's sources as one translation unit, $(OUT)/driver.cpp, as in the
# module. One by one they take five times as long, most of it for the headers that they share.
driver-includes = printf '\#include <%s>\n' $(notdir $(wildcard $(top)/ipoib_*.cpp))

# Written when the list of the sources has changed; make then sees a new time.
$(OUT)/driver.cpp: FORCE
	@mkdir -p $(@D)
	@$(driver-includes) | cmp -s - $@ || $(driver-includes) >$@
vpath driver.cpp $(OUT)

.PHONY: FORCE
