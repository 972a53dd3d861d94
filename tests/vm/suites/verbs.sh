# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# User-space verbs on the fabric: the usual tools between its HCAs, the RDMA CM over the driver's interfaces, invalid
# requests, and resources of killed processes. Debian's provider for QIB drives the HCAs.
PORTS=2
HOSTS=1
PARTITIONS='blue=0x0001, ipoib : ALL=full;'

# shellcheck source=/dev/null
. ./perftest.sh

grew_by() { [ $(($(counter "$1" "$2") - $3)) -ge "$4" ] || fail "$2 of host $1: $3, now $(counter "$1" "$2")"; } # HOST NAME BEFORE LEAST

# From the first HCA to the second.
run_perftest() { # PROGRAM ARGUMENT...
    local server
    timeout $((60 * patience)) "$@" -d soft_ib1 >/run/server.out 2>&1 &
    server=$!
    wait_for 10 is_served 18515
    timeout $((60 * patience)) "$@" -d soft_ib0 127.0.0.1 >/run/client.out 2>&1 && wait $server
}
test_tools_show_the_hcas() {
    [ "$(ibv_devices | awk '/soft_ib/ { print $1, $2 }' | sort | xargs)" = \
        'soft_ib0 0002c90300000010 soft_ib1 0002c90300000110' ]
    ibv_devinfo -d soft_ib1 >/run/info
    local line
    for line in 'transport: InfiniBand (0)' 'node_guid: 0002:c903:0000:0110' 'phys_port_cnt: 1' \
        'state: PORT_ACTIVE (4)' 'active_mtu: 2048 (4)' "port_lid: $(lid 2)" 'link_layer: InfiniBand'; do
        sed -E 's/^[[:space:]]+//; s/:[[:space:]]+/: /' /run/info | says -xF "$line" || fail "not in ibv_devinfo: $line"
    done
}

test_ibroute_shows_the_groups_of_ipoib() {
    ibroute -M "$(ibswitches | sed -nE 's/.* lid ([0-9]+) lmc.*/\1/p')" >/run/groups
    # Ports 1 and 2 have the broadcast group.
    grep -qE '^0xc000 +x x' /run/groups || fail "$(cat /run/groups)"
}
test_rc_bandwidth() {
    local before
    before=$(counter 1 rc_sent)
    perftest ib_send_bw -s 65536 -n 500
    result_is 65536 500
    grew_by 1 rc_sent "$before" $((500 * 32))
}
test_rc_latency() { perftest ib_send_lat -n 200; result_is 2 200; }
test_ud_bandwidth() { perftest ib_send_bw -c UD -s 2048 -n 500; result_is 2048 500; }
test_ud_latency() { perftest ib_send_lat -c UD -n 200; result_is 2 200; }
test_bandwidth_with_completion_events() { perftest ib_send_bw -e -s 4096 -n 500; result_is 4096 500; }
test_bandwidth_with_a_shared_receive_queue() { perftest ib_send_bw --use-srq -s 4096 -n 500 -q 4; result_is 4096 2000; }
test_rdma_write_bandwidth() {
    local before
    before=$(counter 2 rdma_writes)
    perftest ib_write_bw -s 65536 -n 500
    result_is 65536 500
    grew_by 2 rdma_writes "$before" 500
}
test_rdma_write_latency() { perftest ib_write_lat -n 100; result_is 2 100; }
test_rdma_read_bandwidth() {
    local before
    before=$(counter 2 rdma_reads)
    perftest ib_read_bw -s 65536 -n 500
    result_is 65536 500
    grew_by 2 rdma_reads "$before" 500
}
test_rdma_read_latency() { perftest ib_read_lat -n 200; result_is 2 200; }

