# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# P_Key children, created through sysfs and rtnetlink. Partition blue has all ports, red the first two, the second of
# them as a limited member; green is added later.
PORTS=3
HOSTS=1
PARTITIONS='blue=0x0001, ipoib : ALL=full;
red=0x0002, ipoib : 0x0002c90300000010=full, 0x0002c90300000110=limited;'

write_to() { on "$1" sh -c "echo $4 >/sys/class/net/$2/$3"; }    # HOST INTERFACE FILE VALUE
drop_child() { # HOST PARENT PKEY NAME
    write_to "$1" "$2" delete_child "$3"
    child_is_gone() { ! on "$1" test -e "/sys/class/net/$2"; }
    wait_for 10 child_is_gone "$1" "$4"
}
address() { # HOST INTERFACE SUBNET
    on "$1" ip addr add "10.$3.0.$1/24" dev "$2"
    on "$1" ip link set "$2" up
    wait_for 20 carrier "$1" "$2"
}
# Children that many tests use: ib0.8001 of host 1, created through sysfs, and blue of host 2, by rtnetlink, at 10.1.0.1
# and 10.1.0.2.
make_blue_children() {
    on 1 test -e /sys/class/net/ib0.8001 || {
        make_child 1 0x8001
        address 1 ib0.8001 1
    }
    on 2 test -e /sys/class/net/blue || {
        on 2 ip link add link ib1 name blue type ipoib pkey 0x8001
        address 2 blue 1
    }
    wait_for 20 reaches 1 10.1.0.2
}
# A child of host 1 that was created in a namespace, and one that was moved there while up.
make_children_elsewhere() {
    ip netns add elsewhere
    on 1 ip link add link ib0 name red netns elsewhere type ipoib pkey 0x8002
    ip netns exec elsewhere ip addr add 10.2.0.1/24 dev red
    ip netns exec elsewhere ip link set red up
    wait_for 20 ip netns exec elsewhere grep -qx 1 /sys/class/net/red/carrier
    on 1 ip link add link ib0 name moved type ipoib pkey 0x8001
    on 1 ip link set moved up
    wait_for 20 carrier 1 moved
    on 1 ip link set moved netns elsewhere
    ip netns exec elsewhere ip link show moved >/dev/null
}
leave_elsewhere() {
    ip netns del elsewhere
    refunded() { ip link show red && ip link show moved; }
    wait_for 10 refunded
    ip link del red
    ip link del moved
}

test_sysfs_and_rtnetlink_children_reach_each_other() {
    make_blue_children
    [ "$(on 1 cat /sys/class/net/ib0.8001/pkey)" = 0x8001 ]
    on 1 ip link show ib0.8001 | says 'brd 00:ff:ff:ff:ff:12:40:1b:80:01:'
    ping_ok 1 10.1.0.2
    ping_ok 2 10.1.0.1 -s 10000
    # The parent's network is another one.
    ping_ok 1 10.0.0.2
}

xfail_stock_sysfs_child_is_in_its_parents_namespace='the child is in the initial namespace'
test_sysfs_child_is_in_its_parents_namespace() {
    write_to 2 ib1 create_child 0x8004
    on 2 test -e /sys/class/net/ib1.8004 || {
        write_to 2 ib1 delete_child 0x8004
        return 1
    }
    write_to 2 ib1 delete_child 0x8004
}

test_ip_link_shows_kind_pkey_mode_and_parent() {
    make_blue_children
    on 1 ip -d link show ib0.8001 | says 'ipoib pkey *0x8001 mode *datagram umcast *0'
    on 2 ip -d link show blue | says 'ipoib pkey *0x8001 mode *datagram umcast *0'
    on 2 ip link show blue | says 'blue@ib1'
    on 1 ip -d link show ib0 | says 'ipoib pkey *0xffff'
}

xfail_stock_sysfs_and_rtnetlink_children_have_the_same_files='children of rtnetlink have none'
test_sysfs_and_rtnetlink_children_have_the_same_files() {
    local file
    make_blue_children
    for file in mode pkey umcast parent; do
        on 1 test -e "/sys/class/net/ib0.8001/$file"
        on 2 test -e "/sys/class/net/blue/$file"
    done
    [ "$(on 2 cat /sys/class/net/blue/parent)" = ib1 ]
    ! on 2 test -e /sys/class/net/blue/create_child || return 1
    write_to 2 blue mode connected
    ping_ok 1 10.1.0.2 -s 10000
    write_to 2 blue mode datagram
}

