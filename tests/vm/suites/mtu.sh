# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# MTU rules on a 2048-byte fabric.
PORTS=2
HOSTS=1

test_mtu_is_the_broadcast_groups() { [ "$(mtu 1)" = 2044 ]; }
test_largest_packet_passes() { ping_ok 1 10.0.0.2 -M "do" -s 2016; }
test_packet_larger_than_the_mtu_is_refused() { too_long 1 10.0.0.2 2017; }

test_smaller_admin_mtu_limits_packets() {
    set_mtu 1 1500
    [ "$(mtu 1)" = 1500 ]
    ping_ok 1 10.0.0.2 -M "do" -s 1472
    too_long 1 10.0.0.2 1473
    # The other host may send packets up to its own MTU, which arrive.
    ping_ok 2 10.0.0.1 -s 2016
    iperf 1 2 -n 20M
    set_mtu 1 2044
    [ "$(mtu 1)" = 2044 ]
    ping_ok 1 10.0.0.2 -M "do" -s 2016
}

test_smallest_mtu_carries_traffic() {
    set_mtu 1 72
    [ "$(mtu 1)" = 72 ]
    ping_ok 1 10.0.0.2 -M "do" -s 44
    too_long 1 10.0.0.2 45
    flood 1 10.0.0.2 200 -s 44
    # Sent in fragments of 48 bytes.
    on 1 /test/ping_sizes.py 10.0.0.2 45-200/9 2000
    iperf 1 2 -n 20K
    set_mtu 1 2044
}

test_mtu_out_of_range_is_refused() {
    local wrong
    for wrong in 0 71 2045 4093 65520 65521; do
        ! set_mtu 1 $wrong 2>/dev/null || fail "MTU $wrong was accepted" || return 1
    done
    [ "$(mtu 1)" = 2044 ]
}

test_admin_mtu_survives_down_and_up() {
    set_mtu 1 1280
    on 1 ip link set ib0 down
    on 1 ip link set ib0 up
    wait_for 10 carrier 1
    [ "$(mtu 1)" = 1280 ]
    set_mtu 1 2044
    wait_for 10 reaches 1 10.0.0.2
}

xfail_stock_connected_mode_refuses_short_mtus='the in-tree driver takes any'
test_connected_mode_refuses_short_mtus() {
    local wrong accepted=
    set_mode 1 connected
    set_mode 2 connected
    for wrong in 68 71; do ! set_mtu 1 $wrong 2>/dev/null || accepted=$wrong; done
    set_mtu 1 72
    set_mtu 1 65520
    set_mode 1 datagram
    set_mode 2 datagram
    both_work
    [ -z "$accepted" ] || fail "MTU $accepted was accepted"
}
