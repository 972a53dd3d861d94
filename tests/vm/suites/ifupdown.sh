# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Debian's ifup and ifdown on ib0 and its children, in the initial namespace; host 2 is the peer. ifup itself creates a
# child that has a stanza, through create_child, with the P_Key in its name; a command of ib0's stanza creates another
# one.
PORTS=2
PARTITIONS='blue=0x0001, ipoib : ALL=full;
red=0x0002, ipoib : ALL=full;'

write_interfaces() { # MODE MTU
    cat >/etc/network/interfaces <<STANZAS
auto lo
iface lo inet loopback

auto ib0
iface ib0 inet static
    address 10.0.0.1/24
    mtu $2
    pre-up echo $1 >/sys/class/net/\$IFACE/mode
    pre-up echo 0x8002 >/sys/class/net/\$IFACE/create_child
    up ip addr add 10.2.0.1/24 dev \$IFACE.8002
    up ip link set \$IFACE.8002 up
    post-down echo 0x8002 >/sys/class/net/\$IFACE/delete_child
iface ib0 inet6 static
    address fd00::1/64

auto ib0.8001
iface ib0.8001 inet static
    address 10.1.0.1/24
STANZAS
}
is_up() { [ "$(file "$1" carrier 2>/dev/null)" = 1 ]; }      # INTERFACE
up() { timeout $((60 * patience)) ifup "$@" >/run/ifup.out 2>&1 || { sed 's/^/# /' /run/ifup.out; return 1; }; }
down() { timeout $((60 * patience)) ifdown "$@" >/run/ifup.out 2>&1 || { sed 's/^/# /' /run/ifup.out; return 1; }; }
peer_child() { # NAME PKEY ADDRESS
    on 2 ip link add link ib1 name "$1" type ipoib pkey "$2"
    on 2 ip addr add "$3" dev "$1"
    on 2 ip link set "$1" up
}

is_configured() { ifquery --state | says "^$1="; } # INTERFACE
# Sets up the peer and ib0.
before_each() {
    [ -e /sys/module/ib_ipoib ] || {
        load_driver
        add_host 2
        set_mode 2 connected
        peer_child blue 0x8001 10.1.0.2/24
        peer_child red 0x8002 10.2.0.2/24
    }
    is_configured ib0 || {
        write_interfaces connected 65520
        up ib0
    }
}

test_ifup_sets_mode_mtu_and_addresses() {
    [ "$(file ib0 mode)" = connected ]
    [ "$(file ib0 mtu)" = 65520 ]
    ip addr show ib0 | says 'inet 10.0.0.1/24'
    ip addr show ib0 | says 'inet6 fd00::1/64'
    wait_for 20 is_up ib0
    wait_for 20 here_reaches 10.0.0.2
    wait_for 20 here_reaches fd00::2
    ping_ok 2 10.0.0.1 -s 60000
    ping_ok 2 fd00::1
}

test_ifup_command_creates_a_child() {
    [ "$(file ib0.8002 pkey)" = 0x8002 ]
    wait_for 20 is_up ib0.8002
    wait_for 20 here_reaches 10.2.0.2
    ping_ok 2 10.2.0.1
}

test_ifup_creates_the_child_of_a_stanza() {
    is_configured ib0.8001 || up ib0.8001
    [ "$(file ib0.8001 pkey)" = 0x8001 ]
    [ "$(file ib0.8001 parent)" = ib0 ]
    wait_for 20 is_up ib0.8001
    wait_for 20 here_reaches 10.1.0.2
    ping_ok 2 10.1.0.1
    is_configured ib0.8001
}

child_is_gone() { [ ! -e "/sys/class/net/$1" ]; }   # INTERFACE; the kernel's own driver takes a while
test_ifdown_removes_children_and_addresses() {
    is_configured ib0.8001 || up ib0.8001
    wait_for 20 here_reaches 10.0.0.2
    down ib0.8001
    wait_for 10 child_is_gone ib0.8001
    ping_ok 2 10.0.0.1
    down ib0
    wait_for 10 child_is_gone ib0.8002
    ! ip link show ib0 | says '[<,]UP[,>]' || return 1
    ! ip addr show ib0 | says 'inet ' || return 1
    ! reaches 2 10.0.0.1 || return 1
}

test_ifup_and_ifdown_of_all_repeat() {
    down -a
    write_interfaces datagram 2044
    for _ in 1 2; do
        up -a
        [ "$(file ib0 mode)" = datagram ]
        [ "$(file ib0 mtu)" = 2044 ]
        wait_for 20 here_reaches 10.0.0.2
        wait_for 20 here_reaches 10.1.0.2
        wait_for 20 here_reaches 10.2.0.2
        ping_ok 2 10.0.0.1 -s 10000
        down -a
        wait_for 10 child_is_gone ib0.8001
        wait_for 10 child_is_gone ib0.8002
    done
}
