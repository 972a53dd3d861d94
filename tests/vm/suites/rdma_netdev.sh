# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# HCAs with an rdma_netdev for IPoIB (RDMA_NETDEV_IPOIB): the driver does joins, paths and neighbours, the HCA's driver
# sends and receives.
PORTS=2
PROCESSORS=2
HOSTS=1
FABRIC=${FABRIC:-rdma_netdev=1 functions=1}
PARTITIONS='blue=0x0001, ipoib : ALL=full;'

# True if the rdma_netdev filters the driver's own datapath (rdma_netdev_filter.sh).
filters() { false; }
devices_are() { [ "$(counter "$1" accelerated_devices)" = "$2" ]; }
# Children that several tests use: blue of both hosts, at 10.1.0.1 and 10.1.0.2.
make_blue_children() {
    local host
    for host in 1 2; do
        on $host test -e /sys/class/net/blue || {
            on $host ip link add link "$(interface_of $host)" name blue type ipoib pkey 0x8001
            on $host ip addr add "10.1.0.$host/24" dev blue
            on $host ip link set blue up
        }
    done
    for host in 1 2; do wait_for 20 carrier $host blue; done
    wait_for 20 reaches 1 10.1.0.2
}

test_ping_uses_the_rdma_netdev() {
    local before
    devices_are 1 1
    before=$(counter 1 accelerated_sends)
    ping_ok 1 10.0.0.2
    ping_ok 2 10.0.0.1
    ping_ok 1 fd00::2
    ping_ok 1 10.0.0.2 -s 10000
    [ "$(counter 1 accelerated_sends)" -ge $((before + 10)) ]
}

test_flood_ping_of_2000_loses_nothing() { flood 1 10.0.0.2 2000; }

test_tcp() {
    iperf 1 2 -n 20M
    iperf 1 2 -n 20M -R
}

# The rdma_netdev has the ioctl, and not the operations that replaced it in 6.6.
test_time_stamps_are_set_by_the_rdma_netdevs_ioctl() {
    ! filters || return 77
    on 1 python3 -c 'import array, fcntl, socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
config = array.array("i", [0] * 3)
request = struct.pack("16sQ16x", b"ib0", config.buffer_info()[0])
fcntl.ioctl(s, 0x89b0, request)  # SIOCSHWTSTAMP
config[:] = array.array("i", [7] * 3)
fcntl.ioctl(s, 0x89b1, request)  # SIOCGHWTSTAMP
assert list(config) == [0] * 3, config
config[1] = 1  # HWTSTAMP_TX_ON
try:
    fcntl.ioctl(s, 0x89b0, request)
except OSError as error:
    assert error.strerror == "Numerical result out of range", error
else:
    raise SystemExit("an unsupported setting was accepted")'
}

test_address_of_a_virtual_function_cannot_be_set() {
    [[ $FABRIC = *functions=1* ]] || return 77
    on 1 ip link set ib0 down
    refused 'Operation not supported' on 1 ip link set ib0 address "$(lladdr 1 ib0 | sed 's/..$/77/')"
    bring_up 1
    wait_for 20 addresses_ready 1
    wait_for 20 reaches 1 10.0.0.2
}

# The memory of the rdma_netdev is part of the netdev.
test_child_creation_fails_without_memory_for_its_rdma_netdev() {
    knob 1 fail_rdma_netdev 1
    refused 'Cannot allocate memory' on 1 bash -c 'echo 0x8001 >/sys/class/net/ib0/create_child'
    devices_are 1 1
    on 1 bash -c 'echo 0x8001 >/sys/class/net/ib0/create_child'
    devices_are 1 2
    on 1 bash -c 'echo 0x8001 >/sys/class/net/ib0/delete_child'
    wait_for 5 devices_are 1 1
}

# The core asks first, then the driver, for the size of netdevs that `ip link add` will create.
test_child_creation_fails_if_the_rdma_netdevs_size_is_unknown() {
    [ "$DRIVER" = ours ] || return 77
    expect_in_log "port 1: the size of the HCA's rdma_netdev is not known, error -12"
    mark_log
    knob 1 fail_rdma_netdev 2
    refused 'Cannot allocate memory' on 1 bash -c 'echo 0x8001 >/sys/class/net/ib0/create_child'
    [ "$(at 1 cat "$debug/0/fail_rdma_netdev")" = 0 ]
    devices_are 1 1
    logged "port 1: the size of the HCA's rdma_netdev is not known, error -12"
    on 1 bash -c 'echo 0x8001 >/sys/class/net/ib0/create_child'
    on 1 bash -c 'echo 0x8001 >/sys/class/net/ib0/delete_child'
    wait_for 5 devices_are 1 1
}

test_multicast() { multicast_arrives; }

