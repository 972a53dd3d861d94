# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Eight hosts with traffic under all kinds of faults, in an order that SEED repeats, for MINUTES: all recover each time,
# and at the end the kernel has the objects and memory of the beginning. Run by `make soak`.
LONG=1
PORTS=8
PROCESSORS=2
HOSTS=1
PARTITIONS='blue=0x0001, ipoib : ALL=full;
red=0x0002, ipoib : ALL=full;'
# A master that has to wait for a processor must not be taken for dead.
SM_POLLS=8
WITNESS=1
# shellcheck source=/dev/null
. ./two_opensms.sh
# shellcheck source=/dev/null
. ./traffic.sh
# shellcheck source=/dev/null
. ./samples.sh

# ARP trusts an entry for 45 s at most, and probes for 8 then.
seconds_to_recover=60
seed=${SEED:-$RANDOM}

before_each() {
    expect_missing_gids
    expect_in_log 'failed send event'
    expect_refused_sends
}

# Configuration at the beginning and the end.
mode_of() { case $1 in 3 | 4 | 5) echo connected ;; *) echo datagram ;; esac; }
# Hosts with a child, each with the next host with one, to which it sends.
child_peer() { case $1 in 3) echo 5 ;; 5) echo 6 ;; 6) echo 8 ;; 8) echo 3 ;; *) return 1 ;; esac; }
child_mode_of() { case $1 in 3 | 5) echo connected ;; *) echo datagram ;; esac; }

# Through sysfs: children of the in-tree driver have a mode only then.
add_child() { # HOST
    local parent
    parent=$(interface_of "$1")
    make_child "$1" 0x8001
    on "$1" sh -c "echo $(child_mode_of "$1") >/sys/class/net/$parent.8001/mode"
    on "$1" ip addr add "10.1.0.$1/24" dev "$parent.8001"
    on "$1" ip link set "$parent.8001" up
}
has_no_child() { ! on "$1" test -e "/sys/class/net/$(interface_of "$1").8001"; }
to_start() { # HOST, whose interface exists
    set_mode "$1" "$(mode_of "$1")"
    set_mtu "$1" "$(case $(mode_of "$1") in connected) echo 65520 ;; *) echo 2044 ;; esac)"
    on "$1" ethtool -C "$(interface_of "$1")" rx-usecs 0 rx-frames 0
    if [ "$DRIVER" = ours ]; then
        on "$1" ethtool -C "$(interface_of "$1")" adaptive-rx off
        on "$1" ethtool -G "$(interface_of "$1")" tx "$(parameter send_queue_size)" rx "$(parameter recv_queue_size)"
    fi
    knob "$1" fail_sends 0
    if child_peer "$1" >/dev/null && has_no_child "$1"; then add_child "$1"; fi
}

# True if a host has everything that it should have; missing items are in $lacks.
alive() { # HOST
    local next peer
    next=$(next "$1")
    lacks="carrier" && carrier "$1" || return 1
    lacks="a reply of host $next" && reaches "$1" "10.0.0.$next" || return 1
    lacks="a ping of host $next" && reaches "$next" "10.0.0.$1" || return 1
    lacks="a reply of host $next by IPv6" && reaches "$1" "fd00::$next" || return 1
    if peer=$(child_peer "$1"); then
        lacks="carrier of its child" && carrier "$1" "$(interface_of "$1").8001" || return 1
        lacks="a reply of the child of host $peer" && reaches "$1" "10.1.0.$peer" || return 1
    fi
    lacks="what the group hears" && [ "$(heard "$1")" -gt "${heard_before[$1]}" ]
}
recover() { # hosts in $concerned; $took gets the milliseconds of each
    local host from=${EPOCHREALTIME/./}
    for host in "${concerned[@]}"; do heard_before[host]=$(heard "$host"); done
    for host in "${concerned[@]}"; do
        wait_for $seconds_to_recover alive "$host" || fail "host $host lacks $lacks" || return 1
        took[host]=$(((${EPOCHREALTIME/./} - from) / 1000))
        [ "${took[host]}" -le "${took[0]}" ] || took[0]=${took[host]}
    done
}

# Runs one kind of event, on a host or (0) on all, with a number for its details. The OpenSMs' HCAs stay plugged.
kinds=(link unplug namespace interface mode mtu rings moderation child broken reregister pkey master standby managers)
# Rings of the in-tree driver cannot be resized.
[ "$DRIVER" = ours ] || kinds=("${kinds[@]/rings/interface}")
min_host() { case $1 in pkey | master | standby | managers) echo 0 ;; link | unplug) echo 3 ;; *) echo 1 ;; esac; } # KIND

