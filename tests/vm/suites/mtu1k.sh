# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Links with an MTU of 1024: two receive buffers share a page of 4 KiB, as 25 of MTU 2048 share one of 64 KiB. The MTU
# of the interface is below IPv6's minimum of 1280 bytes (RFC 8200, 5).
PORTS=2
HOSTS=1
MTU=1024

# shellcheck source=/dev/null
. ./features.sh

test_mtu_is_1020() { [ "$(mtu 1) $(mtu 2)" = '1020 1020' ]; }

test_packets_of_all_sizes_arrive() {
    local size
    wait_for 20 reaches 1 10.0.0.2
    for size in 1 200 230 500 992 993 5000; do ping_ok 1 10.0.0.2 -s $size; done
    flood 1 10.0.0.2 1000 -s 900
}

test_tcp_data_arrive_whole() { transfer 20; }

# Memory that a socket is charged for ten waiting datagrams of 900 bytes each (SK_MEMINFO_RMEM_ALLOC, shown by ss).
test_sockets_are_charged_for_half_a_page() {
    local delivered
    on 2 python3 -c 'import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("10.0.0.2", 4001))
time.sleep(60)' &
    local reader=$!
    wait_for 10 eval "on 2 ss -Hlun 'sport = 4001' | says 4001"
    wait_for 20 reaches 1 10.0.0.2
    delivered=$(stack_counter 2 IpInDelivers)
    head -c 9000 /dev/zero | on 1 socat -u -b 900 - UDP-SENDTO:10.0.0.2:4001
    charged() { on 2 ss -Hlunm 'sport = 4001' | sed -nE 's/.*skmem:\(r([0-9]+),.*/\1/p'; }
    ten_wait() { [ "$(stack_counter 2 IpInDelivers)" -ge $((delivered + 10)) ] && [ "$(charged)" -gt 9000 ]; }
    wait_for 10 ten_wait
    echo "# $(charged) bytes for 10 datagrams of 900"
    [ "$(charged)" -lt $((10 * 2048)) ]
    kill $reader
}

test_merged_segments_arrive_whole() {
    [ "$DRIVER" = ours ] || return 77
    local before
    before=$(statistic_of 2 rx_gro_hw_merged)
    transfer 20
    [ "$(statistic_of 2 rx_gro_hw_merged)" -gt "$before" ]
}

test_rings_and_modes_change() {
    [ "$DRIVER" = ours ] || return 77
    on 2 ethtool -G ib1 rx 1024
    wait_for 20 reaches 1 10.0.0.2
    transfer 5
    on 2 ethtool -G ib1 rx 2
    wait_for 20 reaches 1 10.0.0.2
    ping_ok 1 10.0.0.2 -s 900
    on 2 ethtool -G ib1 rx 256
    set_mode 1 connected
    wait_for 20 reaches 1 10.0.0.2
    transfer 5
    set_mode 1 datagram
}
