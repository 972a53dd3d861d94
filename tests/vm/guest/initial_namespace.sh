# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154,SC2317
# Hosts 1 and 2 for kernel modules that know the initial namespace only: their interfaces and addresses are there, and
# packets between the two addresses pass the fabric all the same.

# An address is local to packets from its interface; those that this machine sends to it leave by the other interface.
enter_initial_namespace() {
    local host dev
    ip link set lo up
    for host in 1 2; do
        dev=$(interface_of $host)
        on $host ip link set "$dev" netns 1
        ip addr add "10.0.0.$host/24" dev "$dev"
        ip link set "$dev" up
        ip rule add pref 1 iif "$dev" lookup local
    done
    ip route add 10.0.0.2 dev ib0 src 10.0.0.1 table 10
    ip route add 10.0.0.1 dev ib1 src 10.0.0.2 table 10
    ip rule add pref 2 lookup 10
    ip rule add pref 3 lookup local
    ip rule del pref 0
    wait_for 20 here_reaches 10.0.0.1
    wait_for 20 here_reaches 10.0.0.2
}
leave_initial_namespace() {
    ip rule add pref 0 lookup local
    ip rule del pref 1
    ip rule del pref 1
    ip rule del pref 2
    ip rule del pref 3
    add_host 1
    add_host 2
    wait_for 30 addresses_ready 1
    wait_for 30 addresses_ready 2
}
