# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Concurrent users, a subnet administrator that does not answer, and a packet at the moment when its connection is
# established.
PORTS=2
PROCESSORS=2
HOSTS=1
PARTITIONS='blue=0x0001, ipoib : ALL=full;
red=0x0002, ipoib : ALL=full;'

flaps() {
    while :; do
        knob 1 link 0
        link_up 1
        wait_for 20 port_state_is 0 '4: ACTIVE' || true
    done
}
# The kernel may refuse these while the others run.
children_through_sysfs() { # HOST INTERFACE
    while :; do
        on "$1" sh -c "echo 0x8002 >/sys/class/net/$2/create_child && echo >>/run/made.$1
            ip link set $2.8002 up; echo 0x8002 >/sys/class/net/$2/delete_child" || true
    done
}
parents_up_and_down() { # HOST INTERFACE
    while :; do
        on "$1" ip link set "$2" down || true
        on "$1" ip link set "$2" up || true
    done
}
no_child_by_file() { ! on 1 test -e /sys/class/net/ib0.8002 && ! on 2 test -e /sys/class/net/ib1.8002 && ! test -e /sys/class/net/ib0.8002 -o -e /sys/class/net/ib1.8002; }
test_flushes_child_changes_and_reopens_run_at_once() {
    local pids=() pid host
    for host in 1 2; do
        on $host ip link add link "$(interface_of $host)" name blue type ipoib pkey 0x8001
        on $host ip link set blue up
    done
    flaps >/dev/null 2>&1 &
    pids+=($!)
    for host in 1 2; do
        children_through_sysfs $host "$(interface_of $host)" >/dev/null 2>&1 &
        pids+=($!)
        parents_up_and_down $host "$(interface_of $host)" >/dev/null 2>&1 &
        pids+=($!)
    done
    trap 'kill "${pids[@]}" 2>/dev/null || true' EXIT
    all_running() {
        for pid in "${pids[@]}"; do kill -0 "$pid" || fail "a loop has ended" || return 1; done
        pause 1
    }
    repeat_for 15 all_running
    kill "${pids[@]}"
    wait "${pids[@]}" 2>/dev/null || true
    echo "# $(cat /run/made.* | wc -l) children were created through sysfs"
    [ -s /run/made.1 ]
    [ -s /run/made.2 ]
    link_up 1
    for host in 1 2; do on $host sh -c "echo 0x8002 >/sys/class/net/$(interface_of $host)/delete_child" 2>/dev/null || true; done
    wait_for 10 no_child_by_file
    for host in 1 2; do on $host ip link set "$(interface_of $host)" up; done
    both_work
    for host in 1 2; do
        wait_for 20 carrier $host blue
        on $host ip link del blue
    done
}

# Sends one packet, and no other, at the moment when a connection is established.
one_packet() {
    set_mode 1 datagram
    set_mode 1 connected
    wait_for 10 carrier 1
    on 1 ping -q -c 1 -W 8 10.0.0.2 >/run/ping.out || fail "a packet was lost: $(grep transmitted /run/ping.out)"
}
test_single_packet_racing_the_reply_arrives() {
    local delay
    on 1 ip neigh replace 10.0.0.2 lladdr "$(lladdr 2)" dev ib0 nud permanent
    on 2 ip neigh replace 10.0.0.1 lladdr "$(lladdr 1)" dev ib1 nud permanent
    for delay in 0 0 0 200 500 1000 2000 5000 10000 20000; do
        knob 2 delay_us $delay
        one_packet
    done
    knob 2 delay_us 0
    set_mode 1 datagram
    on 1 ip neigh del 10.0.0.2 dev ib0
    on 2 ip neigh del 10.0.0.1 dev ib1
    both_work
}

stop_answering() { pkill -STOP -x opensm; }
answer_again() { pkill -CONT -x opensm; }
test_interface_goes_down_while_the_sa_is_silent() {
    local started
    stop_answering
    trap answer_again EXIT
    started=$SECONDS
    for _ in 1 2 3; do
        on 2 ip link set ib1 down
        # Joins and, from neighbour discovery, path queries are in progress.
        on 2 ip link set ib1 up
        on 2 ip neigh replace 10.0.0.1 lladdr "$(lladdr 1)" dev ib1 nud permanent
        on 2 ping -q -c 1 -W 1 10.0.0.1 >/dev/null || true
    done
    on 2 ip link set ib1 down
    [ $((SECONDS - started)) -lt $((30 * patience)) ] || fail "took $((SECONDS - started)) s"
    # RTNL is free.
    timeout $((5 * patience)) ip link show lo >/dev/null
    timeout $((5 * patience)) ip link add other type dummy
    ip link del other
    unload_driver
    answer_again
    load_driver
    add_hosts
    both_work
}

xfail_stock_concurrent_mode_changes_by_rtnetlink_and_sysfs='its changelink returns without RTNL at times, and its caller releases it'
test_concurrent_mode_changes_by_rtnetlink_and_sysfs() {
    # The damage outlives the test: run it alone.
    [ "$DRIVER" = ours ] || [ -n "${REPRODUCE:-}" ] || return 77
    local pids=() n
    on 1 ip link add link ib0 name blue type ipoib pkey 0x8001
    on 1 ip link set blue up
    for n in 1 2 3 4; do
        # shellcheck disable=SC2016 # expanded by the inner shell
        on 1 bash -c 'for _ in $(seq 15); do
            ip link set blue type ipoib mode connected
            echo datagram >/sys/class/net/blue/mode
            ip link add link ib0 name new'$n' type ipoib pkey 0x8002 mode connected umcast 1
            ip link set blue type ipoib mode datagram umcast 0
            ip link del new'$n'
        done' >/run/modes.$n 2>&1 &
        pids+=($!)
    done
    wait "${pids[@]}"
    cat /run/modes.* | sort | uniq -c | sed 's/^/# /'
    [ "$(cat /run/modes.* | wc -l)" = 0 ]
    on 1 ip link del blue
    both_work
}
