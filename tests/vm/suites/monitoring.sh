# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# The metrics that node_exporter makes of an interface and its HCA.
PORTS=2
HOSTS=1
PACKAGES='prometheus-node-exporter'

# Two node_exporters: an HCA has its counters in the initial network namespace alone, and interfaces in the hosts'.
start_exporters() {
    if pgrep -f '^prometheus-node-exporter ' >/dev/null; then return; fi
    on 1 prometheus-node-exporter --web.listen-address=127.0.0.1:9100 --collector.disable-defaults \
        --collector.{arp,ethtool,netclass,netdev} >/run/exporter.9100 2>&1 &
    prometheus-node-exporter --web.listen-address=127.0.0.1:9101 --collector.disable-defaults \
        --collector.infiniband >/run/exporter.9101 2>&1 &
    wait_for 60 listens 1 :9100
    wait_for 60 is_served 9101
}
request() { timeout 60 socat -t 60 - "TCP:127.0.0.1:$1" <<<$'GET /metrics HTTP/1.0\r\n\r'; } # PORT
scrape() {
    start_exporters
    { on 1 bash -c "$(declare -f request); request 9100" && request 9101; } >/run/metrics
    [ "$(grep -c '^HTTP/1.0 200' /run/metrics)" = 2 ] || fail "$(tail -n 3 /run/exporter.*)"
}
# As an integer: the exporter writes large ones with an exponent.
value() { # METRIC{LABELS}
    awk -v start="$1 " 'index($0, start) == 1 { printf "%.0f\n", $NF; found = 1 } END { exit !found }' /run/metrics ||
        fail "no metric $1"
}
lies_between() { [ $((($1 <= $2) + ($2 <= $3))) = 2 ] || fail "$2 is not between $1 and $3"; }

test_collectors_succeed() {
    local name
    scrape
    for name in arp ethtool infiniband netclass netdev; do
        grep -qx "node_scrape_collector_success{collector=\"$name\"} 1" /run/metrics || fail "$name: $(cat /run/exporter.*)" || return 1
    done
    ! grep -E 'level=error' /run/exporter.* || return 1
    # In bytes, of words of 4.
    [ "$(value 'node_infiniband_port_data_received_bytes_total{device="soft_ib0",port="1"}')" -ge 4 ]
}

xfail_stock_exporter_has_the_metrics_of_rules_and_dashboard='the in-tree driver has eight counters'
test_exporter_has_the_metrics_of_rules_and_dashboard() {
    local name missing=''
    scrape
    grep -ohE 'node_[a-z0-9]+_[a-z0-9_]+' monitoring/* | sort -u >/run/used
    [ "$(wc -l </run/used)" -gt 50 ]
    while read -r name; do grep -q "^$name{" /run/metrics || missing+=" $name"; done </run/used
    [ -z "$missing" ] || fail "the exporter has no$missing"
}

test_exporter_has_the_interfaces_counters() {
    local counter name before after
    wait_for 20 reaches 1 10.0.0.2
    flood 1 10.0.0.2 200
    for counter in receive/rx_packets receive/rx_bytes transmit/tx_packets transmit/tx_bytes; do
        name=node_network_${counter%/*}_${counter##*_}_total
        before=$(statistic 1 "${counter#*/}")
        scrape
        after=$(statistic 1 "${counter#*/}")
        lies_between "$before" "$(value "$name{device=\"ib0\"}")" "$after"
    done
    lies_between 200 "$before" "$after"
    [ "$(value 'node_network_mtu_bytes{device="ib0"}')" = "$(mtu 1)" ]
    grep -qF "address=\"$(lladdr 1)\"" /run/metrics
}

test_exporter_has_the_statistics_of_ethtool() {
    local exported
    scrape
    # Each statistic, and the driver's name in an info metric.
    exported=$(grep -c '^node_ethtool_.*device="ib0"' /run/metrics)
    [ "$exported" = $(($(on 1 ethtool -S ib0 | grep -c ':.*[0-9]') + 1)) ] || fail "$exported: $(on 1 ethtool -S ib0)"
}

