# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Requests of the driver to the fabric, and queueing of packets on their way to it, that no other suite checks.
PORTS=2
HOSTS=1

# Requests to the fabric, traced at functions of the RDMA core

# shellcheck source=/dev/null
. ./tracing.sh
probe() { # DEFINITION COMMAND...: the event's lines in /run/asked
    mount_tracefs
    echo "p:asked $1" >"$tracing/kprobe_events"
    trace kprobes/asked attempt "${@:2}"
    grep asked: /run/trace >/run/asked || true
    echo >"$tracing/kprobe_events"
}
attempt() { "$@" || true; }

# Host 1 joins and queries when it comes up; earlier requests are complete then.
up() {
    bring_up 1
    wait_for 20 addresses_ready 1
    wait_for 20 reaches 1 10.0.0.2
}

# Component masks are big-endian, and read here by a little-endian processor.
mask() { # BIT...
    local bit value=0
    for bit; do value=$((value | 1 << (8 * (7 - bit / 8) + bit % 8))); done
    printf '0x%x' $value
}

# ib_sa.h: MGID 0, port GID 1, Q_Key 2, MTU selector 4, MTU 5, TClass 6, P_Key 7, rate selector 8, rate 9, SL 12,
# flow label 13, hop limit 14, join state 16.
test_joins_have_the_standard_components() {
    on 1 ip link set ib0 down
    probe 'ib_core:ib_sa_join_multicast ca=%si:x64 mask=%r8:x64' up
    # The first join is the broadcast group's; the others have its parameters. The other host may join a group
    # meanwhile.
    local broadcast_mask others_mask ca
    broadcast_mask="mask=$(mask 0 1 7 16)\$"
    others_mask="mask=$(mask 0 1 2 4 5 6 7 8 9 12 13 14 16)\$"
    ca=$(grep "$broadcast_mask" /run/asked | grep -o 'ca=[^ ]*') || fail "$(cat /run/asked)"
    grep "$ca " /run/asked >/run/asked.here
    head -n 1 /run/asked.here | says "$broadcast_mask" || fail "$(head -n 1 /run/asked.here)"
    [ "$(grep -c . /run/asked.here)" -ge 2 ]
    [ "$(tail -n +2 /run/asked.here | grep -cv "$others_mask")" = 0 ] || fail "$(cat /run/asked)"
}

# ib_sa.h: DGID 2, SGID 3, TClass 10, number of paths 12, P_Key 13.
test_path_queries_have_the_standard_components() {
    on 1 ip link set ib0 down
    probe 'ib_core:ib_sa_path_rec_get mask=%r8:x64 timeout=%r9:s32' up
    grep -q . /run/asked
    [ "$(grep -cv "mask=$(mask 2 3 10 12 13) timeout=1000\$" /run/asked)" = 0 ] || fail "$(cat /run/asked)"
}

# Fields of struct ib_cm_req_param of 6.1 and 6.12.
test_connection_requests_have_the_standard_fields() {
    local qpn
    qpn=$(lladdr 2 | cut -d: -f2-4 | tr -d :)
    connect() {
        set_mode 1 connected
        ping_ok 1 10.0.0.2
        set_mode 1 datagram
    }
    probe 'ib_cm:ib_send_cm_req service=+40(%si):x64 type=+52(%si):s32 psn=+56(%si):u32 mine=+0(+64(%si)):x32 mtu=+4(+64(%si)):x32 length=+72(%si):u8 resources=+73(%si):u8 depth=+74(%si):u8 remote=+75(%si):u8 flow=+76(%si):u8 local=+77(%si):u8 retries=+78(%si):u8 rnr=+79(%si):u8 tries=+80(%si):u8 srq=+81(%si):u8' connect
    # Big-endian, read by a little-endian processor: 0x10000000 00qpn, 65524 bytes.
    grep -q "service=$(printf '0x%x' "0x${qpn:4:2}${qpn:2:2}${qpn:0:2}0000000010") " /run/asked || fail "$(cat /run/asked)"
    grep -q 'type=2 psn=0 ' /run/asked
    grep -q "mine=0x$(lladdr 1 | awk -F: '{ print $4 $3 $2 "00" }' | sed 's/^0*//') mtu=0xf4ff0000 " /run/asked || fail "$(cat /run/asked)"
    grep -q 'length=8 resources=4 depth=0 remote=20 flow=0 local=20 retries=0 rnr=0 tries=15 srq=1$' /run/asked || fail "$(cat /run/asked)"
    wait_for 20 reaches 1 10.0.0.2
}

# Neighbours

