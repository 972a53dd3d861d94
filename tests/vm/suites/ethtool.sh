# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Settings and information of ethtool.
PORTS=2
HOSTS=1

# shellcheck source=/dev/null
. ./samples.sh

test_driver_firmware_and_bus() {
    on 1 ethtool -i ib0 >/run/info
    grep -qx 'driver: ib_ipoib' /run/info
    grep -qx 'firmware-version: 1.0.0' /run/info
    grep -qx 'bus-info: soft_ib.0' /run/info
}

test_link_settings() {
    on 1 ethtool ib0 >/run/link
    grep -q 'Speed: 40000Mb/s' /run/link
    grep -q 'Duplex: Full' /run/link
    grep -q 'Port: Other' /run/link
    grep -q 'Link detected: yes' /run/link
    on 1 ip link set ib0 down
    on 1 ethtool ib0 | says 'Speed: Unknown'
    bring_up 1
    wait_for 20 addresses_ready 1
}

xfail_stock_time_stamps_by_software_are_reported='the in-tree driver does not report those of sent packets'
test_time_stamps_by_software_are_reported() {
    on 1 ethtool -T ib0 >/run/stamps
    grep -q software-transmit /run/stamps
    grep -q software-receive /run/stamps
    grep -q 'PTP Hardware Clock: none' /run/stamps
}

test_first_statistics_have_the_in_tree_names() {
    [ "$(on 1 ethtool -S ib0 | sed -n '2,9p' | awk -F: '{ gsub(/ /, ""); printf "%s ", $1 }')" = \
        "rx_packets tx_packets rx_bytes tx_bytes tx_errors rx_dropped tx_dropped multicast " ]
}

test_statistics_count_traffic() {
    local tx
    tx=$(statistic_of 1 tx_packets)
    wait_for 20 reaches 1 10.0.0.2
    flood 1 10.0.0.2 200
    wait_for 5 eval "[ \$((\$(statistic_of 1 tx_packets) - $tx)) -ge 200 ]"
    [ "$DRIVER" = stock ] || [ "$(statistic_of 1 tx_doorbells)" -gt 0 ]
}

# One event for each received packet; sends are reaped by the same poll. Each ping is sent when the answer to the one
# before has come.
test_ping_pong_raises_one_event_per_packet() {
    [ "$DRIVER" = ours ] || return 77
    local events frames
    wait_for 20 reaches 1 10.0.0.2
    events=$(counter 1 cq_event) frames=$(counter 1 delivered)
    on 1 ping -q -A -c 500 10.0.0.2 >/dev/null
    events=$(($(counter 1 cq_event) - events)) frames=$(($(counter 1 delivered) - frames))
    echo "# $events events for $frames frames, 500 of them answers"
    [ "$events" -ge 500 ]
    # The other frames are OpenSM's, whose sends raise events, too.
    [ "$events" -le $((500 + 2 * (frames - 500))) ]
}

# Sends 1024 frames for host 2's stack to drop, one after the other. Sets frames and events to the counts of its HCA,
# and us to the elapsed time.
send_burst() {
    local qpn started=${EPOCHREALTIME/./} packets
    qpn=$(lladdr 2 | awk -F: '{ print "0x" $2 $3 $4 }')
    packets=$(statistic 2 rx_packets) frames=$(counter 2 delivered) events=$(counter 2 cq_event)
    for _ in $(seq 1024); do knob 2 inject "dqpn=$qpn qkey=0x0b1b hex=080000004500001400000000401100000a0000010a000002"; done
    wait_for 5 eval "[ \$(statistic 2 rx_packets) -ge $((packets + 1024)) ]"
    us=$((${EPOCHREALTIME/./} - started)) frames=$(($(counter 2 delivered) - frames)) events=$(($(counter 2 cq_event) - events))
    echo "# $events events for $frames frames in $us us"
}
test_receive_moderation() {
    local frames events us
    wait_for 20 reaches 1 10.0.0.2
    on 2 ethtool -C ib1 rx-usecs 0 rx-frames 0
    send_burst
    # One event may be for several frames, if a softirq was delayed.
    [ "$events" -ge 512 ]
    on 2 ethtool -C ib1 rx-usecs 65535 rx-frames 64
    on 2 ethtool -c ib1 | says -E 'rx-usecs:\s+65535'
    on 2 ethtool -c ib1 | says -E 'rx-frames:\s+64'
    send_burst
    # Each event had 64 frames or that time. Packets of the host itself, and of OpenSM, raise a few more.
    [ "$events" -le $((frames / 64 + us / 65535 + 10)) ]
    on 2 ethtool -C ib1 rx-usecs 0 rx-frames 0
}

test_moderation_out_of_range_is_refused() {
    ! on 1 ethtool -C ib0 rx-usecs 65536 2>/dev/null || return 1
    ! on 1 ethtool -C ib0 rx-frames 65536 2>/dev/null || return 1
    ! on 1 ethtool -C ib0 tx-usecs 1 2>/dev/null || return 1
}

ring() { on "$1" ethtool -g "$(interface_of "$1")" | awk -v name="$2:" '$1 == name { value = $2 } END { print value }'; } # HOST RX|TX
set_rings() { on "$1" ethtool -G "$(interface_of "$1")" tx "$2" rx "$3"; }                                               # HOST TX RX