test_exporter_counts_neighbours() {
    wait_for 20 reaches 1 10.0.0.2
    scrape
    [ "$(value 'node_arp_entries{device="ib0"}')" = "$(on 1 ip -4 neigh show dev ib0 | wc -l)" ]
}

test_interfaces_are_recognised_by_their_type() {
    scrape
    [ "$(value 'node_network_protocol_type{device="ib0"}')" = 32 ]
    [ "$(value 'node_network_carrier{device="ib0"}')" = 1 ]
    [ "$(value 'node_infiniband_state_id{device="soft_ib0",port="1"}')" = 4 ]
    [ "$(value 'node_infiniband_physical_state_id{device="soft_ib0",port="1"}')" = 5 ]
    grep -q '^node_ethtool_info{.*device="ib0",driver="ib_ipoib"' /run/metrics
}

xfail_stock_counters_are_those_of_ethtool='the in-tree driver has eight counters'
test_counters_are_those_of_ethtool() {
    local name expected
    wait_for 20 reaches 1 10.0.0.2
    flood 1 10.0.0.2 200
    scrape
    [ "$(value 'node_ethtool_transmitted_packets_total{device="ib0"}')" -ge 200 ]
    [ "$(value 'node_ethtool_received_packets_total{device="ib0"}')" -ge 200 ]
    for name in path_queries group_joins; do
        # Assigned to a variable, so that a missing counter ends the test.
        expected=$(statistic_of 1 $name)
        [ "$(value "node_ethtool_$name{device=\"ib0\"}")" = "$expected" ]
    done
}

test_lost_carrier_is_shown() {
    knob 1 link 0
    wait_for 20 no_carrier 1
    scrape
    [ "$(value 'node_network_carrier{device="ib0"}')" = 0 ]
    [[ $(value 'node_infiniband_state_id{device="soft_ib0",port="1"}') == [123] ]]
    link_up 1
    wait_for 30 carrier 1
}

# Documentation/operations.md, "Health in five commands".
test_health_commands_show_a_working_host() {
    on 1 rdma link | says -E '^link soft_ib0/1 .*state ACTIVE physical_state LINK_UP'
    on 1 ip -br link show type ipoib | says -E '^ib0 +UP .*LOWER_UP'
    on 1 ethtool -S ib0 | says -E '^ *tx_errors: 0$'
    [ "$DRIVER" = stock ] || cat /sys/module/ib_ipoib/version
}

health_counters() { ethtool -S ib0 | grep -E 'errors|dropped|too_long|fail|reject|disconnected|limit|malformed'; }
health_of_host_1() { on 1 bash -c "$(declare -f health_counters); health_counters" | sed 's/[: ]\+/ /g' >"/run/health.$1"; } # NAME
# Prints the counters that have grown between two runs, and by how much.
grown() { paste "/run/health.$1" "/run/health.$2" | awk '$4 != $2 { print $1, $4 - $2 }'; } # BEFORE AFTER
# The page's exception. Host 2's address has no connected-mode flag: longer packets are refused.
test_health_counters_grow_with_path_mtus_alone() {
    local count
    [ "$DRIVER" = ours ] || return 77
    set_mode 1 connected
    wait_for 20 reaches 1 10.0.0.2
    on 1 ip neigh replace 10.0.0.2 lladdr "00:$(lladdr 2 | cut -d: -f2-)" dev ib0
    health_of_host_1 before
    [ "$(learned_pmtu 1 10.0.0.2)" = 2044 ] || fail "$(cat /run/tracepath)" || return 1
    health_of_host_1 after
    on 1 ip neigh del 10.0.0.2 dev ib0
    set_mode 1 datagram
    count=$(statistic_of 1 tx_too_long)
    [ "$count" -gt 0 ]
    [ "$(grown before after | sort)" = "$(printf "%s $count\n" tx_dropped tx_errors tx_too_long)" ] || fail "$(grown before after)"
}
