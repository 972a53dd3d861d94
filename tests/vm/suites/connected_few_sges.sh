# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# HCAs whose shared receive queues take four SGEs: four pages, less 16 bytes.
PORTS=2
HOSTS=1
MODE=connected
FABRIC=srq_sges=4

test_mtu_fits_the_receive_buffer() {
    [ "$(mtu 1)" = 16368 ]
    ! set_mtu 1 16369 2>/dev/null || return 1
    set_mtu 1 16368
}
test_pings_of_every_size_pass() {
    on 1 /test/ping_sizes.py 10.0.0.2 0-300 1000-16340/97 4040-4130 16300-16340 20000 60000
}
test_tcp_both_ways() { iperf 1 2 -n 40M --bidir; }
