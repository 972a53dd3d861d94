# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Nine hosts at a mesh of three by three switches, and OpenSM's routing engines for it. Links of 12x EDR.
# shellcheck source=../guest/topologies.sh
. ./topologies.sh
PORTS=9
HOSTS=1
FABRIC="$(mesh 3 | ./topology) vls=8 width=12 speed=32"

before_each() {
    plug_all_switches
    ! opensm_is_gone || start_opensm
    wait_for 30 all_ports_active
}

test_dor_routes_along_the_first_dimension_first() {
    route_by dor
    wait_for 30 all_reach_each_other
    ways_have_at_most 5
    [ "$(way 1 9)" = 'mesh11 mesh12 mesh13 mesh23 mesh33 ' ] || fail "$(way 1 9)" || return 1
    [ "$(way 9 1)" = 'mesh33 mesh32 mesh31 mesh21 mesh11 ' ] || fail "$(way 9 1)"
}

test_lash() {
    route_by lash
    wait_for 30 all_reach_each_other
    ways_have_at_most 5
}

test_updn() {
    # The switch in the middle, since a mesh has no roots that OpenSM would find.
    echo 0x0002c90300ffff04 >/run/roots
    route_by updn --root_guid_file /run/roots
    wait_for 30 all_reach_each_other
}

test_switch_in_the_middle_is_removed_and_returns() {
    local switches
    route_by minhop
    wait_for 30 all_reach_each_other
    plug_switch 4 0
    wait_for 10 switches_are 8
    wait_for 30 all_reach_each_other 1 2 3 4 6 7 8 9
    # Around it.
    ways_have_at_most 5 1 2 3 4 6 7 8 9
    switches=$(way 4 6)
    [[ $switches != *mesh22* ]] || fail "$switches" || return 1
    plug_switch 4 1
    wait_for 30 all_ports_active
    wait_for 30 all_reach_each_other
}

rate() { cat "/sys/class/infiniband/soft_ib$1/ports/1/rate"; } # NUMBER
test_width_and_speed_are_those_of_the_parameters() {
    [ "$(rate 0)" = '300 Gb/sec (12X EDR)' ] || fail "$(rate 0)" || return 1
    smpquery portinfo "$(lid 1)" 1 >/run/info
    grep -qE '^VLCap:\.*VL0-7$' /run/info
    grep -qE '^LinkWidthActive:\.*12X$' /run/info
    grep -qE '^LinkSpeedExtActive:\.*25.78125 Gbps$' /run/info
    ibportstate -C soft_ib0 -D 0,1 1 espeed 1 reset >/run/ibportstate
    wait_for 5 rate_is '168 Gb/sec (12X FDR)'
    ibportstate -C soft_ib0 -D 0,1 1 espeed 31 reset >/run/ibportstate
    wait_for 5 rate_is '300 Gb/sec (12X EDR)'
    sweep
    wait_for 30 all_ports_active
}
rate_is() { [ "$(rate 0)" = "$1" ]; }
