# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Requests of Kubernetes' network plugins to the kernel, by the commands of ip that send the same netlink messages:
# Debian does not have the plugins, and they need a container runtime, but no other interface of the driver's. ipoib-cni
# gives a pod a child of the node's interface. Node 1 has the pods a and b; host 2 is elsewhere in the cluster. The
# settings of virtual functions, which ib-sriov-cni makes, are in the suite vf; rdma-cni's moves in cni_rdma.
PORTS=2
HOSTS=1

in_pod() { ip netns exec "$1" "${@:2}"; } # POD COMMAND...
pod_carrier() { [ "$(in_pod "$1" cat /sys/class/net/net1/carrier)" = 1 ]; }
# ipoib-cni's ADD: a child with the parent's P_Key, less the bit of full membership, its mode, and umcast, under a name
# that is free on the node; then moved, named and set up in the pod.
add_to_pod() { # POD ADDRESS
    local pkey
    [ -e "/run/netns/$1" ] || ip netns add "$1"
    pkey=$(printf '0x%x' $(($(attribute 1 ib0 pkey) & 0x7fff)))
    on 1 ip link add link ib0 name "veth5d1e$1" type ipoib pkey "$pkey" mode "$(mode 1)" umcast 1
    on 1 ip link set "veth5d1e$1" netns "$1"
    in_pod "$1" sysctl -qw "net.ipv4.conf.veth5d1e$1.proxy_arp=1"
    ip -n "$1" link set "veth5d1e$1" down
    ip -n "$1" link set "veth5d1e$1" name net1
    ip -n "$1" link set net1 up
    ip -n "$1" addr add "$2/24" dev net1
    wait_for 20 pod_carrier "$1"
}
pings() { in_pod "$1" ping -q -c 3 -i 0.1 -W $((2 * patience)) "$2" | says ' 0% packet loss'; } # POD ADDRESS
children_outside() { ip -o link show type ipoib | wc -l; }

test_ipoib_cni_gives_each_pod_an_interface() {
    add_to_pod a 10.0.0.11
    add_to_pod b 10.0.0.12
    ip -n a -d link show net1 | says 'ipoib pkey *0xffff mode *datagram umcast *0001'
    # Pods of one node, another node, and the node itself.
    wait_for 20 pings a 10.0.0.2
    wait_for 20 pings a 10.0.0.12
    wait_for 20 pings b 10.0.0.1
    wait_for 20 reaches 2 10.0.0.12
    ping_ok 2 10.0.0.11
    # DEL
    ip -n a link del net1
    ! in_pod a test -e /sys/class/net/net1 || return 1
    pings b 10.0.0.2
    ip -n b link del net1
    ip netns del a
    ip netns del b
}

test_ipoib_cni_follows_the_parents_mode() {
    set_mode 1 connected
    set_mode 2 connected
    add_to_pod a 10.0.0.11
    ip -n a -d link show net1 | says 'mode *connected'
    ip -n a link set net1 mtu 65520
    set_mtu 2 65520
    wait_for 20 reaches 2 10.0.0.11
    ping_ok 2 10.0.0.11 -s 60000 -M "do"
    ip -n a link del net1
    ip netns del a
    set_mode 1 datagram
    set_mode 2 datagram
}

# A pod may end before its DEL: its child, which has the same name as another's, returns to the initial namespace.
test_ipoib_cni_children_of_pods_that_end_can_be_deleted() {
    local child
    both_returned() { [ "$(children_outside)" = 2 ]; }
    add_to_pod a 10.0.0.11
    add_to_pod b 10.0.0.12
    ip netns del a
    ip netns del b
    wait_for 20 both_returned
    for child in $(ip -o link show type ipoib | sed -E 's/^[0-9]+: ([^@:]+).*/\1/'); do ip link del "$child"; done
    [ "$(children_outside)" = 0 ]
    both_work
}

# Before Linux 6.15 rtnetlink refuses a name that the node has in the pod too, which is why the plugin creates a child
# beside its parent, and moves it. Any other name can be created straight in the pod.
test_child_is_created_straight_in_a_pod() {
    local name=net1
    ip netns add a
    if kernel_is 6.15; then
        name=ib0
    else
        refused 'File exists' on 1 ip link add link ib0 name ib0 netns a type ipoib pkey 0x7fff
    fi
    on 1 ip link add link ib0 name $name netns a type ipoib pkey 0x7fff
    # An address that no pod had before: the in-tree driver announces none.
    ip -n a addr add 10.0.0.13/24 dev $name
    ip -n a link set $name up
    wait_for 20 reaches 2 10.0.0.13 || fail "$(on 2 ip neigh; ip -n a addr; on 2 ip addr show dev ib1)" || return 1
    ping_ok 2 10.0.0.13
    ip -n a link del $name
    ip netns del a
    both_work
}
