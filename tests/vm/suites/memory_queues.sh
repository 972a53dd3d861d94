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
. ./connections.sh
# shellcheck source=/dev/null
. ./figures.sh
# shellcheck source=/dev/null
. ./samples.sh

# Sets idle and busy to the memory in KiB that host 1's interface takes when it is up, and what connections add.
measure() { # QUEUES
    local before
    on 1 ip link set ib0 down
    on 1 ethtool -L ib0 rx "$1" tx "$1"
    before=$(free_kib)
    on 1 ip link set ib0 up
    wait_for 20 carrier 1
    idle=$((before - $(free_kib)))
    wait_for 20 each_has_a_connection passive
    wait_for 20 each_has_a_connection active
    [ "$(queues_used passive | wc -w)" = "$1" ]
    [ "$(queues_used active | wc -w)" = "$1" ]
    busy=$((before - idle - $(free_kib)))
    echo "# $1 queues: $idle KiB idle, $busy KiB more with a connection on each"
}

test_queues_take_memory_when_they_have_a_connection() {
    [ "$DRIVER" = ours ] || return 77
    local count idle busy first=
    # Peers have their connections, and shared buffers, before the first measurement.
    sysctl -qw net.ipv4.neigh.default.gc_interval=600
    all_connect
    for count in 1 4 8; do
        measure "$count"
        # Measurements of one idle interface differ by up to half a MiB, or two with pages of 64 KiB.
        [ "$idle" -le $((${first:=$idle} + (page_kib == 64 ? 2048 : 512))) ] ||
            fail "$idle KiB idle with $count queues, $first with one"
        about "$busy" "${connections_kib[count]}" 'KiB that its connections add'
    done
    sysctl -qw net.ipv4.neigh.default.gc_interval=30
}
