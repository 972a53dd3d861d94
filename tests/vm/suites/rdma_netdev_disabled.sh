# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# HCAs with an rdma_netdev that ipoib_enhanced excludes: the netdev still has its transmit queues.
PORTS=2
FABRIC=rdma_netdev=2

# The kernel's watchdog checks all queues, after 10 s. The in-tree driver has no such parameter.
test_unused_transmit_queues_do_not_time_out() {
    [ "$DRIVER" = ours ] || return 77
    load_driver ipoib_enhanced=0
    add_hosts
    on 1 ip link set ib0 down
    bring_up 1
    wait_for 20 reaches 1 10.0.0.2
    mark_log
    on 1 ping -q -i 0.5 -c 30 10.0.0.2 >/dev/null
    ! logged 'transmit timeout' || return 1
}
