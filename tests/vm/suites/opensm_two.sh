# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Two OpenSMs on one subnet: the one on host 1 is to be the master, that on host 2 stands by. Host 4 comes last.
PORTS=4
PARTITIONS='blue=0x0001, ipoib : ALL=full;
red=0x0002, ipoib : ALL=full;'

# shellcheck source=/dev/null
. ./managers.sh

child() { # HOST NAME PKEY SUBNET
    on "$1" ip link add link "$(interface_of "$1")" name "$2" type ipoib pkey "$3"
    on "$1" ip addr add "10.$4.0.$1/24" dev "$2"
    on "$1" ip link set "$2" up
}

test_one_is_master_and_the_other_stands_by() {
    load_driver
    local host
    for host in 1 2 3; do add_host $host; done
    for host in 1 2 3; do wait_for 30 carrier $host; done
    wait_for 20 master_is 1
    wait_for 20 state_is 2 STANDBY
    wait_for 20 reaches 3 10.0.0.1
    ping_ok 3 10.0.0.1
    ping_ok 2 10.0.0.3
}

# Pings every 10 ms from host 3 and TCP from 2 to 3, while COMMAND runs; both must go on after it.
under_traffic() { # COMMAND...
    local lost sent
    on 3 ping -q -i 0.01 10.0.0.1 >/run/ping.two &
    # Slow, so that emulation has time for the rest.
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
    # Some may go while groups and paths are asked for again, not many.
    [ "$lost" -le $((20 * patience)) ]
}

master_is_killed() {
    kill_sm 1
    wait_for 30 master_is 2
}
test_standby_takes_over_under_traffic() {
    under_traffic master_is_killed
    flood 3 10.0.0.1 500
    wait_for 20 all_are_members 3
}

test_new_host_joins_after_the_takeover() {
    add_host 4
    wait_for 30 carrier 4
    wait_for 20 reaches 4 10.0.0.1
    ping_ok 4 10.0.0.2
    ping_ok 3 10.0.0.4
    wait_for 20 reaches 3 fd00::4
}

test_new_children_and_groups_join_after_the_takeover() {
    child 1 blue 0x8001 1
    child 4 blue 0x8001 1
    wait_for 20 carrier 1 blue
    wait_for 20 carrier 4 blue
    wait_for 20 reaches 1 10.1.0.4
    ping_ok 4 10.1.0.1
    group_is_heard 239.1.2.3
}

group_is_heard() { # GROUP: by host 3 and 4, from 1
    local host
    for host in 3 4; do
        on $host timeout 30 python3 /test/group.py listen "$1" "$(interface_of $host)" >"/run/heard$host" &
    done
    heard() {
        on 1 python3 /test/group.py send "$1" ib0 hello
        grep -q hello /run/heard3 && grep -q hello /run/heard4
    }
    wait_for 20 heard "$1"
    pkill -f group.py
}

test_master_that_is_back_takes_over_again() {
    under_traffic master_is_back
    wait_for 20 state_is 2 STANDBY
    flood 3 10.0.0.1 500
    child 2 red 0x8002 2
    child 3 red 0x8002 2
    wait_for 20 carrier 2 red
    wait_for 20 carrier 3 red
    wait_for 20 reaches 2 10.2.0.3
    ping_ok 3 10.2.0.2
    group_is_heard 239.1.2.4
}
master_is_back() {
    start_sm 1 15
    wait_for 30 master_is 1
}

test_standby_that_dies_is_not_missed() {
    kill_sm 2
    master_is 1
    ping_ok 3 10.0.0.4
    wait_for 20 reaches 4 10.1.0.1
}
