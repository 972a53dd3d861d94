# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# Functions of the suites whose fabric has several switches: files that describe them, OpenSM's routing engines, and
# checks of the ways between all hosts. Needs lib.sh.

# A fat tree of LEAVES leaves with two hosts each, and two spines; switches are numbered in that order. Ports 3 and 4 of
# a leaf lead to the spines.
fat_tree() { # LEAVES
    local leaf
    for leaf in $(seq 1 "$1"); do
        printf 'Switch 4 "leaf%d"\n[1] "host%d"[1]\n[2] "host%d"[1]\n[3] "spine1"[%d]\n[4] "spine2"[%d]\n' \
            "$leaf" $((2 * leaf - 1)) $((2 * leaf)) "$leaf" "$leaf"
    done
    printf 'Switch %d "spine1"\nSwitch %d "spine2"\n' "$1" "$1"
    for host in $(seq 1 $((2 * $1))); do printf 'Hca 1 "host%d"\n' "$host"; done
}
# A square mesh of SIZE x SIZE switches, each with a host at port 1; ports 2 and 3 lead to the switches right and left,
# 4 and 5 to those below and above. A torus also has cables between the ends of each row and of each column.
mesh() { # SIZE [torus]
    local row column torus=${2:-}
    for row in $(seq 1 "$1"); do
        for column in $(seq 1 "$1"); do
            printf 'Switch 5 "mesh%d%d"\n[1] "host%d%d"[1]\n' "$row" "$column" "$row" "$column"
            [ "$column$torus" = "$1" ] || printf '[2] "mesh%d%d"[3]\n' "$row" $((column % $1 + 1))
            [ "$row$torus" = "$1" ] || printf '[4] "mesh%d%d"[5]\n' $((row % $1 + 1)) "$column"
            printf 'Hca 1 "host%d%d"\n' "$row" "$column"
        done
    done
}

# Restarts OpenSM with a routing engine, and waits until it has written all tables.
route_by() { # ENGINE [OpenSM's arguments]
    stop_opensm
    : >/run/opensm.log
    # Messages are otherwise written when a buffer is full.
    echo 'force_log_flush TRUE' >/run/opensm.conf
    start_opensm --config /run/opensm.conf -R "$@"
    wait_for 30 grep -qE "$1 tables configured on all switches" /run/opensm.log || return 1
    wait_for 30 all_ports_active
}

# True if all hosts, or those that are given, reach each other.
all_reach_each_other() { # [HOST...]
    local from to pings=() ping
    [ $# -gt 0 ] || eval "set -- $(seq -s ' ' 1 "$PORTS")"
    for from; do
        for to; do
            [ "$from" = "$to" ] || { reaches "$from" "10.0.0.$to" & pings+=($!); }
        done
        for ping in "${pings[@]}"; do wait "$ping" || return 1; done
        pings=()
    done
}
# Switches on the way from one host to another, as the tables have it. Fails if it does not lead there.
way() { # FROM TO
    ibtracert "$(lid "$1")" "$(lid "$2")" >/run/way || return 1
    grep -q "^To ca .*\"soft_ib$(($2 - 1))\"" /run/way || return 1
    sed -nE 's/^\[[0-9]+\] -> switch .*"([^"]*)"$/\1/p' /run/way | tr '\n' ' '
}
# Ways from each host to the next one of the arguments and to the opposite one lead there, by at most MAX switches.
ways_have_at_most() { # MAX [HOST...]
    local max=$1 hosts i from to switches
    shift
    [ $# -gt 0 ] || eval "set -- $(seq -s ' ' 1 "$PORTS")"
    hosts=("$@")
    for i in "${!hosts[@]}"; do
        from=${hosts[i]}
        for to in "${hosts[(i + 1) % $#]}" "${hosts[(i + $# / 2) % $#]}"; do
            switches=$(way "$from" "$to") || fail "from $from to $to: $(cat /run/way)" || return 1
            [ "$(wc -w <<<"$switches")" -le "$max" ] || fail "from $from to $to: $switches" || return 1
        done
    done
}

plug_switch() { # NUMBER 0|1
    write "$debug/switch$1/plugged" "$2"
    sweep
}
plug_all_switches() {
    local knob
    for knob in "$debug"/switch*/plugged; do write "$knob" 1; done
}
set_cable() { # NUMBER PORT 0|1
    write "$debug/switch$1/cable" "$2 $3"
    sweep
}
switches_are() { [ "$(ibswitches | grep -c '^Switch')" = "$1" ]; } # COUNT
