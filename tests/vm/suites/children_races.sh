# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Children created and deleted concurrently, with invalid input, and while their parent or their namespace ends.
PORTS=2
PROCESSORS=2
HOSTS=1
PARTITIONS='blue=0x0001, ipoib : ALL=full;
red=0x0002, ipoib : ALL=full;'

file_of() { echo "/sys/class/net/ib0/$1"; } # FILE
# Writes standard input in one call; prints the errno's message.
write_in_one() { # FILE
    on 1 python3 -c 'import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY)
try:
    os.write(fd, sys.stdin.buffer.read())
except OSError as error:
    sys.exit(os.strerror(error.errno))' "$(file_of "$1")"
}
refused_with() { # WORDS FILE INPUT
    refused "$(ours "$1")" write_in_one "$2" < <(printf '%s' "$3")
}
children() { on 1 ip -o link show type ipoib | grep -c '@ib0' || true; }
no_children() { [ "$(children)" = 0 ]; }

test_invalid_input_gets_an_errno() {
    local file
    refused_with 'Name not unique' create_child 0xffff
    for file in create_child delete_child; do
        refused_with 'Invalid argument' $file ' '
        refused_with 'Invalid argument' $file 'text'
        refused_with 'Invalid argument' $file '0x10000'
        refused_with 'Invalid argument' $file '-1'
    done
    refused_with 'Invalid argument' create_child 0
    refused_with 'Invalid argument' create_child 0x8000
    refused_with 'No such device' delete_child 0x8001
    make_child 1 0x8001
    refused_with 'Name not unique' create_child 0x8001
    echo 0x8001 | write_in_one delete_child
    wait_for 10 no_children
}

xfail_stock_child_with_another_interfaces_name_is_refused='it creates the child in the first network namespace'
test_child_with_another_interfaces_name_is_refused() {
    expect_in_log 'failed to create child ib0.8001, error -17'
    trap 'on 1 ip link del ib0.8001; ip link del ib0.8001 2>/dev/null || true' EXIT
    on 1 ip link add ib0.8001 type dummy
    refused_with 'File exists' create_child 0x8001
    no_children
}

test_megabyte_of_input_is_refused() {
    local file
    for file in create_child delete_child mode; do
        refused 'Invalid argument' write_in_one $file < <(head -c 1M /dev/zero | tr '\0' 'z')
    done
    no_children
    # For umcast such a text is accepted as 0.
    head -c 1M /dev/zero | tr '\0' 'z' | write_in_one umcast
    [ "$(on 1 cat "$(file_of umcast)")" = 0 ]
    [ "$(mode 1)" = datagram ]
    ping_ok 1 10.0.0.2
}

test_creating_children_needs_cap_net_admin() {
    on 1 setpriv --bounding-set -net_admin --inh-caps -net_admin \
        python3 -c 'import os
fd = os.open("/sys/class/net/ib0/create_child", os.O_WRONLY)
try:
    os.write(fd, b"0x8001\n")
except PermissionError:
    raise SystemExit(0)
raise SystemExit("it was allowed")'
    no_children
}

# One of eight processes: creates and deletes children through sysfs and rtnetlink, takes their parent down and up, and
# changes its mode.
maker() { # NUMBER ROUNDS
    local done=0 made=0
    while [ $done -lt "$2" ]; do
        case $((($1 + done) % 4)) in
        0) ip link add link ib0 name "race$1" type ipoib pkey 0x8001 && made=$((made + 1)) && ip link set "race$1" up && ip link del "race$1" ;;
        1) echo 0x8002 >/sys/class/net/ib0/create_child && made=$((made + 1)) && ip link set ib0.8002 up; echo 0x8002 >/sys/class/net/ib0/delete_child ;;
        2) ip link set ib0 down && ip link set ib0 up ;;
        3) echo connected >/sys/class/net/ib0/mode; echo datagram >/sys/class/net/ib0/mode ;;
        esac
        done=$((done + 1))
    done >/dev/null 2>&1
    echo $made >"/run/made.$1"
}

