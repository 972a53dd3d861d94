# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Eight hosts at a fat tree of four leaves and two spines, and OpenSM's routing engines for it; faults of links and
# switches. Hosts 2n - 1 and 2n are at leaf n, which is switch n - 1; the spines are switches 4 and 5.
# shellcheck source=../guest/topologies.sh
. ./topologies.sh
PORTS=8
HOSTS=1
FABRIC=$(fat_tree 4 | ./topology)

before_each() {
    plug_all_switches
    write "$debug/switch0/cable" '3 1'
    ! opensm_is_gone || start_opensm
    wait_for 30 all_ports_active
}

# Prints what parameters of soft_ib describe, in an order that does not depend on that of the nodes: the number of HCAs;
# of each switch the number of ports, and the cables by port: to an HCA, or to that port of a switch.
shape() {
    tr ' ' '\n' | awk -F= '
        $1 == "hcas"
        $1 == "switches" {
            count = split($2, ports, ",")
            for (i = 1; i <= count; i++) sub(/:.*/, "", ports[i])
        }
        $1 == "cables" {
            for (i = split($2, cables, ","); i > 0; i--) {
                split(cables[i], ends, "-")
                split(ends[1], near, ".")
                split(ends[2], far, ".")
                peer[near[1], near[2]] = far[2] ? far[2] : "h"
                if (far[2]) peer[far[1], far[2]] = near[2]
            }
        }
        END {
            for (i = 0; i < count; i++) {
                printf "%d:", ports[i + 1]
                for (port = 1; port <= ports[i + 1]; port++) printf " %s", peer[i, port]
                print ""
            }
        }' | sort
}
test_nodes_and_links_are_those_of_the_file() {
    ibnetdiscover >/run/net
    [ "$(grep -c '^Switch' /run/net)" = 6 ]
    [ "$(grep -c '^Ca' /run/net)" = 8 ]
    grep -A 4 '^Switch.*"leaf3"' /run/net >/run/leaf
    grep -qE '^\[1\].*"soft_ib4"' /run/leaf
    grep -qE '^\[2\].*"soft_ib5"' /run/leaf
    grep -qE '^\[3\].*\[3\].*"spine1"' /run/leaf
    grep -qE '^\[4\].*\[3\].*"spine2"' /run/leaf
    # The output describes the same fabric.
    fat_tree 4 | ./topology | shape >/run/expected
    ./topology /run/net | shape >/run/shape
    diff /run/expected /run/shape
}

test_picture_has_each_link_and_its_state() {
    # Each of the eight cables between switches is there at both ends.
    ./draw >/run/drawn
    [ "$(grep -c '  active  4x QDR' /run/drawn)" = $((8 + 2 * 8)) ]
    set_cable 0 3 0
    ./draw >/run/drawn
    [ "$(grep -c '  active  4x QDR' /run/drawn)" = $((8 + 2 * 7)) ]
    grep -qE '^   3  down  .*  spine1 port 1 .* down [0-9]+ times$' /run/drawn
    ./draw --svg >/run/drawn
    [ "$(grep -c '<rect' /run/drawn)" = $((8 + 6)) ]
    [ "$(grep -o '<line' /run/drawn | wc -l)" = $((8 + 8)) ]
}

routes_by() { # ENGINE
    route_by "$1"
    wait_for 30 all_reach_each_other
    ways_have_at_most 3
}
test_minhop() { routes_by minhop; }
test_updn() { routes_by updn; }
test_ftree() { routes_by ftree; }
test_lash() { routes_by lash; }
test_dfsssp() { routes_by dfsssp; }

# Prints the spines that leaf 1 uses to hosts of other leaves, by its forwarding table.
spines() {
    local host lids='' leaf
    for host in 3 4 5 6 7 8; do lids+=$(printf '0x%04x ' "$(lid $host)"); done
    leaf=$(ibswitches | sed -nE 's/.*"leaf1".* lid ([0-9]+) lmc.*/\1/p')
    ibroute -n "$leaf" | awk -v lids="$lids" '/^0x/ && index(lids, $1 " ") { print "spine" $2 - 2 }' | sort -u | tr '\n' ' '
}
spines_are() { [ "$(spines)" = "$1" ]; }
test_link_of_a_leaf_fails_and_returns() {
    route_by minhop
    wait_for 30 all_reach_each_other
    [ "$(spines)" = 'spine1 spine2 ' ] || fail "by $(spines)" || return 1
    set_cable 0 3 0
    wait_for 30 spines_are 'spine2 '
    wait_for 30 all_reach_each_other
    ways_have_at_most 3
    set_cable 0 3 1
    wait_for 30 spines_are 'spine1 spine2 '
    wait_for 30 all_reach_each_other
}

test_spine_is_removed_and_returns() {
    route_by minhop
    plug_switch 4 0
    wait_for 10 switches_are 5
    wait_for 30 spines_are 'spine2 '
    wait_for 30 all_reach_each_other
    plug_switch 4 1
    wait_for 10 switches_are 6
    wait_for 30 spines_are 'spine1 spine2 '
    wait_for 30 all_reach_each_other
}

test_leaf_is_removed_and_returns_with_its_hosts() {
    wait_for 30 all_reach_each_other
    plug_switch 3 0
    wait_for 10 no_carrier 7
    wait_for 10 no_carrier 8
    wait_for 30 all_reach_each_other 1 2 3 4 5 6
    ! reaches 1 10.0.0.7 || fail "a host of the leaf is reached" || return 1
    plug_switch 3 1
    wait_for 30 carrier 7
    wait_for 30 carrier 8
    wait_for 30 all_reach_each_other
    ways_have_at_most 3
}

test_multicast_reaches_hosts_of_all_leaves() {
    local host before=()
    for host in 3 5 8; do before[host]=$(statistic $host multicast); done
    on 1 ping -q -c 20 -i 0.05 ff02::1%ib0 >/dev/null
    for host in 3 5 8; do
        wait_for 5 eval "[ \$(statistic $host multicast) -ge $((before[host] + 20)) ]"
    done
}
