# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Offload headers that a program chooses (PACKET_VNET_HDR), as those of virtual machines are, on HCAs without offloads,
# for which the driver segments and sums up packets. A program needs CAP_NET_RAW alone, which containers have.
PORTS=2
HOSTS=1
FABRIC='offloads=0'

sends() { # ARGUMENT OF vnet.py...
    on 1 python3 vnet.py "$@" >/run/vnet
    echo "# $1: $(cut -d' ' -f1 /run/vnet) accepted, $(cut -d' ' -f2 /run/vnet) refused"
}
# When the last of the packets, which the stack cuts into thousands, has left.
hosts_work() {
    wait_for 20 reaches 1 10.0.0.2
    ping_ok 1 10.0.0.2
    iperf 1 2 -t 1
}

test_headers_in_the_hardware_address_are_not_segmented_by_the_driver() {
    local before=0
    [ "$DRIVER" = stock ] || before=$(statistic_of 1 tx_tso_segments)
    sends segment ib0 200
    [ "$DRIVER" = stock ] || [ "$(statistic_of 1 tx_tso_segments)" = "$before" ]
    hosts_work
}

test_checksums_from_the_hardware_address_on_are_dropped() {
    local before
    before=$(statistic 1 tx_dropped)
    sends checksum ib0
    # Newer kernels refuse them. The stack sums for the in-tree driver.
    [ "$DRIVER" = stock ] || [ $(($(statistic 1 tx_dropped) - before)) = "$(cut -d' ' -f1 /run/vnet)" ]
    hosts_work
}

test_random_headers_do_no_harm() {
    sends random ib0 "$(lladdr 2)" 3000 1
    hosts_work
}

test_random_headers_do_no_harm_in_connected_mode() {
    MODE=connected set_modes
    wait_for 30 reaches 1 10.0.0.2
    sends random ib0 "$(lladdr 2)" 3000 2
    hosts_work
}
