# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Objects of user-space verbs: limits of their number, the memory that is charged for them, and the time that thousands
# take; and rdma-core's own tests.
PORTS=2
HOSTS=1

objects() { # KIND COUNT [ARGUMENT...]
    timeout $((180 * patience)) python3 /test/objects.py "$@" >/run/objects 2>&1 || fail "$(tail -n 3 /run/objects)"
    echo "# $*: $(cat /run/objects)"
}
made() { awk '{ print $1, $2 }' /run/objects; }

# In the kernel and the program, of which a slow machine needs more.
makes_10000_in_10_seconds() { # KIND
    objects "$1" 10000
    [ "$(made)" = '10000 none' ]
    awk -v limit=$((10 * patience)) '{ exit !($3 < limit) }' /run/objects || fail "took $(cat /run/objects) s"
}
test_10000_queue_pairs_come_and_go_in_10_seconds() { makes_10000_in_10_seconds qp; }
test_10000_completion_queues_come_and_go_in_10_seconds() { makes_10000_in_10_seconds cq; }
test_10000_memory_regions_come_and_go_in_10_seconds() { makes_10000_in_10_seconds mr; }

# Bytes of memory that are charged to a cgroup.
charged() { cat /run/cgroup/verbs/memory.current; }
is_holding() { grep -q held /run/objects; }
holds() { # KIND COUNT DEPTH LEAST_BYTES
    mkfifo /run/release
    # The group is the program's own from its start.
    bash -c 'echo $$ >/run/cgroup/verbs/cgroup.procs && exec python3 /test/objects.py "$@" --hold' bash \
        "$1" "$2" --depth "$3" </run/release >/run/objects 2>&1 &
    local program=$!
    exec {release}>/run/release
    rm /run/release
    wait_for 20 is_holding
    echo "# $2 $1 of $3: $(charged) bytes"
    [ "$(charged)" -ge "$4" ]
    echo >&"$release"
    exec {release}>&-
    wait $program
}
skippable_queues_are_charged_to_their_process='the built kernels (tests/vm/built-kernels) have no memory controller'
test_queues_are_charged_to_their_process() {
    [ -e /proc/kpagecgroup ] || exit 77
    mkdir -p /run/cgroup
    mountpoint -q /run/cgroup || mount -t cgroup2 none /run/cgroup
    echo +memory >/run/cgroup/cgroup.subtree_control
    mkdir -p /run/cgroup/verbs
    holds qp 4 4096 $((4 * 2 * 4096 * 300))
    holds cq 4 65536 $((4 * 65536 * 64))
    rmdir /run/cgroup/verbs
}

test_entries_of_a_completion_queue_are_limited() {
    objects cq 1 --depth 524288
    [ "$(made)" = '1 none' ]
    objects cq 1 --depth 524289
    [ "$(made)" = '0 EINVAL' ]
}

# Groups of an HCA, of which its interface has some, and queue pairs of a group. All end with their process.
attached() { # groups|members COUNT
    timeout $((60 * patience)) /test/attach.py "$@" >/run/attached 2>&1 || fail "$(tail -n 3 /run/attached)"
    cat /run/attached
}
test_multicast_groups_are_limited() {
    attached groups 1100 >/run/result
    [ "$(awk '$1 >= 1000 && $1 < 1024 && $2 == "ENOMEM"' /run/result | wc -l)" = 1 ] || fail "$(cat /run/result)"
    [ "$(attached groups 1000)" = '1000 none' ]
    [ "$(attached members 1100)" = '1024 ENOMEM' ]
    [ "$(attached members 1024)" = '1024 none' ]
}

# Three entries have space for three; the queue has four.
test_overrun_of_a_completion_queue_is_reported_once() {
    local before
    before=$(counter 1 cq_overrun)
    mark_log
    timeout $((60 * patience)) /test/overrun.py >/run/overrun 2>&1 || fail "$(tail -n 3 /run/overrun)"
    [ "$(cat /run/overrun)" = 'CQ_ERR error 4' ] || fail "$(cat /run/overrun)"
    [ "$(counter 1 cq_overrun)" -gt "$before" ]
    ! logged 'completion queue overrun' || fail "a program wrote to the log"
}

# rdma-core's own tests, most of which it skips: they are for HCAs of one vendor, or for what this provider lacks.
test_rdma_core_tests_pass() {
    local passed
    modprobe rdma_ucm
    mkdir -p /run/tests
    cp /usr/share/doc/rdma-core/tests/* /run/tests
    gunzip -f /run/tests/*.gz
    on 1 timeout $((240 * patience)) python3 /run/tests/run_tests.py -v --dev soft_ib0 --port 1 >/run/rdma-core.out 2>&1 ||
        fail "$(grep -E '^(ERROR|FAIL|FAILED|Ran|ImportError)|Error:' /run/rdma-core.out | tail -n 20)"
    passed=$(grep -c ' ok$' /run/rdma-core.out)
    echo "# $(grep '^Ran' /run/rdma-core.out), $passed passed, $(grep '^OK' /run/rdma-core.out); reasons:"
    sed -nE "s/.* skipped ['\"](.*)['\"]$/\1/p" /run/rdma-core.out | sort | uniq -c | sort -rn | sed 's/^/# /'
    [ "$passed" -ge 55 ]
}

# The HCAs anew, with other parameters than before.
limited_to() { # PARAMETER...
    stop_opensm
    ! lsmod | says '^ib_ipoib' || unload_driver
    rmmod soft_ib
    load_fabric hcas=2 "$@"
}
test_objects_are_limited() {
    local kind
    limited_to max_objects=100
    for kind in pd cq mr qp srq; do
        objects $kind 200
        # The kernel has some of its own.
        [ "$(awk '$1 >= 80 && $1 <= 100 && $2 == "ENOMEM"' /run/objects | wc -l)" = 1 ] || fail "$kind: $(cat /run/objects)"
        # All are free again.
        objects $kind 80
        [ "$(made)" = '80 none' ]
    done
    ibv_devinfo -v -d soft_ib0 >/run/info
    [ "$(awk '$1 ~ /^max_(qp|cq|mr|pd|srq):$/ && $2 == 100' /run/info | wc -l)" = 5 ]
}
test_send_elements_are_limited() {
    local elements result
    for elements in 2:EINVAL 3:accepted; do
        limited_to send_sges=${elements%:*}
        ./verbs_rules.py three-send-elements >/run/rules
        result=$(cat /run/rules)
        [ "$result" = "three-send-elements : ${elements#*:}" ] || fail "$elements: $result"
    done
}
