# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Both processors in the same interface concurrently: senders on either, while its state is read and changed.
PORTS=2
PROCESSORS=2
HOSTS=1

# KCSAN watches one of some thousand accesses, for some microseconds: here, one of some hundred, for longer.
before_each() {
    [ -d /sys/module/kcsan ] || return 0
    write /sys/module/kcsan/parameters/skip_watch 200
    write /sys/module/kcsan/parameters/udelay_task 300
    write /sys/module/kcsan/parameters/udelay_interrupt 100
}

# Pings without loss.
ping_from_both() { # COUNT ping's arguments
    local cpu pids=()
    begin_pings 1
    for cpu in 0 1; do
        on 1 taskset -c $cpu ping -q -c "$1" "${@:2}" 10.0.0.2 >/run/flood.$cpu 2>&1 &
        pids+=($!)
    done
    wait "${pids[@]}" || true
    none_was_lost /run/flood.[01] || return 1
    [ "$(grep -l "^$1 packets transmitted" /run/flood.[01] | wc -l)" = 2 ] || fail "a ping ended early"
}
while_both_send() { # COMMAND...
    ping_from_both 2000 -f &
    local senders=$!
    while kill -0 $senders 2>/dev/null; do "$@"; done
    wait $senders
}

test_flood_pings_from_both_processors_lose_nothing() {
    both_work
    # While one processor sends a packet's fragments, the other may send more than 64.
    on 1 sysctl -qw net.ipv4.ipfrag_max_dist=0
    on 2 sysctl -qw net.ipv4.ipfrag_max_dist=0
    ping_from_both 2000 -f
    ping_from_both 200 -f -s 8000
    both_work
}

test_tcp_from_both_processors() {
    serve_iperf 2
    on 1 iperf3 -c 10.0.0.2 -t 5 -P 4 -A 0 >/run/one &
    local one=$!
    on 2 iperf3 -s -B 10.0.0.2 -p 5202 --daemon --one-off
    wait_for 5 listens 2 :5202
    on 1 iperf3 -c 10.0.0.2 -p 5202 -t 5 -P 4 -A 1 --bidir >/run/other
    wait $one
    grep -q receiver /run/one
    grep -q receiver /run/other
}

test_connected_traffic_from_both_processors_loses_nothing() {
    MODE=connected set_modes
    both_work
    ping_from_both 2000 -f
    # ICMP's socket has space for a few such replies (pings.sh): at most three wait for an answer, where a flood sends
    # 100 in a second without any.
    ping_from_both 200 -A -l 3 -s 20000
    iperf 1 2 -n 40M -P 4 --bidir
    MODE=datagram set_modes
    both_work
}

read_all() {
    on 1 ip -s -d link show ib0 >/dev/null
    on 1 ethtool -S ib0 >/dev/null
    on 1 ip neigh show dev ib0 >/dev/null
    cat /sys/kernel/debug/ipoib/ib0_* >/dev/null
}
test_state_is_read_under_traffic() {
    while_both_send read_all
    both_work
}

change_all() {
    on 1 ethtool -C ib0 rx-usecs 16 rx-frames 16
    on 1 ethtool -K ib0 gro off
    on 1 ethtool -C ib0 rx-usecs 0 rx-frames 0
    on 1 ethtool -K ib0 gro on
    on 1 timeout 1 python3 group.py listen-many 30 ib0 >/dev/null || true
}
test_settings_change_under_traffic() {
    while_both_send change_all
    both_work
}
