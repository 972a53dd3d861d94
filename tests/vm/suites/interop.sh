# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Two machines, each with its own driver: host 1 here, host 2 on the other.
MACHINES=2
PORTS=2
PROCESSORS=2
HOSTS=1
PARTITIONS='Blue=0x8001, ipoib : ALL=full;'

# shellcheck source=/dev/null
. ./connections.sh
# shellcheck source=/dev/null
. ./groups.sh
# shellcheck source=/dev/null
. ./copies.sh

both_ways() { # COMMAND: with 1 2 and with 2 1
    "$1" 1 2
    "$1" 2 1
}
address_of() { echo "10.0.0.$1"; }

test_machines_have_separate_switches() {
    echo "# here: $DRIVER on $(uname -r); there: $(there printenv DRIVER) on $(there uname -r); OpenSM with host $SM_HOST"
    [ "$(ibnetdiscover | grep -c ^Switch)" = 2 ]
}

pings() {
    wait_for 20 reaches "$1" "$(address_of "$2")"
    wait_for 20 reaches "$1" "fd00::$2"
    ping_ok "$1" "$(address_of "$2")"
    ping_ok "$1" "fd00::$2"
}
test_ping_both_ways() { both_ways pings; }

test_hosts_know_each_others_addresses() {
    knows() { [ "$(on "$1" ip -j neigh show "$(address_of "$2")" | jq -r '.[0].lladdr')" = "$(lladdr "$2")" ]; }
    both_ways knows
}

floods() { flood "$1" "$(address_of "$2")" 1000 -s "$(($(mtu "$1") - 28))"; }
test_full_size_packets_both_ways() { both_ways floods; }

streams() { iperf "$1" "$2" -t 3; }
test_tcp_both_ways() { both_ways streams; }
test_tcp_both_ways_at_once() { iperf 1 2 -t 3 --bidir; }
datagrams() { udp "$1" "$2" 20M -t 3; }
test_udp_both_ways() { both_ways datagrams; }

# A receiver of a group at host $2 hears host $1.
hears() {
    local group
    for group in 239.1.2.3 ff15::1234; do
        group_is_heard $group "$1" "$2"
        # A listener would hear its own host when that sends.
        at "$2" nobody_listens
    done
}
test_multicast_both_ways() { both_ways hears; }

test_broadcast_both_ways() { both_ways pings_broadcast; }

# Uses create_child: in the in-tree driver only such children have a mode.
add_child() { # HOST
    local parent
    parent=$(interface_of "$1")
    make_child "$1" 0x8001
    on "$1" ip link set "$parent.8001" name blue
    on "$1" ip addr add "10.1.0.$1/24" dev blue
    on "$1" ip link set blue up
}
test_children_both_ways() {
    add_child 1
    add_child 2
    wait_for 20 reaches 1 10.1.0.2
    ping_ok 1 10.1.0.2 -s 1900
    ping_ok 2 10.1.0.1 -s 1900
    on 1 ip link del blue
    on 2 ip link del blue
}

to_mode() { # OF-HOST-1 OF-HOST-2
    set_mode 1 "$1"
    set_mode 2 "$2"
}
test_connected_mode() {
    to_mode connected connected
    [ "$(mtu 1) $(mtu 2)" = "65520 65520" ]
    wait_for 20 reaches 1 10.0.0.2
    both_ways pings
    # One at a time (-A): ICMP's socket has space for two such replies (pings.sh).
    lossless 1 -A -c 200 -s 60000 10.0.0.2
    lossless 2 -A -c 200 -s 60000 10.0.0.1
    both_ways streams
    iperf 1 2 -t 3 --bidir
    both_ways hears
    # The packets were messages on connections, not datagrams.
    [ "$(counter 1 rc_sent)" -gt 1000 ] && [ "$(counter 2 rc_sent)" -gt 1000 ]
}
# Host 1 sends by four queues: by send-only queue pairs, whose QPNs are not its address's, or by several connections.
xfail_stock_datagrams_of_several_queue_pairs_are_accepted='the in-tree driver has one queue'
test_datagrams_of_several_queue_pairs_are_accepted() {
    local others
    to_mode datagram datagram
    on 1 ethtool -L ib0 tx 4
    others=$(further_packets 1)
    wait_for 20 reaches 1 10.0.0.2
    both_ways pings
    flood 1 10.0.0.2 1000 -s "$(($(mtu 1) - 28))"
    iperf 1 2 -P 16 -t 8
    both_ways hears
    others=$(($(further_packets 1) - others))
    echo "# $others packets of other queue pairs than the address's"
    [ "$others" -gt 1000 ]
    on 1 ethtool -L ib0 tx 1
}
xfail_stock_several_connections_are_accepted='the in-tree driver has one queue'
test_several_connections_are_accepted() {
    on 1 ethtool -L ib0 rx 4
    to_mode connected connected
    on 1 ethtool -L ib0 tx 4
    wait_for 20 reaches 1 10.0.0.2
    # Busy, but within the means of a slow machine: a peer whose receive queue is full ends a connection (RNR NAK).
    iperf 1 2 -P 16 -b 4M -t $((20 * patience)) &
    wait_for 15 are_connections 1 4
    wait $!
    both_ways pings
    on 1 ethtool -L ib0 rx 2 tx 2
}
# The offer is in private data that the other driver ignores.
test_icrc_flag_keeps_checksums_for_a_peer_without_an_offer() {
    on 1 ethtool --set-priv-flags ib0 icrc-as-checksum on
    to_mode connected connected
    wait_for 20 reaches 1 10.0.0.2
    both_ways streams
    [ "$(stack_counter 2 TcpInCsumErrors)" = 0 ]
    on 1 ethtool --set-priv-flags ib0 icrc-as-checksum off
    wait_for 20 reaches 1 10.0.0.2
}
test_connected_children() {
    local host
    add_child 1
    add_child 2
    for host in 1 2; do on $host sh -c 'echo connected >/sys/class/net/blue/mode'; done
    wait_for 20 reaches 1 10.1.0.2
    ping_ok 1 10.1.0.2 -s 60000
    ping_ok 2 10.1.0.1 -s 60000
    on 1 ip link del blue
    on 2 ip link del blue
}

