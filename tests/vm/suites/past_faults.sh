# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Races that the in-tree driver lost once (Documentation/past-faults.md): what the fabric says against what the user does.
PORTS=2
HOSTS=1
PARTITIONS='blue=0x0001, ipoib : ALL=full;
red=0x0002, ipoib : ALL=full;'

lladdr() { on "$1" cat "/sys/class/net/${2:-$(interface_of "$1")}/address"; } # HOST [INTERFACE]
has_carrier() { [ "$(on "$1" cat "/sys/class/net/$2/carrier" 2>/dev/null)" = 1 ]; }

# From now on the subnet manager asks a host's port to register again and again, until calm.
storm() { # HOST
    /test/reregister.py $(($1 - 1)) 1000000 0.03 2>/run/storm.err &
    storm=$!
    trap 'kill $storm 2>/dev/null || true' EXIT
}
calm() {
    kill -0 "$storm" || fail "the storm ended by itself: $(tail -n 1 /run/storm.err)"
    kill "$storm"
    wait "$storm" 2>/dev/null || true
}
repeat_for() { # SECONDS COMMAND...
    local end=$((SECONDS + $1))
    shift
    while [ $SECONDS -lt $end ]; do "$@"; done
}
works() {
    on 1 ip addr replace fd00::1/64 dev ib0
    on 2 ip addr replace fd00::2/64 dev ib1
    wait_for 30 carrier 1
    wait_for 30 carrier 2
    wait_for 20 reaches 1 10.0.0.2
    ping_ok 2 10.0.0.1
    flood 1 10.0.0.2 200
}

