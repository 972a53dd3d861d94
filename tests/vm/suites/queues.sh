# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Several queues: host 1 has four peers.
PORTS=5
SM_HOST=2
PROCESSORS=2
HOSTS=1
MODE=connected
FABRIC='vectors=4'

# shellcheck source=/dev/null
. ./connections.sh

xfail_stock_there_is_one_for_each_processor='the in-tree driver has one queue'
if several_queues; then skippable_there_is_one_for_each_processor='QUEUES= gives the VM as many processors'; fi
test_there_is_one_for_each_processor() {
    ! several_queues || return 77
    channels_are RX 2
    channels_are TX 2
    set_mode 1 datagram
    channels_are RX 2
    channels_are TX 1
    set_mode 1 connected
    channels_are TX 2
}
channels_are() { # RX|TX COUNT
    on 1 ethtool -l ib0 | sed -n '/Current/,$p' | says -E "^$1:\s+$2\$"
    [ "$(on 1 sh -c "ls -d /sys/class/net/ib0/queues/${1,,}-*" | wc -l)" = "$2" ]
}

# Sets host 1's mode and its numbers of queues in that mode, whatever an earlier test has left.
use_queues() { # MODE RX TX
    [ "$DRIVER" = ours ] || return 0
    [ "$(mode 1)" = "$1" ] || set_mode 1 "$1"
    { channels_are RX "$2" && channels_are TX "$3"; } || on 1 ethtool -L ib0 rx "$2" tx "$3"
    wait_for 20 carrier 1
}
queues_used_are() { # passive|active QUEUES
    wait_for 20 each_has_a_connection "$1"
    [ "$(queues_used "$1")" = "$2" ] || fail "queues: $(queues_used "$1")"
}
# A connection with each peer on each of four queues.
use_four_queues() {
    use_queues connected 4 4
    all_connect
    [ "$DRIVER" = stock ] || { queues_used_are passive '0:1 1:1 2:1 3:1 ' && queues_used_are active '0:1 1:1 2:1 3:1 '; }
}
xfail_stock_connections_are_distributed='the in-tree driver has one queue'
test_connections_are_distributed() {
    use_queues connected 2 2
    all_connect
    queues_used_are passive '0:2 1:2 '
    queues_used_are active '0:2 1:2 '
    on 1 ethtool -L ib0 rx 4 tx 4
    all_connect
    queues_used_are passive '0:1 1:1 2:1 3:1 '
    queues_used_are active '0:1 1:1 2:1 3:1 '
}

# Host 1 receives, and answers, 200 packets of each peer.
xfail_stock_each_queue_counts_its_packets='the in-tree driver has one queue'
test_each_queue_counts_its_packets() {
    local host direction queue before=() sum all counters=()
    use_four_queues
    for direction in rx tx; do for queue in 0 1 2 3; do counters+=("$direction${queue}_packets"); done; done
    # The sums are read first, and last: other packets may be counted meanwhile.
    all=$(($(statistic 1 rx_packets) + $(statistic 1 tx_packets))) sum=0
    for queue in "${!counters[@]}"; do before[queue]=$(statistic_of 1 "${counters[queue]}"); done
    for host in 2 3 4 5; do flood "$host" 10.0.0.1 200; done
    for queue in "${!counters[@]}"; do
        before[queue]=$(($(statistic_of 1 "${counters[queue]}") - before[queue]))
        [ "${before[queue]}" -ge 200 ]
        [ "${before[queue]}" -le 300 ]
        sum=$((sum + before[queue]))
    done
    echo "# packets of each queue: ${before[*]}"
    [ $(($(statistic 1 rx_packets) + $(statistic 1 tx_packets) - all)) -ge "$sum" ]
}

genl() { on 1 python3 /test/netdev_genl.py ib0 "$1"; } # DUMP
lacks_genl_of() { [ "$DRIVER" = stock ] || ! kernel_is "$1"; } # KERNEL

# netdev-genl's statistics of queues, and of the device, in which those of former queues are contained.
skippable_kernel_shows_the_queues_counters='the kernel has no statistics of queues before 6.10'
test_kernel_shows_the_queues_counters() {
    local direction queue packets bytes before after name lines=0
    if lacks_genl_of 6.10; then return 77; fi
    use_queues connected 2 2
    all_connect
    before=$(on 1 ethtool -S ib0)
    { genl qstats; genl total; } >/run/qstats
    after=$(on 1 ethtool -S ib0)
    value() { awk -v name="$1:" '$1 == name { print $2 }' <<<"$2"; }
    while read -r direction queue packets bytes; do
        name=${direction}${queue}_packets
        [ "$queue" != - ] || name=${direction}_packets
        echo "# $name: $packets, $bytes bytes"
        [ "$packets" -ge "$(value "$name" "$before")" ]
        [ "$packets" -le "$(value "$name" "$after")" ]
        [ "$bytes" -ge "$(value "${name/packets/bytes}" "$before")" ]
        [ "$bytes" -le "$(value "${name/packets/bytes}" "$after")" ]
        lines=$((lines + 1))
    done </run/qstats
    [ "$lines" = 6 ]
}

