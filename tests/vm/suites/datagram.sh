# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Two hosts, datagram mode, 2048-byte MTU: basic operation.
PORTS=2
PROCESSORS=2
HOSTS=1

test_fabric_tools_report_the_fabric() {
    ibstat soft_ib1 | says 'State: Active'
    [ "$(ibnetdiscover | grep -c '^Ca')" = 2 ]
    ibnetdiscover | says 'soft_ib switch'
    # The broadcast group has both ports as members.
    [ "$(members_of ff12:401b:ffff::ffff:ffff)" = 2 ]
    saquery -g | says 'MGID.*ff12:401b:ffff::ffff:ffff'
    ibping -S -C soft_ib1 >/dev/null 2>&1 &
    local server=$!
    wait_for 10 ibping -c 1 -C soft_ib0 "$(lid 2)"
    ibping -c 3 -C soft_ib0 "$(lid 2)" | says ' 0% packet loss'
    kill $server
}

test_port_counters_count_traffic() {
    local switch before of_switch
    sent() { perfquery -x -C soft_ib0 "$@" | sed -nE 's/^PortXmitPkts:\.*([0-9]+)/\1/p'; } # [LID PORT]
    switch=$(ibswitches | sed -nE 's/.*lid ([0-9]+) .*/\1/p')
    before=$(sent) of_switch=$(sent "$switch" 2)
    on 1 ping -q -f -c 500 10.0.0.2 >/dev/null
    [ $(($(sent) - before)) -ge 500 ]
    [ $(($(sent "$switch" 2) - of_switch)) -ge 500 ]
}

test_interface_has_its_standard_properties() {
    on 1 ip -d link show ib0 | says 'link/infiniband'
    on 1 ip -d link show ib0 | says 'mtu 2044'
    on 1 ip link show ib0 | says 'brd 00:ff:ff:ff:ff:12:40:1b:ff:ff:00:00:00:00:00:00:ff:ff:ff:ff'
    # The address ends with the port's GID.
    on 1 ip link show ib0 | says 'fe:80:00:00:00:00:00:00:00:02:c9:03:00:00:00:10 brd'
    [ "$(on 1 cat /sys/class/net/ib0/pkey)" = 0xffff ]
    [ "$(on 1 cat /sys/class/net/ib0/mode)" = datagram ]
    [ "$(on 1 cat /sys/class/net/ib0/type)" = 32 ]
    [ "$(on 2 cat /sys/class/net/ib1/dev_port)" = 0 ]
}

test_ipv4_ping() { ping_ok 1 10.0.0.2; ping_ok 2 10.0.0.1; }
test_ipv6_ping() { ping_ok 1 fd00::2; ping_ok 2 fd00::1; }
test_ipv6_link_local_ping() { ping_ok 1 "$(link_local 2)%ib0"; }

test_ipv6_duplicate_address_is_detected() {
    on 1 ip addr add fd00::77/64 dev ib0 nodad
    # The subnet manager routes a new group some time after the join, and detection sends one packet to it.
    wait_for 10 reaches 2 fd00::77
    on 2 ip addr add fd00::77/64 dev ib1
    is_detected() { on 2 ip -6 addr show dev ib1 | says dadfailed; }
    wait_for 10 is_detected
    on 2 ip addr del fd00::77/64 dev ib1
    on 1 ip addr del fd00::77/64 dev ib0
}

test_neighbours_have_20_byte_addresses() {
    reaches 1 10.0.0.2
    wait_for 10 reaches 1 fd00::2
    on 1 ip neigh show 10.0.0.2 | says -E 'lladdr ([0-9a-f]{2}:){19}[0-9a-f]{2} '
    on 1 ip neigh show fd00::2 | says -E 'lladdr ([0-9a-f]{2}:){19}[0-9a-f]{2} '
}

test_flood_ping_of_10000_loses_nothing() {
    flood 1 10.0.0.2 10000
}

test_fragmented_ping() { ping_ok 1 10.0.0.2 -s 20000; ping_ok 1 fd00::2 -s 20000; }

test_first_packets_to_a_new_neighbour_arrive() {
    on 1 ip neigh flush dev ib0
    on 2 ip neigh flush dev ib1
    # All at once, before the address or the path is known.
    lossless 1 -c 3 -l 3 -W 10 10.0.0.2
}

# The rows are those of real hardware (make bench-hw).
test_bench_measures_a_link() {
    serve_iperf 2
    on 2 qperf >/dev/null 2>&1 &
    wait_for 5 listens 2 :19765
    on 1 env LENGTH=short ./bench-hw ib0 10.0.0.2 >/run/rows
    on 1 qperf 10.0.0.2 quit
    [ "$(grep -cE '^datagram-2044-[a-z0-9-]+ [^ ]+( us)? [0-9.]*[1-9]' /run/rows)" = 12 ] || fail "$(cat /run/rows)"
    ! on 1 ./bench-hw lo 10.0.0.2 >/dev/null 2>/run/errors || return 1
    grep -q 'lo is no IPoIB interface' /run/errors
    ! on 1 ./bench-hw ib0 10.0.0.2 >/dev/null 2>/run/errors || return 1
    grep -q '10.0.0.2 has no qperf' /run/errors
}

