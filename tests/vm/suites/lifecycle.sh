# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Creation and destruction, under traffic.
PORTS=2
PROCESSORS=2
HOSTS=1

# Stalled TCP connections are restarted: otherwise traffic pauses, and packets queued in a socket hold pages of an
# unloaded driver for longer than a minute, which the kernel reports.
background_traffic() {
    # Bound to no address: after each connection it binds again, and would end while the interface is removed.
    on 2 iperf3 -s --rcv-timeout 2000 --daemon >/dev/null
    wait_for 5 listens 2 :5201
    (while :; do on 1 timeout 12 iperf3 -c 10.0.0.2 -b 50M -t 10 --connect-timeout 1000 >/dev/null 2>&1 || sleep 0.2; done) &
    traffic=$!
    background_ping 2 10.0.0.1
    pinger=$!
}
traffic_arrives() {
    pings_arrive 1
    segments_arrive 2
}
end_traffic() {
    kill "$traffic" "$pinger" 2>/dev/null || true
    stop_traffic
    wait "$traffic" "$pinger" 2>/dev/null || true
}

test_interface_down_and_up_100_times_under_traffic() {
    local round
    background_traffic
    for round in $(seq 100); do
        [ $((round % 20)) != 0 ] || traffic_arrives
        on 1 ip link set ib0 down
        on 1 ip link set ib0 up
    done
    end_traffic
    on 1 ip addr replace fd00::1/64 dev ib0
    wait_for 20 reaches 1 10.0.0.2
    ping_ok 1 10.0.0.2
    ping_ok 2 10.0.0.1
}

test_driver_reload_50_times_under_traffic() {
    local round
    background_traffic
    for round in $(seq 50); do
        [ $((round % 10)) != 0 ] || traffic_arrives
        unload_driver
        load_driver
        # Moves the interfaces to their namespaces; half the time without waiting for them.
        add_host 1
        add_host 2
        [ $((RANDOM % 2)) = 0 ] || wait_for 20 carrier 1
    done
    end_traffic
    wait_for 20 carrier 1
    wait_for 20 carrier 2
    wait_for 20 reaches 1 10.0.0.2
    ping_ok 1 10.0.0.2
}

test_module_unloads_right_after_use() {
    # Neighbours, groups and packets in flight when the module is unloaded.
    for _ in $(seq 10); do
        on 1 ping -q -c 100 -f -l 20 10.0.0.2 >/dev/null 2>&1 || true
        on 1 ip link set ib0 down
        unload_driver
        load_driver
        add_hosts
    done
}

test_hca_unplug_under_traffic() {
    background_ping 1 10.0.0.2
    serve_iperf 1
    on 2 iperf3 -c 10.0.0.1 -b 50M -t 30 >/dev/null 2>&1 &
    pings_arrive 2
    is_streaming() { on 1 ss -Htn state established 'sport = 5201' | says 10.0.0.2; }
    wait_for 10 is_streaming
    knob 2 plugged 0
    ! on 2 ip link show ib1 2>/dev/null || return 1
    stop_traffic
    [ "$(cat /sys/class/infiniband/soft_ib0/ports/1/state)" = '4: ACTIVE' ]
    plug_in 2
    wait_for 30 port_state_is 1 '4: ACTIVE'
    add_host 2
    wait_for 20 carrier 2
    wait_for 20 reaches 1 10.0.0.2
    ping_ok 1 10.0.0.2
}

test_hca_unplug_20_times() {
    expect_missing_gids
    for _ in $(seq 20); do
        knob 2 plugged 0
        knob 2 plugged 1
    done
    sweep
    wait_for 30 port_state_is 1 '4: ACTIVE'
    add_host 2
    wait_for 20 reaches 1 10.0.0.2
}

# The socket of a killed program sends FIN to an unplugged peer, and keeps its namespace until that is answered.
no_socket_says_goodbye() { [ -z "$(on 1 ss -Htn exclude time-wait exclude listening)" ]; }

test_namespace_deleted_with_the_interface_inside() {
    stop_traffic
    wait_for 60 no_socket_says_goodbye
    ip netns del h1
    wait_for 30 born_as 1
    add_host 1
    wait_for 20 reaches 1 10.0.0.2
}
