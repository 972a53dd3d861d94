# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Receive queues for connections: host 1 receives from four peers.
PORTS=5
SM_HOST=2
PROCESSORS=2
HOSTS=1
MODE=connected
FABRIC='vectors=4'

xfail_stock_there_is_one_for_each_processor='the in-tree driver has one queue'
test_there_is_one_for_each_processor() {
    on 1 ethtool -l ib0 | sed -n '/Current/,$p' | says -E '^RX:\s+2$'
    [ "$(on 1 sh -c 'ls -d /sys/class/net/ib0/queues/rx-*' | wc -l)" = 2 ]
}

# The receive queues that host 1 has connections on, with their number: "0:2 1:2 ".
queues_used() { awk '$1 == "passive" && /state established/ { n[$NF]++ } END { for (q in n) printf "%s:%d ", q, n[q] }' /sys/kernel/debug/ipoib/ib0_cm | tr ' ' '\n' | sort | tr '\n' ' ' | sed 's/^ //'; }
queues_used_are() { [ "$(queues_used)" = "$1" ] || { echo "# queues: $(queues_used)"; return 1; }; }
all_connect() {
    local host
    for host in 2 3 4 5; do wait_for 20 reaches "$host" 10.0.0.1 || return 1; done
}

xfail_stock_connections_are_distributed='the in-tree driver has one queue'
test_connections_are_distributed() {
    all_connect
    queues_used_are '0:2 1:2 '
    on 1 ethtool -L ib0 rx 4
    all_connect
    queues_used_are '0:1 1:1 2:1 3:1 '
}

xfail_stock_each_queue_counts_its_packets='the in-tree driver has one queue'
test_each_queue_counts_its_packets() {
    local host queue before=() sum=0 all
    all=$(statistic 1 rx_packets)
    for queue in 0 1 2 3; do before[queue]=$(statistic_of 1 "rx${queue}_packets"); done
    for host in 2 3 4 5; do flood "$host" 10.0.0.1 200; done
    for queue in 0 1 2 3; do
        before[queue]=$(($(statistic_of 1 "rx${queue}_packets") - before[queue]))
        [ "${before[queue]}" -ge 200 ]
        [ "${before[queue]}" -le 300 ]
        sum=$((sum + before[queue]))
    done
    echo "# packets of each queue: ${before[*]}"
    [ $(($(statistic 1 rx_packets) - all)) -ge "$sum" ]
}

test_traffic_of_all_peers_arrives_at_once() {
    local host pids=()
    for host in 2 3 4 5; do
        lossless "$host" -f -c 1000 -s 3000 10.0.0.1 &
        pids+=($!)
    done
    for host in "${pids[@]}"; do wait "$host"; done
}

xfail_stock_queues_change_under_traffic='the in-tree driver has one queue'
test_queues_change_under_traffic() {
    local count
    start_stream 2 1
    for count in 1 4 2 8 3 1 4; do
        on 1 ethtool -L ib0 rx "$count"
        [ "$(on 1 sh -c 'ls -d /sys/class/net/ib0/queues/rx-*' | wc -l)" = "$count" ]
        stream_goes_on 1
    done
    end_stream 1
    all_connect
    queues_used_are '0:1 1:1 2:1 3:1 '
}

test_impossible_numbers_are_refused() {
    local count
    for count in 0 9; do ! on 1 ethtool -L ib0 rx "$count" 2>/dev/null || return 1; done
    ! on 1 ethtool -L ib0 tx 2 2>/dev/null || return 1
}

completion_queues() { awk '/^cqs_on_vector/ { n += $2 } END { print n }' "$debug/0/counters"; } # Host 1's.
xfail_stock_further_queues_are_freed_when_the_interface_is_down='the in-tree driver has one queue'
test_further_queues_are_freed_when_the_interface_is_down() {
    local used freed
    used=$(completion_queues)
    on 1 ip link set ib0 down
    freed=$((used - $(completion_queues)))
    echo "# completion queues: $used, $freed freed"
    [ "$freed" = 3 ]
    on 1 ip link set ib0 up
    all_connect
}

test_hca_unplug_under_traffic() {
    local host
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
