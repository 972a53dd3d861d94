# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Management of the fabric by infiniband-diags: the agents of its switch and HCAs. HCA i (soft_ib<i - 1>) is at port i of
# the switch.
PORTS=3

switch_lid() { ibswitches | sed -nE 's/.* lid ([0-9]+) lmc.*/\1/p'; }
# A field of the first PortInfo that ibportstate prints, or, with "Peer", of the peer port's.
port_field() { # PORT FIELD [Peer]
    ibportstate "$(switch_lid)" "$1" query | awk -v name="$2" -v peer="${3:-}" '
        /PortInfo:/ { in_it = ($1 == "Peer") == (peer != "") }
        in_it && index($0, name ":") == 1 { sub(/^[^:]*:\.*/, ""); print; exit }'
}

test_both_ends_of_each_switch_port_are_queried_by_lid() {
    local port
    for port in 1 2 3; do
        [ "$(port_field $port LinkState)" = Active ] || fail "port $port: $(port_field $port LinkState)" || return 1
        [ "$(port_field $port Lid Peer)" = "$(lid $port)" ] || fail "port $port: peer $(port_field $port Lid Peer)" || return 1
    done
}
