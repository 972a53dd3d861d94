# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Programs that do random things to the fabric's user-space verbs (guest/verbs_chaos.py) for CHAOS_SECONDS, in an order
# of the faults that SEED repeats: links flap, packets are lost, late, and corrupted, programs are killed, HCAs are
# unplugged. Nothing may hang, and nothing be left. Ten minutes:
#   CHAOS_SECONDS=600 SUITE_TIMEOUT=1500 make test-vm TESTS=verbs_chaos
PORTS=3
PROCESSORS=2
HOSTS=1

# shellcheck source=/dev/null
. ./samples.sh

seconds=${CHAOS_SECONDS:-20}
seed=${SEED:-$RANDOM}

# The programs, by the numbers of their HCAs.
pairs=('0 1' '1 2' '2 0' '1 0' '2 2')
declare -a program
launch() { # PROGRAM
    local hcas choice=$RANDOM
    read -ra hcas <<<"${pairs[$1]}"
    ./verbs_chaos.py "soft_ib${hcas[0]}" "soft_ib${hcas[1]}" 1e6 "$choice" 2>>"/run/chaos/$1.errors" &
    program[$1]=$!
}
launch_all() {
    local number
    rm -rf /run/chaos
    mkdir -p /run/chaos
    RANDOM=$seed
    echo "# seed $seed"
    for number in "${!pairs[@]}"; do launch "$number"; done
    wait_for 30 all_run
}
# Each program has begun, and written its counts once.
all_run() {
    local pid
    for pid in "${program[@]}"; do [ -e "/run/chaos/counts.$pid" ] || return 1; done
}
is_over() { [ ! -e "/proc/${program[$1]}" ]; } # PROGRAM
ends() { # PROGRAM
    wait_for 20 is_over "$1" || fail "program $1 hangs: $(cat "/proc/${program[$1]}/task"/*/stack)"
}
ask_to_end() { # PROGRAM SIGNAL
    kill "-$2" "${program[$1]}" || fail "program $1 had ended: $(tail -n 3 "/run/chaos/$1.errors")"
}
relaunch() { # PROGRAM
    ask_to_end "$1" KILL
    # Without the shell's message about the killed program.
    ends "$1" 2>/dev/null
    wait "${program[$1]}" 2>/dev/null || true
    launch "$1"
}
end_all() {
    local number status
    for number in "${!pairs[@]}"; do
        ask_to_end "$number" TERM
        ends "$number"
        status=0
        wait "${program[number]}" || status=$?
        # 143: the signal came before the program was ready for it. An exception of a thread does not change the status.
        [ $status = 0 ] || [ $status = 143 ] || fail "program $number: status $status"
        [ ! -s "/run/chaos/$number.errors" ] || fail "$(tail -n 3 "/run/chaos/$number.errors")"
    done
}

# Faults of the fabric

# One loss in more packets than most messages have: a retransmission would otherwise lose the same packet for ever.
faults=('drop_rc_every 101' 'rnr_every 5' 'drop_every 3' 'corrupt_every 4' 'delay_us 300' 'rate_mbps 200')
calm() { # HOST
    local fault
    for fault in "${faults[@]}" 'hold_sends 0'; do knob "$1" "${fault% *}" 0; done
}
calm_all() { local host; for host in 1 2 3; do calm "$host"; done; }
disturb() { # HOST
    local fault=${faults[RANDOM % ${#faults[@]}]}
    case $((RANDOM % 8)) in
    0) knob "$1" kill_rc 1 ;;
    1)
        knob "$1" hold_sends 1
        pause 0.2
        knob "$1" hold_sends 0
        ;;
    2 | 3 | 4) calm "$1" ;;
    *) knob "$1" "${fault% *}" "${fault#* }" ;;
    esac
}
# OpenSM's own HCA keeps its link.
flap() { # HOST, 2 or 3
    knob "$1" link 0
    pause "0.$((RANDOM % 6))"
    link_up "$1"
}
run_with_faults() { # SECONDS
    local end=$((SECONDS + $1)) kind
    while [ $SECONDS -lt $end ]; do
        kind=$((RANDOM % 8))
        case $kind in
        0) relaunch $((RANDOM % ${#pairs[@]})) ;;
        1) flap $((RANDOM % 2 + 2)) ;;
        *) disturb $((RANDOM % 3 + 1)) ;;
        esac
        pause 0.2
    done
}

