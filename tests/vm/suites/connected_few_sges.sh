# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# HCAs whose shared receive queues take three SGEs: three pieces of 16 KiB, less 16 bytes.
PORTS=2
HOSTS=1
MODE=connected
FABRIC=srq_sges=3

xfail_stock_mtu_fits_the_receive_buffer='the in-tree driver uses one page for each element'
test_mtu_fits_the_receive_buffer() {
    [ "$(mtu 1)" = 49136 ]
    ! set_mtu 1 49137 2>/dev/null || return 1
    set_mtu 1 49136
}
test_pings_of_every_size_pass() {
    on 1 /test/ping_sizes.py 10.0.0.2 0-300 1000-49100/293 16340-16400 32730-32780 49080-49108 50000 60000
}
test_tcp_both_ways() { iperf 1 2 -n 40M --bidir; }
