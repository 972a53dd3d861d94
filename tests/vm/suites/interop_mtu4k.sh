# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Two machines whose links carry 4096 bytes, so that datagrams carry 4092.
MTU=4096
# shellcheck source=/dev/null
. suites/interop.sh

test_mtu_is_4092() { [ "$(mtu 1) $(mtu 2)" = "4092 4092" ]; }
