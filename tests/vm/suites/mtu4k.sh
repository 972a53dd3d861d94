# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# A 4096-byte fabric.
PORTS=2
MTU=4096
HOSTS=1

test_mtu_is_4092() { [ "$(on 1 cat /sys/class/net/ib0/mtu)" = 4092 ]; }
test_largest_packet_passes() { ping_ok 1 10.0.0.2 -M "do" -s 4064; ping_ok 1 fd00::2 -M "do" -s 4044; }
test_flood_ping_of_large_packets() { flood 1 10.0.0.2 3000 -s 4064; }
test_tcp() { iperf 1 2 -n 20M; }
test_tcp_both_ways_at_once() { iperf 1 2 -n 40M --bidir; }
test_smaller_admin_mtu_limits_packets() {
    on 1 ip link set ib0 mtu 2044
    ping_ok 1 10.0.0.2 -M "do" -s 2016
    too_long 1 10.0.0.2 2017
    iperf 1 2 -n 20M
    on 1 ip link set ib0 mtu 4092
}