test_inline_latency() { perftest ib_send_lat -I 64 -s 64 -n 200; result_is 64 200; }
test_inline_write_latency() { perftest ib_write_lat -I 128 -s 128 -n 200; result_is 128 200; }
atomics() { # KIND: every one is executed once, despite losses
    local before
    before=$(counter 2 atomics)
    perftest ib_atomic_bw -A "$1" -n 500
    result_is 8 500
    grew_by 2 atomics "$before" 500
}
test_fetch_and_add_bandwidth() { atomics FETCH_AND_ADD; }
test_compare_and_swap_bandwidth() { atomics CMP_AND_SWAP; }
test_atomic_latency() { perftest ib_atomic_lat -n 200; result_is 8 200; }

# Unreliable connections
test_uc_bandwidth() { perftest ib_send_bw -c UC -s 65536 -n 500; result_is 65536 500; }
test_uc_latency() { perftest ib_send_lat -c UC -n 200; result_is 2 200; }
test_uc_write_bandwidth() {
    local before
    before=$(counter 2 rdma_writes)
    perftest ib_write_bw -c UC -s 65536 -n 500
    result_is 65536 500
    grew_by 2 rdma_writes "$before" 500
}
pingpong() { # PROGRAM ARGUMENT...
    timeout $((60 * patience)) "$@" -d soft_ib1 >/run/server.out 2>&1 &
    local server=$!
    wait_for 10 is_served 18515
    timeout $((60 * patience)) "$@" -d soft_ib0 127.0.0.1 >/run/client.out 2>&1 || both_failed
    wait $server || both_failed
}
# Most use completion events, and compare the data.
test_pingpongs() {
    pingpong ibv_rc_pingpong -e -c -s 100000 -n 100
    pingpong ibv_uc_pingpong -c -s 100000 -n 100
    pingpong ibv_ud_pingpong -e -c -n 100
    pingpong ibv_srq_pingpong -e -c -s 4096 -n 100
    # Addresses the peer by its GID.
    pingpong ibv_rc_pingpong -g 0 -n 100
}

# The RDMA CM: addresses are those of the driver's interfaces, in the hosts' namespaces

rdma_cm() {
    modprobe rdma_ucm
    wait_for 5 test -e /dev/infiniband/rdma_cm
}
# Runs a program in both hosts, that of host 1 first; it listens by the RDMA CM, which only the list of resources shows.
listeners() { rdma resource show cm_id 2>/dev/null | grep -c LISTEN || true; }
has_listener() { [ "$(listeners)" -gt 0 ]; }
between_hosts() { # SERVER'S COMMAND -- CLIENT'S COMMAND
    local first=()
    while [ "$1" != -- ]; do first+=("$1"); shift; done
    shift
    rdma_cm
    on 1 timeout $((60 * patience)) "${first[@]}" >/run/server.out 2>&1 &
    local pid=$!
    wait_for 10 has_listener
    on 2 timeout $((60 * patience)) "$@" >/run/client.out 2>&1 || both_failed
    wait $pid || both_failed
}
# Reads and writes the client's memory, and compares the data.
rping_ok() { # ADDRESS TIMES [ARGUMENT...]
    local before
    before=$(counter 2 rdma_reads)
    between_hosts rping -s -a "$1" -V -C "$2" "${@:3}" -- rping -c -a "$1" -V -C "$2" "${@:3}"
    grew_by 2 rdma_reads "$before" "$2"
}

# Until the test's end each host loses one in this many packets.
lose() { # OF-HOST-1 OF-HOST-2
    trap 'knob 1 drop_rc_every 0; knob 2 drop_rc_every 0' EXIT
    knob 1 drop_rc_every "$1"
    knob 2 drop_rc_every "$2"
}

