# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Several connections between two hosts: each flow uses one, and busy ones change without overtaking themselves.
PORTS=2
SM_HOST=2
PROCESSORS=4
HOSTS=1
MODE=connected
FABRIC='vectors=4'

# shellcheck source=/dev/null
. ./connections.sh

packets_of_queues() { # HOST rx|tx
    local queue counts=()
    for queue in 0 1 2 3; do counts+=("$(statistic_of "$1" "$2${queue}_packets")"); done
    echo "${counts[*]}"
}
# Out of order segments that the host received.
out_of_order() { on "$1" nstat -asz TcpExtTCPOFOQueue | awk '/OFO/ { print $2 }'; } # HOST

xfail_stock_one_flow_has_one_connection='the in-tree driver has one queue'
test_one_flow_has_one_connection() {
    wait_for 20 reaches 1 10.0.0.2
    start_stream 1 2
    sleep 2
    are_connections 1 1
    end_stream 2
}

# Sixteen flows from host 1 to host 2. iperf3 ends early if it fails.
start_flows() {
    serve_iperf 2
    on 1 iperf3 -c 10.0.0.2 -P 16 -t 3600 >/run/flows.iperf 2>&1 &
    flows=$!
}
end_flows() {
    kill -0 "$flows" || fail "$(tail -n 3 /run/flows.iperf)" || return 1
    stop_traffic
    wait "$flows" || true
}

# Checks that no queue has more than PERCENT of the packets between two times.
none_exceeds() { # PERCENT PACKETS-BEFORE PACKETS-AFTER
    local queue sum=0 before after
    read -ra before <<<"$2"
    read -ra after <<<"$3"
    for queue in 0 1 2 3; do after[queue]=$((after[queue] - before[queue])) sum=$((sum + after[queue])); done
    echo "# packets of the queues: ${after[*]}"
    [ $sum -ge 1000 ] || fail "only $sum packets" || return 1
    for queue in 0 1 2 3; do
        [ $((100 * after[queue])) -le $(($1 * sum)) ] || fail "queue $queue has more than $1 % of $sum" || return 1
    done
}

# A packet that the queueing discipline drops makes others arrive out of order: it gets space for all.
keep_all_packets() { # HOST
    local queue
    on "$1" tc qdisc replace dev ib0 root handle 1: mq
    for queue in 1 2 3 4; do on "$1" tc qdisc replace dev ib0 parent "1:$queue" pfifo limit 10000; done
}

each_queue_has_sent() { # PACKETS-BEFORE PACKETS
    local queue before now
    read -ra before <<<"$1"
    read -ra now < <(packets_of_queues 1 tx)
    for queue in 0 1 2 3; do [ "${now[queue]}" -ge $((before[queue] + $2)) ] || return 1; done
}

# Host 1 sends sixteen flows; host 2 receives by as many queues as host 1 sends. For ten minutes:
#   MINUTES=10 SUITE_TIMEOUT=1200 make test-vm TESTS=flows/sixteen_flows_use_all_queues_in_order
sixteen_flows_are_in_order() {
    local disorder sent received
    disorder=$(out_of_order 2)
    sent=$(packets_of_queues 1 tx)
    start_flows
    wait_for 20 are_connections 1 4
    wait_for 20 each_queue_has_sent "$sent" 500
    sent=$(packets_of_queues 1 tx) received=$(packets_of_queues 2 rx)
    wait_for 30 each_queue_has_sent "$sent" 3000
    [ "${MINUTES:-1}" = 1 ] || sleep $((60 * MINUTES))
    end_flows
    none_exceeds 40 "$sent" "$(packets_of_queues 1 tx)"
    none_exceeds 40 "$received" "$(packets_of_queues 2 rx)"
    [ "$(out_of_order 2)" = "$disorder" ] || fail "$(($(out_of_order 2) - disorder)) segments came out of order"
}
xfail_stock_sixteen_flows_use_all_queues_in_order='the in-tree driver has one queue'
test_sixteen_flows_use_all_queues_in_order() {
    keep_all_packets 1
    sixteen_flows_are_in_order
    on 1 tc qdisc del dev ib0 root
}
xfail_stock_sixteen_flows_share_a_qdisc_in_order='the in-tree driver has one queue'
test_sixteen_flows_share_a_qdisc_in_order() {
    [ -n "$(statistic_of 1 tx3_packets)" ]
    on 1 tc qdisc replace dev ib0 root pfifo limit 10000
    sixteen_flows_are_in_order
    on 1 tc qdisc del dev ib0 root
}

# Waits until host 1 has sent 500 packets more.
flows_go_on() {
    wait_for 20 eval "[ \$(statistic 1 tx_packets) -ge $(($(statistic 1 tx_packets) + 500)) ]"
}

test_queues_change_under_sixteen_flows() {
    local count
    start_flows
    for count in 4 2 3 1 4; do
        flows_go_on
        [ "$DRIVER" = stock ] || on 1 ethtool -L ib0 tx $count
    done
    flows_go_on
    end_flows
}

# All connections end, and the flows make others.
may_fail_stock_link_flaps_under_sixteen_flows='the queue stands still until the ended connections give up their sends'
test_link_flaps_under_sixteen_flows() {
    start_flows
    flows_go_on
    [ "$DRIVER" = stock ] || wait_for 15 are_connections 1 4
    on 2 ip link set "$(interface_of 2)" down
    on 2 ip link set "$(interface_of 2)" up
    flows_go_on
    end_flows
    wait_for 20 reaches 1 10.0.0.2
}