# Each receive queue has a NAPI context of its own. The first one has a page pool for datagrams and one for messages,
# the others have one each.
skippable_kernel_shows_napi_contexts_and_page_pools='the kernel shows neither before 6.8'
test_kernel_shows_napi_contexts_and_page_pools() {
    if lacks_genl_of 6.8; then return 77; fi
    use_queues connected 3 2
    all_connect
    wait_for 5 napis_are_shown 3
    genl pools >/run/pools
    sed 's/^/# /' /run/napis /run/pools
    # Each queue has two pools for messages, of small and of large pieces, and the first one for datagrams.
    [ "$(awk 'NR == FNR { queue[$3] = $2; next } { print $2 in queue ? queue[$2] : "none" }' \
        /run/napis /run/pools | sort | tr '\n' ' ')" = '0 0 0 1 1 2 2 ' ]
}
napis_are_shown() { # QUEUES
    genl napis >/run/napis
    [ "$(awk '$3 > 0 { print $3 }' /run/napis | sort -u | wc -l)" = "$1" ]
}

test_traffic_of_all_peers_arrives_at_once() {
    local host pids=()
    use_four_queues
    begin_pings 1 2 3 4 5
    for host in 2 3 4 5; do
        on "$host" ping -q -f -c 1000 -s 3000 10.0.0.1 >"/run/flood.$host.1" 2>&1 &
        pids+=($!)
        on 1 ping -q -f -c 1000 -s 3000 "10.0.0.$host" >"/run/flood.1.$host" 2>&1 &
        pids+=($!)
    done
    wait "${pids[@]}" || true
    none_was_lost /run/flood.*
}

xfail_stock_queues_change_under_traffic='the in-tree driver has one queue'
test_queues_change_under_traffic() {
    local count
    use_four_queues
    start_stream 2 1
    start_stream 1 3
    for count in 1 4 2 8 3 1 4; do
        on 1 ethtool -L ib0 rx "$count" tx $((9 - count))
        channels_are RX "$count"
        channels_are TX $((9 - count))
        stream_goes_on 1
        stream_goes_on 3
    done
    end_stream 1
    end_stream 3
    on 1 ethtool -L ib0 tx 4
    all_connect
    queues_used_are passive '0:1 1:1 2:1 3:1 '
    queues_used_are active '0:1 1:1 2:1 3:1 '
}

# A packet that tc puts into another queue than the driver chose gets through, more slowly.
test_packets_that_tc_puts_into_another_queue_arrive() {
    local host
    use_four_queues
    on 1 tc qdisc add dev ib0 clsact
    on 1 tc filter add dev ib0 egress matchall action skbedit queue_mapping 3
    for host in 2 3 4 5; do lossless 1 -c 20 -i 0.02 -s 3000 "10.0.0.$host"; done
    on 1 ip neigh flush dev ib0
    for host in 2 3 4 5; do wait_for 20 reaches 1 "10.0.0.$host"; done
    on 1 tc qdisc del dev ib0 clsact
    all_connect
}

test_impossible_numbers_are_refused() {
    local count
    for count in 0 9; do
        ! on 1 ethtool -L ib0 rx "$count" 2>/dev/null || return 1
        ! on 1 ethtool -L ib0 tx "$count" 2>/dev/null || return 1
    done
}

xfail_stock_receive_queues_are_moderated_apart='the in-tree driver has one queue'
test_receive_queues_are_moderated_apart() {
    use_queues connected 4 4
    on 1 ethtool -Q ib0 queue_mask 0x2 -C rx-usecs 20 rx-frames 8
    on 1 ethtool -Q ib0 queue_mask 0x2 -c | says -E 'rx-usecs:\s+20'
    on 1 ethtool -Q ib0 queue_mask 0x1 -c | says -E 'rx-usecs:\s+0'
    on 1 ethtool -c ib0 | says -E 'rx-usecs:\s+0'
    ! on 1 ethtool -Q ib0 queue_mask 0x100 -C rx-usecs 20 2>/dev/null || return 1
    # Values that are shown already are not set.
    on 1 ethtool -C ib0 rx-usecs 16 rx-frames 16
    on 1 ethtool -C ib0 rx-usecs 0 rx-frames 0
    on 1 ethtool -Q ib0 queue_mask 0x2 -c | says -E 'rx-usecs:\s+0'
}

completion_queues() { awk '/^cqs_on_vector/ { n += $2 } END { print n }' "$debug/0/counters"; } # Host 1's.
xfail_stock_further_queues_are_freed_when_the_interface_is_down='the in-tree driver has one queue'
test_further_queues_are_freed_when_the_interface_is_down() {
    local used freed
    use_four_queues
    used=$(completion_queues)
    on 1 ip link set ib0 down
    freed=$((used - $(completion_queues)))
    echo "# completion queues: $used, $freed freed"
    on 1 ip link set ib0 up
    all_connect
    [ "$freed" = 6 ]
}

# Datagram mode

use_four_queues_of_datagram_mode() {
    use_queues datagram 4 4
    all_connect
}

