# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# What the in-tree driver did wrong once, or does still (Documentation/past-faults.md), by one thing at a time.
PORTS=2
HOSTS=1
PARTITIONS='blue=0x0001, ipoib : ALL=full;
red=0x0002, ipoib : ALL=full;'

queues() { on "$1" sh -c "ls -d /sys/class/net/$2/queues/tx-* | wc -l"; }      # HOST INTERFACE

# 5
test_child_by_rtnetlink_has_one_queue() {
    on 1 ip link add link ib0 name blue type ipoib pkey 0x8001
    [ "$(queues 1 blue)" = 1 ]
    [ "$(queues 1 ib0)" = 1 ]
}
# b
xfail_stock_modes_leave_one_queue='back in datagram mode it has as many as there are processors'
test_modes_leave_one_queue() {
    local found
    on 1 ip link set blue type ipoib mode connected
    on 1 ip link set blue type ipoib mode datagram
    found=$(queues 1 blue)
    on 1 ip link del blue
    [ "$found" = 1 ] || fail "$found queues"
}

# 8, 9
test_namespace_ends_with_parent_and_child_inside() {
    ip netns add elsewhere
    on 1 ip link set ib0 netns elsewhere
    ip -n elsewhere link add link ib0 name blue type ipoib pkey 0x8001
    ip -n elsewhere link set ib0 up
    ip -n elsewhere link set blue up
    ip netns del elsewhere
    both_are_back() { ip -d link show blue | says ipoib && born_as 1; }
    wait_for 10 both_are_back
    ip -d link show "$(born_as 1)" | says 'ipoib pkey'
    ip link del blue
    add_host 1
    both_work
}

# 17
# Listed by a packet socket, as it stands: of another link, of none, and, to compare, one of this link.
hold_group() { # ADDRESS
    on 2 python3 -c 'import socket, struct, sys, time
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
for address in sys.argv[1:]:
    s.setsockopt(263, 1, struct.pack("@iHH32s", socket.if_nametoindex("ib1"), 0, 20, bytes.fromhex(address)))
time.sleep(1e6)' "$@" &
    holder=$!
    trap 'kill $holder 2>/dev/null || true' EXIT
}
known() { grep -qi "GID: ff$1\$" /sys/kernel/debug/ipoib/ib1_mcg; }
test_malformed_group_addresses_are_not_asked_for() {
    local good=00ffffffff12401bffff0000000000000f202020
    hold_group 00ffffffff12dead80550000000000000f202020 00000048ff12401bffff0000000000000f303030 \
        00fffffffe12401bffff0000000000000f404040 0000000000000000000000000000000000000000 $good
    wait_for 10 on 2 grep -q $good /proc/net/dev_mcast
    wait_for 15 known 12:401b:ffff:0:0:0:f20:2020
    ! known '12:dead.*' || return 1
    ! known '.*f30:3030' || return 1
    ! grep -qi 'f40:4040\|GID: 0:0' /sys/kernel/debug/ipoib/ib1_mcg || return 1
    ! saquery -g | says -i 'dead\|f30:3030\|f40:4040' || return 1
    kill $holder
    both_work
}
test_group_of_another_signature_is_not_asked_for() {
    local good=00ffffffff12401bffff0000000000000f505050
    hold_group 00ffffffff12deadffff0000000000000f606060 $good
    wait_for 15 known 12:401b:ffff:0:0:0:f50:5050
    ! known '12:dead.*'
}

# 18
# The kernel's own watchdog logs a warning with a trace, once.
case $(uname -r) in 6.1.*)
    xfail_stock_transmit_timeout_is_recovered_from='it logs it each second, and waits'
    xfail_stock_stopped_queue_is_recovered='as that'
    ;;
esac
times_out_and_recovers() { # [ping arguments]
    local traces recovered=
    timed_out() { logged 'ib1: transmit timeout: latency'; }
    expect_in_log 'ib1: NETDEV WATCHDOG|NETDEV WATCHDOG: ib1'
    expect_in_log 'ib1: transmit timeout: |ib1: timing out; '
    mark_log
    reaches 2 10.0.0.1
    knob 2 lose_completions 1000000
    on 2 timeout 60 ping -q -f -l 400 "$@" 10.0.0.1 >/dev/null 2>&1 &
    wait_for 40 timed_out
    knob 2 lose_completions 0
    stop_traffic
    if wait_for 20 reaches 2 10.0.0.1; then
        recovered=1
    else
        # For the tests after this one.
        on 2 ip link set ib1 down
        on 2 ip link set ib1 up
        wait_for 80 reaches 2 10.0.0.1
    fi
    log_since_mark | grep 'ib1: ' | tail -n 12 | sed 's/^/# /'
    traces=$(log_since_mark | grep -c 'cut here') || true
    [ "$traces" -le 1 ] || fail "$traces traces"
    [ -n "$recovered" ]
    both_work
}
# The six that the socket may have under way stop no queue.
test_transmit_timeout_is_recovered_from() { times_out_and_recovers; }
# More than what byte queue limits always let through: the kernel's watchdog sees to it.
test_stopped_queue_is_recovered() { times_out_and_recovers -s 20000; }

