# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Lookup of interfaces by P_Key, GID and IP address, which the RDMA core requests from the driver for the RDMA CM.
PORTS=2
HOSTS=1
PARTITIONS='blue=0x0001, ipoib : ALL=full;'

gid() { on "$1" sed 's/://g; s/^........//' "/sys/class/net/${2:-$(interface_of "$1")}/address"; } # HOST [INTERFACE]
resolved() { # HOST WORDS...
    local host=$1
    shift
    knob "$host" resolve "$*"
    cat "$debug/$((host - 1))/resolve"
}
is() { # INTERFACE HOST WORDS...
    local found
    found=$(resolved "${@:2}")
    [ "$found" = "$1" ] || fail "$found"
}

# Removes children of host 1 that an earlier test left.
before_each() {
    local child
    for child in blue azure sky; do on 1 ip link del $child 2>/dev/null || true; done
}
add_child() { # NAME NUMBER: at 10.NUMBER.0.1 and fd0NUMBER::1
    on 1 ip link add link ib0 name "$1" type ipoib pkey 0x8001
    on 1 ip link set "$1" up
    on 1 ip addr add "10.$2.0.1/24" dev "$1"
    on 1 ip addr add "fd0$2::1/64" dev "$1" nodad
}

test_parent_is_found_by_pkey_and_gid() {
    is ib0 1 pkey=0xffff gid="$(gid 1)"
    is ib1 2 pkey=0xffff gid="$(gid 2)"
    is ib0 1 pkey=0xffff
    # The only match: the IP address does not matter.
    is ib0 1 pkey=0xffff gid="$(gid 1)" ip=10.0.0.1
    is ib0 1 pkey=0xffff gid="$(gid 1)" ip=10.77.0.1
}

test_unknown_pkey_or_gid_finds_no_interface() {
    is none 1 pkey=0x8055 gid="$(gid 1)"
    is none 1 pkey=0xffff gid="$(gid 2)"
    # The port has this P_Key, but no interface.
    is none 1 pkey=0x8001 gid="$(gid 1)"
}

xfail_stock_child_is_found_before_its_first_up='the child has P_Key index 0 until then'
test_child_is_found_before_its_first_up() {
    local found
    on 1 ip link add link ib0 name blue type ipoib pkey 0x8001
    found=$(resolved 1 pkey=0x8001 gid="$(gid 1)")
    on 1 ip link del blue
    [ "$found" = blue ] || fail "$found"
}

test_child_is_found_by_pkey() {
    add_child blue 1
    is blue 1 pkey=0x8001 gid="$(gid 1)"
    is ib0 1 pkey=0xffff gid="$(gid 1)"
}

test_ip_address_selects_among_children_of_one_pkey() {
    add_child blue 1
    add_child azure 2
    is blue 1 pkey=0x8001 gid="$(gid 1)" ip=10.1.0.1
    is azure 1 pkey=0x8001 gid="$(gid 1)" ip=10.2.0.1
    is blue 1 pkey=0x8001 gid="$(gid 1)" ip6=fd01::1
    is azure 1 pkey=0x8001 gid="$(gid 1)" ip6=fd02::1
    is none 1 pkey=0x8001 gid="$(gid 1)" ip=10.3.0.1
    is none 1 pkey=0x8001 gid="$(gid 1)" ip6=fd03::1
    is none 1 pkey=0x8001 gid="$(gid 1)" ip=10.0.0.1
}

test_gid_selects_among_children_of_one_pkey() {
    add_child blue 1
    # The port must have the GUID for a child to get it.
    knob 1 alias_guid "1 0x0002c9030000abcd"
    on 1 ip link add link ib0 name sky address "$(on 1 cut -c -36 /sys/class/net/ib0/address)00:02:c9:03:00:00:ab:cd" \
        type ipoib pkey 0x8001
    on 1 ip link set sky up
    is sky 1 pkey=0x8001 gid="$(gid 1 sky)"
    [ "$(gid 1 sky)" = fe800000000000000002c9030000abcd ]
    on 1 ip link del sky
    knob 1 alias_guid "1 0"
    is none 1 pkey=0x8001 gid=fe800000000000000002c9030000abcd
}