xfail_stock_rings_change_under_traffic='rings have the size they were loaded with'
test_rings_change_under_traffic() {
    local qpn posted size
    qpn=$(on 1 cat /sys/class/net/ib0/address | cut -c4-11)
    posted=$(counter 1 recv_wr)
    start_stream 1 2
    for size in 256 1024 4096 128; do
        set_rings 1 $size $size
        set_rings 2 $size $((size * 2))
        [ "$(ring 1 TX) $(ring 1 RX) $(ring 2 RX)" = "$size $size $((size * 2))" ]
        wait_for 20 carrier 1
        wait_for 20 carrier 2
        wait_for 5 reaches 1 10.0.0.2
        stream_goes_on 2
    done
    # All of each ring was posted.
    [ $(($(counter 1 recv_wr) - posted)) -ge $((256 + 1024 + 4096 + 128)) ]
    [ "$(on 1 cat /sys/class/net/ib0/address | cut -c4-11)" != "$qpn" ]
    end_stream 2
    wait_for 5 reaches 1 fd00::2
    ping_ok 2 fd00::1
}

xfail_stock_rings_change_in_connected_mode='rings have the size they were loaded with'
test_rings_change_in_connected_mode() {
    set_mode 1 connected
    set_mode 2 connected
    ping_ok 1 10.0.0.2 -s 30000
    set_rings 1 512 512
    wait_for 20 carrier 1
    wait_for 20 reaches 1 10.0.0.2
    wait_for 20 reaches 2 10.0.0.1
    iperf 1 2 -n 20M
    iperf 2 1 -n 20M
    set_mode 1 datagram
    set_mode 2 datagram
    wait_for 20 reaches 1 10.0.0.2
}

xfail_stock_replaced_rings_free_their_memory='rings have the size they were loaded with'
test_replaced_rings_free_their_memory() {
    local before i
    set_rings 1 128 256
    wait_for 20 reaches 1 10.0.0.2
    before=$(free_kib)
    for i in $(seq 10); do
        set_rings 1 8192 8192
        set_rings 1 128 256
    done
    wait_for 20 reaches 1 10.0.0.2
    # Memory freed later by the kernel is freed in seconds.
    memory_is_back() { [ $(($1 - $(free_now_kib))) -lt 16384 ]; }
    wait_for 30 memory_is_back "$before"
    echo "# $before KiB free before, $(free_now_kib) KiB after"
}

xfail_stock_ring_sizes_are_rounded_and_limited='rings have the size they were loaded with'
test_ring_sizes_are_rounded_and_limited() {
    ! on 1 ethtool -G ib0 rx 8193 2>/dev/null || return 1
    ! on 1 ethtool -G ib0 rx-mini 5 2>/dev/null || return 1
    refused 'Invalid argument' set_rings 1 127 256
    refused 'Invalid argument' set_rings 1 128 1
    [ "$(ring 1 TX) $(ring 1 RX)" = "128 256" ]
    # Rounded, as the module's parameters are.
    set_rings 1 200 300
    [ "$(ring 1 TX) $(ring 1 RX)" = "256 512" ]
    set_rings 1 128 256
    wait_for 20 reaches 1 10.0.0.2
}

xfail_stock_channels_are_shown='the in-tree driver does not report channels'
test_channels_are_shown() {
    on 1 ethtool -l ib0 >/run/channels
    [ "$(awk '{ $1 = $1; printf "%s ", $0 }' /run/channels)" = "Channel parameters for ib0: Pre-set maximums: RX: 8 TX: 8 Other: n/a Combined: n/a Current hardware settings: RX: 1 TX: 1 Other: n/a Combined: n/a " ]
}

moderation() { on "$1" ethtool -c "$(interface_of "$1")" | awk -v name="$2:" '$1 == name { print $2 }'; } # HOST NAME

# Checks the library's choice: its profile's values alone, or none yet.
moderation_changes() { # HOST COUNT: that many changes since moderation_was and moderation_changed were set
    local now
    now=$(moderation "$1" rx-usecs)
    case $now in 0 | 1 | 8 | 64 | 128 | 256) ;; *) fail "rx-usecs $now" || return 1 ;; esac
    [ "$now" = "$moderation_was" ] || { moderation_was=$now; moderation_changed=$((moderation_changed + 1)); }
    [ "$moderation_changed" -ge "$2" ]
}
# One second without packets, in which the library makes no other choice.
is_still() { # HOST
    local before
    before="$(statistic_of "$1" rx_packets) $(moderation "$1" rx-usecs)"
    sleep 1
    [ "$(statistic_of "$1" rx_packets) $(moderation "$1" rx-usecs)" = "$before" ]
}
xfail_stock_adaptive_moderation_follows_the_traffic='the in-tree driver has none'
test_adaptive_moderation_follows_the_traffic() {
    local moderation_was moderation_changed=0 events
    on 2 ethtool -C ib1 adaptive-rx on
    on 2 ethtool -c ib1 | says 'Adaptive RX: on'
    moderation_was=$(moderation 2 rx-usecs)
    serve_iperf 2
    on 1 iperf3 -c 10.0.0.2 -t 600 >/dev/null 2>&1 &
    wait_for 60 moderation_changes 2 1
    stop_traffic
    on 1 ping -q -f 10.0.0.2 >/dev/null &
    wait_for 60 moderation_changes 2 2
    stop_traffic
    wait_for 20 is_still 2
    # The library decides once in 64 events: after one more event it decides, and not again.
    moderation_was=$(moderation 2 rx-usecs) moderation_changed=0 events=$(statistic_of 2 rx_cq_events)
    for _ in $(seq 20); do
        reaches 1 10.0.0.2
        ! moderation_changes 2 2 || fail "the moderation changed twice without traffic"
    done
    events=$(($(statistic_of 2 rx_cq_events) - events))
    echo "# $moderation_changed changes in $events events"
    [ "$events" -ge 20 ]
    [ "$events" -le 64 ]
    on 2 ethtool -C ib1 adaptive-rx off rx-usecs 0 rx-frames 0
    on 2 ethtool -c ib1 | says 'Adaptive RX: off'
}
