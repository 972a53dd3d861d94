# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Two hosts in connected mode, MTU 65520.
PORTS=2
PROCESSORS=2
HOSTS=1
MODE=connected

# shellcheck source=/dev/null
. ./features.sh
# shellcheck source=/dev/null
. ./tracing.sh

test_mode_is_connected_and_mtu_65520() {
    [ "$(mode 1)" = connected ]
    [ "$(mtu 1)" = 65520 ]
    # The address has the connected-mode flag.
    on 1 ip link show ib0 | says 'link/infiniband 80:'
}

test_unicast_uses_connections() {
    local before
    reaches 1 10.0.0.2
    before=$(counter 1 rc_sent)
    flood 1 10.0.0.2 100
    [ $(($(counter 1 rc_sent) - before)) -ge 100 ]
}

test_pings_of_every_size_pass() {
    on 1 /test/ping_sizes.py 10.0.0.2 0-520 1000-65492/997 2000-2100 4040-4130 8150-8210 65400-65492
}
test_ipv6_pings_of_every_size_pass() {
    on 1 /test/ping_sizes.py fd00::2 0-520 1000-65472/997 2000-2100 4040-4130 8150-8210 65400-65472
}
test_pings_around_page_boundaries_pass() {
    local page sizes=()
    # From the ping's payload to the message's end: 8 bytes of ICMP, 20 of IP, 4 of encapsulation.
    for page in $(seq 1 15); do sizes+=("$((page * 4096 - 32 - 4))-$((page * 4096 - 32 + 4))"); done
    on 2 /test/ping_sizes.py 10.0.0.1 "${sizes[@]}"
}
test_longest_packet_is_65520_bytes() {
    ping_ok 1 10.0.0.2 -M "do" -s 65492
    too_long 1 10.0.0.2 65493
}

test_flood_ping_of_5000_loses_nothing() { flood 1 10.0.0.2 5000; }

test_tcp() { iperf 1 2 -n 20M; }
test_tcp_both_ways_at_once() { iperf 1 2 -n 40M --bidir; }
test_tcp_16_streams_both_ways() { iperf 1 2 -n 40M -P 8 --bidir; }
test_udp() { udp 1 2 200M -t 3 -l 60000; }

with_mtu() { # MTU
    set_mtu 1 "$1"
    set_mtu 2 "$1"
    [ "$(mtu 1)" = "$1" ]
    ping_ok 1 10.0.0.2 -M "do" -s $(($1 - 28))
    iperf 1 2 -n 20M
    udp 1 2 50M -t 2
    set_mtu 1 65520
    set_mtu 2 65520
}
test_traffic_with_mtu_2044() { with_mtu 2044; }
test_traffic_with_mtu_9000() { with_mtu 9000; }

skippable_stack_hands_over_more_than_64_kib='the kernel cannot segment such packets before 6.3'
xfail_stock_stack_hands_over_more_than_64_kib='packets are limited to 64 KiB, and the user cannot raise the limit'
test_stack_hands_over_more_than_64_kib() {
    local before address
    if ! kernel_is 6.3; then
        is_refused() { ! on 1 ip link set ib0 gso_max_size 65537; }
        is_refused
        return 77
    fi
    on 1 ./packet_limits.py ib0 200000
    on 2 ./packet_limits.py ib1 200000
    # TCP hands over three segments at once whatever its rate, and their messages wait for each other. A packet is
    # half of the receiver's window at most.
    on 1 sysctl -qw net.ipv4.tcp_min_tso_segs=3
    on 2 sysctl -qw net.ipv4.tcp_rmem='4096 2000000 6291456'
    on 2 ethtool -C ib1 rx-usecs 5000 rx-frames 3
    for address in '[fd00::2]' 10.0.0.2; do
        before=$(counter 1 rc_sent)
        trace net transfer 5 "$address:4000"
        # The stack segments at the sender, and merges at the receiver.
        seen 'net_dev_queue: dev=ib0 .* len=1[3-9][0-9]{4}( |$)'
        seen 'napi_gro_receive_entry: dev=ib1 .* len=6[0-9]{4} '
        seen 'netif_receive_skb: dev=ib1 .* len=1[3-9][0-9]{4}( |$)'
        [ $(($(counter 1 rc_sent) - before)) -ge 80 ]
    done
    on 1 sysctl -qw net.ipv4.tcp_min_tso_segs=2
    on 2 sysctl -qw net.ipv4.tcp_rmem='4096 131072 6291456'
    on 2 ethtool -C ib1 rx-usecs 0 rx-frames 0
    # A socket of connected mode sends on in datagram mode, which has its own limit.
    start_stream 1 2 0 fd00::2
    set_mode 1 datagram
    stream_goes_on 2
    end_stream 2
    [ "$(on 1 ip -d -j link show ib0 | jq '.[0].gso_max_size')" = 65536 ]
    set_mode 1 connected
    on 2 ./packet_limits.py ib1 65536
}

