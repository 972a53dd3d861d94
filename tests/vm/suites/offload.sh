# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Offloads of datagrams: checksums, segmentation, merging.
PORTS=2
HOSTS=1

# shellcheck source=/dev/null
. ./features.sh

test_features_of_a_capable_hca_are_on() {
    is_feature 1 rx-checksumming on
    is_feature 1 tx-checksum-ipv4 on
    is_feature 1 tcp-segmentation-offload on
    [ "$DRIVER" = stock ] || is_feature 1 rx-gro-hw on
}

test_hca_segments_when_tso_is_on() {
    local requests segments
    requests=$(counter 1 send_wr) segments=$(counter 1 segments)
    transfer 20
    requests=$(($(counter 1 send_wr) - requests)) segments=$(($(counter 1 segments) - segments))
    echo "# on: $requests sends, $segments segments of larger ones"
    # 20 MB are 10500 packets of the link's MTU.
    [ "$requests" -lt 6000 ]
    [ "$segments" -gt 5000 ]
    set_feature 1 tso off
    requests=$(counter 1 send_wr) segments=$(counter 1 segments)
    transfer 20
    requests=$(($(counter 1 send_wr) - requests)) segments=$(($(counter 1 segments) - segments))
    echo "# off: $requests sends, $segments segments of larger ones"
    [ "$requests" -ge 10000 ]
    [ "$segments" = 0 ]
    set_feature 1 tso on
}

test_byte_counters_match_the_wire() {
    [ "$DRIVER" = ours ] || return 77
    bytes_count_as_on_the_wire
}

test_every_offload_combination_carries_the_same_data() {
    local tx rx tso
    for tx in on off; do
        for rx in on off; do
            for tso in on off; do
                set_feature 1 tx $tx
                # Segments have checksums: without those, ethtool refuses segmentation.
                set_feature 1 tso $tso || [ $tx$tso = offon ]
                set_feature 2 rx $rx
                is_feature 1 tx-checksum-ipv4 $tx
                is_feature 1 tcp-segmentation-offload "$([ $tx$tso = onon ] && echo on || echo off)"
                is_feature 2 rx-checksumming $rx
                transfer 3
                ping_ok 1 10.0.0.2 -s 1000
                ping_ok 1 fd00::2 -s 5000
            done
        done
    done
    set_feature 1 tx on
    set_feature 1 tso on
    set_feature 2 rx on
}

test_corrupted_packets_are_dropped() {
    local before
    corrupted_segments_are_dropped
    before=$(stack_counter 2 UdpInCsumErrors)
    knob 2 corrupt_every 10
    # To an unused port: checksums are verified nevertheless.
    head -c 400000 /dev/zero | on 1 socat -u -b 1000 - UDP-SENDTO:10.0.0.2:4001
    udp_errors() { [ $(($(stack_counter 2 UdpInCsumErrors) - before)) -gt 10 ]; }
    wait_for 5 udp_errors
    knob 2 corrupt_every 0
}

test_connected_mode_has_no_send_offloads() {
    set_mode 1 connected
    is_feature 1 tx-checksum-ipv4 off
    is_feature 1 tcp-segmentation-offload off
    set_mode 1 datagram
    is_feature 1 tx-checksum-ipv4 on
    is_feature 1 tcp-segmentation-offload on
    wait_for 20 reaches 1 10.0.0.2
    transfer 5
}

xfail_stock_mode_changes_while_large_packets_are_sent='connections are given the opcode of the last datagram, LSO, which the HCA refuses'
test_mode_changes_while_large_packets_are_sent() { mode_changes_under_large_packets; }

xfail_stock_received_segments_are_merged='in the in-tree driver the stack alone merges'
test_received_segments_are_merged() {
    local off on
    is_feature 2 rx-gro-hw on
    # Packets come in batches, however the processors are shared.
    knob 1 delay_us 1000
    set_feature 2 gro off
    is_feature 2 rx-gro-hw off
    off=$(stack_counter 2 IpInReceives)
    transfer 10
    off=$(($(stack_counter 2 IpInReceives) - off))
    set_feature 2 gro on
    is_feature 2 rx-gro-hw on
    on=$(stack_counter 2 IpInReceives)
    transfer 10
    on=$(($(stack_counter 2 IpInReceives) - on))
    knob 1 delay_us 0
    echo "# packets that reached the stack: $off without merging, $on with it"
    [ $((on * 2)) -lt "$off" ]
}