test_rping() { rping_ok 10.0.0.1 20; }
test_rping_over_ipv6() { rping_ok fd00::1 20; }
test_rping_of_large_messages() { rping_ok 10.0.0.1 20 -S 60000; }
test_rping_in_connected_mode() {
    set_mode 1 connected
    set_mode 2 connected
    rping_ok 10.0.0.1 20
    set_mode 1 datagram
    set_mode 2 datagram
}
test_rping_succeeds_on_a_lossy_link() {
    local again
    again=$(counter 1 rc_sent_again)
    lose 101 97
    rping_ok 10.0.0.1 10 -S 60000
    grew_by 1 rc_sent_again "$again" 1
}
test_rping_on_a_partition() {
    local host
    for host in 1 2; do
        on $host ip link add link "ib$((host - 1))" name blue type ipoib pkey 0x8001
        on $host ip link set blue up
        on $host ip addr add "10.8.0.$host/24" dev blue
    done
    wait_for 20 reaches 2 10.8.0.1
    rping_ok 10.8.0.1 20
    for host in 1 2; do on $host ip link del blue; done
}
test_udaddy() {
    between_hosts udaddy -b 10.0.0.1 -- udaddy -s 10.0.0.1
    grep -q 'return status 0' /run/client.out || both_failed
}
test_ucmatose() {
    between_hosts ucmatose -b 10.0.0.1 -c 20 -C 10 -S 1000 -- ucmatose -s 10.0.0.1 -c 20 -C 10 -S 1000
    grep -q 'return status 0' /run/client.out || both_failed
}
# Programs whose server does not end by itself.
with_lasting_server() { # PROGRAM CONDITION ARGUMENT...
    local server
    rdma_cm
    on 1 "$1" -b 10.0.0.1 "${@:3}" >/run/server.out 2>&1 &
    server=$!
    wait_for 10 "$2"
    on 2 timeout $((60 * patience)) "$1" -s 10.0.0.1 "${@:3}" >/run/client.out 2>&1 || both_failed
    xargs </run/client.out | sed 's/^/# /'
    pkill -x "$1"
    wait $server || true
}
test_cmtime() { with_lasting_server cmtime has_listener -c 50; }
# Datagrams of rsockets: a UDP socket leads to the queue pair.
has_udp_socket() { on 1 ss -Hlun 'sport = 7174' | says .; }
test_udpong() { with_lasting_server udpong has_udp_socket -S 1000 -C 100; }
# Both send inline data.
test_rdma_client_and_server() {
    between_hosts rdma_server -s 10.0.0.1 -- rdma_client -s 10.0.0.1
    grep -q 'end 0' /run/client.out || both_failed
    grep -q 'end 0' /run/server.out || both_failed
}
test_rsockets() { between_hosts rstream -T v -b 10.0.0.1 -S 65536 -C 100 -- rstream -T v -s 10.0.0.1 -S 65536 -C 100; }
test_rsockets_of_vectors() { between_hosts riostream -b 10.0.0.1 -S 4096 -C 100 -- riostream -s 10.0.0.1 -S 4096 -C 100; }
# Groups of the RDMA CM have their own signature, 4001.
mckey_joined() { [ "$(members_of ff12:4001:ffff::f01:203)" -ge 1 ]; }
test_multicast_by_the_rdma_cm() {
    rdma_cm
    on 1 timeout $((60 * patience)) mckey -m 239.1.2.3 -b 10.0.0.1 >/run/server.out 2>&1 &
    local receiver=$!
    wait_for 20 mckey_joined
    on 2 timeout $((60 * patience)) mckey -m 239.1.2.3 -b 10.0.0.2 -s >/run/client.out 2>&1 || both_failed
    wait $receiver || both_failed
    grep -q 'return status 0' /run/server.out || both_failed
}

