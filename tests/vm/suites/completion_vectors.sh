# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Distribution of interfaces over an HCA's completion vectors, and so over processors.
PORTS=2
PROCESSORS=2
HOSTS=1
FABRIC='vectors=8'
PARTITIONS='one=0x0001, ipoib : ALL=full;
two=0x0002, ipoib : ALL=full;
three=0x0003, ipoib : ALL=full;
four=0x0004, ipoib : ALL=full;'

# The completion queues on each vector of a host's HCA, those of ib_core's management queue pairs included.
queues_of() { awk '/^cqs_on_vector/ { printf "%s ", $2 }' "$debug/$(($1 - 1))/counters"; } # HOST
# Increase of each vector's count.
more_than() { # BEFORE AFTER
    local -a before after
    local i
    read -ra before <<<"$1"
    read -ra after <<<"$2"
    for i in "${!before[@]}"; do printf '%s ' $((after[i] - before[i])); done
}
without_driver() {
    unload_driver
    queues_of 1 >/run/queues.1
    queues_of 2 >/run/queues.2
    load_driver
    wait_for 5 born_as 1
    wait_for 5 born_as 2
}
add_children() { # HOST COUNT
    local parent i
    parent=$(born_as "$1")
    for i in $(seq "$2"); do ip link add link "$parent" name "child$1.$i" type ipoib pkey $((0x8000 + i)); done
}

xfail_stock_children_are_spread_over_all_vectors='one counter for all HCAs: the other parent had the pair between'
test_children_are_spread_over_all_vectors() {
    local used
    without_driver
    add_children 1 3
    used=$(more_than "$(cat /run/queues.1)" "$(queues_of 1)")
    echo "# four interfaces, eight vectors: $used"
    [ "$used" = '1 1 1 1 1 1 1 1 ' ]
    # A fifth child shares vectors, and still has two.
    ip link add link "$(born_as 1)" name child1.4 type ipoib pkey 0x8004
    used=$(more_than "$(cat /run/queues.1)" "$(queues_of 1)")
    echo "# five: $used"
    [ "$(tr -cd 2 <<<"$used")" = 22 ]
}

test_removed_interfaces_release_their_vectors() {
    without_driver
    add_children 1 3
    unload_driver
    [ "$(queues_of 1)" = "$(cat /run/queues.1)" ]
    [ "$(queues_of 2)" = "$(cat /run/queues.2)" ]
    load_driver
    wait_for 5 born_as 1
    wait_for 5 born_as 2
}

xfail_stock_children_of_two_hcas_are_spread_over_all_vectors='one counter for all HCAs: children that are made by turns share half of the vectors'
test_children_of_two_hcas_are_spread_over_all_vectors() {
    local used host i
    without_driver
    for i in 1 2 3; do
        for host in 1 2; do ip link add link "$(born_as $host)" name "child$host.$i" type ipoib pkey $((0x8000 + i)); done
    done
    for host in 1 2; do
        used=$(more_than "$(cat /run/queues.$host)" "$(queues_of $host)")
        echo "# host $host: $used"
        [ "$used" = '1 1 1 1 1 1 1 1 ' ] || return 1
    done
}

test_traffic_continues_after_ring_changes() {
    local before
    on 1 test -e /sys/class/net/ib0 || add_hosts
    [ "$DRIVER" = stock ] || {
        before=$(queues_of 1)
        on 1 ethtool -G ib0 tx 256 rx 256
        [ "$(queues_of 1)" = "$before" ]
    }
    wait_for 20 reaches 1 10.0.0.2
    flood 1 10.0.0.2 200
}
