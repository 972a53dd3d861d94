# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# What ethtool shows and sets.
PORTS=2
HOSTS=1

statistic_of() { on "$1" ethtool -S "$(interface_of "$1")" | awk -v name="$2:" '$1 == name { print $2 }'; } # HOST NAME

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
    on 1 ethtool ib0 | grep -q 'Speed: Unknown'
    on 1 ip link set ib0 up
    wait_for 20 carrier 1
}

test_first_statistics_are_those_that_programs_know() {
    [ "$(on 1 ethtool -S ib0 | sed -n '2,9p' | awk -F: '{ gsub(/ /, ""); printf "%s ", $1 }')" = \
        "rx_packets tx_packets rx_bytes tx_bytes tx_errors rx_dropped tx_dropped multicast " ]
}

test_statistics_move() {
    local tx
    tx=$(statistic_of 1 tx_packets)
    wait_for 20 reaches 1 10.0.0.2
    flood 1 10.0.0.2 200
    wait_for 5 eval "[ \$((\$(statistic_of 1 tx_packets) - $tx)) -ge 200 ]"
    [ "$DRIVER" = stock ] || [ "$(statistic_of 1 tx_doorbells)" -gt 0 ]
}

test_receive_moderation() {
    local events many few
    on 2 ethtool -C ib1 rx-usecs 0 rx-frames 0
    events=$(counter 2 cq_event)
    iperf 1 2 -t 2 -u -b 20M
    many=$(($(counter 2 cq_event) - events))
    on 2 ethtool -C ib1 rx-usecs 2000 rx-frames 64
    on 2 ethtool -c ib1 | grep -qE 'rx-usecs:\s+2000'
    on 2 ethtool -c ib1 | grep -qE 'rx-frames:\s+64'
    events=$(counter 2 cq_event)
    iperf 1 2 -t 2 -u -b 20M
    few=$(($(counter 2 cq_event) - events))
    echo "# $many events without, $few with moderation"
    [ "$few" -lt $((many / 2)) ]
    on 2 ethtool -C ib1 rx-usecs 0 rx-frames 0
}

test_moderation_out_of_range_is_refused() {
    ! on 1 ethtool -C ib0 rx-usecs 65536 2>/dev/null || return 1
    ! on 1 ethtool -C ib0 rx-frames 65536 2>/dev/null || return 1
    ! on 1 ethtool -C ib0 tx-usecs 1 2>/dev/null || return 1
}
