# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Children are deleted while their HCA is unplugged. Row 23 of Documentation/past-faults.md; a suite of its own, as RTNL
# stays held for good if the driver has the fault.
PORTS=2
PROCESSORS=2
HOSTS=1
PARTITIONS='blue=0x0001, ipoib : ALL=full;
red=0x0002, ipoib : ALL=full;'

test_children_are_deleted_while_their_hca_is_unplugged() {
    local children reregisters
    gone() { ! kill -0 "$1"; }
    expect_missing_gids
    for _ in $(seq 8); do
        # shellcheck disable=SC2016 # expanded by the inner shell
        on 2 bash -c 'while [ -e /sys/class/net/ib1 ]; do
            echo 0x8001 >/sys/class/net/ib1/create_child
            echo 0x8002 >/sys/class/net/ib1/create_child
            echo made >/run/made
            echo 0x8001 >/sys/class/net/ib1/delete_child
            echo 0x8002 >/sys/class/net/ib1/delete_child
        done' >/dev/null 2>&1 &
        children=$!
        # Causes flushes to wait for.
        /test/reregister.py 1 1000000 0.01 >/run/reregistered 2>/dev/null &
        reregisters=$!
        wait_for 20 test -e /run/made
        wait_for 20 test -s /run/reregistered
        knob 2 plugged 0 &
        # A deadlock would block this process for ever.
        wait_for 30 gone $!
        wait_for 30 gone $children
        # Before the next HCA, which it could open. It may be waiting for a response that the old one will not bring.
        kill $reregisters 2>/dev/null || true
        wait $reregisters 2>/dev/null || true
        rm /run/made
        ! ip -o link show type ipoib | grep '800[12]' || return 1
        plug_in 2
        wait_for 30 port_state_is 1 '4: ACTIVE'
        add_host 2
        wait_for 30 carrier 2
    done
    both_work
}
