# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Host 1 and 3 in connected mode, host 2 in datagram mode; and modes that change.
PORTS=3
HOSTS=1

before_each() {
    set_mode 1 connected
    set_mode 3 connected
}

test_hosts_of_different_modes_communicate() {
    [ "$(mtu 1)" = 65520 ]
    [ "$(mtu 2)" = 2044 ]
    [ "$(mtu 3)" = 65520 ]
    ping_ok 1 10.0.0.2
    ping_ok 2 10.0.0.1
    ping_ok 1 10.0.0.3 -s 60000
    ping_ok 1 fd00::2
}

test_tracepath_learns_the_pmtu_to_a_datagram_peer() {
    # The address of host 2 has the connected-mode flag, so host 1 connects, and 64 KiB arrive.
    ping_ok 1 10.0.0.2 -s 60000
    # Replies use the other host's MTU.
    [ "$(learned_pmtu 2 10.0.0.1)" = 2044 ] || fail "$(cat /run/tracepath)"
}

# A peer whose address has no RC flag, as another implementation's may.
test_peer_without_the_connected_flag_gets_datagrams_and_the_pmtu_is_learned() {
    local address
    address=$(on 2 cat /sys/class/net/ib1/address)
    on 1 ip route flush cache
    on 1 ip neigh replace 10.0.0.2 lladdr "00${address#80}" dev ib0
    [ "$(learned_pmtu 1 10.0.0.2)" = 2044 ] || fail "$(cat /run/tracepath)"
    ping_ok 1 10.0.0.2 -M "do" -s 2016
    too_long 1 10.0.0.2 2017
    # Sent in fragments.
    on 1 /test/ping_sizes.py 10.0.0.2 0-64 1000-2020/17 2017 5000 20000 60000
    on 1 ip neigh replace fd00::2 lladdr "00${address#80}" dev ib0
    [ "$(learned_pmtu 1 fd00::2)" = 2044 ] || fail "$(cat /run/tracepath)"
    on 1 /test/ping_sizes.py fd00::2 0-64 5000 20000 60000
    iperf 1 2 -n 20M
    on 1 ip neigh del 10.0.0.2 dev ib0
    on 1 ip neigh del fd00::2 dev ib0
    on 1 ip route flush cache
    on 1 ip -6 route flush cache
}

test_tcp_and_udp_pass_between_modes() {
    iperf 1 2 -n 20M
    iperf 2 1 -n 20M
    udp 1 2 50M -t 2 -l 8000
}

may_fail_stock_tcp_continues_when_either_side_switches_mode='connections are given the opcode of the last datagram, LSO, which the HCA refuses'
test_tcp_continues_when_either_side_switches_mode() {
    local host mode
    start_stream 1 3
    for mode in datagram connected datagram connected; do
        for host in 3 1; do
            set_mode $host $mode
            stream_goes_on 3
        done
    done
    end_stream 3
    [ "$(mode 1)" = connected ]
    [ "$(mode 3)" = connected ]
    ping_ok 1 10.0.0.3 -s 60000
}
