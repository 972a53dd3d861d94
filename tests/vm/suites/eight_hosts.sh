# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Eight hosts on one switch.
PORTS=8
PROCESSORS=2
HOSTS=1

# Each host pings all hosts twice: the first packet waits for the path, the second one does not.
each_pings_each() { # FORMAT of addresses, for seq
    local from addresses
    mapfile -t addresses < <(seq -f "$1" "$PORTS")
    for from in $(seq "$PORTS"); do
        # shellcheck disable=SC2016 # expanded by the inner shell
        on "$from" sh -c 'for to; do
            ping -q -c 1 -W 5 "$to" || exit
            ping -q -c 1 -W 5 "$to" || exit
        done' pings "${addresses[@]}" >/run/pings || fail "host $from: $(tail -n 3 /run/pings)" || return 1
    done
}
test_all_pairs_ping() { each_pings_each 10.0.0.%g; }
test_all_pairs_ping_ipv6() { each_pings_each fd00::%g; }
test_seven_hosts_send_to_one() {
    local host senders pids=()
    mapfile -t senders < <(seq 2 $PORTS)
    begin_pings "${senders[@]}"
    for host in "${senders[@]}"; do
        on "$host" ping -q -i 0.002 -c 500 10.0.0.1 >"/run/flood.$host" &
        pids+=($!)
    done
    wait "${pids[@]}" || true
    none_was_lost /run/flood.*
    [ "$(grep -l '^500 packets transmitted' /run/flood.* | wc -l)" = $((PORTS - 1)) ]
}
test_four_pairs_of_tcp_at_once() { four_pairs_of_iperf; }
test_ibnetdiscover_finds_eight_hcas() { [ "$(ibnetdiscover | grep -c '^Ca')" = 8 ]; }
