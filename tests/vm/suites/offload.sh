# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Offloads of datagrams: checksums, segmentation, LRO.
PORTS=2
HOSTS=1

# shellcheck source=/dev/null
. ./features.sh

test_features_of_a_capable_hca_are_on() {
    is_feature 1 rx-checksumming on
    is_feature 1 tx-checksum-ipv4 on
    is_feature 1 tcp-segmentation-offload on
    is_feature 1 large-receive-offload off
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

xfail_stock_received_segments_are_merged='the in-tree driver has no LRO'
test_received_segments_are_merged() {
    local off on
    # Packets come in batches, however the processors are shared.
    knob 1 delay_us 1000
    set_feature 2 gro off
    off=$(stack_counter 2 IpInReceives)
    transfer 10
    off=$(($(stack_counter 2 IpInReceives) - off))
    set_feature 2 lro on
    is_feature 2 large-receive-offload on
    on=$(stack_counter 2 IpInReceives)
    transfer 10
    on=$(($(stack_counter 2 IpInReceives) - on))
    knob 1 delay_us 0
    echo "# packets that reached the stack: $off with LRO off, $on with LRO on"
    [ $((on * 2)) -lt "$off" ]
}

xfail_stock_merging_preserves_the_data='the in-tree driver has no LRO'
test_merging_preserves_the_data() {
    local before merged
    merged=$(statistic_of 2 rx_lro_merged)
    set_feature 2 lro on
    # The stack gets segments as the driver merged them, without GRO.
    set_feature 2 gro off
    knob 2 drop_every 97
    transfer 5
    knob 2 drop_every 0
    [ "$(statistic_of 2 rx_lro_merged)" -gt "$merged" ]
    before=$(stack_counter 2 TcpInCsumErrors)
    knob 2 corrupt_every 100
    transfer 5
    knob 2 corrupt_every 0
    [ $(($(stack_counter 2 TcpInCsumErrors) - before)) -gt 0 ]
    set_feature 2 gro on
    transfer 20
}

xfail_stock_forwarding_disables_merging='the in-tree driver has no LRO'
test_forwarding_disables_merging() {
    set_feature 2 lro on
    on 2 sysctl -qw net.ipv4.conf.ib1.forwarding=1
    is_feature 2 large-receive-offload off
    on 2 sysctl -qw net.ipv4.conf.ib1.forwarding=0
    transfer 5
}