xfail_stock_datagrams_are_sent_by_several_queues='the in-tree driver has one queue'
test_datagrams_are_sent_by_several_queues() {
    local queue before=() dropped
    use_queues datagram 4 1
    on 1 ethtool -L ib0 tx 4
    channels_are TX 4
    all_connect
    dropped=$(statistic 1 tx_dropped)
    for queue in 0 1 2 3; do before[queue]=$(statistic_of 1 "tx${queue}_packets"); done
    # Each packet is a flow.
    on 1 bash -c 'for i in {1..400}; do echo >/dev/udp/10.0.0.2/9; done'
    for queue in 0 1 2 3; do before[queue]=$(($(statistic_of 1 "tx${queue}_packets") - before[queue])); done
    echo "# packets of each queue: ${before[*]}"
    for queue in 0 1 2 3; do
        [ "${before[queue]}" -ge 50 ]
        [ "${before[queue]}" -le 170 ]
    done
    [ "$(statistic 1 tx_dropped)" = "$dropped" ]
}

xfail_stock_datagrams_follow_xps='the in-tree driver has one queue'
test_datagrams_follow_xps() {
    local queue before all
    all=$(printf '%x' $(((1 << $(nproc)) - 1)))
    use_four_queues_of_datagram_mode
    for queue in 0 1 2 3; do on 1 bash -c "echo $([ "$queue" = 2 ] && echo "$all" || echo 0) >/sys/class/net/ib0/queues/tx-$queue/xps_cpus"; done
    before=$(statistic_of 1 tx2_packets)
    # Each packet is a flow.
    on 1 bash -c 'for i in {1..100}; do echo >/dev/udp/10.0.0.2/9; done'
    for queue in 0 1 2 3; do on 1 bash -c "echo 0 >/sys/class/net/ib0/queues/tx-$queue/xps_cpus"; done
    # Sends are counted when complete.
    sends_are_counted() { [ "$(statistic_of 1 tx2_packets)" -ge $((before + 100)) ]; }
    wait_for 5 sends_are_counted
}

# Hosts recognise their own multicast packets by LID and QPN.
xfail_stock_groups_are_sent_by_the_first_queue='the in-tree driver has one queue'
test_groups_are_sent_by_the_first_queue() {
    local i first others
    use_four_queues_of_datagram_mode
    channels_are TX 4
    on 1 ip route add 239.0.0.0/8 dev ib0
    first=$(statistic_of 1 tx0_packets) others=$(further_packets 1)
    for i in {1..20}; do on 1 bash -c "echo >/dev/udp/239.1.2.3/$((5000 + i))"; done
    first=$(($(statistic_of 1 tx0_packets) - first)) others=$(($(further_packets 1) - others))
    echo "# packets of the first queue: $first, of others: $others"
    [ "$first" -ge 20 ]
    [ "$others" -lt 5 ]
}

xfail_stock_queues_of_datagram_mode_change_under_traffic='the in-tree driver has one queue'
test_queues_of_datagram_mode_change_under_traffic() {
    local count
    use_four_queues_of_datagram_mode
    on 1 ethtool -L ib0 tx 1
    # Events come by number and by time.
    on 1 ethtool -C ib0 rx-usecs 20 rx-frames 8
    start_stream 1 2
    start_stream 3 1
    for count in 1 4 2 8 3 1 4; do
        on 1 ethtool -L ib0 tx "$count"
        channels_are TX "$count"
        stream_goes_on 2
        stream_goes_on 1
    done
    end_stream 2
    end_stream 1
    on 1 ethtool -C ib0 rx-usecs 0 rx-frames 0
    for count in 2 3 4 5; do flood 1 "10.0.0.$count" 200; done
}

# Each mode has its own number. Queue pairs exist in datagram mode, while the interface is up.
xfail_stock_queue_pairs_go_with_the_mode='the in-tree driver has one queue'
test_queue_pairs_go_with_the_mode() {
    local used
    use_queues connected 4 4
    use_four_queues_of_datagram_mode
    used=$(queue_pairs)
    set_mode 1 connected
    [ "$(queue_pairs)" = $((used - 3)) ]
    channels_are TX 4
    on 1 ethtool -L ib0 tx 2
    set_mode 1 datagram
    channels_are TX 4
    [ "$(queue_pairs)" = "$used" ]
    on 1 ip link set ib0 down
    [ "$(queue_pairs)" = $((used - 3)) ]
    on 1 ip link set ib0 up
    [ "$(queue_pairs)" = "$used" ]
    all_connect
}
queue_pairs() { rdma resource show qp | grep -c 'type UD'; } # UD, all hosts'.

test_hca_unplug_under_traffic() {
    local host
    set_mode 1 connected
    wait_for 20 reaches 2 10.0.0.1
    for host in 2 3 4 5; do background_ping "$host" 10.0.0.1; done
    pings_arrive 1
    knob 1 plugged 0
    stop_traffic
    plug_in 1
    wait_for 20 born_as 1
    add_host 1
    set_mode 1 connected
    all_connect
}