test_address_has_no_connected_flag() {
    ! filters || return 77
    case $(lladdr 1 ib0) in 00:*) ;; *) fail "$(lladdr 1 ib0)" ;; esac
    [ "$(mode 1)" = datagram ]
    refused 'Invalid argument' on 1 bash -c 'echo connected >/sys/class/net/ib0/mode'
    [ "$(mode 1)" = datagram ]
    ping_ok 1 10.0.0.2
}

# An rdma_netdev's ethtool operations, if it has some, replace those of its client.
test_ethtool_shows_driver_and_bus() {
    local expected='soft_ib[ib_ipoib]'
    ! filters || expected=ib_ipoib
    on 1 ethtool -i ib0 >/run/driver
    grep -qxF "driver: $expected" /run/driver || fail "$(cat /run/driver)" || return 1
    grep -qx 'bus-info: soft_ib.0' /run/driver
}

test_counters_and_ring_of_ethtool_are_the_rdma_netdevs() {
    ! filters || return 77
    local names='rx_packets tx_packets tx_queue_stopped' sent
    [ "$(on 1 ethtool -S ib0 | awk '/: [0-9]/ { print $1 }' | xargs)" = "${names// /: }:" ]
    sent=$(statistic_of 1 tx_packets)
    flood 1 10.0.0.2 100
    [ "$(statistic_of 1 tx_packets)" -ge $((sent + 100)) ]
    # The driver's own ring has 128 slots at least.
    on 1 ethtool -G ib0 tx 2
    [ "$(on 1 ethtool -g ib0 | awk '$1 == "TX:" { slots = $2 } END { print slots }')" = 2 ]
    iperf 1 2 -n 2M
    [ "$(statistic_of 1 tx_queue_stopped)" -gt 0 ]
    on 1 ethtool -G ib0 tx 128
}
test_ring_smaller_than_its_sends_drops_nothing() {
    ! filters || return 77
    local dropped stops
    on 1 ip neigh replace 10.0.0.2 lladdr "$(lladdr 2)" dev ib0 nud permanent
    wait_for 20 reaches 1 10.0.0.2
    dropped=$(statistic 1 tx_dropped) stops=$(statistic_of 1 tx_queue_stopped)
    knob 1 hold_sends 1
    # shellcheck disable=SC2016 # expanded by the inner shell
    on 1 bash -c 'send() { for _ in $(seq 20); do echo packet >/dev/udp/10.0.0.2/9; done; }
        send
        ethtool -G ib0 tx 4
        send' || fail "no packets were sent"
    knob 1 hold_sends 0
    ping_ok 1 10.0.0.2
    on 1 ethtool -G ib0 tx 128
    on 1 ip neigh del 10.0.0.2 dev ib0
    echo "# the queue stopped $(($(statistic_of 1 tx_queue_stopped) - stops)) times"
    [ "$(statistic 1 tx_dropped)" = "$dropped" ] || fail "$(($(statistic 1 tx_dropped) - dropped)) packets were dropped"
    [ "$(statistic_of 1 tx_queue_stopped)" -gt "$stops" ]
}

test_settings_that_the_rdma_netdev_has_not_are_refused() {
    ! filters || return 77
    refused 'Operation not supported' on 1 ethtool -C ib0 rx-usecs 10
    refused 'Operation not supported' on 1 ethtool -L ib0 tx 1
    refused 'Operation not supported' on 1 ethtool --set-priv-flags ib0 icrc-as-checksum on
    make_blue_children
    on 1 ethtool -i blue | says -F 'driver: soft_ib[ib_ipoib]'
    refused 'no stats available' on 1 ethtool -S blue
    refused 'Operation not supported' on 1 ethtool -G blue tx 64
}

test_unsupported_offloads_are_off() {
    on 1 ethtool -k ib0 >/run/features
    grep -q '^tx-checksumming: off' /run/features
    grep -q '^tcp-segmentation-offload: off' /run/features
}

test_statistics_include_the_rdma_netdevs() {
    local before received errors
    before=$(statistic 1 tx_packets) received=$(statistic 2 rx_packets)
    errors=$(statistic 1 tx_errors) # a restart cuts sends short when OpenSM comes
    flood 1 10.0.0.2 100
    # Sends are counted when complete.
    wait_for 5 eval "[ \$(statistic 1 tx_packets) -ge $((before + 100)) ]"
    [ "$(statistic 2 rx_packets)" -ge $((received + 100)) ]
    [ "$(statistic 1 tx_errors)" = "$errors" ]
}