serve_qperf() {
    # With -cm qperf reports its port to the client before it listens there, and the client's request is refused if it
    # comes between. On one processor a real-time server is not interrupted there.
    on 1 chrt --fifo 1 qperf >/run/server.out 2>&1 &
    server=$!
    wait_for 10 listens 1 :19765
}
# A process that the server made for a client listens, too. Another server can listen afterwards.
end_qperf() {
    pkill -x qperf
    wait "$server" || true
    wait_for 10 is_gone qperf
}
qperf_measures() { # TESTS ARGUMENT...
    on 2 timeout $((60 * patience)) qperf -t 1 "${@:2}" >/run/client.out 2>&1 || both_failed
    xargs </run/client.out | sed 's/^/# /'
    [ "$(grep -cE '(bw|latency|msg_rate) *= ' /run/client.out)" = "$1" ]
}
test_qperf() {
    local server
    rdma_cm
    serve_qperf
    qperf_measures 7 10.0.0.1 tcp_bw tcp_lat rc_bw rc_lat ud_lat rc_rdma_read_bw rc_rdma_write_bw
    # Through the RDMA CM, which resolves the interface's address. At the end qperf's server uses what the RDMA CM's
    # library has freed.
    expect_in_log 'qperf\[[0-9]+\]: segfault'
    qperf_measures 2 -cm 1 10.0.0.1 rc_bw rc_rdma_read_lat
    end_qperf
}
test_qperf_of_unreliable_connections_and_atomics() {
    local server
    serve_qperf
    # The second has two results.
    qperf_measures 6 10.0.0.1 uc_lat uc_rdma_write_bw uc_rdma_write_lat rc_compare_swap_mr rc_fetch_add_mr
    end_qperf
}

# Runs guest/verbs.py: three work requests, of which the second is the tested one; compares their completions at the
# sender and at the receiver

complete() { # EXPECTED OPERATION... [ARGUMENT...]
    timeout $((120 * patience)) ./verbs.py "${@:2}" >/run/works 2>&1 || fail "$(tail -n 5 /run/works)"
    [ -s /run/works ] || fail "no completions: $*"
    ! grep -vE ": ${1// | / [|] }\$" /run/works | sed 's/^/# /' | grep . || fail "expected: $1"
}
fine='success success success | success success | same'

test_data_of_all_sizes_arrive() {
    complete "$fine" send send-immediate write write-immediate read --bytes 0 1 2048 100001
}
test_data_arrive_on_a_lossy_link() {
    local again
    again=$(counter 1 rc_sent_again)
    # One loss in more packets than a message has: a retransmission would otherwise lose the same packet for ever.
    lose 211 199
    complete "$fine" send write-immediate read --bytes 200000 300000 400000
    grew_by 1 rc_sent_again "$again" 5
}
# Earlier work requests are done, later ones are not; the receiver sees nothing of the failed one. Only a read fails
# when its response arrives, by which time later requests may have been sent.
test_wrong_local_keys_complete_with_protection_errors() {
    complete 'success protection flushed | success - | different' send write --wrong key bounds domain withdrawn
    complete 'success protection flushed | success (-|success) | different' read --wrong key bounds domain withdrawn access
}
test_wrong_remote_keys_complete_with_access_errors() {
    complete 'success remote-access flushed | success flushed | different' write read \
        --wrong remote-key remote-bounds remote-access remote-withdrawn
    complete 'success invalid-request flushed | success flushed | different' write read --wrong refused
}
test_wrong_receives_complete_with_errors() {
    complete 'success remote-operation flushed | success protection | different' send \
        --wrong receive-key remote-withdrawn
    complete 'success invalid-request flushed | success length | different' send --wrong receive-length
}

# A completion with an error counts as solicited (IBA 11.4.2.2).
test_solicited_events() {
    ./solicited.py >/run/events
    [ "$(xargs </run/events)" = 'unsolicited: success none solicited: success event error: flushed event' ] ||
        fail "$(cat /run/events)"
}

# Runs guest/verbs_rules.py: the outcome of each case