# 1
test_unload_right_after_many_neighbours() {
    local i address
    address=$(lladdr 2)
    for i in 1 2 3; do
        # Neighbours of queue pairs that are not there, behind the other port.
        on 1 python3 -c 'import sys
for n in range(400):
    print("neigh replace 10.0.%d.%d lladdr 00:00:%02x:%02x:%s dev ib0 nud permanent" % (2 + n // 200, 1 + n % 200, 0x40 + n // 200, n % 200, sys.argv[1]))
' "${address:12}" | on 1 ip -batch -
        on 1 ip route replace 10.0.0.0/16 dev ib0
        on 1 python3 -c 'import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for n in range(400):
    s.sendto(b"x", ("10.0.%d.%d" % (2 + n // 200, 1 + n % 200), 9))'
        [ "$DRIVER" = stock ] || [ "$(wc -l </sys/kernel/debug/ipoib/ib0_neigh)" -ge 300 ] || fail "$(wc -l </sys/kernel/debug/ipoib/ib0_neigh) neighbours"
        on 1 ip link set ib0 down
        unload_driver
        load_driver
        add_hosts
    done
    works
}

# 2
down_and_up() {
    on 2 ip link set ib1 down
    on 2 ip link set ib1 up
}
test_reregistration_storm_against_down_and_up() {
    storm 2
    repeat_for 8 down_and_up
    calm
    works
}
make_and_delete() {
    on 2 ip link add link ib1 name blue type ipoib pkey 0x8001
    on 2 ip link set blue up
    on 2 ip link del blue
}
test_reregistration_storm_against_unregistration() {
    storm 2
    repeat_for 8 make_and_delete
    unload_driver
    load_driver
    add_hosts
    calm
    works
}

# 3
join_and_leave() { on 2 timeout 1 python3 /test/group.py listen-many 30 ib1 >/dev/null || true; }
test_memberships_change_while_groups_are_joined_again() {
    knob 2 delay_us 1000
    storm 2
    repeat_for 8 join_and_leave
    calm
    knob 2 delay_us 0
    works
    on 2 timeout 20 python3 /test/group.py listen 239.1.2.3 ib1 >/run/heard &
    heard() {
        on 1 python3 /test/group.py send 239.1.2.3 ib0 hello
        grep -q hello /run/heard
    }
    wait_for 15 heard
    pkill -f 'group.py listen' || true
}

# 7, 12
flaps() {
    while :; do
        knob 1 link 0
        knob 1 link 1
        pkill -HUP -x opensm
        wait_for 20 port_state_is 0 '4: ACTIVE'
    done
}
children_by_file() { # HOST INTERFACE
    while :; do
        on "$1" sh -c "echo 0x8002 >/sys/class/net/$2/create_child; ip link set $2.8002 up; echo 0x8002 >/sys/class/net/$2/delete_child"
    done
}
parents_up_and_down() { # HOST INTERFACE
    while :; do
        on "$1" ip link set "$2" down
        on "$1" ip link set "$2" up
    done
}
no_child_by_file() { ! on 1 test -e /sys/class/net/ib0.8002 && ! on 2 test -e /sys/class/net/ib1.8002 && ! test -e /sys/class/net/ib0.8002 -o -e /sys/class/net/ib1.8002; }
test_flushes_children_and_ups_and_downs_at_once() {
    local pids=() pid host
    for host in 1 2; do
        on $host ip link add link "$(interface_of $host)" name blue type ipoib pkey 0x8001
        on $host ip link set blue up
    done
    storm 2
    flaps >/dev/null 2>&1 &
    pids+=($!)
    for host in 1 2; do
        children_by_file $host "$(interface_of $host)" >/dev/null 2>&1 &
        pids+=($!)
        parents_up_and_down $host "$(interface_of $host)" >/dev/null 2>&1 &
        pids+=($!)
    done
    all_running() { kill -0 "${pids[@]}"; }
    repeat_for 15 all_running
    kill "${pids[@]}"
    wait "${pids[@]}" 2>/dev/null || true
    calm
    knob 1 link 1
    for host in 1 2; do on $host sh -c "echo 0x8002 >/sys/class/net/$(interface_of $host)/delete_child" 2>/dev/null || true; done
    wait_for 10 no_child_by_file
    for host in 1 2; do on $host ip link set "$(interface_of $host)" up; done
    works
    for host in 1 2; do
        wait_for 20 has_carrier $host blue
        on $host ip link del blue
    done
}

# 10
# Sends one packet, and no other, at the moment when a connection is made.
one_packet() {
    set_mode 1 datagram
    set_mode 1 connected
    wait_for 10 carrier 1
    on 1 ping -q -c 1 -W 8 10.0.0.2 >/run/ping.out || fail "a packet was lost: $(grep transmitted /run/ping.out)"
}
test_single_packet_that_races_the_reply_arrives() {
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
    works
}

# 11
stop_answering() { pkill -STOP -x opensm; }
answer_again() { pkill -CONT -x opensm; }
test_down_while_the_administrator_is_silent() {
    local started
    stop_answering
    trap answer_again EXIT
    started=$SECONDS
    for _ in 1 2 3; do
        on 2 ip link set ib1 down
        # Joins and, from neighbour discovery, path queries are under way.
        on 2 ip link set ib1 up
        on 2 ip neigh replace 10.0.0.1 lladdr "$(lladdr 1)" dev ib1 nud permanent
        on 2 ping -q -c 1 -W 1 10.0.0.1 >/dev/null || true
    done
    on 2 ip link set ib1 down
    [ $((SECONDS - started)) -lt 30 ] || fail "took $((SECONDS - started)) s"
    # RTNL is free.
    timeout 5 ip link show lo >/dev/null
    timeout 5 ip link add other type dummy
    ip link del other
    unload_driver
    answer_again
    load_driver
    add_hosts
    works
}

# 14
send_to_many() { seq 30 | sed 's/^/239.20.0./' | on 2 python3 /test/group.py send-many ib1; }
test_sends_to_groups_while_groups_are_joined_again() {
    storm 2
    repeat_for 8 send_to_many
    calm
    works
    # They are joined for sending, all of them.
    send_to_many
    thirty() { [ "$(saquery --smkey 1 -g 2>/dev/null | grep -ci 'ff12:401b:ffff::f14:')" -ge 30 ]; }
    wait_for 20 thirty
}

# 15
test_paths_change_under_a_full_ring() {
    knob 1 delay_us 3000
    storm 1
    on 1 timeout 60 ping -q -f -l 200 10.0.0.2 >/dev/null 2>&1 &
    iperf 1 2 -t 5 -u -b 0 -l 500 || true
    stop_traffic
    calm
    knob 1 delay_us 0
    works
}

# 25
test_groups_are_back_at_once_after_reregistration() {
    local started=$EPOCHREALTIME
    listed() { grep -A 3 -i 'GID: ff12:401b:ffff:0:0:0:ffff:ffff' /sys/kernel/debug/ipoib/ib1_mcg | grep -q 'complete: *yes'; }
    listed
    /test/reregister.py 1 3 0.2
    started=$SECONDS
    wait_for 5 listed
    on 2 ping -q -c 20 -i 0.1 ff02::1%ib1 >/dev/null || true
    [ "$(members_of ff12:401b:ffff::ffff:ffff)" = 2 ]
    [ $((SECONDS - started)) -lt 10 ] || fail "took $((SECONDS - started)) s"
    works
}
