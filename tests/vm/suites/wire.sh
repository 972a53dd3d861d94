# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Packets on the wire: a scenario of two hosts, captured, which tests/vm/check-captures judges on the host with tshark.
# With DRIVER=ours the kernel's own driver runs it first, in the same VM, for comparison.
PORTS=3
PARTITIONS='blue=0x0001, ipoib : ALL=full;'
# OpenSM's HCA has no host, so that all requests of the hosts to OpenSM are on the wire.
hosts='2 3'

each_host() { # COMMAND...: with the host as its last argument
    local host
    for host in $hosts; do "$@" "$host"; done
}
group_members() { saquery --smkey 1 -m 2>/dev/null | grep -c PortGid; }
no_group_has_members() { [ "$(group_members)" = 0 ]; }
forget_neighbours() { on "$1" ip neigh flush dev "$(interface_of "$1")"; }
# Twice: host 3 may probe host 2 between the two, which learns host 3's address from the probe.
forget_each_other() {
    each_host forget_neighbours
    each_host forget_neighbours
}

# Disables packets with the stack's own timing: no router solicitations.
quiet_host() {
    ip netns list | says -w "h$1" || ip netns add "h$1"
    on "$1" sysctl -qw net.ipv6.conf.default.router_solicitations=0
}
# Otherwise a ping's source would be ::1, and get no reply.
has_source() { on "$1" ip -6 route get fd00::9 | says "src fd00::$1 "; }
come_up() {
    each_host add_host
    each_host wait_for 30 addresses_ready
}

ping_once() { # ping arguments
    on 2 ping -q -W 10 -c 1 "$@" >/run/ping.out || fail "ping $*: $(grep transmitted /run/ping.out)"
}
# Runs in the background, as a process that can be ended.
listen() { exec ip netns exec h3 python3 group.py listen "$1" "$(interface_of 3)" >"/run/heard.$1"; } # GROUP
# The switch may learn of members some time after OpenSM.
heard() {
    on 2 python3 group.py send "$1" "$(interface_of 2)" hello
    grep -q hello "/run/heard.$1"
}
listening() { on 3 ip maddr show dev "$(interface_of 3)" | says "$1"; }
only_the_sender_is_left() { [ "$(members_of ff12:401b:ffff::f01:203)$(members_of ff12:601b:ffff::77)" = 11 ]; }
talk() {
    ping_once 10.0.0.3
    ping_once fd00::3
    ping_once -M "do" -s 2016 10.0.0.3
    wait_for 10 heard 239.1.2.3
    wait_for 10 heard ff15::77
}

# A name for each host: the in-tree driver's files in debugfs have the interface's name without its namespace.
child_of() { echo "blue$1"; } # HOST
child_is_ready() { ! on "$1" ip -6 addr show dev "$(child_of "$1")" | says tentative; }
add_child() {
    on "$1" ip link add link "$(interface_of "$1")" name "$(child_of "$1")" type ipoib pkey 0x8001
    on "$1" ip addr add "10.1.0.$1/24" dev "$(child_of "$1")"
    on "$1" ip link set "$(child_of "$1")" up
}
talk_in_blue() {
    each_host add_child
    each_host wait_for 20 child_is_ready
    wait_for 20 reaches 2 10.1.0.3
}
remove_child() { on "$1" ip link del "$(child_of "$1")"; }

mode_of_each() { # MODE
    local host
    for host in $hosts; do set_mode "$host" "$1"; done
}
talk_connected() {
    mode_of_each connected
    wait_for 20 reaches 2 10.0.0.3
    ping_once -s 20000 10.0.0.3
    ping_once -M "do" -s 65492 10.0.0.3
    mode_of_each datagram
    wait_for 20 connection_ends_are 0
    wait_for 20 reaches 2 10.0.0.3
}

go_down() {
    each_host take_down
    wait_for 20 no_group_has_members
}

captured() { # NAME COMMAND...
    local name=$1
    shift
    start_capture
    "$@"
    end_capture "$name"
}

play() { # DRIVER
    local group listeners=()
    DRIVER=$1 load_driver
    each_host quiet_host
    captured "$1/up" come_up
    for group in 239.1.2.3 ff15::77; do
        listen $group &
        listeners+=($!)
        wait_for 10 listening $group
    done
    forget_each_other
    each_host wait_for 20 has_source
    captured "$1/datagram" talk
    kill "${listeners[@]}"
    wait_for 10 only_the_sender_is_left
    captured "$1/child" talk_in_blue
    each_host remove_child
    forget_each_other
    captured "$1/connected" talk_connected
    captured "$1/down" go_down
    unload_driver
}

test_scenario_is_captured() {
    [ "$DRIVER" = stock ] || play stock
    play "$DRIVER"
    hand_out_captures
}