outcome() { # EXPECTED CASE...
    timeout $((120 * patience)) ./verbs_rules.py "${@:2}" >/run/rules 2>&1 || fail "$(tail -n 5 /run/rules)"
    [ "$(wc -l </run/rules)" = $(($# - 1)) ] || fail "$(cat /run/rules)"
    ! grep -v " : $1\$" /run/rules | sed 's/^/# /' | grep . || fail "expected: $1"
}
test_attributes_change_only_in_their_states() {
    outcome accepted qkey-in-rts rnr-timer-in-rts migrated
    outcome EINVAL psn-in-rts path-mtu-in-rts
    outcome ENOTSUP drained rearm alternate-path
}
test_communication_is_established_once() { outcome 1 communication-established; }
test_attributes_out_of_range_are_refused() {
    outcome accepted timeout-31 rnr-timer-31
    outcome EINVAL timeout-32 timeout-64 retries-8 rnr-retries-8 rnr-timer-32 pkey-index-128
}
test_reset_ends_the_wait_for_answers() { outcome flushed late-nak; }
test_packets_from_other_ports_are_dropped() {
    local dropped
    dropped=$(counter 2 drop_source)
    outcome 'no-answer success' other-source
    grew_by 2 drop_source "$dropped" 1
}
# A second completion would free a buffer twice.
test_refused_message_completes_its_receive_once() { outcome '1 length, 2 flushed' refused-behind-a-read; }
test_full_queues_are_flushed_in_order() { outcome same flushed-in-order; }
test_completions_have_the_numbers_of_their_queue_pairs() { outcome right numbers-of-completions; }
test_destroyed_queue_pairs_leave_no_completions() {
    outcome '0 flushed, 2 flushed, 5 flushed' completions-of-a-destroyed-qp
}
test_groups_receive_datagrams_with_a_grh_only() {
    outcome 'success - success' connection-to-a-group
    outcome 'success -' group-without-grh
}
test_receives_of_4_gib_take_messages() { outcome 'success same' huge-receive; }
test_address_handles_of_other_domains_are_refused() {
    outcome accepted address
    outcome EINVAL address-of-another-domain
}
test_unknown_flags_and_limits_are_refused() {
    outcome accepted qp-flags cq-flags srq-limit-16
    outcome ENOTSUP block-multicast-loopback ignore-overrun
    outcome EINVAL srq-limit-17
}

# Killed processes

# Resources of user space on both HCAs.
resources() { rdma resource show | sed -E 's/ (cm_id|ctx)//'; }
end() { kill -KILL "$@"; wait "$@" 2>/dev/null || true; } # PID...
regions() { echo $(($(counter 1 regions) + $(counter 2 regions))); }
resources_are() { [ "$(resources)" = "$1" ] && [ "$(regions)" = 0 ]; }

regions_are() { [ "$(regions)" = "$1" ]; }
test_killed_processes_leave_nothing() {
    local before program pids sent
    goes_on() { [ "$(counter 1 rc_sent)" -ge $((sent + 100)) ]; }
    before=$(resources)
    [ "$(regions)" = 0 ]
    for program in ib_send_bw ib_write_bw ib_read_bw; do
        $program -D 60 -s 65536 -d soft_ib1 >/run/server.out 2>&1 &
        pids=($!)
        wait_for 10 is_served 18515
        $program -D 60 -s 65536 -d soft_ib0 127.0.0.1 >/run/client.out 2>&1 &
        pids+=($!)
        wait_for 10 regions_are 2
        sent=$(counter 1 rc_sent)
        wait_for 10 goes_on
        end "${pids[@]}"
        wait_for 10 resources_are "$before" || fail "$(resources), $(regions) regions"
    done
}

test_unplugged_hca_destroys_its_objects() {
    ./verbs.py send --hold >/run/holder &
    local holder=$!
    wait_for 10 grep -q holding /run/holder
    knob 2 plugged 0
    [ ! -e /sys/class/infiniband/soft_ib1 ]
    end $holder
    plug_in 2
    wait_for 30 port_state_is 1 '4: ACTIVE'
    add_host 2
    both_work
    complete "$fine" read
}