xfail_stock_messages_are_merged='in the in-tree driver the stack alone merges'
test_messages_are_merged() {
    local before
    set_mtu 1 2044
    set_mtu 2 2044
    before=$(statistic_of 2 rx_gro_hw_merged)
    without_wrong_checksums transfer 20
    set_mtu 1 65520
    set_mtu 2 65520
    [ $(($(statistic_of 2 rx_gro_hw_merged) - before)) -gt 1000 ]
}

# The MTUs of guides, from Ethernet's to the largest: each carries packets of its own size.
test_mtus_from_1500_to_65520_carry_full_packets() {
    local size
    for size in 1500 2044 4092 9000 16384 32768 65520; do
        set_mtu 1 $size
        set_mtu 2 $size
        [ "$(mtu 1) $(mtu 2)" = "$size $size" ]
        ping_ok 1 10.0.0.2 -M "do" -s $((size - 28))
        ping_ok 2 10.0.0.1 -M "do" -s $((size - 28))
        too_long 1 10.0.0.2 $((size - 27))
    done
}

test_multicast_is_sent_as_datagrams() {
    local sent received
    multicast_arrives
    pings_broadcast 1 2
    # Without answers, connections carry no packets.
    on 2 sysctl -qw net.ipv4.icmp_echo_ignore_broadcasts=1
    sent=$(counter 1 rc_sent) received=$(statistic 2 rx_packets)
    on 1 ping -q -b -c 20 -i 0.02 -W 1 10.0.0.255 >/dev/null || true
    [ $(($(statistic 2 rx_packets) - received)) -ge 20 ]
    [ $(($(counter 1 rc_sent) - sent)) -lt 10 ]
}

test_statistics_count_connected_traffic() {
    local tx rx
    tx=$(statistic 1 tx_packets) rx=$(statistic 2 rx_packets)
    flood 1 10.0.0.2 500 -s 3000
    wait_for 5 eval "[ \$((\$(statistic 1 tx_packets) - $tx)) -ge 500 ]"
    [ $(($(statistic 2 rx_packets) - rx)) -ge 500 ]
}

test_interface_down_and_up() {
    for _ in 1 2 3 4 5; do
        on 2 ip link set ib1 down
        on 2 ip link set ib1 up
        wait_for 20 carrier 2
        wait_for 20 reaches 1 10.0.0.2
    done
    ping_ok 2 10.0.0.1 -s 60000
}

test_broken_connection_is_reestablished() {
    local before
    # Numbers of its queue pairs.
    connections() { rdma resource show qp | sed -nE 's/.* lqpn ([0-9]+) .*type RC .*/\1/p' | sort; }
    expect_refused_sends
    ping_ok 1 10.0.0.2
    for _ in 1 2 3; do
        before=$(connections)
        knob 2 kill_rc 1
        wait_for 10 reaches 1 10.0.0.2
        ping_ok 1 10.0.0.2 -s 30000
        others() { [ "$(connections)" != "$before" ]; }
        wait_for 10 others
    done
}
