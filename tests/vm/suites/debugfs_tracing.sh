# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# The driver's debugging interfaces: debugfs, tracepoints, drop reasons, debug levels.
PORTS=2
HOSTS=1

# shellcheck source=/dev/null
. ./tracing.sh

file_of() { cat "/sys/kernel/debug/ipoib/$(interface_of "$1")_$2"; } # HOST FILE

test_debugfs_shows_paths_and_groups() {
    ping_ok 1 10.0.0.2
    file_of 1 path >/run/file
    grep -qx 'GID: fe80:0:0:0:2:c903:0:110' /run/file
    grep -qx '  complete:    yes' /run/file
    grep -qE '^  DLID:     0x[0-9a-f]{4}$' /run/file
    grep -qE '^  SL: {12}0$' /run/file
    grep -qE '^  rate: +[0-9]+\.[0-9]+ Gb/sec$' /run/file
    file_of 1 mcg >/run/file
    grep -qx 'GID: ff12:401b:ffff:0:0:0:ffff:ffff' /run/file
    grep -qE '^  created: +[0-9]+$' /run/file
    grep -qx '  queuelen:         0' /run/file
    grep -qx '  complete:       yes' /run/file
    grep -qx '  send_only:       no' /run/file
}

# Checks for files of its new name, and for no files of the former one, in /sys/kernel/debug/ipoib.
files_are_of() { # NAME NOT-OF
    ls "/sys/kernel/debug/ipoib/$1_path" "/sys/kernel/debug/ipoib/$1_mcg" >/dev/null
    [ ! -e "/sys/kernel/debug/ipoib/$2_path" ]
    [ ! -e "/sys/kernel/debug/ipoib/$2_mcg" ]
}
test_debugfs_files_follow_renames() {
    on 1 ip link set ib0 down
    on 1 ip link set ib0 name renamed
    files_are_of renamed ib0
    on 1 ip link set renamed name ib0
    on 1 ip link set ib0 up
    wait_for 20 carrier 1
    wait_for 20 reaches 1 10.0.0.2
}

test_debugfs_files_follow_moves_between_namespaces() {
    local name
    ip netns add elsewhere
    on 1 ip link set ib0 netns elsewhere name moved
    files_are_of moved ib0
    # When its namespace ends the interface returns to the initial one, where its name is taken.
    ip link add moved type dummy
    ip netns del elsewhere
    wait_for 10 born_as 1
    name=$(born_as 1)
    [ "$name" != moved ]
    files_are_of "$name" moved
    ip link del moved
    add_host 1
    files_are_of ib0 "$name"
    wait_for 20 carrier 1
    wait_for 20 reaches 1 10.0.0.2
}

xfail_stock_debugfs_accepts_one_name_in_two_namespaces='the files have the name of each interface, which debugfs refuses and logs'
test_debugfs_accepts_one_name_in_two_namespaces() {
    mark_log
    on 1 ip link add link ib0 name blue type ipoib pkey 0x8001
    on 2 ip link add link ib1 name blue type ipoib pkey 0x8001
    ls /sys/kernel/debug/ipoib/blue_path >/dev/null
    on 1 ip link del blue
    on 2 ip link del blue
    ! logged 'already present' || return 1
    ! ls /sys/kernel/debug/ipoib/blue_path 2>/dev/null || return 1
}

xfail_stock_debugfs_shows_neighbours='the in-tree driver does not show them'
test_debugfs_shows_neighbours() {
    local address
    ping_ok 1 10.0.0.2
    address=$(on 2 cat /sys/class/net/ib1/address)
    # The first byte is flags that the peer's ARP entry has too.
    file_of 1 neigh | says -E "^${address} datagram +unused for [0-9]+ s$" || fail "$(file_of 1 neigh)"
    set_mode 1 connected
    ping_ok 1 10.0.0.2
    in_a_connection() { file_of 1 neigh | says -E "^${address} connection"; }
    wait_for 10 in_a_connection
    set_mode 1 datagram
    wait_for 10 reaches 1 10.0.0.2
}

xfail_stock_tracepoints_report_state_changes='the in-tree driver has none'
test_tracepoints_report_state_changes() {
    local down_and_up
    down_and_up() {
        on 1 ip link set ib0 down
        on 1 ip link set ib0 up
        wait_for 20 carrier 1
        wait_for 20 reaches 1 10.0.0.2
    }
    trace ipoib down_and_up
    seen 'ipoib_interface: ib0 running -> closed'
    seen 'ipoib_interface: ib0 closed -> starting'
    seen 'ipoib_interface: ib0 starting -> running'
    seen 'ipoib_group: ib0 ff12:401b:ffff:0000:0000:0000:ffff:ffff joining -> joined'
    seen 'ipoib_path: ib0 fe80:0000:0000:0000:0002:c903:0000:0110 unknown -> querying'
    seen 'ipoib_path: ib0 fe80:0000:0000:0000:0002:c903:0000:0110 querying -> known'
    connect() {
        set_mode 1 connected
        ping_ok 1 10.0.0.2
        set_mode 1 datagram
    }
    trace ipoib connect
    seen 'ipoib_connection_active: ib0 fe80.*-> established'
    seen 'ipoib_connection_passive: ib1 fe80.*-> established'
    pull_and_plug() {
        knob 1 link 0
        link_up 1
        wait_for 20 carrier 1
    }
    trace ipoib pull_and_plug
    seen 'ipoib_flush: ib0 normal'
    wait_for 20 reaches 1 10.0.0.2
}

