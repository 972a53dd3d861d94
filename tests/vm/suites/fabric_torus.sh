# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Nine hosts at a torus of three by three switches, OpenSM's routing engine for it, and osmtest.
# shellcheck source=../guest/topologies.sh
. ./topologies.sh
PORTS=9
HOSTS=1
FABRIC="$(mesh 3 torus | ./topology) vls=8"

route_torus() {
    # Two dimensions; the switches below and right of the first one.
    cat >/run/torus.conf <<'END'
torus 1 3 3
yp_link 0x0002c90300ffff00 0x0002c90300ffff03
zp_link 0x0002c90300ffff00 0x0002c90300ffff01
END
    route_by torus-2QoS --torus_config /run/torus.conf -Q
}

test_torus_2qos() {
    local way
    route_torus
    wait_for 30 all_reach_each_other
    # At most one step in each dimension.
    ways_have_at_most 3
    way=$(way 1 9)
    [ "$(wc -w <<<"$way")" = 3 ] || fail "$way"
    saquery -p --src-to-dst "$(lid 1):$(lid 9)" >/run/path
    grep '^[[:space:]]*sl' /run/path | sed 's/^/# /'
}

test_torus_2qos_routes_around_a_broken_cable() {
    route_torus
    wait_for 30 all_reach_each_other
    # From the first switch to the right.
    set_cable 0 2 0
    wait_for 30 avoids_the_cable
    wait_for 30 all_reach_each_other
    set_cable 0 2 1
    wait_for 30 all_ports_active
    wait_for 30 all_reach_each_other
}
avoids_the_cable() { [ "$(way 1 2 | wc -w)" = 3 ]; }

# Without the flow of traps 64 and 65, for which ports have to come and go, and the flood of queries, which is slow.
test_osmtest() {
    local flow
    opensm_is_gone || stop_opensm
    start_opensm
    wait_for 30 all_ports_active
    wait_for 30 all_reach_each_other
    cd /run || return
    for flow in c v s e m q; do
        timeout $((60 * patience)) osmtest -f $flow -i /run/inventory -M 2 -l /run/osmtest.log >/run/osmtest.out 2>&1 ||
            fail "flow $flow: $(tail -n 5 /run/osmtest.out)" || return 1
        grep -q 'TEST "[^"]*" PASS' /run/osmtest.out || fail "flow $flow: $(tail -n 5 /run/osmtest.out)" || return 1
    done
}
