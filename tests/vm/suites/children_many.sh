# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# 126 children on one port, each with a partition of its own.
PORTS=2
HOSTS=1
# The first HCA stays plugged in.
SM_HOST=2
PARTITIONS=$(for i in $(seq 126); do printf 'p%d=0x%04x, ipoib : ALL=full;\n' "$i" $((0x100 + i)); done)

key() { printf '0x%04x' $((0x8100 + $1)); }
all_up() { [ "$(on 1 sh -c 'cat /sys/class/net/ib0.*/carrier' | grep -c 1)" = 126 ]; }
children() { on 1 sh -c 'ls -d /sys/class/net/ib0.*' 2>/dev/null | wc -l; }

make_children() {
    local i
    on 1 sh -c "for i in \$(seq 126); do printf '0x%04x\n' \$((0x8100 + i)) >/sys/class/net/ib0/create_child || exit 1; done"
    # The kernel's own driver creates them in the initial namespace.
    [ "$DRIVER" = ours ] || for i in $(seq 126); do ip link set "ib0.$(printf '%04x' $((0x8100 + i)))" netns h1; done
    on 1 sh -c "for i in \$(seq 126); do ip link set \$(printf 'ib0.%04x' \$((0x8100 + i))) up || exit 1; done"
    wait_for 60 all_up
}
# A peer of one of them, created if absent.
make_peer() { # NUMBER
    local name
    name=ib0.$(printf '%04x' $((0x8100 + $1)))
    on 1 test -e "/sys/class/net/$name" || make_children
    on 2 test -e "/sys/class/net/peer$1" || {
        on 2 ip link add link ib1 name "peer$1" type ipoib pkey "$(key "$1")"
        on 1 ip addr add "10.$1.0.1/24" dev "$name"
        on 2 ip addr add "10.$1.0.2/24" dev "peer$1"
        on 2 ip link set "peer$1" up
    }
    wait_for 20 carrier 2 "peer$1"
}

test_126_children_are_created_and_come_up() {
    make_children
    [ "$(children)" = 126 ]
}

test_first_middle_and_last_child_carry_traffic() {
    local i
    for i in 1 77 126; do
        make_peer $i
        ping_ok 1 "10.$i.0.2"
    done
}

test_126_children_follow_a_link_flap() {
    make_peer 77
    knob 1 link 0
    none_up() { [ "$(on 1 sh -c 'cat /sys/class/net/ib0.*/carrier' | grep -c 1)" = 0 ]; }
    wait_for 20 none_up
    link_up 1
    wait_for 60 all_up
    wait_for 20 reaches 1 10.77.0.2
}

test_60_of_126_children_are_deleted() {
    make_peer 77
    on 1 sh -c "for i in \$(seq 60); do printf '0x%04x\n' \$((0x8100 + i)) >/sys/class/net/ib0/delete_child || exit 1; done"
    sixty_six() { [ "$(children)" = 66 ]; }
    wait_for 20 sixty_six
    ping_ok 1 10.77.0.2
}

test_66_children_end_with_their_hca() {
    local started count
    [ "$(children)" -ge 66 ] || make_children
    count=$(children) started=$EPOCHREALTIME
    knob 1 plugged 0
    [ "$(children)" = 0 ]
    echo "# $count children in $(awk -v a="$started" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }') s"
}
