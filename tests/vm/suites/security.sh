# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Permissions, and the cost of a hostile neighbour: Documentation/security.md.
PORTS=2
PROCESSORS=2
HOSTS=1
PARTITIONS='blue=0x0001, ipoib : ALL=full;'
# shellcheck source=/dev/null
. ./samples.sh

nothing_changed() {
    [ "$(mode 1)" = datagram ]
    [ "$(on 1 cat /sys/class/net/ib0/umcast)" = 0 ]
    [ "$(mtu 1)" = 2044 ]
    [ "$(on 1 ip -o link show type ipoib | wc -l)" = 1 ]
    [ "$(parameter debug_level)" = 0 ]
    ping_ok 1 10.0.0.2
}

test_ordinary_user_can_change_nothing() {
    local file user=(setpriv --reuid 65534 --regid 65534 --clear-groups)
    for file in mode umcast create_child delete_child; do
        refused 'Permission denied' on 1 "${user[@]}" sh -c "echo 0x8001 >/sys/class/net/ib0/$file"
    done
    refused 'Permission denied' on 1 "${user[@]}" sh -c 'echo 1 >/sys/module/ib_ipoib/parameters/debug_level'
    # debugfs is mounted outside of the namespaces.
    refused 'Permission denied' "${user[@]}" cat /sys/kernel/debug/ipoib/ib0_path
    refused 'not permitted' on 1 "${user[@]}" ip link add link ib0 name blue type ipoib pkey 0x8001
    refused 'not permitted' on 1 "${user[@]}" ip link set ib0 type ipoib mode connected
    refused 'not permitted' on 1 "${user[@]}" ip link set ib0 mtu 1500
    refused 'not permitted' on 1 "${user[@]}" ethtool -G ib0 rx 512
    refused 'not permitted' on 1 "${user[@]}" ethtool -C ib0 rx-usecs 10
    refused 'not permitted' on 1 "${user[@]}" rmmod ib_ipoib
    nothing_changed
}

# Root's uid opens files, which is not enough.
xfail_stock_root_needs_cap_net_admin='mode and umcast ask the owner of the file only'
test_root_needs_cap_net_admin() {
    local file root=(setpriv --bounding-set -net_admin --inh-caps -net_admin)
    for file in mode umcast create_child delete_child; do
        refused 'not permitted' on 1 "${root[@]}" bash -c "echo connected >/sys/class/net/ib0/$file"
    done
    refused 'not permitted' on 1 "${root[@]}" ip link add link ib0 name blue type ipoib pkey 0x8001
    nothing_changed
}

box_is_ready() { [ "$(readlink "/proc/$box/ns/net")" != "$(readlink /proc/self/ns/net)" ] && grep -q . "/proc/$box/uid_map"; }
# Runs a command as the user who owns the container.
in_box() { setpriv --reuid 65534 --regid 65534 --clear-groups nsenter -t "$box" -U -n -m --preserve-credentials "$@"; }

xfail_stock_container_root_controls_only_its_own_interface='files stay those of the first owner'
# A container of an ordinary user, with an interface that was moved into it.
test_container_root_controls_only_its_own_interface() {
    local box
    setpriv --reuid 65534 --regid 65534 --clear-groups \
        unshare --user --map-root-user --net --mount sh -c 'mount -t sysfs sysfs /sys && exec sleep 1000' 2>/run/box &
    box=$!
    wait_for 5 box_is_ready || fail "$(cat /run/box)"
    wait_for 5 in_box test -d /sys/class/net/lo
    on 1 ip link add link ib0 name blue type ipoib pkey 0x8001
    on 1 ip link set blue netns "$box"
    in_box ip link set blue up
    in_box ip link set blue mtu 1500
    [ "$(in_box cat /sys/class/net/blue/mtu)" = 1500 ]
    in_box sh -c 'echo connected >/sys/class/net/blue/mode'
    [ "$(in_box cat /sys/class/net/blue/mode)" = connected ]
    in_box sh -c 'echo datagram >/sys/class/net/blue/mode'
    # Denied: its parent, another partition, global settings, debugfs.
    ! in_box test -e /sys/class/net/ib0 || return 1
    ! in_box test -e /sys/class/net/blue/create_child || return 1
    refused 'Cannot find device' in_box ip link add link ib0 name red type ipoib pkey 0x8002
    refused 'is a child itself' in_box ip link add link blue name red type ipoib pkey 0x8002
    refused 'Permission denied' in_box sh -c 'echo 1 >/sys/module/ib_ipoib/parameters/debug_level'
    refused 'permission denied' in_box mount -t debugfs debugfs /sys/kernel/debug
    kill "$box"
    wait "$box" 2>/dev/null || true
    # Back in the HCA's namespace.
    wait_for 30 test -e /sys/class/net/blue
    ip link del blue
    nothing_changed
}

# Some tests stop OpenSM.
before_each() { ensure_opensm; }

entries_of_host_2() { awk '/^GID/ { n++ } END { print n + 0 }' "/sys/kernel/debug/ipoib/ib1_$1"; } # path|mcg
paths_of_host_2() { entries_of_host_2 path; }
storm() { ./arp_requests.py --count "$1" --hca 1 --to "$(lladdr 2)" --asking-for 10.0.0.2 --as 10.0.0.99; } # COUNT

