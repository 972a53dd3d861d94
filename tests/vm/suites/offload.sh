# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Offloads of datagrams: checksums, segmentation, merging of what is received.
PORTS=2
HOSTS=1

feature() { on "$1" ethtool -k "$(interface_of "$1")" | sed -nE "s/^\s*$2: (\S+).*/\1/p"; }           # HOST NAME
# One that depends on another that is off is not changed, and ethtool fails.
set_feature() { on "$1" ethtool -K "$(interface_of "$1")" "$2" "$3" >/dev/null 2>&1 || true; }        # HOST NAME on|off
stack_counter() { on "$1" nstat -asz "$2" | awk -v name="$2" '$1 == name { print $2 }'; }             # HOST NAME
is_feature() { [ "$(feature "$1" "$2")" = "$3" ] || fail "$2 of host $1 is $(feature "$1" "$2"), not $3"; }

# Random bytes from host 1 to host 2 by TCP, compared.
transfer() { # MEGABYTES
    [ -e /run/sent ] || head -c 100M /dev/urandom >/run/sent
    on 2 sh -c 'socat -u TCP-LISTEN:4000,reuseaddr OPEN:/run/got,creat,trunc' &
    wait_for 5 on 2 sh -c 'ss -ltn | grep -q :4000'
    head -c "$1M" /run/sent | on 1 timeout 60 socat -u STDIN TCP:10.0.0.2:4000
    wait $!
    [ "$(head -c "$1M" /run/sent | sha256sum)" = "$(sha256sum </run/got)" ] || fail "the bytes differ"
}

test_features_of_a_capable_hca_are_on() {
    is_feature 1 rx-checksumming on
    is_feature 1 tx-checksum-ipv4 on
    is_feature 1 tcp-segmentation-offload on
    is_feature 1 large-receive-offload off
}

test_segmentation_is_the_hcas_when_it_is_on() {
    local requests segments
    requests=$(counter 1 send_wr) segments=$(counter 1 segments)
    transfer 20
    requests=$(($(counter 1 send_wr) - requests)) segments=$(($(counter 1 segments) - segments))
    echo "# on: $requests sends, $segments segments of larger ones"
    # 20 MB are 10500 packets of the link's size.
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

test_bytes_count_as_on_the_wire() {
    local packets bytes
    [ "$DRIVER" = ours ] || return 77
    packets=$(statistic 1 tx_packets) bytes=$(statistic 1 tx_bytes)
    transfer 10
    packets=$(($(statistic 1 tx_packets) - packets)) bytes=$(($(statistic 1 tx_bytes) - bytes))
    echo "# $packets packets, $bytes bytes"
    [ $packets -ge 5000 ]
    # 52 bytes of headers in each.
    [ $bytes -ge $((10 * 1048576 + 5000 * 52)) ]
    [ $bytes -le $((10 * 1048576 + packets * 60)) ]
}

test_every_combination_carries_the_same() {
    local tx rx tso
    for tx in on off; do
        for rx in on off; do
            for tso in on off; do
                set_feature 1 tx $tx
                set_feature 1 tso $tso
                set_feature 2 rx $rx
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
    before=$(stack_counter 2 TcpInCsumErrors)
    knob 2 corrupt_every 100
    transfer 10
    knob 2 corrupt_every 0
    echo "# $(($(stack_counter 2 TcpInCsumErrors) - before)) segments with a wrong checksum"
    [ $(($(stack_counter 2 TcpInCsumErrors) - before)) -gt 10 ]
    before=$(stack_counter 2 UdpInCsumErrors)
    knob 2 corrupt_every 10
    iperf 1 2 -u -b 20M -t 1 || true
    knob 2 corrupt_every 0
    [ $(($(stack_counter 2 UdpInCsumErrors) - before)) -gt 10 ]
}

test_connected_mode_has_none_for_sending() {
    set_mode 1 connected
    is_feature 1 tx-checksum-ipv4 off
    is_feature 1 tcp-segmentation-offload off
    set_mode 1 datagram
    is_feature 1 tx-checksum-ipv4 on
    is_feature 1 tcp-segmentation-offload on
    wait_for 20 reaches 1 10.0.0.2
    transfer 5
}

test_mode_changes_under_large_packets() {
    serve_iperf 2
    on 1 timeout 40 iperf3 -c 10.0.0.2 -t 6 >/run/iperf.out 2>&1 &
    local pid=$! i
    for i in $(seq 8); do
        set_mode 1 connected
        set_mode 1 datagram
    done
    wait $pid
    grep -q receiver /run/iperf.out
}

xfail_stock_received_segments_are_merged='it has no LRO'
test_received_segments_are_merged() {
    local off on
    set_feature 2 gro off
    off=$(stack_counter 2 IpInReceives)
    transfer 10
    off=$(($(stack_counter 2 IpInReceives) - off))
    set_feature 2 lro on
    is_feature 2 large-receive-offload on
    on=$(stack_counter 2 IpInReceives)
    transfer 10
    on=$(($(stack_counter 2 IpInReceives) - on))
    echo "# packets that reached the stack: $off with LRO off, $on with LRO on"
    [ $((on * 2)) -lt "$off" ]
}

xfail_stock_merging_loses_and_changes_nothing='it has no LRO'
test_merging_loses_and_changes_nothing() {
    local before
    is_feature 2 large-receive-offload on
    knob 2 drop_every 97
    transfer 5
    knob 2 drop_every 0
    before=$(stack_counter 2 TcpInCsumErrors)
    knob 2 corrupt_every 100
    transfer 5
    knob 2 corrupt_every 0
    [ $(($(stack_counter 2 TcpInCsumErrors) - before)) -gt 0 ]
    set_feature 2 gro on
    transfer 20
}

xfail_stock_forwarding_switches_merging_off='it has no LRO'
test_forwarding_switches_merging_off() {
    is_feature 2 large-receive-offload on
    on 2 sysctl -qw net.ipv4.conf.ib1.forwarding=1
    is_feature 2 large-receive-offload off
    on 2 sysctl -qw net.ipv4.conf.ib1.forwarding=0
    transfer 5
}