# A host in datagram mode accepts connections too, so long packets arrive; replies are datagrams, whose path MTU
# tracepath finds. A host whose address has no connected-mode flag gets no connection, and the other learns its MTU.
mixed() { # CONNECTED DATAGRAM
    local without_flag
    to_mode datagram datagram
    set_mode "$1" connected
    wait_for 20 reaches "$1" "$(address_of "$2")"
    ping_ok "$1" "$(address_of "$2")" -s 60000
    [ "$(learned_pmtu "$2" "$(address_of "$1")")" = "$(mtu "$2")" ] || fail "$(cat /run/tracepath)"
    both_ways streams
    without_flag=$(lladdr "$2" | sed 's/^80/00/')
    on "$1" ip route flush cache
    on "$1" ip neigh replace "$(address_of "$2")" lladdr "$without_flag" dev "$(interface_of "$1")"
    [ "$(learned_pmtu "$1" "$(address_of "$2")")" = "$(mtu "$2")" ] || fail "$(cat /run/tracepath)"
    ping_ok "$1" "$(address_of "$2")" -M "do" -s $(($(mtu "$2") - 28))
    ping_ok "$1" "$(address_of "$2")" -s 20000
    streams "$1" "$2"
    on "$1" ip neigh del "$(address_of "$2")" dev "$(interface_of "$1")"
    on "$1" ip route flush cache
}
test_path_mtu_is_learned_between_modes() {
    mixed 1 2
    mixed 2 1
    to_mode datagram datagram
    wait_for 20 reaches 1 10.0.0.2
}

# Unloads the driver of a host while the other sends, and loads it again.
reload() { # HOST OTHER
    local pid lost
    on "$2" ping -q -i 0.05 -c 400 "$(address_of "$1")" >/run/ping.out &
    pid=$!
    pings_arrive "$1"
    at "$1" unload_driver
    lost=$(unanswered "$2")
    some_are_lost() { [ "$(unanswered "$2")" -gt $((lost + 5)) ]; }
    wait_for 20 some_are_lost "$@"
    at "$1" load_driver
    add_host "$1"
    wait_for 30 addresses_ready "$1"
    # The new queue pair is not announced: ARP trusts an entry for 45 s at most, then probes for 8.
    wait_for 60 reaches "$2" "$(address_of "$1")"
    wait_for 60 reaches "$2" "fd00::$1"
    wait $pid || true
    echo "# $(grep transmitted /run/ping.out)"
    both_ways pings
    streams "$1" "$2"
}
test_driver_is_reloaded_under_traffic() { both_ways reload; }
test_driver_is_reloaded_under_connected_traffic() {
    to_mode connected connected
    wait_for 20 reaches 1 10.0.0.2
    reload 1 2
    to_mode connected connected
    wait_for 20 reaches 1 10.0.0.2
    reload 2 1
    to_mode datagram datagram
    wait_for 20 reaches 1 10.0.0.2
}

test_gigabyte_arrives_whole() {
    copies 1G 1 2
    to_mode connected connected
    wait_for 20 reaches 1 10.0.0.2
    copies 1G 2 1
    to_mode datagram datagram
    wait_for 20 reaches 1 10.0.0.2
}

# Runs TCP both ways for MINUTES, with pings, groups and short-lived children beside.
test_mixed_traffic_keeps_its_connection() {
    local seconds=$((60 * MINUTES)) pid sent=0 answered=0
    serve_iperf 2
    on 1 iperf3 -c 10.0.0.2 -t $seconds --bidir -i 60 >/run/long.out 2>&1 &
    pid=$!
    # With the link filled by TCP single datagrams may get lost, but not all of several.
    answers() {
        local counts
        on "$1" ping -q -W 5 -c 3 -i 0.2 "${@:3}" "$2" >/run/ping.out || fail "$(grep transmitted /run/ping.out)"
        read -ra counts < <(sed -nE 's/^([0-9]+) packets transmitted, ([0-9]+) received.*/\1 \2/p' /run/ping.out)
        sent=$((sent + counts[0])) answered=$((answered + counts[1]))
    }
    one_round() {
        answers 1 10.0.0.2 -s 1500
        answers 2 fd00::1
        hears 1 2
        add_child 1
        add_child 2
        wait_for 20 reaches 1 10.1.0.2
        on 1 ip link del blue
        on 2 ip link del blue
        sleep 5
    }
    repeat_for $((seconds - 20)) one_round
    wait $pid
    echo "# $answered of $sent pings answered; no buffer for $(counter 1 drop_no_receive) and $(counter 2 drop_no_receive) datagrams"
    grep -E 'sender|receiver' /run/long.out | tr -s ' ' | sed 's/^/# /'
    ! grep -i error /run/long.out || return 1
}
