# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317,SC1091

# The bond of bonding.sh in connected mode.
MODE=connected
. suites/bonding.sh
without active_slave_can_be_changed_repeatedly link_down_fails_over_repeatedly \
    both_ports_down_and_up children_can_be_slaves released_ports_work_alone || return 1
# One queue serves all peers. If the cable is pulled under a full ring, the sends in flight on that connection (113 of
# 128 were seen) complete after its ACK timeout, seconds later, and the queue is stopped until then: NETDEV WATCHDOG on
# the peer, whose timeout is 1 s in 6.1.
may_fail_stock_tcp_continues_through_failovers='sends to a pulled port keep the queue of all peers stopped for seconds'

# Slaves get the bond's MTU, which is Ethernet's at first.
test_full_mtu_passes_through_each_port() {
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
