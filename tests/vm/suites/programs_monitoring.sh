# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Programs that read what the driver reports: Prometheus's node_exporter on host 2, and chrony, which asks for
# timestamps of packets, on both hosts.
PORTS=2
HOSTS=1
PACKAGES='chrony prometheus-node-exporter'

ensure_exporter() {
    ! pgrep -x prometheus-node >/dev/null || return 0
    on 2 prometheus-node-exporter --web.listen-address=10.0.0.2:9100 --collector.disable-defaults --collector.netdev \
        --collector.netclass --collector.arp --collector.ethtool --collector.ethtool.device-include='^ib1$' \
        --collector.ethtool.metrics-include='.*' >/run/exporter.log 2>&1 &
    wait_for 20 listens 2 10.0.0.2:9100 || fail "$(tail -n 5 /run/exporter.log)"
}
scrape() {
    printf 'GET /metrics HTTP/1.0\r\n\r\n' | on 1 socat -t $((20 * patience)) - TCP:10.0.0.2:9100 >/run/metrics
    grep -q '^HTTP/1.0 200' /run/metrics
}
# Value of a metric, as an integer: the exporter writes large ones with an exponent.
metric() { # NAME{LABELS}, as in the last scrape
    awk -v start="$1 " 'index($0, start) == 1 { printf "%.0f\n", $NF; found = 1 } END { exit !found }' /run/metrics ||
        fail "no metric $1"
}
collected() { # COLLECTOR
    [ "$(metric "node_scrape_collector_success{collector=\"$1\"}")" = 1 ] || fail "$(tail -n 5 /run/exporter.log)"
}
lies_between() { [ $((($1 <= $2) + ($2 <= $3))) = 2 ] || fail "$2 is not between $1 and $3"; }

before_each() { wait_for 20 reaches 1 10.0.0.2; }

test_node_exporter_has_the_interfaces_counters() {
    local counter name before after
    ensure_exporter
    flood 1 10.0.0.2 200
    for counter in receive/rx_packets receive/rx_bytes transmit/tx_packets transmit/tx_bytes; do
        name=node_network_${counter%/*}_${counter##*_}_total
        before=$(statistic 2 "${counter#*/}")
        scrape
        after=$(statistic 2 "${counter#*/}")
        lies_between "$before" "$(metric "$name{device=\"ib1\"}")" "$after"
    done
    collected netdev
    lies_between 200 "$before" "$after"
    collected netclass
    [ "$(metric 'node_network_mtu_bytes{device="ib1"}')" = "$(mtu 2)" ]
    [ "$(metric 'node_network_carrier{device="ib1"}')" = 1 ]
    [ "$(metric 'node_network_protocol_type{device="ib1"}')" = 32 ]
    grep -qF "address=\"$(lladdr 2)\"" /run/metrics
}

test_node_exporter_has_the_statistics_of_ethtool() {
    local exported
    ensure_exporter
    scrape
    collected ethtool
    # Each statistic, and the driver's name in an info metric.
    exported=$(grep -c '^node_ethtool_.*device="ib1"' /run/metrics)
    [ "$exported" = $(($(on 2 ethtool -S ib1 | grep -c ':.*[0-9]') + 1)) ] || fail "$exported: $(on 2 ethtool -S ib1)"
    grep -q '^node_ethtool_info{.*device="ib1",driver="ib_ipoib' /run/metrics
}

test_node_exporter_counts_neighbours() {
    ensure_exporter
    scrape
    collected arp
    [ "$(metric 'node_arp_entries{device="ib1"}')" = "$(on 2 ip -4 neigh show dev ib1 | wc -l)" ]
}

# Debian's chrony as it is, except that it leaves the clock, which all hosts share, alone.
start_chrony() { # HOST LINE...
    printf '%s\n' "pidfile /run/chrony.$1.pid" "bindcmdaddress /run/chrony.$1/socket" 'cmdport 0' "${@:2}" \
        >"/run/chrony.$1.conf"
    mkdir -p "/run/chrony.$1"
    chmod 750 "/run/chrony.$1"
    on "$1" chronyd -x -d -u root -f "/run/chrony.$1.conf" >"/run/chrony.$1.log" 2>&1 &
    wait_for 10 grep -q 'starting' "/run/chrony.$1.log"
}
ntpdata() { on 2 chronyc -h /run/chrony.2/socket ntpdata 10.0.0.1; }
is_synchronized() { ntpdata | says -E '^Total good RX +: [1-9]'; }
test_chrony_uses_the_kernels_timestamps() {
    start_chrony 1 'local stratum 5' 'allow 10.0.0.0/24'
    start_chrony 2 'server 10.0.0.1 iburst minpoll -2 maxpoll 0 xleave' 'hwtimestamp *'
    wait_for 40 is_synchronized || fail "$(ntpdata; tail -n 5 /run/chrony.2.log)"
    wait_for 20 eval "ntpdata | says 'Interleaved *: Yes'"
    ntpdata >/run/ntpdata
    grep -E 'timestamping|delay' /run/ntpdata | sed 's/^/# /'
    # Sent packets have chrony's own time: it parses the copy that comes with a timestamp as a frame of Ethernet.
    grep -qE '^RX timestamping *: Kernel' /run/ntpdata
    grep -qE '^TX timestamping *: Daemon' /run/ntpdata
    # No interface of IPoIB has hardware timestamps, and chrony says nothing of it unless asked by name.
    refused 'Could not enable HW timestamping on ib1' sh -c "printf 'hwtimestamp ib1\n' >/run/chrony.hw.conf
        ip netns exec h2 timeout 3 chronyd -x -d -u root -f /run/chrony.hw.conf"
    pkill -x chronyd
}

# By SOF_TIMESTAMPING_TX_SOFTWARE, _SOFTWARE and _OPT_TSONLY, without a copy of the packet.
xfail_stock_sent_packets_have_the_kernels_timestamps='the in-tree driver gives sent packets none'
test_sent_packets_have_the_kernels_timestamps() {
    on 2 python3 - <<'PROGRAM'
import select, socket, struct, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, 37, 1 << 1 | 1 << 4 | 1 << 11)  # SO_TIMESTAMPING
before = time.time()
s.sendto(b"x", ("10.0.0.1", 7000))
poll = select.poll()
poll.register(s, 0)  # the error queue
assert poll.poll(5000), "no timestamp"
_, messages, _, _ = s.recvmsg(1, 512, socket.MSG_ERRQUEUE)
seconds, nanoseconds = next(struct.unpack("qq", m[2][:16]) for m in messages if m[1] == 37)
assert before <= seconds + nanoseconds / 1e9 <= time.time(), (before, seconds, nanoseconds)
PROGRAM
}