# 19
test_threaded_napi_stops_and_wakes_the_queue() {
    local host
    for host in 1 2; do on $host sh -c "echo 1 >/sys/class/net/$(interface_of $host)/threaded"; done
    iperf 1 2 -t 4 --bidir -P 4
    iperf 1 2 -t 3 -u -b 0 -l 100
    flood 1 10.0.0.2 1000
    for host in 1 2; do on $host sh -c "echo 0 >/sys/class/net/$(interface_of $host)/threaded"; done
    both_work
}

# 24, g
refuses_parent() { # INTERFACE
    ! on 1 ip link add link "$1" name x type ipoib pkey 0x8001 2>/dev/null || fail "$1 was taken for a parent" || return 1
    ! on 1 test -e /sys/class/net/x
}
test_odd_parents_are_refused() {
    local parent
    on 1 ip link add other type dummy
    on 1 ip link add one type veth peer name two
    for parent in lo other one; do refuses_parent "$parent"; done
    on 1 ip link del other
    on 1 ip link del one
    # Of a number that nobody has, here or there.
    ip netns add elsewhere
    for parent in if99 "if$(on 1 cat /sys/class/net/ib0/ifindex)"; do
        ! ip -n elsewhere link add link "$parent" name x type ipoib pkey 0x8001 2>/run/refusal || return 1
        grep -qE 'No such device|does not exist' /run/refusal || fail "$(cat /run/refusal)"
    done
    # In no link of its own, though there is a namespace of one.
    ! ip link add link-netns elsewhere name x type ipoib pkey 0x8001 2>/dev/null || return 1
    ip netns del elsewhere
}
test_parent_that_is_no_ipoib_is_refused() {
    # The kernel's own takes whatever lies in the private area for its own.
    [ "$DRIVER" = ours ] || return 77
    modprobe bonding max_bonds=0
    on 1 ip link add bond9 type bond mode active-backup
    on 1 ip link set ib0 down
    on 1 ip link set ib0 master bond9
    [ "$(on 1 cat /sys/class/net/bond9/type)" = 32 ]
    refuses_parent bond9
    on 1 ip link set ib0 nomaster
    on 1 ip link del bond9
    on 1 ip addr replace 10.0.0.1/24 dev ib0
    on 1 ip link set ib0 up
    both_work
}

# 27
test_long_multicast_in_connected_mode_is_dropped_once() {
    local before after
    set_mode 1 connected
    set_mode 2 connected
    wait_for 20 reaches 1 10.0.0.2
    before=$(statistic 1 tx_dropped)
    on 1 python3 -c 'import socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, 32, struct.pack("@4s4si", b"", b"", socket.if_nametoindex("ib0")))
for _ in range(200):
    s.sendto(bytes(30000), ("239.30.1.1", 9))'
    after=$(statistic 1 tx_dropped)
    echo "# $((after - before)) of 200 were dropped"
    [ $((after - before)) -ge 190 ]
    [ $((after - before)) -le 210 ]
    # And those that fit, while sends fail.
    expect_in_log 'ib0: failed send event'
    knob 1 fail_sends 5
    on 1 ping -q -c 10 -i 0.05 ff02::1%ib0 >/dev/null || true
    wait_for 20 reaches 1 10.0.0.2
    ping_ok 1 10.0.0.2 -s 60000
    both_work
}

# d
xfail_stock_connected_mode_refuses_short_mtus='it takes any'
test_connected_mode_refuses_short_mtus() {
    local wrong taken=
    for wrong in 68 71; do ! set_mtu 1 $wrong 2>/dev/null || taken=$wrong; done
    set_mtu 1 72
    set_mtu 1 65520
    set_mode 1 datagram
    set_mode 2 datagram
    both_work
    [ -z "$taken" ] || fail "MTU $taken was taken"
}