# Checks the memory taken since BEFORE, by COUNT entries: 2 KiB each at most, with the waiting packet.
costs_little() { # BEFORE COUNT
    local taken
    taken=$(($(settled slab_kb) - $1))
    echo "# $2 entries take $taken kB"
    [ $taken -le $((2 * $2)) ]
}

# Each request makes this host reply to an address of the sender's choice, and query the path to it.
test_arp_requests_from_unused_addresses_take_little_memory() {
    local started paths before
    before=$(settled slab_kb) started=$SECONDS
    wait_for 20 reaches 1 10.0.0.2
    stop_opensm
    wait_for 30 storms_make_paths
    paths=$(paths_of_host_2)
    echo "# $paths paths after $((SECONDS - started)) s"
    costs_little "$before" "$paths"
    # Known neighbours are not affected.
    flood 1 10.0.0.2 500
    flood 2 10.0.0.1 500
}
# Repeated until it succeeds: most requests may find the receive ring full.
storms_make_paths() {
    storm 5000
    [ "$(paths_of_host_2)" -ge 1000 ]
}

attempts_of_host_2() { awk '/^active/ && !/state (idle|established)/ { n++ } END { print n + 0 }' /sys/kernel/debug/ipoib/ib1_cm; }
connections_of_host_2() { grep -c ^active /sys/kernel/debug/ipoib/ib1_cm; }

xfail_stock_attempts_at_connections_to_one_port_are_limited='the in-tree driver makes any number'
# Host 1's port seems to have 100 queue pairs with RC, to which host 2 sends. ib_cm rejects the requests.
test_attempts_at_connections_to_one_port_are_limited() {
    local before attempts
    set_mode 2 connected
    wait_for 30 carrier 2
    wait_for 20 reaches 2 10.0.0.1
    before=$(statistic_of 2 path_limit_reached)
    ./arp_requests.py --count 100 --hca 1 --to "$(lladdr 2)" --asking-for 10.0.0.2 --as 10.0.0.100 --port "$(lladdr 1)"
    # shellcheck disable=SC2016 # expanded by the inner shell
    on 2 bash -c 'for n in {100..199}; do echo >"/dev/udp/10.0.0.$n/9"; done'
    attempts=$(attempts_of_host_2)
    echo "# $attempts attempts, $(connections_of_host_2) connections"
    [ "$attempts" -le 8 ]
    [ "$(connections_of_host_2)" -le 50 ]
    [ "$(statistic_of 2 path_limit_reached)" -gt "$before" ]
    # The established one is not affected.
    ping_ok 2 10.0.0.1 -s 60000
    set_mode 2 datagram
    both_work
}

groups_of_host_2() { entries_of_host_2 mcg; }

# IPv6 looks up each address by a group of its own: requests from ever new addresses make this host send to as many
# groups.
test_send_only_groups_take_little_memory() {
    local started block before
    # Removes the paths of the test before.
    on 2 ip link set ib1 down
    on 2 ip link set ib1 up
    wait_for 30 carrier 2
    before=$(settled slab_kb) started=$SECONDS
    wait_for 20 reaches 1 10.0.0.2
    stop_opensm
    for block in $(seq 8); do
        seq 250 | sed "s/^/239.20.$block./" | on 2 python3 /test/group.py send-many ib1
        # Neighbours in use are not affected.
        flood 1 10.0.0.2 50
    done
    echo "# $(groups_of_host_2) groups after $((SECONDS - started)) s"
    [ "$(groups_of_host_2)" -ge 2000 ]
    costs_little "$before" "$(groups_of_host_2)"
    flood 1 10.0.0.2 500
    flood 2 10.0.0.1 500
}

xfail_stock_unused_paths_and_groups_are_freed='the in-tree driver keeps paths until it is restarted'
test_unused_paths_and_groups_are_freed() {
    local before paths groups
    before=$(sysctl -n net.ipv4.neigh.default.gc_interval)
    # Read when the interface is opened, and at each collection. Unused entries are removed after twice that time, in
    # which a slow machine must make and count them.
    sysctl -qw net.ipv4.neigh.default.gc_interval=$((5 * patience))
    on 2 ip link set ib1 down
    bring_up 2
    wait_for 30 carrier 2
    # OpenSM runs and reports at once that the path does not exist.
    storm 3000
    paths=$(paths_of_host_2)
    seq 250 | sed 's/^/239.20.9./' | on 2 python3 /test/group.py send-many ib1
    groups=$(groups_of_host_2)
    echo "# $paths paths and $groups groups"
    [ "$paths" -gt 500 ]
    [ "$groups" -gt 200 ]
    wait_for 30 few_paths
    wait_for 30 few_groups || fail "$(groups_of_host_2) groups"
    sysctl -qw "net.ipv4.neigh.default.gc_interval=$before"
    both_work
}
few_paths() { [ "$(paths_of_host_2)" -le 3 ]; }
few_groups() { [ "$(groups_of_host_2)" -le 10 ]; }
