# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Requests of rdma-cni to the kernel, by the commands of rdma that send the same netlink messages (suite cni has
# ipoib-cni's): a pod gets a whole HCA, in the mode in which each namespace has its own. The HCA's clients see it leave
# and come: its IPoIB interface is a new one, which must be moved to the pod afterwards.
PORTS=2

add_rdma() { rdma dev set soft_ib1 netns pod; }
# The HCA's interface, and the namespace where it is: the HCA's since Linux 6.17, before that the initial one.
pod_has_interface() { [ -n "$(ip -n pod -o link show type ipoib)" ]; }
interface_came() { pod_has_interface || born_as 2; }
before_each() {
    # Exclusive mode can be set only while there is one namespace.
    [ "$(rdma system | grep -c 'netns exclusive')" = 1 ] || rdma system set netns exclusive
    [ -e /sys/module/ib_ipoib ] || load_driver
    [ -e /run/netns/pod ] || {
        # The commands take namespaces by name only.
        ip netns attach node 1
        ip netns add pod
        wait_for 10 born_as 2
    }
}

test_pod_gets_an_hca_and_its_interface() {
    local first second
    first=$(born_as 1)
    ip addr add 10.0.0.1/24 dev "$first"
    ip link set "$first" up
    add_rdma
    ip netns exec pod rdma dev show | says soft_ib1
    ! rdma dev show | says soft_ib1 || fail "the node has it too" || return 1
    wait_for 10 interface_came
    pod_has_interface || {
        second=$(born_as 2)
        ip link set "$second" netns pod name net1
    }
    second=$(ip -n pod -o link show type ipoib | sed -E 's/^[0-9]+: ([^@:]+).*/\1/')
    ip -n pod addr add 10.0.0.2/24 dev "$second"
    ip -n pod link set "$second" up
    wait_for 20 here_reaches 10.0.0.2
    ping -q -c 20 -i 0.05 -W 10 10.0.0.2 | says ' 0% packet loss'
    # DEL: the HCA returns, and so does an interface.
    ip netns exec pod rdma dev set soft_ib1 netns node
    rdma dev show | says soft_ib1
    wait_for 10 born_as 2
    ! pod_has_interface || fail "the pod still has an interface" || return 1
}

test_hca_of_a_pod_that_ends_returns() {
    returned() { rdma dev show | says soft_ib1 && born_as 2; }
    add_rdma
    wait_for 10 interface_came
    ip netns del pod
    wait_for 20 returned
    ip netns del node
    rdma system set netns shared
}