xfail_stock_merging_preserves_the_data='in the in-tree driver the stack alone merges'
test_merging_preserves_the_data() {
    local before merged
    merged=$(statistic_of 2 rx_gro_hw_merged)
    knob 2 drop_every 97
    transfer 5
    knob 2 drop_every 0
    [ "$(statistic_of 2 rx_gro_hw_merged)" -gt "$merged" ]
    before=$(stack_counter 2 TcpInCsumErrors)
    knob 2 corrupt_every 100
    transfer 5
    knob 2 corrupt_every 0
    [ $(($(stack_counter 2 TcpInCsumErrors) - before)) -gt 0 ]
    transfer 20
}

# Host 2 forwards to the namespace "far" by a netdev that takes one segment at a time.
xfail_stock_merged_segments_are_forwarded_as_they_came='in the in-tree driver the stack alone merges'
test_merged_segments_are_forwarded_as_they_came() {
    local forwarded arrived capture
    is_feature 2 rx-gro-hw on
    ip netns add far
    ip link add up0 netns h2 mtu 2044 type veth peer name far0 netns far mtu 2044
    on 2 ip addr add 10.9.0.1/24 dev up0
    on 2 ip link set up0 up
    ip -n far addr add 10.9.0.2/24 dev far0
    ip -n far link set far0 up
    ip -n far route add default via 10.9.0.1
    on 1 ip route add 10.9.0.0/24 via 10.0.0.2
    on 2 sysctl -qw net.ipv4.ip_forward=1
    on 2 ethtool -K up0 gso off tso off
    ip netns exec far ethtool -K far0 gro off
    knob 1 delay_us 1000
    [ -e /run/sent ] || head -c 20M /dev/urandom >/run/sent
    ip netns exec far tcpdump -i far0 -n -v -l -B 32768 'tcp dst port 4000' >/run/far.seen 2>/run/tcpdump.err &
    capture=$!
    wait_for 10 grep -q 'listening on' /run/tcpdump.err
    forwarded=$(stack_counter 2 IpForwDatagrams)
    ip netns exec far socat -u TCP-LISTEN:4000,reuseaddr OPEN:/run/got,creat,trunc &
    far_listens() { ip netns exec far ss -Hltn | says ':4000 '; }
    wait_for 5 far_listens
    on 1 timeout $((60 * patience)) socat -u -b $((1 << 20)) OPEN:/run/sent,readbytes=$((5 << 20)) TCP:10.9.0.2:4000
    wait $!
    knob 1 delay_us 0
    wait_for 20 grep -q 'Flags \[F' /run/far.seen
    kill $capture
    wait $capture || true
    forwarded=$(($(stack_counter 2 IpForwDatagrams) - forwarded))
    arrived=$(grep -c 'proto TCP' /run/far.seen)
    echo "# $arrived segments arrived in $forwarded packets that were forwarded, ACKs included"
    ip netns del far
    on 2 sysctl -qw net.ipv4.ip_forward=0
    head -c 5M /run/sent | cmp - /run/got
    [ "$arrived" -gt 2600 ]
    [ $((forwarded * 2)) -lt "$arrived" ]
    # No segment is longer than the MTU. Identifications of data never count down. They may be equal in the segments
    # of one packet with DF, which the stack's GRO of Linux 6.1 to 6.9 chooses.
    sed -nE 's/.* id ([0-9]+),.* proto TCP .* length ([0-9]+)\).*/\1 \2/p' /run/far.seen | awk '
        $2 > 2044 { print NR ": " $2 " bytes"; bad = 1 }
        $2 <= 60 { next }
        { counts_down = id != "" && ($1 - id + 65536) % 65536 >= 32768 }
        counts_down { print NR ": identification " $1 " follows " id; bad = 1 }
        { id = $1; ++segments }
        END { exit bad || segments < 2600 }'
}
