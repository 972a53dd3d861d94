# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Module parameters, inside and outside of their ranges.
PORTS=2

reload() {
    [ ! -e /sys/module/ib_ipoib ] || unload_driver
    load_driver "$@"
}
clamped() { # NAME GIVEN IN-FORCE
    local log_mark
    mark_log
    reload "$1=$2"
    [ "$(parameter "$1")" = "$3" ] || fail "$1=$2 became $(parameter "$1"), not $3"
    # Only this driver logs it.
    [ "$DRIVER" != ours ] || [ "$2" = "$3" ] || logged "$1=$2 is now $3"
}
works() {
    add_hosts
    wait_for 20 reaches 1 10.0.0.2
    flood 1 10.0.0.2 500
    iperf 1 2 -n 20M
    stop_traffic
}

test_send_queue_size_is_clamped() {
    clamped send_queue_size 1 128
    clamped send_queue_size -5 128
    clamped send_queue_size 129 256
    clamped send_queue_size 1000 1024
    clamped send_queue_size 100000 8192
}
test_recv_queue_size_is_clamped() {
    clamped recv_queue_size 0 2
    clamped recv_queue_size 3 4
    clamped recv_queue_size 257 512
    clamped recv_queue_size 8193 8192
}
test_max_nonsrq_conn_qp_is_clamped() {
    clamped max_nonsrq_conn_qp -1 0
    clamped max_nonsrq_conn_qp 5000 4096
}
test_parameters_have_their_defaults() {
    reload
    [ "$(parameter send_queue_size)" = 128 ]
    [ "$(parameter recv_queue_size)" = 256 ]
    [ "$(parameter debug_level)" = 0 ]
    [ "$(parameter mcast_debug_level)" = 0 ]
}
test_text_is_refused_as_a_number() {
    [ ! -e /sys/module/ib_ipoib ] || unload_driver
    ! load_driver send_queue_size=many 2>/dev/null || return 1
    load_driver
}
test_smallest_rings_work() {
    reload send_queue_size=128 recv_queue_size=2
    add_hosts
    wait_for 20 reaches 1 10.0.0.2
    iperf 1 2 -t 1 -b 1M
    stop_traffic
}
test_largest_rings_work() { reload send_queue_size=8192 recv_queue_size=8192; works; }