test_mtu_can_be_changed() {
    [ "$(mtu 1)" = 2044 ]
    set_mtu 1 1500
    [ "$(mtu 1)" = 1500 ]
    wait_for 20 reaches 1 10.0.0.2
    ping_ok 1 10.0.0.2 -M "do" -s 1472
    too_long 1 10.0.0.2 1473
    iperf 1 2 -n 20M
    set_mtu 1 2044
    ! set_mtu 1 2045 2>/dev/null || return 1
    ping_ok 1 10.0.0.2 -M "do" -s 2016
}

test_children_use_the_rdma_netdev() {
    local before
    make_blue_children
    devices_are 1 2
    [ "$(lladdr 1 blue | cut -c 1-2)" = "$(lladdr 1 ib0 | cut -c 1-2)" ] || fail "$(lladdr 1 blue)"
    [ "$(lladdr 1 blue)" != "$(lladdr 1 ib0)" ]
    before=$(counter 1 accelerated_sends)
    flood 1 10.1.0.2 200
    [ "$(counter 1 accelerated_sends)" -ge $((before + 200)) ]
    ping_ok 1 10.0.0.2
}

test_down_and_up_20_times_under_traffic() {
    make_blue_children
    local round
    background_ping 2 10.0.0.1
    background_ping 2 10.1.0.1
    for round in $(seq 20); do
        [ $((round % 5)) != 0 ] || pings_arrive 1
        on 1 ip link set ib0 down
        on 1 ip link set ib0 up
    done
    stop_traffic
    wait_for 20 reaches 1 10.0.0.2
    wait_for 20 reaches 1 10.1.0.2
    ping_ok 1 10.0.0.2
    ping_ok 2 10.1.0.1
}

test_link_flap() {
    knob 2 link 0
    wait_for 10 no_carrier 2
    link_up 2
    wait_for 20 carrier 2
    wait_for 20 reaches 1 10.0.0.2
}

test_tcp_survives_lost_datagrams() {
    local before
    before=$(counter 2 drop_fault)
    knob 2 drop_every 50
    iperf 1 2 -n 20M
    knob 2 drop_every 0
    [ "$(counter 2 drop_fault)" -gt "$before" ]
}

test_pkey_leaves_the_table_and_returns() {
    make_blue_children
    PARTITIONS='' write_partitions
    sweep
    without_blue() { ! carrier 1 blue; }
    wait_for 20 without_blue
    # The child goes down without having been open.
    on 1 ip link set blue down
    on 1 ip link set blue up
    write_partitions
    sweep
    wait_for 20 carrier 1 blue
    wait_for 20 carrier 2 blue
    wait_for 20 reaches 1 10.1.0.2
    ping_ok 1 10.1.0.2
}

test_deleted_child_frees_its_rdma_netdev() {
    make_blue_children
    on 1 ip link del blue
    devices_are 1 1
    ping_ok 1 10.0.0.2
}

test_hca_is_unplugged_under_traffic() {
    background_ping 1 10.0.0.2
    pings_arrive 2
    knob 2 plugged 0
    devices_are 2 0
    ! on 2 test -e /sys/class/net/ib1 || return 1
    stop_traffic
    plug_in 2
    wait_for 30 port_state_is 1 '4: ACTIVE'
    add_host 2
    wait_for 20 carrier 2
    wait_for 20 reaches 1 10.0.0.2
    devices_are 2 1
}

test_driver_is_reloaded_5_times() {
    for _ in $(seq 5); do
        on 1 ping -q -c 100 -f 10.0.0.2 >/dev/null 2>&1 || true
        unload_driver
        devices_are 1 0
        devices_are 2 0
        load_driver
        add_hosts
    done
    wait_for 20 reaches 1 10.0.0.2
    ping_ok 1 10.0.0.2
}

xfail_stock_parameter_disables_the_rdma_netdev='the in-tree driver has no such parameter'
test_parameter_disables_the_rdma_netdev() {
    unload_driver
    load_driver ipoib_enhanced=0
    add_hosts
    devices_are 1 0
    devices_are 2 0
    set_mode 1 connected
    set_mode 2 connected
    wait_for 20 reaches 1 10.0.0.2
    ping_ok 1 10.0.0.2 -s 30000
    iperf 1 2 -n 20M
}

xfail_stock_parameter_disables_the_rdma_netdev_of_one_hca='the in-tree driver has no such parameter'
test_parameter_disables_the_rdma_netdev_of_one_hca() {
    unload_driver
    load_driver ipoib_enhanced_except=soft_ib1
    add_hosts
    devices_are 1 1
    devices_are 2 0
    [ "$(parameter ipoib_enhanced_except)" = soft_ib1 ]
    wait_for 20 reaches 1 10.0.0.2
    flood 1 10.0.0.2 200
    set_mode 2 connected
    # The peer's address has no connected-mode flag.
    wait_for 20 reaches 2 10.0.0.1
    ping_ok 2 10.0.0.1 -s 2000
}