test_invalid_pkeys_are_refused() {
    local key
    make_blue_children
    for key in 0 0x8000 65536 -1 nonsense; do
        ! write_to 1 ib0 create_child "$key" 2>/dev/null || fail "$key was accepted" || return 1
    done
    # A second child of the partition; and the parent's own P_Key.
    ! write_to 1 ib0 create_child 0x8001 2>/dev/null || return 1
    ! write_to 1 ib0 create_child 0xffff 2>/dev/null || return 1
    ! write_to 1 ib0 delete_child 0x8055 2>/dev/null || return 1
}

xfail_stock_create_child_refuses_a_second_child_of_a_partition='1 and 0x8001 pass as two'
test_create_child_refuses_a_second_child_of_a_partition() {
    local two=
    write_to 3 ib2 create_child 0x8001
    ! write_to 3 ib2 create_child 1 2>/dev/null || two=1
    write_to 3 ib2 delete_child 0x8001
    [ -z "$two" ] || write_to 3 ib2 delete_child 0x8001
    [ -z "$two" ]
}

test_rtnetlink_refusals_have_messages() {
    make_blue_children
    refused "$(ours 'P_Key 0x8000 is invalid')" on 1 ip link add link ib0 name x type ipoib pkey 0x8000
    refused "$(ours 'is a child itself')" on 1 ip link add link ib0.8001 name x type ipoib pkey 0x8002
    on 1 ip link add other type dummy
    refused "$(ours 'is not an ipoib interface')" on 1 ip link add link other name x type ipoib pkey 0x8002
    on 1 ip link del other
    ! on 1 ip link show x 2>/dev/null || return 1
}

test_rtnetlink_creates_several_children_of_one_pkey() {
    make_blue_children
    on 3 ip link add link ib2 name one type ipoib pkey 0x8001
    on 3 ip link add link ib2 name two type ipoib pkey 0x8001
    on 3 ip addr add 10.1.0.3/24 dev one
    on 3 ip addr add 10.1.0.33/32 dev two
    on 3 ip link set one up
    on 3 ip link set two up
    wait_for 20 carrier 3 one
    wait_for 20 carrier 3 two
    ping_ok 1 10.1.0.3
    on 3 ip link del one
    on 3 ip link del two
}

test_mode_and_umcast_are_set_at_creation_and_later() {
    on 3 ip link add link ib2 name blue type ipoib pkey 0x8001 mode connected umcast 1
    on 3 ip -d link show blue | says 'mode *connected umcast *0*1\b'
    [ "$(on 3 cat /sys/class/net/blue/mtu)" = 65520 ]
    on 3 ip link set blue type ipoib mode datagram umcast 0
    on 3 ip -d link show blue | says 'mode *datagram umcast *0* '
    on 3 ip link del blue
}
xfail_stock_mtu_given_at_creation_is_kept='IFLA_MTU is ignored'
test_mtu_given_at_creation_is_kept() {
    local at_first later
    on 3 ip link add link ib2 name blue mtu 1500 type ipoib pkey 0x8001
    at_first=$(on 3 cat /sys/class/net/blue/mtu)
    on 3 ip link set blue up
    wait_for 20 carrier 3 blue
    later=$(on 3 cat /sys/class/net/blue/mtu)
    on 3 ip link del blue
    [ "$at_first" = 1500 ] && [ "$later" = 1500 ]
}

test_child_follows_its_parent_up_and_down() {
    make_blue_children
    on 1 ip link set ib0 down
    ! on 1 ip link show ib0.8001 | says '[<,]UP[,>]' || return 1
    bring_up 1
    on 1 ip link show ib0.8001 | says '[<,]UP[,>]'
    wait_for 20 carrier 1 ib0.8001
    wait_for 20 reaches 1 10.1.0.2
    wait_for 20 reaches 1 10.0.0.2
}

test_child_works_in_another_namespace() {
    make_children_elsewhere
    # A limited member reaches a full one.
    on 2 ip link add link ib1 name red type ipoib pkey 0x8002
    address 2 red 2
    wait_for 20 reaches 2 10.2.0.1
    ping_ok 2 10.2.0.1
    on 2 ip link del red
    leave_elsewhere
}

