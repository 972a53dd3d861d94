# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Memory that the kernel allocates for an interface, a path, a neighbour and a connection.
PORTS=10
PROCESSORS=2
HOSTS=1
# Slab caches filled by other suites would serve the allocations that are measured.
FRESH=1
PARTITIONS=$(for key in $(seq 16); do printf 'p%d=0x%04x, ipoib : ALL=full;\n' "$key" "$key"; done)

# shellcheck source=/dev/null
. ./figures.sh
# shellcheck source=/dev/null
. ./samples.sh

test_interface_takes_the_documented_memory() {
    [ "$DRIVER" = ours ] || return 77
    local before taken i count=16
    before=$(free_kib)
    for i in $(seq $count); do
        on 1 ip link add link ib0 name "child$i" type ipoib pkey $((0x8000 + i))
        on 1 ip link set "child$i" up
    done
    for i in $(seq $count); do wait_for 20 carrier 1 "child$i"; done
    taken=$((before - $(free_kib)))
    for i in $(seq $count); do on 1 ip link del "child$i"; done
    about $((taken / count)) "$interface_kib" 'KiB of an interface'
}

# Repeated until it succeeds: requests may find the receive ring full.
learns_500_paths() { # FIRST
    ./arp_requests.py --first "$1" --count 500 --hca 1 --to "$(lladdr 2)" --asking-for 10.0.0.2 --as 10.0.0.99
    [ "$(grep -c '^GID' /sys/kernel/debug/ipoib/ib1_path)" -ge $(($1 + 500)) ]
}
queries_have_ended() {
    local failures
    failures=$(statistic_of 2 path_query_failures)
    sleep 1
    [ "$(statistic_of 2 path_query_failures)" = "$failures" ]
}
test_path_and_neighbour_take_the_documented_memory() {
    [ "$DRIVER" = ours ] || return 77
    local before path neighbour count=4000 first
    # No entry is removed meanwhile. The driver reads the setting when the interface is opened, and at each collection.
    sysctl -qw net.ipv4.neigh.default.gc_interval=600 net.ipv4.neigh.default.gc_thresh{1,2,3}=20000
    on 2 ip link set ib1 down
    on 2 ip link set ib1 up
    wait_for 30 carrier 2
    wait_for 20 reaches 1 10.0.0.2
    # Paths to unused GIDs, for which OpenSM returns an error.
    before=$(settled slab_kb)
    for first in $(seq 0 500 $((count - 1))); do wait_for 20 learns_500_paths "$first"; done
    wait_for 20 queries_have_ended
    path=$((($(settled slab_kb) - before) * 1024 / count))
    # Neighbours behind one port; the kernel already has its own entry of each.
    on 2 python3 - "$(lladdr 1)" $count <<'END' | on 2 ip -batch -
import sys
octets = sys.argv[1].split(":")
print("route replace 10.64.0.0/16 dev ib1")
for i in range(int(sys.argv[2])):
    octets[1:4] = (0x100000 + i).to_bytes(3, "big").hex(":").split(":")
    print(f"neigh replace 10.64.{i >> 8}.{i & 255} lladdr {':'.join(octets)} nud permanent dev ib1")
END
    before=$(settled slab_kb)
    on 2 python3 - $count <<'END'
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(int(sys.argv[1])):
    s.sendto(b"x", (f"10.64.{i >> 8}.{i & 255}", 9))
END
    wait_for 20 eval "[ \$(wc -l </sys/kernel/debug/ipoib/ib1_neigh) -ge $count ]"
    neighbour=$((($(settled slab_kb) - before) * 1024 / count))
    on 2 ip neigh flush nud permanent dev ib1
    sysctl -qw net.ipv4.neigh.default.gc_interval=30
    echo "# $path bytes of a path, $neighbour of a neighbour"
    about $((path + neighbour)) $((paths_and_neighbours_mb * 1000000 / limit_of_paths)) 'bytes of a path and a neighbour'
}

connect_to() { # STEP: from all hosts, each to the one STEP further on
    local host
    for host in $(seq "$PORTS"); do
        wait_for 20 reaches "$host" "10.0.0.$(((host - 1 + $1) % PORTS + 1))"
    done
}
test_connection_takes_the_documented_memory() {
    local host step before taken queues made=$((PORTS * (PORTS - 3)))
    # Keeps connections from being closed as idle.
    sysctl -qw net.ipv4.neigh.default.gc_interval=600
    for host in $(seq "$PORTS"); do
        on "$host" ip -6 addr flush dev "$(interface_of "$host")"
        set_mode "$host" connected
    done
    # Each host has one connection of each direction, with the shared buffers, and its neighbours' addresses.
    connect_to 1
    connect_to $((PORTS - 1))
    wait_for 20 connection_ends_are $((4 * PORTS))
    before=$(free_kib) queues=$(queues_kib)
    for step in $(seq 2 $((PORTS - 2))); do connect_to "$step"; done
    wait_for 20 connection_ends_are $((4 * PORTS + 2 * made))
    taken=$((before - $(free_kib))) queues=$(($(queues_kib) - queues))
    for host in $(seq "$PORTS"); do set_mode "$host" datagram; done
    sysctl -qw net.ipv4.neigh.default.gc_interval=30
    connections_take "$made" "$taken" "$queues" "$connection_kib"
}
