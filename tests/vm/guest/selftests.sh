# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317
# The kernel's own tests and ynl, which header SELFTESTS puts into /selftests: what the suites that run them share.

# shellcheck source=/dev/null
. ./connections.sh

tests=/selftests/tools/testing/selftests/drivers/net
results=/run/selftests
# The kernel's series, as KERNEL names it.
case $(uname -r) in
6.12.*) series=6.12 ;;
7.*) series=7 ;;
*) SKIPPABLE='the tests are those of 6.12 and of 7' ;;
esac

channels_of() { # RX|TX
    on 1 ethtool -l ib0 | awk -v name="$1:" '/Current/ { current = 1 } current && $1 == name { print $2 }'
}

# Connected mode with its MTU; three receive queues, with a connection of each peer; and the addresses that an interface
# loses when a test takes it down.
before_each() {
    local host
    [ -z "${SKIPPABLE:-}" ] || return 77
    mkdir -p "$results"
    for host in 1 2; do
        [ "$(mode $host) $(mtu $host)" = 'connected 65520' ] || { set_mode $host connected && set_mtu $host 65520; }
    done
    if [ "$DRIVER" = ours ] && [ "$(channels_of RX) $(channels_of TX)" != '3 2' ]; then
        on 1 ethtool -L ib0 rx 3 tx 2
    fi
    both_work
    wait_for 30 addresses_ready 1
    wait_for 20 reaches 1 fd00::2
    all_connect
}
