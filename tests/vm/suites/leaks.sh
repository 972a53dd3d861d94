# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Life of an interface in each mode: the module is loaded, traffic is sent, the rings are replaced, the HCA is unplugged
# and plugged in, the module is unloaded. Only a kernel with kmemleak (KERNEL=debug) finds leaked memory then.
PORTS=2
PROCESSORS=2
HOSTS=1

traffic() {
    wait_for 20 reaches 1 10.0.0.2
    flood 1 10.0.0.2 500
    iperf 1 2 -n 20M
}

life_in() { # MODE
    set_mode 1 "$1"
    set_mode 2 "$1"
    traffic
    # The in-tree driver's rings cannot be resized.
    if [ "$DRIVER" = ours ]; then
        on 1 ethtool -G ib0 tx 1024 rx 2048
        on 2 ethtool -G ib1 tx 128 rx 32
        traffic
    fi
    knob 2 plugged 0
    plug_in 2
    wait_for 30 port_state_is 1 '4: ACTIVE'
    add_host 2
    set_mode 2 "$1"
    # Host 2 sends first: host 1 may still have the former HCA's address.
    wait_for 30 reaches 2 10.0.0.1
    traffic
    unload_driver
    no_memory_is_leaked
    load_driver
    add_hosts
}

test_rings_hca_and_driver_are_replaced_in_datagram_mode() { life_in datagram; }
test_rings_hca_and_driver_are_replaced_in_connected_mode() { life_in connected; }