test_children_of_a_deleted_namespace_move_to_the_initial_one() {
    make_children_elsewhere
    leave_elsewhere
}

test_host_outside_the_partition_gets_no_carrier() {
    on 2 ip link add link ib1 name red type ipoib pkey 0x8002
    address 2 red 2
    on 3 ip link add link ib2 name red type ipoib pkey 0x8002
    on 3 ip addr add 10.2.0.3/24 dev red
    on 3 ip link set red up
    # One second, in which a join would have been answered.
    ! reaches 2 10.2.0.3 || return 1
    no_carrier 3 red
    on 2 ip link del red
    on 3 ip link del red
}

test_pkey_added_later_brings_the_child_up() {
    make_child 1 0x8003
    on 1 ip link set ib0.8003 up
    no_carrier 1 ib0.8003
    on 3 ip link add link ib2 name green type ipoib pkey 0x8003
    PARTITIONS+='
green=0x0003, ipoib : ALL=full;' write_partitions
    sweep
    on 1 ip addr add 10.3.0.1/24 dev ib0.8003
    address 3 green 3
    wait_for 20 carrier 1 ib0.8003
    ping_ok 1 10.3.0.3
    # The P_Key is removed again.
    write_partitions
    sweep
    wait_for 20 no_carrier 1 ib0.8003
    drop_child 1 ib0 0x8003 ib0.8003
    on 3 ip link del green
}

# The parent has the P_Key at index 0 of the port's table.
xfail_stock_parent_follows_the_first_pkey_of_the_table='IPv6 hosts are not found: addresses with the former P_Key are ignored'
test_parent_follows_the_first_pkey_of_the_table() {
    local found=
    pkey_is() { # HOST P_KEY, 4 digits
        [ "$(on "$1" cat "/sys/class/net/$(interface_of "$1")/pkey")" = "0x$2" ] &&
            on "$1" ip link show dev "$(interface_of "$1")" | says "brd 00:ff:ff:ff:ff:12:40:1b:${2:0:2}:${2:2}:"
    }
    all_have() { local host; for host in 1 2 3; do pkey_is $host "$1" || return 1; done; }
    all_have ffff
    PARTITIONS+='
first=0x0004, indx0, ipoib : ALL=full;' write_partitions
    sweep
    ! wait_for 20 all_have 8004 || ! wait_for 20 reaches 1 10.0.0.2 || ! wait_for 20 reaches 3 fd00::1 || found=1
    write_partitions
    sweep
    wait_for 20 all_have ffff
    wait_for 20 all_are_members
    wait_for 20 reaches 1 10.0.0.2
    [ -n "$found" ]
}

test_children_are_deleted_through_sysfs_and_rtnetlink() {
    make_blue_children
    drop_child 1 ib0 0x8001 ib0.8001
    on 2 ip link del blue
    ! on 2 test -e /sys/class/net/blue || return 1
    # A parent cannot be deleted.
    on 1 ip link del ib0 || true
    on 1 test -e /sys/class/net/ib0
}

test_children_are_created_and_deleted_under_traffic() {
    local i
    ! on 1 test -e /sys/class/net/ib0.8001 || drop_child 1 ib0 0x8001 ib0.8001
    # Without -4 ping has an ICMPv6 socket too, which it never reads, and which keeps the neighbour solicitations that
    # children receive: a page of each child that is gone.
    background_ping 1 10.0.0.2 -4
    for i in $(seq 30); do
        make_child 1 0x8001
        on 1 ip link add link ib0 name another type ipoib pkey 0x8001
        on 1 ip link set another up
        on 1 ip link set ib0.8001 up
        on 1 ip link del another
        drop_child 1 ib0 0x8001 ib0.8001
    done
    pings_arrive 2
    stop_traffic
    ping_ok 1 10.0.0.2
}

test_hca_with_children_is_unplugged() {
    make_child 3 0x8001
    on 3 ip link add link ib2 name blue type ipoib pkey 0x8001
    on 3 ip link set blue up
    knob 3 plugged 0
    ! on 3 test -e /sys/class/net/blue || return 1
    ! on 3 test -e /sys/class/net/ib2.8001 || return 1
    plug_in 3
    wait_for 30 port_state_is 2 "4: ACTIVE"
    add_host 3
    wait_for 30 carrier 3
    wait_for 20 reaches 3 10.0.0.1
}
