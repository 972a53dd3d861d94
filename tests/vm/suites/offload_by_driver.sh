# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# HCAs without offloads: this driver segments large TCP packets itself.
PORTS=2
HOSTS=1
FABRIC='offloads=0'

# shellcheck source=/dev/null
. ./features.sh

# Number of datagrams that host 1's driver made from larger packets while a command ran.
segments_made_by() { # COMMAND...
    local before
    # A command substitution does not inherit it.
    set -e
    before=$(statistic_of 1 tx_tso_segments)
    "$@" >&2
    echo $(($(statistic_of 1 tx_tso_segments) - before))
}

test_offloads_of_the_driver_are_on() {
    [ "$DRIVER" = ours ] || return 77
    is_feature 1 tx-checksum-ip-generic on
    is_feature 1 tx-tcp-segmentation on
    is_feature 1 tx-tcp6-segmentation on
    is_feature 1 rx-checksumming on
    is_feature 1 rx-gro-hw on
}

test_tcp_data_arrive_whole() { transfer 20; }

test_driver_segments_when_tso_is_on() {
    local made
    [ "$DRIVER" = ours ] || return 77
    made=$(segments_made_by transfer 10)
    echo "# on: $made segments of larger packets"
    [ "$made" -gt 3000 ]
    set_feature 1 tso off
    made=$(segments_made_by transfer 10)
    [ "$made" = 0 ] || fail "off: $made"
    set_feature 1 tso on
}

# The in-tree driver has no such counter: the stack segments for it.
cuts() { # MEGABYTES TARGET -gt|-eq SEGMENTS
    local made
    if [ "$DRIVER" = stock ]; then
        transfer "$1" "$2"
        return
    fi
    made=$(segments_made_by transfer "$1" "$2")
    echo "# $made segments of larger packets"
    test "$made" "$3" "$4"
}
test_ipv6_is_segmented() { without_wrong_checksums cuts 10 '[fd00::2]:4000' -gt 3000; }

# IPV6_DSTOPTS, of BYTES bytes: an extension header in every packet, with an option that receivers skip if unknown.
with_options() { # BYTES
    printf '[fd00::2]:4000,setsockopt=41:59:x00%02x1e%02x%0*d' $(($1 / 8 - 1)) $(($1 - 4)) $((2 * ($1 - 4))) 0
}
test_segments_keep_ipv6_extension_headers() {
    without_wrong_checksums cuts 5 "$(with_options 16)" -gt 1500
    # More headers than the ring has space for: the stack segments.
    without_wrong_checksums cuts 5 "$(with_options 64)" -eq 0
}

test_byte_counters_match_the_wire() { bytes_count_as_on_the_wire; }

test_received_segments_are_checked_and_merged() {
    [ "$DRIVER" = ours ] || return 77
    local before
    before=$(statistic_of 2 rx_gro_hw_merged)
    without_wrong_checksums transfer 10
    [ $(($(statistic_of 2 rx_gro_hw_merged) - before)) -gt 1000 ]
    # Without receive checksums the stack does not allow it.
    set_feature 2 rx off
    is_feature 2 rx-gro-hw off
    before=$(statistic_of 2 rx_gro_hw_merged)
    transfer 5
    [ "$(statistic_of 2 rx_gro_hw_merged)" = "$before" ]
    set_feature 2 rx on
    is_feature 2 rx-gro-hw on
}

test_corrupted_segments_are_dropped_and_retransmitted() { corrupted_segments_are_dropped; }

send_pages_of_a_file() {
    serve_iperf 2
    on 1 timeout $((30 * patience)) iperf3 -c 10.0.0.2 -Z -n 20M >/run/iperf.out
    grep -q receiver /run/iperf.out
}
test_sendfile_pages_are_segmented() { without_wrong_checksums send_pages_of_a_file; }

test_small_mss_makes_many_segments() {
    on 1 ip route change 10.0.0.0/24 dev ib0 advmss 200
    on 2 ip route change 10.0.0.0/24 dev ib1 advmss 200
    without_wrong_checksums transfer 3
    on 1 ip route change 10.0.0.0/24 dev ib0
    on 2 ip route change 10.0.0.0/24 dev ib1
}

test_smallest_ring_carries_segments() {
    [ "$DRIVER" = ours ] || return 77
    on 1 ethtool -G ib0 tx 128
    wait_for 20 reaches 1 10.0.0.2
    transfer 10
}

# gso_max_segs follows the ring.
segments_at_a_time() { on 1 ip -d link show ib0 | sed -nE 's/.*gso_max_segs ([0-9]+).*/\1/p'; }
xfail_stock_larger_rings_allow_more_segments='rings have the size they were loaded with'
test_larger_rings_allow_more_segments() {
    on 1 ethtool -G ib0 tx 128
    [ "$(segments_at_a_time)" = 32 ]
    on 1 ethtool -G ib0 tx 8192
    [ "$(segments_at_a_time)" = 64 ]
    # The user's limit is kept if the ring has space for it.
    on 1 ip link set ib0 gso_max_segs 40
    on 1 ethtool -G ib0 tx 128
    [ "$(segments_at_a_time)" = 32 ]
    on 1 ethtool -G ib0 tx 256
    [ "$(segments_at_a_time)" = 40 ]
    wait_for 20 reaches 1 10.0.0.2
    transfer 10
}

test_mode_changes_while_large_packets_are_sent() { mode_changes_under_large_packets; }

test_udp_and_pings_pass() {
    ping_ok 1 10.0.0.2 -s 20000
    ping_ok 1 fd00::2 -s 20000
    udp 1 2 20M -t 2
}
