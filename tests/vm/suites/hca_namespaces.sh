# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# HCAs with network namespaces of their own (rdma system set netns exclusive): an interface is created in its HCA's
# namespace. Drivers can read that since Linux 6.17.
PORTS=2

kernel_is 6.17 || SKIPPABLE='they do not learn of it'
interfaces_in() { ip netns exec "$1" ip -o link show type ipoib | awk -F': ' '{ print $2 }'; } # NAMESPACE
interfaces_here() { ip -o link show type ipoib | awk -F': ' '{ print $2 }'; }
has_one_in() { [ "$(interfaces_in "$1" | wc -l)" = 1 ]; }
has_here() { [ "$(interfaces_here | wc -l)" = "$1" ]; }
carries() { [ "$("$@" cat /sys/class/net/ib0/carrier 2>/dev/null)" = 1 ]; } # [COMMAND...]

# Moves the second HCA to h2. Exclusive mode can be set only while there is one namespace.
before_each() {
    kernel_is 6.17 || return 77
    [ "$(rdma system | grep -c 'netns exclusive')" = 1 ] || rdma system set netns exclusive
    [ -e /sys/module/ib_ipoib ] || load_driver
    [ -e /run/netns/h2 ] || {
        has_here 2
        ip netns add h2
        rdma dev set soft_ib1 netns h2
        wait_for 10 has_one_in h2
    }
}

test_interface_is_created_in_its_hcas_namespace() {
    has_here 1
    [ "$(interfaces_in h2)" = ib0 ]
    ip addr add 10.0.0.1/24 dev ib0
    ip link set ib0 up
    on 2 ip addr add 10.0.0.2/24 dev ib0
    on 2 ip link set ib0 up
    wait_for 20 carries
    wait_for 20 carries on 2
    wait_for 20 ping -q -c 1 -W 1 10.0.0.2
    ping -q -c 20 -i 0.05 -W 10 10.0.0.2 | says ' 0% packet loss'
}

test_children_are_created_in_their_parents_namespace() {
    on 2 ip link add link ib0 name child type ipoib
    [ "$(interfaces_in h2 | sed 's/@.*//' | sort | xargs)" = "child ib0" ]
    on 2 ip link del child
}

test_driver_load_creates_interfaces_in_their_hcas_namespace() {
    unload_driver
    load_driver
    has_one_in h2
    has_here 1
}

test_interface_returns_with_its_hca() {
    ip netns del h2
    wait_for 10 has_here 2
    rdma system set netns shared
}