test_eight_processes_change_children_and_their_parent_320_times() {
    local i pids=() children
    export -f maker
    # Children of the kernel's own driver through sysfs are in the initial namespace, where host 1's ib0 is not.
    for i in 1 2 3 4 5 6 7 8; do
        on 1 bash -c "maker $i 40" &
        pids+=($!)
    done
    wait "${pids[@]}"
    children=$(awk '{ n += $1 } END { print n }' /run/made.*)
    echo "# $children children"
    [ "$children" -ge 20 ] || fail "hardly any child was made"
    on 1 sh -c "echo 0x8002 >/sys/class/net/ib0/delete_child" 2>/dev/null || true
    for i in 1 2 3 4 5 6 7 8; do on 1 ip link del "race$i" 2>/dev/null || true; done
    on 1 sh -c 'echo datagram >/sys/class/net/ib0/mode'
    wait_for 10 no_children
    on 1 ip link set ib0 up
    wait_for 30 carrier 1
    wait_for 20 reaches 1 10.0.0.2
}

# On host 2: the subnet manager is on host 1's HCA.
test_parents_hca_is_unplugged_while_children_are_created() {
    local pid dev
    for _ in 1 2 3; do
        # shellcheck disable=SC2016 # expanded by the inner shell
        on 2 bash -c 'for n in $(seq 100); do
            if ip link add link ib1 name c$n type ipoib pkey 0x8001; then ip link set c$n up; fi
            echo 0x8002 >/sys/class/net/ib1/create_child
            [ -e /sys/class/net/ib1 ] || break
        done' >/dev/null 2>&1 &
        pid=$!
        some_made() { on 2 ip link show c3; }
        wait_for 20 some_made
        knob 2 plugged 0
        wait $pid || true
        ! on 2 ip -o link show type ipoib | grep . || return 1
        ! ip -o link show type ipoib | grep 8002 || return 1
        plug_in 2
        wait_for 30 port_state_is 1 "4: ACTIVE"
        add_host 2
        wait_for 30 carrier 2
    done
    wait_for 20 reaches 1 10.0.0.2
}

test_namespace_ends_with_children_inside() {
    local i
    for i in 1 2 3; do
        ip netns add elsewhere
        on 1 ip link add link ib0 name "inside$i" netns elsewhere type ipoib pkey 0x8001
        on 1 ip link add link ib0 name "moved$i" type ipoib pkey 0x8002
        on 1 ip link set "moved$i" netns elsewhere
        ip -n elsewhere link set "inside$i" up
        ip -n elsewhere link set "moved$i" up
        ip netns del elsewhere
        came_back() { ip link show "inside$1" && ip link show "moved$1"; }
        wait_for 10 came_back "$i"
        ip link del "inside$i"
        ip link del "moved$i"
    done
    no_children
    ping_ok 1 10.0.0.2
}

test_module_is_unloaded_with_children_up() {
    local i
    for i in 1 2 3 4; do
        on 1 ip link add link ib0 name "c$i" type ipoib pkey "0x800$((1 + i % 2))"
        on 1 ip link set "c$i" up
    done
    unload_driver
    ! on 1 ip link show c1 2>/dev/null || return 1
    load_driver
    add_hosts
    wait_for 20 reaches 1 10.0.0.2
}

# A deletion of a referenced child waits, and takes RTNL each second to notify the holders; a removal of the HCA holds
# RTNL while it waits for writers of the parent's files.
test_hca_is_unplugged_while_a_deleted_child_is_referenced() {
    local pid
    gone() { ! kill -0 "$1"; }
    home() { if [ "$DRIVER" = ours ]; then on 2 "$@"; else "$@"; fi; }
    child_is_gone() { ! home test -e /sys/class/net/ib1.8001; }
    on 2 sh -c 'echo 0x8001 >/sys/class/net/ib1/create_child'
    # The namespace's /sys has no debugfs.
    home sh -c 'echo ib1.8001 >&9' 9>"$debug/held_netdev"
    on 2 sh -c 'echo 0x8001 >/sys/class/net/ib1/delete_child' &
    pid=$!
    wait_for 10 child_is_gone
    knob 2 plugged 0 &
    # The second has passed when the reference is released.
    sleep 3
    echo >"$debug/held_netdev"
    wait_for 20 gone $!
    wait_for 20 gone $pid
    ! on 2 ip -o link show type ipoib | grep ib1 || return 1
    plug_in 2
    wait_for 30 port_state_is 1 '4: ACTIVE'
    add_host 2
    wait_for 30 carrier 2
    # Host 2 sends first: host 1 may still have the former HCA's address.
    wait_for 20 reaches 2 10.0.0.1
    both_work
}
