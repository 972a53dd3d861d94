# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# 33 hosts in connected mode, each with a connection to every other: 1056.
PORTS=33
PROCESSORS=2
HOSTS=1
MODE=connected

# shellcheck source=/dev/null
. ./connections.sh
# shellcheck source=/dev/null
. ./figures.sh
# shellcheck source=/dev/null
. ./samples.sh

connections_are() { connection_ends_are $((2 * $1)); }
ping_each() { # host: its neighbours from the second on
    local to addresses=()
    for to in $(seq 2 $((PORTS - 1))); do addresses+=("10.0.0.$((($1 - 1 + to) % PORTS + 1))"); done
    # shellcheck disable=SC2016 # expanded by the inner shell
    on "$1" sh -c 'for to; do ping -q -c 1 -W 20 "$to" >/dev/null || echo "# $0: no answer from $to"; done' "$1" "${addresses[@]}"
}

# All hosts at once, or as many as a slow kernel's CM answers in time.
each_pings_each() {
    local host running
    for host in $(seq "$PORTS"); do
        while mapfile -t running < <(jobs -rp); [ ${#running[@]} -ge $((PORTS / patience + 1)) ]; do wait -n; done
        ping_each "$host" >"/run/each.$host" &
    done
    wait
    cat /run/each.*
    [ "$(cat /run/each.* | wc -l)" = 0 ]
}
all_are_connected() { connections_are $((PORTS * (PORTS - 1))); }

before_each() {
    # One table, of 1024 entries by default, holds the neighbours of all namespaces.
    sysctl -qw net.ipv4.neigh.default.gc_thresh{1,2,3}=8192
    # A connection that is unused for two such intervals ends, and a slow kernel takes long to use all of them.
    sysctl -qw net.ipv4.neigh.default.gc_interval=240
}

if several_queues; then skippable_1056_connections_take_the_documented_memory='connections fill further receive queues, too: memory_queues'; fi
test_1056_connections_take_the_documented_memory() {
    ! several_queues || return 77
    local host before taken queues made=$((PORTS * (PORTS - 1) - 2 * PORTS))
    # Each host has one connection of each direction, and so the shared buffers.
    for host in $(seq "$PORTS"); do reaches "$host" "10.0.0.$((host % PORTS + 1))"; done
    # Neighbours' addresses are known too.
    wait_for 20 connections_are $((2 * PORTS))
    before=$(free_kib) queues=$(queues_kib)
    each_pings_each
    wait_for 10 all_are_connected || fail "$(connection_ends) ends"
    taken=$((before - $(free_kib))) queues=$(($(queues_kib) - queues))
    connections_take "$made" "$taken" "$queues" "$connection_of_many_kib"
}

test_1056_connections_carry_traffic() {
    each_pings_each
    wait_for 10 all_are_connected
}

# The kernel logs each queue that is left when its HCA is removed.
may_fail_stock_1056_connections_end_at_once='now and then: a completion queue goes while its queue pairs are being destroyed'
may_fail_stock_both_modules_unload_and_leave_nothing='completion queues of the test above are left'
test_1056_connections_end_at_once() {
    all_are_connected || each_pings_each
    wait_for 10 all_are_connected
    unload_driver
    [ "$(connection_ends)" = 0 ] || fail "$(connection_ends) ends are left"
}
