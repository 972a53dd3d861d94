# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Eight hosts in connected mode, every pair at once: 56 connections.
PORTS=8
PROCESSORS=2
HOSTS=1
MODE=connected

# shellcheck source=/dev/null
. ./connections.sh

say_what_was_dropped() {
    local host
    for host in $(seq "$PORTS"); do
        on "$host" ethtool -S "$(interface_of "$host")" |
            awk -v host="$host" '/drop|fail|refus|lost/ && $2 > 0 { print "# host", host, $1, $2 }'
    done
}
# Pings from every host to every other, all at the same time, without loss.
all_pairs() { # ping arguments
    local from to hosts pids=()
    own_answers_only
    mapfile -t hosts < <(seq "$PORTS")
    begin_pings "${hosts[@]}"
    for from in "${hosts[@]}"; do
        for to in "${hosts[@]}"; do
            [ "$from" != "$to" ] || continue
            on "$from" ping -q -W 20 "$@" "10.0.0.$to" >"/run/pair.$from.$to" 2>&1 &
            pids+=($!)
        done
    done
    wait "${pids[@]}" || true
    none_was_lost /run/pair.* || {
        say_what_was_dropped
        return 1
    }
}
# Ping's raw sockets each get every reply, and their buffers hold three long ones; its datagram sockets get their own
# only.
own_answers_only() {
    local host
    for host in $(seq "$PORTS"); do on "$host" sysctl -qw net.ipv4.ping_group_range='0 0'; done
}

test_all_pairs_ping_at_once() {
    all_pairs -c 10 -i 0.1
    # Two ends each.
    [ "$(connection_ends)" = $((2 * 56)) ] || fail "$(connection_ends) ends"
}
test_all_pairs_ping_with_long_packets() { all_pairs -c 5 -i 0.2 -s 60000; }
test_four_pairs_of_tcp_at_once() { four_pairs_of_iperf; }
test_connections_are_listed() {
    [ "$DRIVER" = ours ] || return 77
    all_pairs -c 1
    [ "$(connections_of 1 active)" = 7 ]
    [ "$(connections_of 1 passive)" = 7 ]
    # The file follows the interface's name.
    on 1 ip link set ib0 down
    on 1 ip link set ib0 name other
    [ -e /sys/kernel/debug/ipoib/other_cm ]
    [ ! -e /sys/kernel/debug/ipoib/ib0_cm ]
    on 1 ip link set other name ib0
    on 1 ip link set ib0 up
    [ -e /sys/kernel/debug/ipoib/ib0_cm ]
}