test_unused_neighbour_is_removed_with_its_connection() {
    # The driver reads it when an interface is opened, and at each collection; a wait that has begun keeps its length.
    local before
    before=$(sysctl -n net.ipv4.neigh.default.gc_interval)
    sysctl -qw net.ipv4.neigh.default.gc_interval=3
    unload_driver
    load_driver
    add_hosts
    set_mode 1 connected
    wait_for 20 reaches 1 10.0.0.2
    connection_ends_are 2
    # Twice the interval, and the time until the next collection; no other packets use the neighbour.
    on 1 ip neigh replace 10.0.0.2 lladdr "$(lladdr 2)" dev ib0 nud permanent
    on 1 ip -6 addr flush dev ib0
    on 2 ip -6 addr flush dev ib1
    wait_for 60 connection_ends_are 0
    reaches 1 10.0.0.2
    connection_ends_are 2
    set_mode 1 datagram
    sysctl -qw "net.ipv4.neigh.default.gc_interval=$before"
}

# Features that the in-tree driver does not have

inflight() { attribute 1 ib0 queues/tx-0/byte_queue_limits/inflight; }
limit() { attribute 1 ib0 queues/tx-0/byte_queue_limits/limit; }
xfail_stock_bytes_in_flight_are_limited='the in-tree driver has no byte queue limits'
test_bytes_in_flight_are_limited() {
    local i most=0 allowed=0 now
    knob 1 delay_us 20000
    # In flight, of 380 kB in all.
    on 1 ping -q -f -l 200 -s 1900 10.0.0.2 >/dev/null &
    for i in $(seq 40); do
        now=$(limit)
        allowed=$((now > allowed ? now : allowed))
        now=$(inflight)
        most=$((now > most ? now : most))
    done
    stop_traffic
    knob 1 delay_us 0
    wait_for 20 reaches 1 10.0.0.2
    echo "# $most bytes under way, of $allowed"
    [ $most -gt 0 ]
    # The packet that reaches the limit may exceed it.
    [ $most -le $((allowed + 2048)) ]
    [ $allowed -lt 200000 ]
}

# A new queue would otherwise be stopped from the first packet until it is sent.
xfail_stock_few_bytes_never_stop_the_queue='the in-tree driver has no byte queue limits'
test_few_bytes_never_stop_the_queue() {
    local seen
    on 1 ip link set ib0 down
    on 1 ip link set ib0 up
    wait_for 30 carrier 1
    wait_for 20 reaches 1 10.0.0.2
    knob 1 delay_us 2000000
    seen=$(on 1 python3 -c 'import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
[s.sendto(bytes(64), ("10.0.0.2", 9)) for _ in range(100)]
print(open("/sys/class/net/ib0/queues/tx-0/byte_queue_limits/inflight").read())')
    knob 1 delay_us 0
    wait_for 20 reaches 1 10.0.0.2
    echo "# $seen bytes"
    [ "$seen" -ge 9200 ]
}

xfail_stock_packets_are_charged_to_their_socket_until_sent='the in-tree driver orphans them'
test_packets_are_charged_to_their_socket_until_sent() {
    local taken
    reaches 1 10.0.0.2
    knob 1 delay_us 50000
    taken=$(on 1 python3 -c 'import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 10000)
s.setblocking(False)
taken = 0
try:
    while taken < 1000:
        s.sendto(bytes(1000), ("10.0.0.2", 9))
        taken += 1
except BlockingIOError:
    pass
print(taken)')
    knob 1 delay_us 0
    wait_for 20 reaches 1 10.0.0.2
    echo "# $taken packets of 1000 bytes were accepted, of a socket that may have 20000 bytes in flight"
    [ "$taken" -ge 5 ] && [ "$taken" -le 40 ]
}

xfail_stock_connected_mode_uses_gro='packets received on connections bypass GRO'
test_connected_mode_uses_gro() {
    local arrived received host
    for host in 1 2; do
        set_mode $host connected
        set_mtu $host 2044
    done
    wait_for 20 reaches 1 10.0.0.2
    arrived=$(statistic 2 rx_packets) received=$(stack_counter 2 IpInReceives)
    # Packets come in batches, however the processors are shared.
    knob 1 delay_us 1000
    iperf 1 2 -n 10M
    knob 1 delay_us 0
    arrived=$(($(statistic 2 rx_packets) - arrived)) received=$(($(stack_counter 2 IpInReceives) - received))
    for host in 1 2; do set_mode $host datagram; done
    wait_for 20 reaches 1 10.0.0.2
    echo "# $arrived packets came, the stack saw $received"
    [ $((received * 3)) -lt $((arrived * 2)) ]
}
