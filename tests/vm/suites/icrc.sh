# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Private flag icrc-as-checksum, which the in-tree driver does not have: connections between two ends with it carry no
# checksums of TCP and UDP.
PORTS=2
PROCESSORS=2
HOSTS=1
MODE=connected
# shellcheck source=/dev/null
. ./features.sh

trust() { on "$1" ethtool --set-priv-flags "$(interface_of "$1")" icrc-as-checksum "$2"; } # HOST on|off
# Starting state of most tests, whatever the state before.
both_trust() {
    trust 1 on
    trust 2 on
}
before_each() {
    pkill -x 'socat|tcpdump' || true
    set_modes
}
connections_trust() { cat /sys/kernel/debug/ipoib/ib0_cm /sys/kernel/debug/ipoib/ib1_cm | says ' icrc$'; }
listens_to_udp() { on 2 ss -lun | says ":9000 "; }
# tcpdump's line at host 2 on the checksum of a UDP packet of host 1 to an address.
checksum_of() { # ADDRESS [SOCAT-OPTION]
    on 2 timeout $((30 * patience)) tcpdump -i ib1 -n -vv -c 1 udp port 9000 >/run/seen 2>/run/tcpdump.err &
    wait_for 10 grep -q 'listening on' /run/tcpdump.err
    on 2 timeout $((30 * patience)) socat -u "UDP-RECVFROM:9000${2:+,$2}" - >/run/heard &
    wait_for 5 listens_to_udp
    hello_came() {
        echo hello | on 1 socat -u - "UDP-SENDTO:$1:9000,ip-multicast-if=10.0.0.1"
        grep -q hello /run/heard
    }
    wait_for 15 hello_came "$1"
    wait
    grep -oE 'udp sum ok|bad udp cksum' /run/seen
}
carries() { # CHECKSUMS
    wait_for 20 reaches 1 10.0.0.2
    transfer 10
    [ "$(checksum_of 10.0.0.2)" = "$1" ] || fail "$(cat /run/seen)"
}

test_flag_is_off_by_default() {
    [ "$DRIVER" = ours ] || return 77
    on 1 ethtool --show-priv-flags ib0 | says -E 'icrc-as-checksum *: off'
    is_feature 1 tx-checksum-ipv4 off
    carries 'udp sum ok'
    ! connections_trust
}

test_unknown_flag_is_refused() {
    [ "$DRIVER" = ours ] || return 77
    ! on 1 ethtool --set-priv-flags ib0 no-such-flag on 2>/dev/null
}

test_checksums_are_omitted_if_both_ends_offer() {
    [ "$DRIVER" = ours ] || return 77
    both_trust
    is_feature 1 tx-checksum-ipv4 on
    carries 'bad udp cksum'
    connections_trust
    [ "$(wrong_checksums)" = 0 ]
}

test_multicast_and_broadcast_have_checksums() {
    [ "$DRIVER" = ours ] || return 77
    both_trust
    [ "$(checksum_of 239.1.2.3 ip-add-membership=239.1.2.3:ib1)" = 'udp sum ok' ] || fail "$(cat /run/seen)"
}

test_checksums_are_kept_if_one_end_does_not_offer() {
    [ "$DRIVER" = ours ] || return 77
    both_trust
    trust 2 off
    carries 'udp sum ok'
    ! connections_trust || return 1
    trust 1 off
    trust 2 on
    carries 'udp sum ok'
    ! connections_trust || return 1
}

test_datagrams_have_checksums() {
    [ "$DRIVER" = ours ] || return 77
    both_trust
    set_mode 1 datagram
    carries 'udp sum ok'
    set_mode 1 connected
    carries 'bad udp cksum'
}

test_ethtool_can_turn_checksums_on() {
    [ "$DRIVER" = ours ] || return 77
    both_trust
    trap 'set_feature 1 tx-checksum-ipv4 on' EXIT
    set_feature 1 tx-checksum-ipv4 off
    carries 'udp sum ok'
    set_feature 1 tx-checksum-ipv4 on
    carries 'bad udp cksum'
}

test_flag_changes_under_traffic() {
    [ "$DRIVER" = ours ] || return 77
    local i
    both_trust
    start_stream 1 2
    for i in off on off on; do
        trust 1 $i
        stream_goes_on 2
        trust 2 $i
        stream_goes_on 2
    done
    end_stream 2
    [ "$(wrong_checksums)" = 0 ]
    both_work
}

test_flag_survives_down_and_up() {
    [ "$DRIVER" = ours ] || return 77
    both_trust
    on 1 ip link set ib0 down
    trust 1 off
    trust 1 on
    on 1 ip link set ib0 up
    carries 'bad udp cksum'
}
