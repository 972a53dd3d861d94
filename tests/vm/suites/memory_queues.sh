# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Memory of an interface with 1, 4 and 8 queues of each direction, idle and with a connection on each: host 1 has eight
# peers.
PORTS=9
SM_HOST=2
PROCESSORS=2
HOSTS=1
MODE=connected
FABRIC='vectors=8'
FRESH=1

# shellcheck source=/dev/null
. ./figures.sh
# shellcheck source=/dev/null
. ./samples.sh

queues_used_are() { # passive|active COUNT
    [ "$(awk -v side="$1" '$1 == side && /state established/ { used[$NF] } END { print length(used) }' \
        /sys/kernel/debug/ipoib/ib0_cm)" = "$2" ]
}
peers_connect() {
    local host
    for host in $(seq 2 "$PORTS"); do
        wait_for 20 reaches "$host" 10.0.0.1
        wait_for 20 reaches 1 "10.0.0.$host"
    done
}
# Sets idle and busy to the memory in KiB that host 1's interface takes when it is up, and what connections add.
measure() { # QUEUES
    local before
    on 1 ip link set ib0 down
    on 1 ethtool -L ib0 rx "$1" tx "$1"
    before=$(free_kib)
    on 1 ip link set ib0 up
    wait_for 20 carrier 1
    idle=$((before - $(free_kib)))
    peers_connect
    queues_used_are passive "$1"
    queues_used_are active "$1"
    busy=$((before - idle - $(free_kib)))
    echo "# $1 queues: $idle KiB idle, $busy KiB more with a connection on each"
}

test_queues_take_memory_when_they_have_a_connection() {
    [ "$DRIVER" = ours ] || return 77
    local count idle busy first=
    # Peers have their connections, and shared buffers, before the first measurement.
    sysctl -qw net.ipv4.neigh.default.gc_interval=600
    peers_connect
    for count in 1 4 8; do
        measure "$count"
        [ "$idle" -le $((${first:=$idle} + 512)) ] || fail "$idle KiB idle with $count queues, $first with one"
        about "$busy" $((first_queue_kib + (count - 1) * further_queue_kib)) 'KiB that its connections add'
    done
    sysctl -qw net.ipv4.neigh.default.gc_interval=30
}
