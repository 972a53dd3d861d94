# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Parents of children: which devices are accepted, and a child's fate when its parent's namespace ends.
PORTS=2
HOSTS=1
PARTITIONS='blue=0x0001, ipoib : ALL=full;'

test_namespace_ends_with_parent_and_child_inside() {
    ip netns add elsewhere
    on 1 ip link set ib0 netns elsewhere
    ip -n elsewhere link add link ib0 name blue type ipoib pkey 0x8001
    ip -n elsewhere link set ib0 up
    ip -n elsewhere link set blue up
    ip netns del elsewhere
    both_are_back() { ip -d link show blue | says ipoib && born_as 1; }
    wait_for 10 both_are_back
    ip -d link show "$(born_as 1)" | says 'ipoib pkey'
    ip link del blue
    add_host 1
    both_work
}

# 24, g
refuses_parent() { # INTERFACE
    ! on 1 ip link add link "$1" name x type ipoib pkey 0x8001 2>/dev/null || fail "$1 was accepted as parent" || return 1
    ! on 1 test -e /sys/class/net/x
}
test_parents_without_an_ipoib_interface_are_refused() {
    local parent
    on 1 ip link add other type dummy
    on 1 ip link add one type veth peer name two
    for parent in lo other one; do refuses_parent "$parent"; done
    on 1 ip link del other
    on 1 ip link del one
    # Indexes that no interface has, in either namespace.
    ip netns add elsewhere
    for parent in if99 "if$(on 1 cat /sys/class/net/ib0/ifindex)"; do
        refused 'No such device|does not exist' ip -n elsewhere link add link "$parent" name x type ipoib pkey 0x8001
    done
    # link-netns without a link.
    ! ip link add link-netns elsewhere name x type ipoib pkey 0x8001 2>/dev/null || return 1
    ip netns del elsewhere
}
test_bond_is_refused_as_parent() {
    # The kernel's own driver takes any private area for its own.
    may_end_the_vm 'RIP: 0010:rdma_init_netdev' || return 77
    modprobe bonding max_bonds=0
    on 1 ip link add bond9 type bond mode active-backup
    on 1 ip link set ib0 down
    on 1 ip link set ib0 master bond9
    [ "$(on 1 cat /sys/class/net/bond9/type)" = 32 ]
    refuses_parent bond9
    on 1 ip link set ib0 nomaster
    on 1 ip link del bond9
    on 1 ip addr replace 10.0.0.1/24 dev ib0
    on 1 ip link set ib0 up
    both_work
}
