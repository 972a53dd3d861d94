# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Failing allocations and verbs, on kernels with fault injection: requests are refused or done, and when the faults are
# over everything works.
DEBUG_KERNEL=1
PORTS=2
PROCESSORS=2
HOSTS=1

memory=(failslab fail_page_alloc)
fail_function=/sys/kernel/debug/fail_function
setting() { echo "$3" >"/sys/kernel/debug/$1/$2"; } # KIND NAME VALUE

# Faults hit requests beneath the driver's code only: ib_mad does not recover from refused receives.
before_each() {
    local first last kind
    read -r first last < <(awk '$4 == "[ib_ipoib]" && $2 ~ /[tT]/ { print $1 }' /proc/kallsyms | sort | sed -n '1p;$p' | xargs)
    for kind in "${memory[@]}"; do setting "$kind" ignore-gfp-wait N; done
    for kind in "${memory[@]}" fail_function; do
        setting "$kind" verbose 0
        setting "$kind" require-start "0x$first"
        setting "$kind" require-end "0x$last"
    done
    setting fail_page_alloc min-order 0
    # The driver's messages for refused requests.
    expect_in_log '(error|status|failed:?) -?(12|22|ENOMEM)'
    expect_in_log "no memory for|couldn't attach QP"
}
each_allocation_fails_once() { on 1 python3 /test/fail_nth.py "$@"; } # arguments: see there
# The kernel counts down how many faults are left.
max_times=1000000
sometimes() { # KIND PERCENT
    setting "$1" times $max_times
    setting "$1" probability "$2"
}
never() { setting "$1" probability 0; }
times_failed() { echo $((max_times - $(cat "/sys/kernel/debug/$1/times"))); } # KIND

test_interface_comes_up_despite_failed_allocations() {
    on 1 ip link set ib0 down
    each_allocation_fails_once up ib0
    on 1 ip link set ib0 up
    both_work
}

test_sysfs_child_is_created_despite_failed_allocations() {
    each_allocation_fails_once write /sys/class/net/ib0/create_child 0x8001 /sys/class/net/ib0/delete_child 0x8001
    both_work
}

test_rtnetlink_child_is_created_despite_failed_allocations() {
    each_allocation_fails_once link ib0 blue 0x8001
    both_work
}

test_mode_changes_despite_failed_allocations() {
    # Changes that are not announced for want of memory are changes.
    UNREPORTED=1 each_allocation_fails_once write /sys/class/net/ib0/mode connected /sys/class/net/ib0/mode datagram
    both_work
}

test_rings_change_despite_failed_allocations() {
    [ "$DRIVER" = ours ] || return 77
    each_allocation_fails_once rings ib0 512 256 128
    both_work
}

test_hca_is_added_despite_failed_allocations() {
    at 2 write "$debug/1/plugged" 0
    # Each attempt takes seconds: a few of them only. The HCA is there with or without an interface.
    STRIDE=7 UNREPORTED=1 at 1 python3 /test/fail_nth.py write "$debug/1/plugged" 1 "$debug/1/plugged" 0
    at 2 write "$debug/1/plugged" 1
    add_host 2
    both_work
}

# Allocations of the driver's work, polls and timers too.
test_traffic_recovers_from_scarce_memory() {
    local kind mode end=$((SECONDS + 30))
    serve_iperf 2
    for kind in "${memory[@]}"; do sometimes "$kind" 10; done
    while [ $SECONDS -lt $end ]; do
        for mode in connected datagram; do
            set_mode 1 $mode || true
            set_mode 2 $mode || true
            on 1 timeout 10 iperf3 -c 10.0.0.2 -t 2 >/dev/null 2>&1 || true
            on 1 ip link set ib0 down
            on 1 ip link set ib0 up || true
        done
    done
    for kind in "${memory[@]}"; do
        never "$kind"
        echo "# $kind: $(times_failed "$kind") times"
        [ "$(times_failed "$kind")" -gt 0 ]
    done
    for mode in 1 2; do
        set_mode $mode datagram
        on $mode ip link set "$(interface_of $mode)" up
    done
    stop_traffic
    both_work
}

# Brings the interface up, creates a child, changes the mode and pings.
call_all_verbs() { # VERB: the one that fails
    on 1 ip link set ib0 down
    on 1 ip link set ib0 up || echo "# $1 fails: the interface stays down"
    on 1 ip link add link ib0 name blue type ipoib pkey 0x8001 2>/dev/null || echo "# $1 fails: no child"
    on 1 ip link set blue up 2>/dev/null || true
    set_mode 1 connected || true
    on 1 ping -q -W 1 -c 20 -i 0.05 10.0.0.2 >/dev/null || true
    on 1 ip link del blue 2>/dev/null || true
    set_mode 1 datagram || true
}
# Calls the verbs until one of them has failed, and expects everything to work when none fails any more.
with_failing() { # VERB PERCENT
    local times
    # A queue pair that does not move to ERROR completes nothing.
    expect_in_log 'timing out'
    echo "soft_ib:$1" >$fail_function/inject
    setting fail_function "soft_ib:$1/retval" "$(printf '%#x' -12)"
    sometimes fail_function "$2"
    # A verb that is called rarely may not fail the first time.
    for _ in $(seq 10); do
        call_all_verbs "$1"
        times=$(times_failed fail_function)
        [ "$times" = 0 ] || break
    done
    never fail_function
    echo >$fail_function/inject
    echo "# $1 failed $times times"
    [ "$times" -gt 0 ] || fail "$1 did not fail" || return 1
    on 1 ip link set ib0 up
    both_work
}
test_interface_recovers_from_failing_verbs() {
    local verb
    for verb in alloc_pd create_cq create_srq create_qp modify_qp create_ah attach_mcast query_port; do with_failing $verb 100; done
}
test_interface_recovers_from_sporadic_verb_failures() {
    local verb
    for verb in create_qp modify_qp create_ah attach_mcast post_send post_recv post_srq_recv req_notify_cq; do with_failing $verb 20; done
}