do_link() {
    knob "$1" link 0
    [ $(($2 % 2)) = 0 ] || wait_for 20 no_carrier "$1"
    link_up "$1"
}
do_unplug() {
    knob "$1" plugged 0
    plug_in "$1"
    add_host "$1"
    to_start "$1"
}
do_namespace() {
    local parent
    parent=$(interface_of "$1")
    # Programs in the namespace would keep it.
    ip netns pids "h$1" | xargs -r kill 2>/dev/null || true
    ip netns del "h$1"
    wait_for 60 born_as "$1"
    if child_peer "$1" >/dev/null; then
        wait_for 10 test -e "/sys/class/net/$parent.8001"
        echo 0x8001 >"/sys/class/net/$(born_as "$1")/delete_child"
    fi
    add_host "$1"
    to_start "$1"
}
do_interface() {
    take_down "$1"
    bring_up "$1"
}
do_mode() { set_mode "$1" "$(case $(mode "$1") in connected) echo datagram ;; *) echo connected ;; esac)"; }
do_mtu() { set_mtu "$1" $((1500 + $2 % 500)); }
do_rings() { on "$1" ethtool -G "$(interface_of "$1")" tx $((128 << $2 % 4)) rx $((128 << $2 % 5)); }
do_moderation() { on "$1" ethtool -C "$(interface_of "$1")" rx-usecs $(($2 % 1000)) rx-frames $(($2 % 60 + 1)); }
do_child() {
    local parent n
    parent=$(interface_of "$1")
    for n in 1 2 3; do
        on "$1" ip link add link "$parent" name "extra$n" type ipoib pkey $((0x8001 + n % 2))
        on "$1" ip link set "extra$n" up
    done
    if child_peer "$1" >/dev/null; then
        on "$1" sh -c "echo 0x8001 >/sys/class/net/$parent/delete_child"
        wait_for 10 has_no_child "$1"
        add_child "$1"
    fi
    for n in 2 3 1; do on "$1" ip link del "extra$n"; done
}
# Failing sends, and broken connections.
do_broken() {
    knob "$1" fail_sends $(($2 % 5 + 1))
    knob "$1" kill_rc 1
}
do_reregister() { /test/reregister.py $(($1 - 1)) $(($2 % 10 + 1)) 0.05 >/dev/null; }
child_has_no_carrier() { no_carrier "$1" "$(interface_of "$1").8001"; }
do_pkey() {
    local host
    PARTITIONS=${PARTITIONS#*;} write_partitions
    sweep
    for host in 3 5 6 8; do wait_for 60 child_has_no_carrier "$host"; done
    write_partitions
    sweep
}
do_master() {
    kill_sm 1
    wait_for 60 master_is 2
    start_sm 1 15
    wait_for 60 master_is 1
}
do_standby() {
    kill_sm 2
    start_sm 2 5
    wait_for 60 state_is 2 STANDBY
}
# No subnet manager for a while, in which a port comes back.
do_managers() {
    kill_sm 2
    kill_sm 1
    knob $(($2 % 6 + 3)) link 0
    knob $(($2 % 6 + 3)) link 1
    start_opensm
    wait_for 60 master_is 1
}

declare -A count longest
sampled=-5
happen() { # KIND HOST NUMBER
    recent+=" $1 $2,"
    # Marks the event in the kernel log.
    echo "soak: $*" >/dev/kmsg
    "do_$1" "$2" "$3"
}
burst() { # "KIND HOST NUMBER"...: at once, more or less
    local event kind host
    concerned=() took=([0]=0) recent=
    for event; do
        # shellcheck disable=SC2086 # three words
        happen $event
        read -r kind host _ <<<"$event"
        concerned+=("$host")
    done
    case " ${concerned[*]} " in *' 0 '*) mapfile -t concerned < <(seq "$PORTS") ;; esac
    recover
    take_sample
    for event; do
        read -r kind host _ <<<"$event"
        count[$kind]=$((${count[$kind]:-0} + 1))
        [ "${took[host]}" -lt "${longest[$kind]:-0}" ] || longest[$kind]=${took[host]}
    done
}

# Writes a sample of memory and objects into the kernel log, beside the events, for the curves of scripts/page.
take_sample() {
    if [ $SECONDS -ge $((sampled + 5)) ]; then
        sampled=$SECONDS
        echo "soak: sample kernel_kb $(kernel_kb) packets $(slab_objects skbuff) $(verbs_objects | xargs)" >/dev/kmsg
    fi
}

