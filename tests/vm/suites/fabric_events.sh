# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Events of the fabric concurrent with requests of users: reregistrations, changed paths. Slow links.
PORTS=2
PROCESSORS=2
HOSTS=1
PARTITIONS='blue=0x0001, ipoib : ALL=full;
red=0x0002, ipoib : ALL=full;'

# shellcheck source=/dev/null
. ./groups.sh
# shellcheck source=/dev/null
. ./copies.sh

# Makes a host's port reregister (reregister.py) again and again, until calm.
storm() { # HOST
    expect_missing_gids
    /test/reregister.py $(($1 - 1)) 1000000 0.03 2>/run/storm.err >/dev/null &
    storm=$!
    trap 'kill $storm 2>/dev/null || true' EXIT
}
calm() {
    kill -0 "$storm" || fail "the storm ended by itself: $(tail -n 1 /run/storm.err)"
    kill "$storm"
    wait "$storm" 2>/dev/null || true
}

test_module_unloads_right_after_many_neighbours() {
    local i address
    address=$(lladdr 2)
    for i in 1 2; do
        # Neighbours with unused queue pair numbers, behind the other port.
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
    both_work
}

down_and_up() {
    on 2 ip link set ib1 down
    on 2 ip link set ib1 up
}
test_reregistration_storm_during_down_and_up() {
    storm 2
    repeat_for 6 down_and_up
    calm
    both_work
}
make_and_delete() {
    on 2 ip link add link ib1 name blue type ipoib pkey 0x8001
    on 2 ip link set blue up
    on 2 ip link del blue
}
test_reregistration_storm_during_unregistration() {
    storm 2
    repeat_for 6 make_and_delete
    unload_driver
    load_driver
    add_hosts
    calm
    both_work
}

join_and_leave() { on 2 timeout 1 python3 /test/group.py listen-many 30 ib1 >/dev/null || true; }
test_memberships_change_during_rejoins() {
    knob 2 delay_us 1000
    storm 2
    repeat_for 6 join_and_leave
    calm
    knob 2 delay_us 0
    both_work
    group_is_heard 239.1.2.3 1 2
    nobody_listens
}

send_to_many() { seq 30 | sed 's/^/239.20.0./' | on 2 python3 /test/group.py send-many ib1; }
test_groups_are_sent_to_during_rejoins() {
    storm 2
    repeat_for 6 send_to_many
    calm
    both_work
    # All of them are joined send-only.
    send_to_many
    thirty() { [ "$(saquery --smkey 1 -g 2>/dev/null | grep -ci 'ff12:401b:ffff::f14:')" -ge 30 ]; }
    wait_for 20 thirty
}

test_paths_change_with_a_full_ring() {
    local limit=/sys/class/net/ib0/queues/tx-0/byte_queue_limits/limit_min before stops queries
    before=$(on 1 cat $limit)
    # Byte queue limits would keep the ring from ever being full.
    on 1 sh -c "echo 1000000 >$limit"
    [ "$DRIVER" = stock ] || { stops=$(statistic_of 1 tx_queue_stopped) queries=$(statistic_of 1 path_queries); }
    knob 1 delay_us 3000
    storm 1
    on 1 timeout 60 ping -q -f -l 200 10.0.0.2 >/dev/null 2>&1 &
    on 1 python3 -c 'import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, 32, 1 << 20)  # SO_SNDBUFFORCE
for _ in range(100000):
    s.sendto(bytes(500), ("10.0.0.2", 9))'
    stop_traffic
    calm
    knob 1 delay_us 0
    on 1 sh -c "echo $before >$limit"
    if [ "$DRIVER" = ours ]; then
        stops=$(($(statistic_of 1 tx_queue_stopped) - stops)) queries=$(($(statistic_of 1 path_queries) - queries))
        echo "# the ring was full $stops times, $queries path queries"
        [ $stops -ge 10 ]
        [ $queries -ge 10 ]
    fi
    both_work
}

test_groups_are_rejoined_at_once_after_reregistration() {
    local started before groups
    listed() { grep -A 3 -i 'GID: ff12:401b:ffff:0:0:0:ffff:ffff' /sys/kernel/debug/ipoib/ib1_mcg | says 'complete: *yes'; }
    rejoined() { [ "$DRIVER" = stock ] || [ "$(statistic_of 2 group_joins)" -ge $((before + groups)) ]; }
    listed
    groups=$(grep -c '^GID' /sys/kernel/debug/ipoib/ib1_mcg)
    started=$SECONDS
    for _ in 1 2 3; do
        [ "$DRIVER" = stock ] || before=$(statistic_of 2 group_joins)
        /test/reregister.py 1 1 0 >/dev/null
        wait_for 5 rejoined
    done
    wait_for 5 listed
    on 2 ping -q -c 20 -i 0.1 ff02::1%ib1 >/dev/null || true
    [ "$(members_of ff12:401b:ffff::ffff:ffff)" = 2 ]
    [ $((SECONDS - started)) -lt $((10 * patience)) ] || fail "took $((SECONDS - started)) s"
    both_work
}

# Links of limited rate, and without credits

milliseconds() { awk '{ print int($1 * 1000) }' /proc/uptime; }
frames_lost() { awk '$1 ~ /^drop_/ { n += $2 } END { print n }' "$debug/$(($1 - 1))/counters"; } # HOST
test_link_of_limited_rate_carries_that_much_and_loses_nothing() {
    local start lost
    lost=$(frames_lost 2)
    trap 'knob 1 rate_mbps 0' EXIT
    knob 1 rate_mbps 4
    start=$(milliseconds)
    copies 2000000 1 2
    start=$(($(milliseconds) - start))
    echo "# 2 MB at 4 Mbit/s: $start ms"
    [ "$start" -ge 4000 ]
    [ "$start" -le $((4500 + 1500 * patience)) ]
    [ "$(frames_lost 2)" = "$lost" ]
}

received() { on 2 cat /proc/net/snmp | awk '$1 == "Udp:" && $3 ~ /[0-9]/ { print $2 + $3 }'; }
has_received() { [ "$(received)" = "$1" ]; } # COUNT
test_held_sends_arrive_later() {
    local before
    wait_for 20 reaches 1 10.0.0.2
    before=$(received)
    trap 'knob 1 hold_sends 0' EXIT
    knob 1 hold_sends 1
    for _ in $(seq 20); do echo x | on 1 socat -u - UDP-SENDTO:10.0.0.2:9; done
    sleep 0.5
    [ "$(received)" = "$before" ] || fail "$(($(received) - before)) datagrams arrived"
    # Subnet management is not held.
    smpquery -C soft_ib0 nodeinfo -D 0,1,2 >/run/nodeinfo
    port_state_is 0 '4: ACTIVE'
    knob 1 hold_sends 0
    wait_for 10 has_received $((before + 20))
}
