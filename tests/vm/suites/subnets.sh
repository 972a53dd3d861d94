# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Two separate subnets, each with its own OpenSM and prefix: hosts 1 and 3 in one, 2 and 4 in the other. All have IP
# addresses of one network.
PORTS=4
HOSTS=1
FABRIC=subnets=2

# The subnet manager of a subnet, 1 or 2, runs on the host of that number.
start_opensm_of() {
    mkdir -p "/run/opensm.$1"
    echo "subnet_prefix 0xfec000000000000$1" >"/run/opensm.$1/opensm.conf"
    OSM_CACHE_DIR=/run/opensm.$1 opensm --config "/run/opensm.$1/opensm.conf" \
        --guid "$(guid "$1")" --Pconfig /etc/opensm/partitions.conf \
        --log_file "/run/opensm.$1.log" >"/run/opensm.$1.out" 2>&1 &
}
# Replaces the functions of lib.sh.
start_opensm() {
    write_partitions
    start_opensm_of 1
    start_opensm_of 2
}
stop_opensm_of() {
    gone() { ! pgrep -x -r D,R,S -f "opensm --config /run/opensm.$1/.*"; }
    pkill -x -f "opensm --config /run/opensm.$1/.*"
    wait_for 20 gone "$1"
}

prefix() { on "$1" cut -d: -f5-12 "/sys/class/net/$(interface_of "$1")/address"; }
prefix_is() { [ "$(prefix "$1")" = "fe:c0:00:00:00:00:00:0$2" ]; }

test_each_subnet_has_a_switch_and_a_prefix() {
    local host
    for host in 1 2 3 4; do prefix_is $host $((2 - host % 2)) || fail "host $host: $(prefix $host)" || return 1; done
    [ "$(ibswitches -C soft_ib0 | grep -c '^Switch')" = 1 ]
    [ "$(ibswitches -C soft_ib1 | grep -c '^Switch')" = 1 ]
    [ "$(ibswitches -C soft_ib0 | awk '{ print $3 }')" != "$(ibswitches -C soft_ib1 | awk '{ print $3 }')" ]
    ibhosts -C soft_ib0 | says soft_ib2
    ! ibhosts -C soft_ib0 | says 'soft_ib[13]' || return 1
}

test_hosts_of_one_subnet_communicate() {
    ping_ok 1 10.0.0.3
    ping_ok 4 10.0.0.2
    ping_ok 3 fd00::1
    ping_ok 2 fd00::4
    iperf 1 3 -n 20M
    iperf 2 4 -n 20M
}

test_hosts_of_two_subnets_cannot_communicate() {
    local pair
    for pair in '1 2' '2 1' '1 4' '3 2' '4 3'; do
        # shellcheck disable=SC2086
        set -- $pair
        ! reaches "$1" "10.0.0.$2" || fail "$1 reaches $2" || return 1
        ! reaches "$1" "fd00::$2" || fail "$1 reaches $2" || return 1
    done
    ping_ok 1 10.0.0.3
}

test_multicast_stays_in_its_subnet() {
    local of_two of_three
    of_two=$(counter 2 delivered)
    of_three=$(counter 3 delivered)
    on 1 ping -q -c 20 -i 0.05 ff02::1%ib0 >/dev/null
    [ "$(counter 3 delivered)" -ge $((of_three + 20)) ]
    [ "$(counter 2 delivered)" -lt $((of_two + 20)) ]
}

test_connected_mode_works_in_both_subnets() {
    local host
    for host in 1 2 3 4; do set_mode $host connected; done
    wait_for 20 reaches 1 10.0.0.3
    wait_for 20 reaches 2 10.0.0.4
    ping_ok 1 10.0.0.3 -s 30000
    ping_ok 2 10.0.0.4 -s 30000
    for host in 1 2 3 4; do set_mode $host datagram; done
    wait_for 20 reaches 1 10.0.0.3
    wait_for 20 reaches 2 10.0.0.4
}

test_stopped_opensm_affects_only_its_own_subnet() {
    stop_opensm_of 2
    # The first subnet activates a link again, the second cannot.
    knob 3 link 0
    knob 4 link 0
    wait_for 10 no_carrier 3
    wait_for 10 no_carrier 4
    link_up 3
    link_up 4
    wait_for 30 carrier 3
    wait_for 20 reaches 1 10.0.0.3
    no_carrier 4
    start_opensm_of 2
    wait_for 30 carrier 4
    wait_for 20 reaches 2 10.0.0.4
    ! reaches 1 10.0.0.2 || return 1
}

# As guides have it: one OpenSM for each port of a host, by the port's GUID. Both subnets have the default prefix.
opensms_are() { [ "$(pgrep -c -x opensm)" = "$1" ]; } # NUMBER
test_one_opensm_for_each_guid_manages_both_subnets() {
    local port
    stop_opensm
    for port in 1 2; do
        OSM_CACHE_DIR=/run/opensm.$port opensm -B -g "$(ibstat -p | sed -n "${port}p")" -f "/run/guid.$port.log" >/dev/null
    done
    opensms_are 2
    has_prefix() { [ "$(prefix "$1")" = fe:80:00:00:00:00:00:00 ] && carrier "$1"; }
    for port in 1 2 3 4; do wait_for 60 has_prefix $port; done
    [ "$(sminfo -C soft_ib0 | grep -c SMINFO_MASTER) $(sminfo -C soft_ib1 | grep -c SMINFO_MASTER)" = '1 1' ]
    [ "$(sminfo -C soft_ib0 | grep -oE 'guid 0x[0-9a-f]+')" != "$(sminfo -C soft_ib1 | grep -oE 'guid 0x[0-9a-f]+')" ]
    wait_for 20 reaches 1 10.0.0.3
    wait_for 20 reaches 2 10.0.0.4
    ! reaches 1 10.0.0.2 || return 1
    stop_opensm
    start_opensm
    for port in 1 2 3 4; do wait_for 60 prefix_is $port $((2 - port % 2)); done
}