# Draws the next event from a deck that has each kind once, for a host without one in this burst. In this shell: a
# subshell would not advance RANDOM.
draw() {
    local i lowest
    [ ${#deck[@]} -gt 0 ] || deck=("${kinds[@]}")
    i=$((RANDOM % ${#deck[@]}))
    kind=${deck[i]}
    deck=("${deck[@]:0:i}" "${deck[@]:i + 1}")
    host=$(min_host "$kind") lowest=$host
    [ "$lowest" = 0 ] || host=$((lowest + RANDOM % (PORTS + 1 - lowest)))
    while [ "$lowest" != 0 ] && [[ ${events[*]} == *" $host "* ]]; do host=$((host < PORTS ? host + 1 : lowest)); done
    events+=("$kind $host $RANDOM")
}

at_the_end() { # at a test's end, however reached
    local status=$? host kind
    set +e
    if [ $status != 0 ]; then
        echo "# what happened last:${recent:-} and before that: see the console's log (seed $seed)"
        for host in "${concerned[@]}"; do printf '%s\n' "$host" "$(next "$host")" "$(child_peer "$host")"; done |
            sort -u | while read -r host; do [ -z "$host" ] || show_host "$host"; done 2>&1 | sed 's/^/# /'
        for host in 1 2; do tail -n 5 "/run/sm$host/log" | sed "s/^/# OpenSM $host: /"; done
        dmesg | tail -n 20 | sed 's/^/# /'
    fi
    for kind in "${kinds[@]}"; do
        [ -z "${count[$kind]:-}" ] || awk -v ms="${longest[$kind]}" -v kind="$kind" -v n="${count[$kind]}" \
            'BEGIN { printf "# %-10s %4d times, longest recovery %5.1f s\n", kind, n, ms / 1000 }'
    done
    end_traffic
}

# Receive buffers for connections exist from the first one on, until the rings are replaced.
renew_rings() { # HOST
    local dev rx
    rx=$(parameter recv_queue_size)
    for dev in $(on "$1" ls /sys/class/net | grep '^ib'); do
        on "$1" ethtool -G "$dev" rx $((rx / 2))
        on "$1" ethtool -G "$dev" rx "$rx"
    done
}

# Returns to the starting configuration at rest: no traffic, no connection, every interface reopened, with new rings.
settle() {
    end_traffic
    each_host to_start
    each_host take_down
    [ "$DRIVER" != ours ] || each_host renew_rings
    each_host bring_up
    each_host wait_for 60 addresses_ready
    wait_for 30 connection_ends_are 0
}

test_hosts_recover_from_each_kind_of_event() {
    local kind number=0
    mapfile -t concerned < <(seq "$PORTS")
    took=([0]=0)
    trap at_the_end EXIT
    each_host to_start
    start_traffic
    recover
    more_streams_of_each
    for kind in "${kinds[@]}"; do
        number=$((number + 1))
        burst "$kind $(($(min_host "$kind") ? number % 6 + 3 : 0)) $number"
    done
    more_streams_of_each
    settle
    sample before
}

test_hosts_recover_from_random_events() {
    local events size deck=() kind host many=0 minute=0 from=$SECONDS
    concerned=()
    trap at_the_end EXIT
    echo "# seed $seed: SEED=$seed repeats the order"
    RANDOM=$seed
    start_traffic
    while [ $((SECONDS - from)) -lt $((60 * MINUTES)) ]; do
        events=() size=$((RANDOM % 3 + 1))
        while [ ${#events[@]} -lt $size ]; do draw; done
        burst "${events[@]}"
        many=$((many + ${#events[@]}))
        if [ $(((SECONDS - from) / 60)) -gt $minute ]; then
            minute=$(((SECONDS - from) / 60))
            echo "# minute $minute: $many events, $(cat "$traffic"/streams.* | wc -l) streams; the kernel has $(kernel_kb) kB," \
                "$(slab_objects skbuff) packets, $(verbs_objects | xargs)"
        fi
    done
    more_streams_of_each
    settle
    sample after
}

test_object_counts_return_to_their_start() {
    compared objects
    cmp "$samples/objects.before" "$samples/objects.after"
}
test_memory_returns_to_its_start() {
    compared memory
    kernel_grew_little 4096
    [ "$(grown slab_kb)" -le 1024 ]
    [ "$(grown packets)" -le 128 ]
}
