# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317,SC1091

# The bond of bonding.sh in connected mode.
MODE=connected
. suites/bonding.sh
without active_slave_is_changed_forth_and_back_and_forth link_down_moves_traffic_forth_and_back_and_forth \
    both_ports_down_and_up children_are_slaves_too released_ports_work_alone || return 1
may_fail_stock_tcp_flows_on_through_failovers='NETDEV WATCHDOG on the peer, now and then'

# Its slaves are given the bond's MTU, which is Ethernet's at first.
test_full_mtu_goes_through_each_port() {
    local hca
    on 2 ip link set bond0 mtu 65520
    [ "$(on 2 cat /sys/class/net/ib1/mtu)" = 65520 ]
    for hca in 3 2; do
        activate $hca
        settles_on $hca
        ping_ok 1 "$self" -s 60000 -i 0.3
        ping_ok 2 "$peer" -s 60000 -i 0.3
    done
    [ "$(counter 3 rc_sent)" -gt 0 ]
    on 2 ip link set bond0 mtu 1500
}
