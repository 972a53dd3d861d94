# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# systemd-networkd configures host 2: the MTU and the addresses of ib1, and its child blue from a .netdev. Host 1 is the
# peer. Debian 12's networkd does not know the section [IPoIB] of a .network, for the mode of the parent itself.
PORTS=2
HOSTS=1
PARTITIONS='blue=0x0001, ipoib : ALL=full;'
files=/run/network.2

# shellcheck source=/dev/null
. ./networkd.sh

write_files() { # MODE OF BLUE, MORE OF ITS [NetDev]...
    local mode=$1
    shift
    mkdir -p $files
    printf '%s\n' '[Match]' Name=ib1 '[Link]' MTUBytes=1800 '[Network]' IPoIB=blue Address=10.5.0.2/24 Address=fd05::2/64 \
        >$files/ib1.network
    printf '%s\n' '[NetDev]' Name=blue Kind=ipoib "$@" '[IPoIB]' PartitionKey=0x8001 "Mode=$mode" >$files/blue.netdev
    printf '%s\n' '[Match]' Name=blue '[Network]' Address=10.6.0.2/24 >$files/blue.network
}
link_shows() { on 2 ip -d link show "$1" | says "$2"; }   # INTERFACE WORDS
has_address() { on 2 ip addr show dev "$1" | says " $2 "; }  # INTERFACE ADDRESS
has_no_address() { ! has_address "$@"; }
all_is_reached() { reaches 2 10.5.0.1 && reaches 2 fd05::1 && reaches 2 10.6.0.1; }

# Starts networkd with ib1's child in connected mode, unless an earlier test has another one.
before_each() {
    on 1 test -e /sys/class/net/blue || {
        on 1 ip addr add 10.5.0.1/24 dev ib0
        on 1 ip addr add fd05::1/64 dev ib0
        on 1 ip link add link ib0 name blue type ipoib pkey 0x8001 mode connected
        on 1 ip addr add 10.6.0.1/24 dev blue
        on 1 ip link set blue up
    }
    ! networkd_is_gone || {
        on 2 ip addr flush dev ib1
        on 2 ip link set ib1 down
        write_files connected MACAddress=none
        start_networkd 2
    }
}

test_mtu_and_addresses_are_set() {
    wait_for 20 has_address ib1 10.5.0.2/24
    wait_for 20 has_address ib1 fd05::2/64
    [ "$(attribute 2 ib1 mtu)" = 1800 ]
    wait_for 20 reaches 2 10.5.0.1
    ping_ok 2 10.5.0.1 -s 10000
    wait_for 20 reaches 2 fd05::1
}

test_child_is_created() {
    wait_for 20 has_address blue 10.6.0.2/24
    link_shows blue 'ipoib pkey *0x8001 mode *connected'
    link_shows blue 'blue@ib1'
    wait_for 20 reaches 2 10.6.0.1
    ping_ok 2 10.6.0.1 -s 10000
}

test_link_flap_is_followed() {
    wait_for 20 has_address ib1 10.5.0.2/24
    wait_for 20 has_address blue 10.6.0.2/24
    knob 2 link 0
    wait_for 10 has_no_address ib1 10.5.0.2/24
    wait_for 10 has_no_address blue 10.6.0.2/24
    link_up 2
    wait_for 30 has_address ib1 10.5.0.2/24
    wait_for 30 has_address blue 10.6.0.2/24
    wait_for 20 all_is_reached
}

make_blue_anew() { # as write_files
    wait_for 20 on 2 test -e /sys/class/net/blue
    stop_networkd
    on 2 ip link del blue
    write_files "$@"
    start_networkd 2
}
test_child_is_created_in_the_other_mode() {
    make_blue_anew datagram MACAddress=none
    wait_for 20 has_address blue 10.6.0.2/24
    link_shows blue 'ipoib pkey *0x8001 mode *datagram'
    wait_for 20 all_is_reached
    ping_ok 2 10.6.0.1 -s 10000
}

# Without MACAddress=none, networkd generates an address for netdevs that it creates.
xfail_stock_child_with_a_generated_address_works='the in-tree driver takes the GID in it for its own'
test_child_with_a_generated_address_works() {
    make_blue_anew connected
    wait_for 20 link_shows blue 'ipoib pkey *0x8001 mode *connected'
    wait_for 15 has_address blue 10.6.0.2/24
    wait_for 20 all_is_reached
    [ "$(attribute 2 blue address | cut -c13-)" = "$(attribute 2 ib1 address | cut -c13-)" ]
}

test_interface_added_later_is_set_up_with_its_child() {
    stop_networkd
    write_files connected MACAddress=none
    knob 2 plugged 0
    ! on 2 test -e /sys/class/net/blue || return 1
    # networkd creates a netdev once in its life.
    start_networkd 2
    plug_in 2
    wait_for 30 port_state_is 1 "4: ACTIVE"
    wait_for 10 born_as 2
    # Two commands, in this order: after a single one networkd would look up only the interface's former name, once.
    ip link set "$(born_as 2)" name ib1
    ip link set ib1 netns h2
    wait_for 30 has_address ib1 10.5.0.2/24
    wait_for 30 has_address blue 10.6.0.2/24
    wait_for 20 all_is_reached
    stop_networkd
}