xfail_stock_tracepoint_reports_a_full_ring='the in-tree driver has none'
test_tracepoint_reports_a_full_ring() {
    # Byte queue limits would keep the ring from filling.
    local limit=/sys/class/net/ib0/queues/tx-0/byte_queue_limits/limit_min before
    before=$(on 1 cat $limit)
    send_1000() { on 1 python3 -c 'import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, 32, 1 << 20)  # SO_SNDBUFFORCE
for _ in range(1000):
    s.sendto(bytes(100), ("10.0.0.2", 9))'; }
    all_are_sent() { [ "$(on 1 cat "${limit%/*}/inflight")" = 0 ]; }
    fill_and_empty() {
        on 1 sh -c "echo 1000000 >$limit"
        # The limit changes when sends complete.
        flood 1 10.0.0.2 20
        # Long enough for the sender to fill the ring.
        knob 1 delay_us 1000000
        send_1000
        knob 1 delay_us 0
        on 1 sh -c "echo $before >$limit"
        wait_for 20 all_are_sent
    }
    trace ipoib/ipoib_ring fill_and_empty
    seen 'ipoib_ring: ib0 send stopped, 128 of 128 in use'
    seen 'ipoib_ring: ib0 send woken'
    wait_for 20 reaches 1 10.0.0.2
}

xfail_stock_drops_have_reasons='drops have no reason'
test_drops_have_reasons() {
    knob 2 link 0
    on 1 ip neigh replace 10.0.0.77 lladdr 00:00:00:48:fe:80:00:00:00:00:00:00:00:02:c9:03:00:00:99:99 dev ib0
    into_the_void() { on 1 ping -q -c 3 -i 0.2 -W 1 10.0.0.77 >/dev/null 2>&1 || true; }
    trace skb/kfree_skb into_the_void
    link_up 2
    on 1 ip neigh del 10.0.0.77 dev ib0
    wait_for 20 carrier 2
    wait_for 20 reaches 1 10.0.0.2
    seen 'reason: NEIGH_FAILED'
    send_other_type() { on 1 python3 -c 'import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("ib0", 0x88cc))
s.send(bytes(20) + bytes.fromhex("88cc0000") + bytes(50))'; }
    trace skb/kfree_skb send_other_type
    seen 'reason: UNHANDLED_PROTO'
    wait_for 20 reaches 1 10.0.0.2
}

test_debug_levels_log_state_changes() {
    local state='ib0: starting -> running'
    [ "$DRIVER" = ours ] || state='ib0: bringing up interface'
    logs_when_set debug_level "$state" 'ib0: joining'
    logs_when_set mcast_debug_level 'ib0: joining' "$state"
    wait_for 20 reaches 1 10.0.0.2
}
# Sets a level while the interface goes down and up.
logs_when_set() { # PARAMETER LOGGED NOT-LOGGED
    [ "$(parameter "$1")" = 0 ]
    echo 1 >"/sys/module/ib_ipoib/parameters/$1"
    mark_log
    on 1 ip link set ib0 down
    on 1 ip link set ib0 up
    wait_for 20 carrier 1
    echo 0 >"/sys/module/ib_ipoib/parameters/$1"
    logged "$2" || fail "$1 does not log '$2'"
    ! logged "$3" || fail "$1 logs '$3'"
}

test_data_debug_levels_log_packets() {
    [ "$DRIVER" = ours ] || return 77
    echo 1 >/sys/module/ib_ipoib/parameters/data_debug_level
    echo 1 >/sys/module/ib_ipoib/parameters/cm_data_debug_level
    mark_log
    reaches 1 10.0.0.2
    logged 'ib0: sending packet, length='
    set_mode 1 connected
    ping_ok 1 10.0.0.2
    logged 'ib0: sending packet: length .*, connection to qpn'
    set_mode 1 datagram
    echo 0 >/sys/module/ib_ipoib/parameters/data_debug_level
    echo 0 >/sys/module/ib_ipoib/parameters/cm_data_debug_level
    wait_for 20 reaches 1 10.0.0.2
}
