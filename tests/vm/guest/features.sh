# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154
# Functions for suites on offloads: features as ethtool shows and changes them, and data carried by TCP.

feature() { on "$1" ethtool -k "$(interface_of "$1")" | sed -nE "s/^\s*$2: (\S+).*/\1/p"; }           # HOST NAME
set_feature() { on "$1" ethtool -K "$(interface_of "$1")" "$2" "$3" >/dev/null 2>&1 || fail "$2 of host $1 was not set $3"; } # HOST NAME on|off
is_feature() { [ "$(feature "$1" "$2")" = "$3" ] || fail "$2 of host $1 is $(feature "$1" "$2"), not $3"; }

# Random bytes, at most 20 MiB, from host 1 to host 2 by TCP, compared. They are written by the megabyte, so that TCP
# can make packets of any size.
transfer() { # MEBIBYTES [ADDRESS:4000[,OPTION OF SOCAT]]
    [ -e /run/sent ] || head -c 20M /dev/urandom >/run/sent
    on 2 sh -c 'socat -u TCP6-LISTEN:4000,ipv6-v6only=0,reuseaddr OPEN:/run/got,creat,trunc' &
    wait_for 5 listens 2 :4000
    on 1 timeout $((60 * patience)) socat -u -b $((1 << 20)) "OPEN:/run/sent,readbytes=$(($1 << 20))" "TCP:${2:-10.0.0.2:4000}"
    wait $!
    head -c "$1M" /run/sent | cmp - /run/got || fail "the bytes differ"
}
wrong_checksums() { stack_counter 2 TcpInCsumErrors; }
without_wrong_checksums() { # COMMAND...
    local before
    before=$(wrong_checksums)
    "$@"
    [ "$(wrong_checksums)" = "$before" ]
}

# Tests that are the same for HCA and driver offloads.

bytes_count_as_on_the_wire() {
    local packets bytes
    packets=$(statistic 1 tx_packets) bytes=$(statistic 1 tx_bytes)
    transfer 10
    packets=$(($(statistic 1 tx_packets) - packets)) bytes=$(($(statistic 1 tx_bytes) - bytes))
    echo "# $packets packets, $bytes bytes"
    [ $packets -ge 5000 ]
    # 52 bytes of headers in each segment.
    [ $bytes -ge $((10 * 1048576 + 5000 * 52)) ]
    [ $bytes -le $((10 * 1048576 + packets * 60)) ]
}
# Enough changed segments arrive for some to be seen, and TCP retransmits them.
corrupted_segments_are_dropped() {
    local before
    before=$(wrong_checksums)
    knob 2 corrupt_every 100
    transfer 10
    knob 2 corrupt_every 0
    echo "# $(($(wrong_checksums) - before)) segments with a wrong checksum"
    [ $(($(wrong_checksums) - before)) -gt 10 ]
}
mode_changes_under_large_packets() {
    start_stream 1 2
    for _ in $(seq 8); do
        set_mode 1 connected
        stream_goes_on 2
        set_mode 1 datagram
        stream_goes_on 2
    done
    end_stream 2
}