# Objects by the kernel's list and by the HCAs' counters, and the number of queues in memory.
all_objects() {
    verbs_objects
    echo "areas of memory: $(grep -c '\[soft_ib\]' /proc/vmallocinfo)"
    grep -HE '^(queue_bytes|regions|fast_regions|cqs_on_vector_[0-9]+) ' "$debug"/[0-9]*/counters
}
objects_are_as_in() { all_objects >/run/chaos/objects && cmp /run/chaos/objects "$1"; } # FILE
nothing_remains() { # FILE
    wait_for 5 objects_are_as_in "$1" || fail "$(diff "$1" /run/chaos/objects)"
}
# Each kind of operation has succeeded.
kinds="pd,pd destroyed,cq,cq destroyed,cq resized,cq polled,cq armed,cq ignored,mr,mr destroyed,srq,srq destroyed,\
srq limited,srq queried,qp rc,qp uc,qp ud,qp destroyed,qp queried,ah,ah destroyed,connected rc,connected uc,\
connected ud,connected to a stranger,moved to any state,group attached,group detached,posted send,\
posted send-immediate,posted write,posted write-immediate,posted read,posted swap,posted add,posted send-invalidate,\
posted inline,posted receive,posted to the srq,completed send,completed write,completed read,completed swap,\
completed add,completed receive,completed receive-of-write,event of a cq,event of the hca,published"
# The sums of all programs' counts: "COUNT succeeded|failed KIND".
sums() { awk '{ n = $1; $1 = ""; sum[$0] += n } END { for (kind in sum) print sum[kind] kind }' /run/chaos/counts.*; }
happened() { # KIND
    sums | awk -v name=" succeeded $1" '{ n = $1; $1 = "" } $0 == name { found = n } END { print found + 0 }'
}
has_happened() { [ "$(happened "$1")" -gt 0 ]; } # KIND
# Prints the kinds that have not succeeded yet.
missing_kinds() {
    local kind all
    IFS=, read -ra all <<<"$kinds"
    for kind in "${all[@]}"; do has_happened "$kind" || echo "$kind"; done
}
# With faults, until each kind has succeeded: a busy machine takes longer.
run_until_each_kind_succeeds() { # SECONDS
    local more
    run_with_faults "$1"
    for more in 1 2 3 4 5 6; do
        [ -n "$(missing_kinds)" ] || break
        run_with_faults 10
    done
    sums | awk '{ n[$2] += $1 } END { print "# operations: " n["succeeded"] " succeeded, " n["failed"] " failed" }'
    [ -z "$(missing_kinds)" ] || fail "never: $(missing_kinds | paste -sd ,); $(sums | sort -k 2 | paste -sd ,)"
}

at_the_end() {
    kill -KILL "${program[@]}" 2>/dev/null || true
    calm_all
}
test_programs_of_random_verbs_leave_nothing() {
    trap at_the_end EXIT
    # Caches and tables grow at first.
    launch_all
    run_with_faults 5
    end_all
    calm_all
    both_work
    all_objects >/run/objects.before
    sample before

    launch_all
    on 1 ping -q -i 0.05 10.0.0.2 >/dev/null 2>&1 &
    run_until_each_kind_succeeds "$seconds"
    end_all
    calm_all
    stop_traffic
    both_work
    nothing_remains /run/objects.before
    sample after
    compared memory
    compared objects
    cmp "$samples/objects.before" "$samples/objects.after"
    kernel_grew_little 2048
    [ "$(grown slab_kb)" -le 1024 ]
    [ "$(grown packets)" -le 128 ]
}

is_unplugged() { [ ! -e "/sys/class/infiniband/soft_ib$(($1 - 1))" ]; } # HOST
replug() { # HOST
    # In the background, so that one that never ends is a failure here, and not only of the suite's time limit.
    knob "$1" plugged 0 &
    wait_for 30 is_unplugged "$1"
    wait $!
    pause "0.$((RANDOM % 5))"
    plug_in "$1"
    add_host "$1"
}
test_hcas_are_unplugged_under_random_verbs() {
    local host end
    trap at_the_end EXIT
    all_objects >/run/objects.before
    launch_all
    end=$((SECONDS + seconds / 2))
    while [ $SECONDS -lt $end ]; do
        host=$((RANDOM % 2 + 2))
        replug "$host"
        wait_for 30 port_state_is $((host - 1)) '4: ACTIVE'
        pause 1
    done
    wait_for 30 has_happened 'hca opened again' || fail "$(sums | sort -k 2 | paste -sd ,)" || return 1
    wait_for 10 has_happened 'completed write'
    end_all
    both_work
    nothing_remains /run/objects.before
}
