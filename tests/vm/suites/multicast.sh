# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Four hosts: groups with listeners, send-only groups, broadcast.
PORTS=4
HOSTS=1

# shellcheck source=/dev/null
. ./groups.sh

before_each() { nobody_listens; }
test_ipv4_group_reaches_several_receivers() { group_is_heard 239.1.2.3 1 2 3; nobody_listens; }
test_ipv6_group_reaches_several_receivers() { group_is_heard ff15::1234 1 2 3; nobody_listens; }

test_hosts_outside_a_group_receive_nothing() {
    local before heard
    group_is_heard 239.9.9.9 1 2 3
    before=$(statistic 4 rx_packets) heard=$(statistic 2 rx_packets)
    for _ in $(seq 100); do echo 239.9.9.9; done | on 1 python3 /test/group.py send-many ib0
    wait_for 5 eval "[ \$((\$(statistic 2 rx_packets) - $heard)) -ge 100 ]"
    # A few packets of IGMP and neighbour discovery may pass.
    [ $(($(statistic 4 rx_packets) - before)) -lt 15 ]
    nobody_listens
}

test_sender_is_a_send_only_member() {
    send 1 239.7.7.7 x
    is_member() { [ "$(members_of ff12:401b:ffff::f07:707)" = 1 ]; }
    wait_for 10 is_member
    # Join state 8: send-only full member.
    saquery --smkey 1 -m 2>/dev/null | grep -A 3 'f07:707$' | says 'ScopeState.*0x8'
}

test_group_without_listeners_is_left() {
    is_there() { saquery -g | says -i 'ff12:401b:ffff::f05:505'; }
    is_gone() { ! is_there; }
    listen 2 239.5.5.5 >/dev/null &
    wait_for 15 is_there
    nobody_listens
    wait_for 15 is_gone
}

test_broadcast_reaches_all() {
    local before host
    for host in 2 3 4; do
        on "$host" sysctl -qw net.ipv4.icmp_echo_ignore_broadcasts=0
        eval "before_$host=$(statistic "$host" rx_packets)"
    done
    # Some of the replies are duplicates of the first.
    on 1 ping -q -b -c 5 -i 0.2 10.0.0.255 >/run/ping.out 2>&1 || true
    for host in 2 3 4; do
        before=before_$host
        [ $(($(statistic "$host" rx_packets) - ${!before})) -ge 5 ]
    done
    grep -qE '\+[0-9]+ duplicates' /run/ping.out
}

# The HCA returns the port's own packets to queue pairs of the group, of which the interface's is one.
test_own_multicast_is_not_received() {
    local before delivered
    listen 1 239.3.3.3 >/dev/null &
    wait_for 15 listening 1 239.3.3.3
    joined() { [ "$(members_of ff12:401b:ffff::f03:303)" = 1 ]; }
    wait_for 15 joined
    before=$(statistic 1 rx_packets) delivered=$(counter 1 delivered)
    for _ in $(seq 50); do echo 239.3.3.3; done | on 1 python3 /test/group.py send-many ib0
    wait_for 5 eval "[ \$((\$(counter 1 delivered) - $delivered)) -ge 50 ]"
    [ $(($(statistic 1 rx_packets) - before)) -lt 20 ]
    nobody_listens
}

test_two_hundred_groups_are_received() {
    on 2 python3 /test/group.py listen-many 200 ib1 >/run/many &
    wait_for 30 sh -c "[ \$(saquery -g | grep -ci 'ff12:401b:ffff::f0a:') -ge 200 ]"
    said_and_heard() {
        send 1 239.10.0.199 last
        grep -q last /run/many
    }
    wait_for 10 said_and_heard
    nobody_listens
}

# Listed by a packet socket, without changes: addresses of another link, of none, and, to compare, one of this link.
hold_group() { # ADDRESS
    on 2 python3 -c 'import socket, struct, sys, time
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
for address in sys.argv[1:]:
    s.setsockopt(263, 1, struct.pack("@iHH32s", socket.if_nametoindex("ib1"), 0, 20, bytes.fromhex(address)))
time.sleep(1e6)' "$@" &
    holder=$!
    trap 'kill $holder 2>/dev/null || true' EXIT
}
known() { grep -qi "GID: ff$1\$" /sys/kernel/debug/ipoib/ib1_mcg; }
test_malformed_group_addresses_are_not_joined() {
    local good=00ffffffff12401bffff0000000000000f202020
    hold_group 00ffffffff12dead80550000000000000f202020 00000048ff12401bffff0000000000000f303030 \
        00fffffffe12401bffff0000000000000f404040 0000000000000000000000000000000000000000 $good
    wait_for 10 on 2 grep -q $good /proc/net/dev_mcast
    wait_for 15 known 12:401b:ffff:0:0:0:f20:2020
    ! known '12:dead.*' || return 1
    ! known '.*f30:3030' || return 1
    ! grep -qi 'f40:4040\|GID: 0:0' /sys/kernel/debug/ipoib/ib1_mcg || return 1
    ! saquery -g | says -i 'dead\|f30:3030\|f40:4040' || return 1
    kill $holder
    both_work
}
test_group_of_another_signature_is_not_joined() {
    local good=00ffffffff12401bffff0000000000000f505050
    hold_group 00ffffffff12deadffff0000000000000f606060 $good
    wait_for 15 known 12:401b:ffff:0:0:0:f50:5050
    ! known '12:dead.*'
}