test_statistics_add_up() {
    local tx rx parallel=4 each=500 i pids=()
    tx=$(statistic 1 tx_packets) rx=$(statistic 2 rx_packets)
    for i in $(seq $parallel); do
        on 1 ping -q -f -c $each 10.0.0.2 >/dev/null &
        pids+=($!)
    done
    wait "${pids[@]}"
    wait_for 5 eval "[ \$((\$(statistic 1 tx_packets) - $tx)) -ge $((parallel * each)) ]"
    # Packets sent equal packets received; neighbour discovery in between may add a few.
    tx=$(($(statistic 1 tx_packets) - tx)) rx=$(($(statistic 2 rx_packets) - rx))
    [ $((tx - rx)) -le 20 ]
    [ $((rx - tx)) -le 20 ]
    [ "$(statistic 1 tx_errors)" = 0 ]
    [ "$(statistic 2 rx_errors)" = 0 ]
}

# A packet of 1000 bytes counts 1000, both ways.
xfail_stock_tx_and_rx_bytes_count_the_payload='tx_bytes counts the 4-byte encapsulation, rx_bytes does not'
test_tx_and_rx_bytes_count_the_payload() {
    local tx rx
    reaches 1 10.0.0.2
    tx=$(statistic 1 tx_bytes) rx=$(statistic 2 rx_bytes)
    on 1 ping -q -f -c 1000 -s 972 10.0.0.2 >/dev/null
    wait_for 5 eval "[ \$((\$(statistic 1 tx_bytes) - $tx)) -ge 1000000 ]"
    tx=$(($(statistic 1 tx_bytes) - tx)) rx=$(($(statistic 2 rx_bytes) - rx))
    [ $tx -ge 1000000 ] && [ $tx -lt 1002000 ] && [ $rx -ge 1000000 ] && [ $rx -lt 1002000 ]
}

test_tcp() { iperf 1 2 -n 20M; }
test_tcp_over_ipv6() {
    on 2 iperf3 -s -B fd00::2 -p 5202 --daemon --one-off
    wait_for 5 listens 2 :5202
    on 1 timeout $((30 * patience)) iperf3 -c fd00::2 -p 5202 -t 2 >/run/iperf.out || { cat /run/iperf.out; return 1; }
}
test_tcp_both_ways_at_once() { iperf 1 2 -n 40M --bidir; }
test_tcp_16_streams() { iperf 1 2 -n 40M -P 16; }
test_udp() { udp 1 2 50M -t 3; }

test_debugfs_tables_have_their_format() {
    local tables=/sys/kernel/debug/ipoib
    reaches 1 10.0.0.2
    # A path to the other host, complete.
    grep -A 5 -x 'GID: fe80:0:0:0:2:c903:0:110' $tables/ib0_path >/run/path
    printf 'GID: fe80:0:0:0:2:c903:0:110\n  complete:    yes\n  DLID:     0x%04x\n  SL:            0\n  rate:       40.0 Gb/sec\n\n' \
        "$(lid 2)" | diff - /run/path
    # The broadcast group, joined.
    grep -A 5 -x 'GID: ff12:401b:ffff:0:0:0:ffff:ffff' $tables/ib0_mcg | sed -E 's/^(  created: )[ 0-9]{10}$/\1/' >/run/group
    printf 'GID: ff12:401b:ffff:0:0:0:ffff:ffff\n  created: \n  queuelen:         0\n  complete:       yes\n  send_only:       no\n\n' |
        diff - /run/group
}

test_sniffers_see_the_link_header() {
    on 2 timeout $((10 * patience)) tcpdump -i ib1 -c 1 -w /run/capture.pcap icmp 2>/run/tcpdump.says &
    local sniffer=$!
    wait_for 5 grep -q 'listening on ib1' /run/tcpdump.says
    on 1 ping -q -c 5 -i 0.3 10.0.0.2 >/dev/null
    wait $sniffer
    # Cooked capture: the kernel gives the hardware type, 0x20, and the ethertype; the rest is the packet.
    tcpdump -r /run/capture.pcap -ne 2>/run/tcpdump.says | says 'ethertype IPv4 (0x0800).*: 10.0.0.1 > 10.0.0.2: ICMP echo' ||
        fail "$(tcpdump -r /run/capture.pcap -ne)"
    grep -q 'link-type LINUX_SLL ' /run/tcpdump.says
    [ "$(od -An -tx1 -j 40 -N 16 /run/capture.pcap | tr -d ' \n')" = 00000020000000000000000000000800 ] ||
        fail "$(od -An -tx1 -j 40 -N 16 /run/capture.pcap)"
}

test_unsupported_ethertypes_are_not_sent() {
    local before
    before=$(statistic 1 tx_dropped)
    # A raw broadcast frame with the ethertype of LLDP.
    on 1 python3 -c '
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
s.bind(("ib0", 0))
s.send(bytes.fromhex("00ffffffff12401bffff000000000000ffffffff" "88cc0000") + b"x" * 60)'
    wait_for 5 eval "[ \$(statistic 1 tx_dropped) -gt $before ]"
}
