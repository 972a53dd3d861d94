# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Host 2 has ib1 in VRF red and later its child, blue, in VRF blue, both as 10.0.0.2. In red 10.0.0.1 is host 1; in blue
# it is host 1's child, in a namespace of its own.
PORTS=2
HOSTS=1
PARTITIONS='blue=0x0001, ipoib : ALL=full;'

make_vrf() { # NAME TABLE
    on 2 ip link add "$1" type vrf table "$2"
    on 2 ip link set "$1" up
}
# Entering and leaving a VRF takes an interface down and up, which removes its IPv6 addresses.
enslave() { # INTERFACE VRF
    on 2 ip link set "$1" master "$2"
    on 2 ip addr replace fd00::2/64 dev "$1" nodad
}
release() { # INTERFACE
    on 2 ip link set "$1" nomaster
    on 2 ip addr replace fd00::2/64 dev "$1" nodad
}
reaches_in() { on 2 ping -I "$1" -q -W 1 -c 1 "$2" >/dev/null 2>&1; }   # VRF ADDRESS

# Servers that answer with their name, over TCP.
serves_names() { ip netns exec "$1" ss -ltn | says :7000; } # NAMESPACE
serve_name() {                                             # NAMESPACE NAME
    ip netns exec "$1" socat TCP-LISTEN:7000,reuseaddr,fork "SYSTEM:echo $2" &
    wait_for 5 serves_names "$1"
}
name_in() { on 2 socat -u -T 5 "TCP:10.0.0.1:7000,so-bindtodevice=$1" -; }   # VRF

# Puts host 2 into red.
before_each() {
    on 2 test -e /sys/class/net/red || {
        modprobe vrf
        make_vrf red 10
    }
    on 2 test -e /sys/class/net/ib1/master || enslave ib1 red
    wait_for 20 reaches_in red 10.0.0.1
    serves_names h1 || serve_name h1 host
}
make_second_vrf() {
    ip netns add other
    on 1 ip link add link ib0 name blue netns other type ipoib pkey 0x8001
    ip netns exec other ip addr add 10.0.0.1/24 dev blue
    ip netns exec other ip link set blue up
    on 2 ip link add link ib1 name child type ipoib pkey 0x8001
    make_vrf blue 11
    on 2 ip link set child master blue
    on 2 ip addr add 10.0.0.2/24 dev child
    on 2 ip link set child up
    wait_for 20 carrier 2 child
    wait_for 20 reaches_in blue 10.0.0.1
    serve_name other child
}
end_second_vrf() {
    # A deleted VRF releases its members.
    on 2 ip link del blue
    on 2 ip link set child down
    ! on 2 ip -d link show child | says 'vrf' || return 1
    on 2 ip link del child
    # Servers in the namespace keep it busy.
    ip netns pids other | xargs -r kill
    ip netns del other
}

test_ping_and_tcp_within_a_vrf() {
    ping_ok 2 10.0.0.1 -I red
    ping_ok 2 10.0.0.1 -I red -s 10000
    ping_ok 1 10.0.0.2
    wait_for 10 reaches_in red fd00::1
    ping_ok 2 fd00::1 -I red
    flood 1 10.0.0.2 500
    serve_iperf 1
    on 2 timeout $((30 * patience)) iperf3 -c 10.0.0.1 --bind-dev red -t 2 --bidir >/run/iperf.out
    grep -q receiver /run/iperf.out
}

test_server_within_a_vrf_is_reached() {
    on 2 iperf3 -s -1 --bind-dev red --daemon
    wait_for 5 listens 2 red:5201
    on 1 timeout $((30 * patience)) iperf3 -c 10.0.0.2 -t 2 >/run/iperf.out
    grep -q receiver /run/iperf.out
}

test_vrf_is_isolated_from_outside() {
    ! reaches 2 10.0.0.1 2>/dev/null || return 1
    ! reaches 2 fd00::1 2>/dev/null || return 1
    [ "$(name_in red)" = host ]
    # No route leads there from outside, and sockets bound to no VRF are not reached from within.
    ! on 2 socat -u TCP:10.0.0.1:7000,connect-timeout=3 - 2>/dev/null || return 1
    on 2 socat TCP-LISTEN:7001,reuseaddr,fork SYSTEM:true &
    wait_for 5 listens 2 :7001
    ! on 1 socat -u TCP:10.0.0.2:7001,connect-timeout=3 - 2>/dev/null || return 1
}

test_same_addresses_in_two_vrfs() {
    make_second_vrf
    [ "$(name_in red)" = host ]
    [ "$(name_in blue)" = child ]
    ping_ok 2 10.0.0.1 -I red
    ping_ok 2 10.0.0.1 -I blue
    end_second_vrf
}

test_connected_mode_within_a_vrf() {
    set_mode 1 connected
    set_mode 2 connected
    [ "$(mtu 2)" = 65520 ]
    wait_for 20 reaches_in red 10.0.0.1
    ping_ok 2 10.0.0.1 -I red -s 60000
    ping_ok 1 10.0.0.2 -s 60000
    set_mode 1 datagram
    set_mode 2 datagram
}

test_interface_enters_and_leaves_a_vrf_under_traffic() {
    background_ping 1 10.0.0.2
    for _ in $(seq 10); do
        release ib1
        enslave ib1 red
        pings_arrive 2
    done
    stop_traffic
    wait_for 20 reaches_in red 10.0.0.1
    flood 1 10.0.0.2 500
}

test_interface_released_from_a_vrf_communicates() {
    release ib1
    wait_for 20 reaches 2 10.0.0.1
    ping_ok 2 10.0.0.1
    wait_for 10 reaches 1 fd00::2
    ping_ok 1 fd00::2
    ! reaches_in red 10.0.0.1 2>/dev/null || return 1
}
