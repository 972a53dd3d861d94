# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Two OpenSMs on one subnet: the one on host 1 is to be the master, that on host 2 the standby. Host 4 is added last.
PORTS=4
PARTITIONS='blue=0x0001, ipoib : ALL=full;
red=0x0002, ipoib : ALL=full;'

# shellcheck source=/dev/null
. ./groups.sh
# shellcheck source=/dev/null
. ./two_opensms.sh

# Sets up hosts 1 to 3.
before_each() {
    [ ! -e /sys/module/ib_ipoib ] || return 0
    load_driver
    local host
    for host in 1 2 3; do add_host $host; done
    for host in 1 2 3; do wait_for 30 carrier $host; done
}
# Sets up host 4, too.
with_host_4() {
    on 4 test -e /sys/class/net/ib3 2>/dev/null || add_host 4
    wait_for 30 carrier 4
}
# Makes the OpenSM of host 1 the master, and that of host 2 the standby.
with_both() {
    ! sm_is_gone 1 || start_sm 1 15
    wait_for 30 master_is 1
    wait_for 20 state_is 2 STANDBY
}
# Ends the OpenSM of host 1, so that that of host 2 is the master.
with_the_second() {
    sm_is_gone 1 || kill_sm 1
    wait_for 30 master_is 2
}
# Creates children of two hosts that reach each other.
with_children() { # NAME PKEY SUBNET HOST HOST
    local host
    for host in "$4" "$5"; do
        on "$host" test -e "/sys/class/net/$1" || {
            on "$host" ip link add link "$(interface_of "$host")" name "$1" type ipoib pkey "$2"
            on "$host" ip addr add "10.$3.0.$host/24" dev "$1"
            on "$host" ip link set "$1" up
        }
    done
    for host in "$4" "$5"; do wait_for 20 carrier "$host" "$1"; done
    wait_for 20 reaches "$4" "10.$3.0.$5"
}

test_one_opensm_is_master_and_one_standby() {
    with_both
    wait_for 20 reaches 3 10.0.0.1
    ping_ok 3 10.0.0.1
    ping_ok 2 10.0.0.3
}

# Pings every 10 ms from host 3 and TCP from 2 to 3, while COMMAND runs; both must continue after it.
under_traffic() { # COMMAND...
    local lost sent
    on 3 ping -q -i 0.01 10.0.0.1 >/run/ping.two &
    # Limited rate, so that emulation has time for the rest.
    start_stream 2 3 6000000
    "$@"
    # TCP retransmits lost segments after up to twice the time that it waited before.
    stream_goes_on 3 90
    end_stream 3
    pkill -INT -x ping
    pings_are_counted() { grep -q transmitted /run/ping.two; }
    wait_for 5 pings_are_counted
    read -r sent lost < <(awk '/transmitted/ { print $1, $1 - $4 }' /run/ping.two)
    echo "# $lost pings of $sent lost"
    # Some pings may be lost while groups are rejoined and paths queried again, not many.
    [ "$lost" -le $((sent / 20)) ]
}

test_standby_takes_over_under_traffic() {
    with_both
    under_traffic with_the_second
    flood 3 10.0.0.1 500
    wait_for 20 all_are_members 3
}

test_new_host_joins_after_the_takeover() {
    with_the_second
    with_host_4
    wait_for 20 reaches 4 10.0.0.1
    ping_ok 4 10.0.0.2
    ping_ok 3 10.0.0.4
    wait_for 20 reaches 3 fd00::4
}

test_new_children_and_groups_join_after_the_takeover() {
    with_the_second
    with_host_4
    with_children blue 0x8001 1 1 4
    ping_ok 4 10.1.0.1
    group_is_heard 239.1.2.3 1 3 4
    nobody_listens
}

test_restarted_master_takes_over_again() {
    with_the_second
    with_host_4
    under_traffic with_both
    flood 3 10.0.0.1 500
    with_children red 0x8002 2 2 3
    ping_ok 3 10.2.0.2
    group_is_heard 239.1.2.4 1 3 4
    nobody_listens
}

test_death_of_the_standby_disturbs_nothing() {
    with_both
    with_host_4
    with_children blue 0x8001 1 1 4
    kill_sm 2
    master_is 1
    ping_ok 3 10.0.0.4
    wait_for 20 reaches 4 10.1.0.1
}
