# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Eight hosts on one switch.
PORTS=8
PROCESSORS=2
HOSTS=1

test_all_pairs_ping() {
    local from to
    for from in $(seq $PORTS); do
        for to in $(seq $PORTS); do
            [ "$from" = "$to" ] || ping_ok "$from" "10.0.0.$to" -c 2
        done
    done
}
test_all_pairs_ping_ipv6() {
    local from to
    for from in $(seq $PORTS); do
        for to in $(seq $PORTS); do
            [ "$from" = "$to" ] || ping_ok "$from" "fd00::$to" -c 1
        done
    done
}
test_seven_hosts_send_to_one() {
    local host before=() pids=()
    for host in $(seq 2 $PORTS); do
        before[host]=$(unanswered "$host")
        on "$host" ping -q -i 0.002 -c 500 10.0.0.1 >"/run/flood.$host" &
        pids+=($!)
    done
    for host in "${pids[@]}"; do wait "$host"; done
    for host in $(seq 2 $PORTS); do
        grep -q '^500 packets transmitted' "/run/flood.$host"
        wait_for 10 no_more_unanswered "$host" "${before[host]}"
    done
}
test_four_pairs_of_tcp_at_once() { four_pairs_of_iperf; }
test_ibnetdiscover_finds_eight_hcas() { [ "$(ibnetdiscover | grep -c '^Ca')" = 8 ]; }
