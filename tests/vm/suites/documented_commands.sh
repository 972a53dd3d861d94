# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Commands that guides on InfiniBand name, and no other suite runs, as the guides have them: Documentation/commands.md
# has all of them.
PORTS=3
HOSTS=1

# shellcheck source=/dev/null
. ./perftest.sh

# After a test that has failed.
before_each() {
    if opensm_is_gone; then start_opensm; fi
    wait_for 30 all_ports_active
    wait_for 20 reaches 2 10.0.0.1
}

# "0x0002c90300000010", ... of the ports, which opensm -g takes.
test_ibstat_prints_the_port_guids() {
    # shellcheck disable=SC2005 # for the end of the line
    [ "$(ibstat -p)" = "$(for i in 1 2 3; do echo "$(guid $i)"; done)" ] || fail "$(ibstat -p)" || return 1
    [ "$(ibstat -l | sort | xargs)" = 'soft_ib0 soft_ib1 soft_ib2' ]
    ibstat >/run/ibstat
    [ "$(grep -c 'State: Active' /run/ibstat)" = 3 ]
    [ "$(grep -c 'Physical state: LinkUp' /run/ibstat)" = 3 ]
    [ "$(grep -c 'Rate: 40' /run/ibstat)" = 3 ]
    [ "$(grep -c 'Link layer: InfiniBand' /run/ibstat)" = 3 ]
}

test_ibnodes_lists_hcas_and_the_switch() {
    local i
    ibnodes >/run/nodes
    [ "$(grep -c '^Ca' /run/nodes)" = 3 ] || fail "$(cat /run/nodes)" || return 1
    [ "$(grep -c '^Switch' /run/nodes)" = 1 ]
    for i in 0 1 2; do grep -qE "^Ca.*: 0x[0-9a-f]{16} ports 1 \".*soft_ib$i\"" /run/nodes; done
    [ "$(ibhosts | sort)" = "$(grep '^Ca' /run/nodes | sort)" ]
    [ "$(ibswitches)" = "$(grep '^Switch' /run/nodes)" ]
}

# One line for each port of the switch: its LID, link, and the node at the other end.
test_iblinkinfo_shows_each_link() {
    local i line
    iblinkinfo >/run/links
    for i in 0 1 2; do
        line=$(grep -E "^ +[0-9]+ +$((i + 1))\[" /run/links) || fail "$(cat /run/links)" || return 1
        says -E "4X +10.0 Gbps Active/ +LinkUp.*==> +$(lid $((i + 1))) +1\[.*soft_ib$i" <<<"$line" ||
            fail "$line" || return 1
    done
    # All links of one node, by its GUID.
    iblinkinfo --node-name-map /dev/null -S "$(ibswitches | grep -oE '0x[0-9a-f]{16}')" | says 'Active/'
}

test_ibping_by_guid() {
    ibping -S -C soft_ib1 >/dev/null 2>&1 &
    wait_for 10 ibping -c 1 -C soft_ib0 -G "$(guid 2)"
    ibping -c 3 -C soft_ib0 -G "$(guid 2)" | says ' 0% packet loss'
    pkill -x ibping
}

# Documentation/operations.md, "Rollback". modprobe -r would remove ib_cm too, without which insmod fails.
test_in_tree_driver_is_used_for_a_moment() {
    local others module
    [ "$DRIVER" = ours ] || return 77
    module=$(modinfo -n ib_ipoib)
    # Users of ib_cm that another test has loaded.
    for others in rdma_ucm rdma_cm ib_umad; do [ ! -e "/sys/module/$others" ] || rmmod "$others" || true; done
    rmmod ib_ipoib
    insmod "$module"
    [ ! -e /sys/module/ib_ipoib/version ]
    add_hosts
    wait_for 20 reaches 2 10.0.0.1
    rmmod ib_ipoib
    load_driver
    [ -e /sys/module/ib_ipoib/version ]
    add_hosts
}

# The ioctl by which lshw asks for the address has 14 of its 20 bytes.
test_lshw_shows_the_interface() {
    local address
    address=$(lladdr 1 | cut -d: -f1-14)
    on 1 lshw -quiet -class network >/run/lshw
    grep -q 'logical name: ib0$' /run/lshw || fail "$(cat /run/lshw)" || return 1
    grep -q "serial: $address:00:00:00:00:00:00\$" /run/lshw
    grep -q 'configuration:.* driver=ib_ipoib .*ip=10.0.0.1 .*link=yes' /run/lshw
}

# The master that sminfo finds: "LID PRIORITY".
master() { sminfo | sed -nE 's/.*sm lid ([0-9]+) .* priority ([0-9]+) state 3 SMINFO_MASTER/\1 \2/p'; }
master_is() { [ "$(master)" = "$(lid "$1") $2" ]; } # HOST PRIORITY
# In the background (-B), with a priority (-p) on the port of a GUID (-g). Its file of LIDs is its own.
background_opensm() { # HOST PRIORITY
    mkdir -p "/run/sm.$1"
    OSM_CACHE_DIR=/run/sm.$1 OSM_TMP_DIR=/run/sm.$1 opensm -B -p "$2" -g "$(ibstat -p | sed -n "$1p")" \
        -f "/run/sm.$1/log" >"/run/sm.$1/out" 2>&1
}
test_opensm_of_the_higher_priority_is_master() {
    stop_opensm
    write_partitions
    background_opensm 2 3
    wait_for 30 master_is 2 3
    background_opensm 3 9
    wait_for 30 master_is 3 9 || fail "$(sminfo)" || return 1
    [ "$(pgrep -c -x opensm)" = 2 ]
    sminfo "$(lid 2)" | says 'priority 3 state 2 SMINFO_STANDBY'
    wait_for 20 reaches 2 10.0.0.1
    ping_ok 1 10.0.0.3
    stop_opensm
}

# perftest, with the server's IPoIB address.

run_perftest() { # PROGRAM ARGUMENT...
    local server
    on 1 timeout $((60 * patience)) "$@" -d soft_ib0 >/run/server.out 2>&1 &
    server=$!
    wait_for 10 listens 1 :18515
    on 2 timeout $((60 * patience)) "$@" -d soft_ib1 10.0.0.1 >/run/client.out 2>&1 && wait $server
}
# The result is an average: MB/s, or microseconds.
measure() { # PROGRAM BYTES
    local column=6
    [[ $1 != *_bw ]] || column=4
    perftest "$1" -s "$2" -n 200
    result_is "$2" 200
    awk -v column=$column '{ exit !($column > 0) }' /run/result
}
test_perftest_of_sends() { measure ib_send_bw 65536; measure ib_send_lat 2; }
test_perftest_of_writes() { measure ib_write_bw 65536; measure ib_write_lat 2; }
test_perftest_of_reads() { measure ib_read_bw 65536; measure ib_read_lat 2; }