test_deleted_child_is_not_found() {
    add_child blue 1
    add_child azure 2
    on 1 ip link del azure
    is blue 1 pkey=0x8001 gid="$(gid 1)" ip=10.2.0.1
    on 1 ip link del blue
    is none 1 pkey=0x8001 gid="$(gid 1)"
}

test_child_in_another_namespace_is_found() {
    ip netns add elsewhere
    on 1 ip link add link ib0 name blue type ipoib pkey 0x8001
    on 1 ip link add link ib0 name azure netns elsewhere type ipoib pkey 0x8001
    on 1 ip link set blue up
    on 1 ip addr add 10.1.0.1/24 dev blue
    ip netns exec elsewhere ip link set azure up
    ip netns exec elsewhere ip addr add 10.1.0.2/24 dev azure
    is blue 1 pkey=0x8001 gid="$(gid 1)" ip=10.1.0.1
    is azure 1 pkey=0x8001 gid="$(gid 1)" ip=10.1.0.2
    on 1 ip link del blue
    is azure 1 pkey=0x8001 gid="$(gid 1)"
    ip netns exec elsewhere ip link del azure
    ip netns del elsewhere
}

test_bond_is_returned_for_its_slave() {
    modprobe bonding max_bonds=0
    on 1 ip link add bond7 type bond mode active-backup
    on 1 ip link set ib0 down
    on 1 ip link set ib0 master bond7
    on 1 ip link set bond7 up
    is bond7 1 pkey=0xffff gid="$(gid 1)"
    on 1 ip link set ib0 nomaster
    is ib0 1 pkey=0xffff gid="$(gid 1)"
    on 1 ip link del bond7
}

test_bonds_ip_address_selects_its_slave() {
    # Two children with one P_Key, told apart by the addresses of their upper devices.
    modprobe bonding max_bonds=0
    on 1 ip link add link ib0 name blue type ipoib pkey 0x8001
    on 1 ip link add link ib0 name azure type ipoib pkey 0x8001
    on 1 ip link add bond8 type bond mode active-backup
    on 1 ip link set blue master bond8
    on 1 ip link set bond8 up
    on 1 ip link set azure up
    on 1 ip addr add 10.1.0.1/24 dev bond8
    on 1 ip addr add 10.2.0.1/24 dev azure
    is bond8 1 pkey=0x8001 gid="$(gid 1)" ip=10.1.0.1
    is azure 1 pkey=0x8001 gid="$(gid 1)" ip=10.2.0.1
    on 1 ip link del bond8
    on 1 ip link del blue
    on 1 ip link del azure
}

case $(uname -r) in 6.1.*) xfail_stock_interface_is_returned_instead_of_its_vrf='the in-tree driver returns the VRF' ;; esac
test_interface_is_returned_instead_of_its_vrf() {
    local found
    on 1 ip link add vrf7 type vrf table 10
    on 1 ip link set vrf7 up
    on 1 ip link set ib0 master vrf7
    found=$(resolved 1 pkey=0xffff gid="$(gid 1)")
    on 1 ip link set ib0 nomaster
    on 1 ip link del vrf7
    [ "$found" = ib0 ] || fail "$found"
}

test_no_interface_is_found_without_the_driver() {
    local gid
    gid=$(gid 1)
    unload_driver
    is none 1 pkey=0xffff gid="$gid"
    load_driver
    add_hosts
    is ib0 1 pkey=0xffff gid="$gid"
}

test_lookups_continue_while_interfaces_come_and_go() {
    (while :; do resolved 1 pkey=0x8001 gid="$(gid 1)" ip=10.1.0.1 >/dev/null; done) &
    local asker=$!
    for _ in $(seq 10); do
        on 1 ip link add link ib0 name blue type ipoib pkey 0x8001
        on 1 ip link add link ib0 name azure type ipoib pkey 0x8001
        on 1 ip link del blue
        on 1 ip link del azure
    done
    kill $asker
    wait $asker || true
    is none 1 pkey=0x8001 gid="$(gid 1)"
}
