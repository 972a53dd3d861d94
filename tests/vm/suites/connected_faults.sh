# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Faults of connections: no permanent loss, and nothing is left behind.
PORTS=3
PROCESSORS=2
HOSTS=1
MODE=connected
# One receive queue: a further one exists until its interface is down, and objects are counted.
FABRIC='vectors=1'

# shellcheck source=/dev/null
. ./samples.sh

# Objects of all HCAs, as the kernel counts them, and the ends of connections among them.
objects() {
    rdma resource show | sed -E 's/^[0-9]+: //' | sort
    echo "RC $(connection_ends)"
}
vmalloc_kb() { awk '/^VmallocUsed/ { print $2 }' /proc/meminfo; }

# Runs the named function and expects equal object counts and memory after it as before, within 30 s. The kernel keeps
# some memory for itself: up to 90 kB in slabs and 80 in vmalloc were seen. Immediately afterwards slabs have grown by
# up to 400 kB: /proc/slabinfo shows inodes of /proc and dentries of programs that have ended, which are freed within
# seconds. Five times 500 switches of modes grew them by 6 kB.
without_leak() {
    local before slab vm
    ping_ok 1 10.0.0.2 -s 60000
    ping_ok 2 10.0.0.1 -s 60000
    before=$(objects) slab=$(settled slab_kb) vm=$(vmalloc_kb)
    "$1"
    wait_for 30 reaches 1 10.0.0.2
    wait_for 30 reaches 2 10.0.0.1
    # A refused connection is requested again with the first packet after its back-off.
    as_before() { reaches 1 10.0.0.2 && reaches 2 10.0.0.1 && [ "$(objects)" = "$before" ]; }
    wait_for 30 as_before || { diff <(echo "$before") <(objects) | sed 's/^/# /'; return 1; }
    as_much_as_before() { [ $(($(slab_kb) - slab)) -lt 200 ] && [ $(($(vmalloc_kb) - vm)) -lt 200 ]; }
    wait_for 30 as_much_as_before || { echo "# $slab kB in slabs, now $(slab_kb); vmalloc $vm, now $(vmalloc_kb)"; return 1; }
}

traffic_and_500_switches() {
    serve_iperf 2
    (while :; do on 1 iperf3 -c 10.0.0.2 -b 50M -t 10 >/dev/null 2>&1 || sleep 0.2; done) &
    local traffic=$! i
    background_ping 2 10.0.0.1
    local pinger=$! switchers=() host pings segments
    pings_arrive 1
    segments_arrive 2
    pings=$(stack_counter 1 IcmpInEchos) segments=$(stack_counter 2 TcpInSegs)
    for host in 1 2; do
        # shellcheck disable=SC2016 # expanded by the inner shell
        on $host sh -c 'for _ in $(seq 125); do echo datagram >"$0" && echo connected >"$0" && sleep 0.05 || exit; done' \
            "/sys/class/net/$(interface_of $host)/mode" &
        switchers+=($!)
    done
    for i in "${switchers[@]}"; do wait "$i"; done
    pings=$(($(stack_counter 1 IcmpInEchos) - pings)) segments=$(($(stack_counter 2 TcpInSegs) - segments))
    echo "# $pings pings and $segments segments of TCP arrived meanwhile"
    [ $pings -ge 100 ]
    [ $segments -ge 100 ]
    kill $traffic $pinger 2>/dev/null || true
    stop_traffic
    wait $traffic $pinger 2>/dev/null || true
}
may_fail_stock_500_mode_switches_under_traffic='connections are given the opcode of the last datagram, LSO, which the HCA refuses'
test_500_mode_switches_under_traffic() {
    without_leak traffic_and_500_switches
    ping_ok 1 10.0.0.2 -s 60000
}

stream_while_connections_die() {
    expect_refused_sends
    start_stream 1 2
    for _ in $(seq 60); do
        knob $((RANDOM % 2 + 1)) kill_rc 1
        stream_goes_on 2
    done
    end_stream 2
}
test_tcp_survives_60_broken_connections() { without_leak stream_while_connections_die; }

end_connections() { # HOST
    on "$1" ip link set "$(interface_of "$1")" down
    on "$1" ip link set "$(interface_of "$1")" up
    wait_for 30 carrier "$1"
}

# Milliseconds of the slowest answer that ping saw.
slowest_answer() { sed -nE 's:^rtt .*/([0-9]+)\.[0-9]+/.*:\1:p' "$1"; } # PING'S OUTPUT

# The HCA of host 3 drops what host 1 sends, acknowledgements included: the sends complete when the HCA of host 1 gives up.
pings_beside_a_silent_peer() { # SENDERS BYTES
    local slowest
    wait_for 20 reaches 1 10.0.0.3
    # A little traffic makes the byte queue limit small.
    ping_ok 1 10.0.0.2 -c 50 -i 0.02
    knob 3 drop_rc_every 1
    for _ in $(seq "$1"); do on 1 ping -q -i 0.02 -w 4 -s "$2" 10.0.0.3 >/dev/null & done
    on 1 ping -q -i 0.02 -c 200 -W 20 10.0.0.2 >/run/others.out
    knob 3 drop_rc_every 0
    wait || true
    slowest=$(slowest_answer /run/others.out)
    echo "# $1 senders of $2 bytes: the slowest answer of another peer took $slowest ms"
    [ "$slowest" -lt 1000 ]
}
may_fail_stock_silent_peer_does_not_delay_the_others='the queue is full of messages to the silent peer until the HCA gives up'
test_silent_peer_does_not_delay_the_others() {
    pings_beside_a_silent_peer 1 60000
    pings_beside_a_silent_peer 10 4000
    pings_beside_a_silent_peer 10 1000
    wait_for 20 reaches 1 10.0.0.3
    # Later tests compare the numbers of connections before and after.
    end_connections 3
}

# The HCA of host 3 answers what host 1 sends with RNR NAK, and the HCA of host 1 repeats it without end. Short messages
# fill the send pool before byte queue limits apply.
may_fail_stock_peer_without_receives_does_not_stop_the_others='the queue stays full; the transmit timeout frees nothing'
may_fail_stock_both_modules_unload_and_leave_nothing='now and then: a completion queue goes before the last queue pair that uses it'
test_peer_without_receives_does_not_stop_the_others() {
    local slowest answers
    mark_log
    expect_refused_sends
    knob 1 min_retries 7
    knob 1 kill_rc 1
    wait_for 20 reaches 1 10.0.0.3
    wait_for 20 reaches 1 10.0.0.2
    knob 3 rnr_every 1
    # shellcheck disable=SC2016 # expanded by the inner shell
    on 1 timeout 15 bash -c 'while :; do for _ in $(seq 200); do echo >/dev/udp/10.0.0.3/9; done; sleep 0.2; done' 2>/dev/null &
    on 1 ping -q -i 0.02 -w 15 -W 20 10.0.0.2 >/run/others.out || true
    knob 3 rnr_every 0
    wait || true
    slowest=$(slowest_answer /run/others.out)
    answers=$(sed -nE 's/.* ([0-9]+) received.*/\1/p' /run/others.out)
    echo "# $answers answers of another peer, the slowest after ${slowest:-?} ms"
    knob 1 min_retries 0
    knob 1 kill_rc 1
    wait_for 20 reaches 1 10.0.0.3
    end_connections 3
    # Both ends of the connections with host 2 are new ones.
    wait_for 20 reaches 1 10.0.0.2
    wait_for 20 reaches 2 10.0.0.1
    [ "${slowest:-99999}" -lt 4000 ]
    [ "$answers" -gt 300 ]
    if [ "$DRIVER" = ours ]; then logged 'connection to .* ended: '; fi
}

rnr_storm() {
    local before
    before=$(counter 2 rnr_nak)
    knob 2 rnr_every 5
    iperf 1 2 -n 20M
    knob 2 rnr_every 0
    [ "$(counter 2 rnr_nak)" -gt "$before" ]
}
test_tcp_survives_an_rnr_storm() { without_leak rnr_storm; }

test_retransmission_recovers_lost_packets() {
    local again
    expect_refused_sends
    # New connections retry.
    knob 1 min_retries 7
    knob 2 min_retries 7
    knob 1 kill_rc 1
    knob 2 kill_rc 1
    wait_for 10 reaches 1 10.0.0.2
    again=$(counter 1 rc_sent_again)
    knob 2 drop_rc_every 100
    iperf 1 2 -n 10M
    # One ping at a time: after a first answer, ping waits for no more than two round trips, and a retry takes seconds.
    for _ in 1 2 3 4 5; do on 1 ping -q -c 1 -W 40 -s 60000 10.0.0.2 >/dev/null || fail "a ping was lost"; done
    knob 2 drop_rc_every 0
    [ "$(counter 1 rc_sent_again)" -gt "$again" ]
    knob 1 min_retries 0
    knob 2 min_retries 0
    knob 1 kill_rc 1
    knob 2 kill_rc 1
}

test_tcp_survives_loss_without_retries() {
    local before
    before=$(counter 2 drop_fault)
    knob 2 drop_rc_every 50
    iperf 1 2 -t 5
    knob 2 drop_rc_every 0
    [ "$(counter 2 drop_fault)" -gt "$before" ]
    wait_for 20 reaches 1 10.0.0.2
}

test_request_for_an_unknown_service_id_is_rejected() {
    local address
    mark_log
    address=$(on 2 cat /sys/class/net/ib1/address)
    # A former queue pair number of the neighbour.
    on 1 ip neigh replace 10.0.0.2 lladdr "80:12:34:56${address:11}" dev ib0
    ! reaches 1 10.0.0.2 || return 1
    ! reaches 1 10.0.0.2 || return 1
    on 1 ip neigh del 10.0.0.2 dev ib0
    wait_for 10 reaches 1 10.0.0.2
    if [ "$DRIVER" = ours ]; then
        [ "$(log_since_mark | grep -c 'rejected, reason 8')" = 1 ]
        grep -qE 'req_failed [1-9]' /sys/kernel/debug/ipoib/ib0_cm
    fi
}

# For REQs sent to host 2, sets accepted and rejected to the driver's counts, and seen to their sum and the REQs that
# its HCA had no receive for.
count_requests() {
    read -r _ _ _ _ _ _ _ _ _ accepted _ rejected _ </sys/kernel/debug/ipoib/ib1_cm
    seen=$((accepted + rejected + $(counter 2 drop_no_receive)))
}
all_are_seen() { # COUNT
    count_requests
    [ "$seen" -ge "$1" ]
}
request() { # FIRST COUNT
    /test/cm_requests.py --first "$1" --count "$2" --from "$(lid 1)" --to "$(lid 2)" --address "$(lladdr 2)"
}
# More requests than the rate limit allows in this time. A busy machine takes longer, and is given another try.
request_more_than_is_accepted() {
    local attempt started accepted rejected seen accepted_before rejected_before most
    for attempt in 0 1; do
        started=${EPOCHREALTIME/./}
        count_requests
        accepted_before=$accepted rejected_before=$rejected
        request $((attempt * 4000 + 1)) 4000
        wait_for 60 all_are_seen $((seen + 4000))
        # Limit of a burst, and limit per second.
        most=$((1024 + 256 * (${EPOCHREALTIME/./} - started) / 1000000))
        accepted=$((accepted - accepted_before)) rejected=$((rejected - rejected_before))
        echo "# $accepted of 4000 requests were accepted, $rejected rejected; $most may be accepted"
        [ $accepted -le $most ]
        [ $accepted -ge 1024 ]
        [ $rejected = 0 ] || return 0
        end_connections 2
    done
    return 77
}
flood_of_requests() {
    if [ "$DRIVER" = ours ]; then request_more_than_is_accepted; else request 1 4000; fi
    # The requester does not exist; earlier connections still work, or work again.
    end_connections 2
}
skippable_request_flood_is_limited='the machine is too slow to ask for more than is accepted'
test_request_flood_is_limited() { without_leak flood_of_requests; }

disconnections() { sed -nE '1s/.* disconnected ([0-9]+) .*/\1/p' "/sys/kernel/debug/ipoib/$(interface_of "$1")_cm"; }
# From the LID of the host whose address the REQs have, and from another.
requests_in_the_name_of_host_1() {
    local from
    for from in "$(lid 1)" 77; do
        /test/cm_requests.py --count 100 --from "$from" --to "$(lid 2)" --address "$(lladdr 2)" --name "$(lladdr 1)"
    done
}
test_forged_requests_end_no_connection() {
    local before pinger
    ping_ok 1 10.0.0.2 -s 60000
    [ "$DRIVER" = stock ] || before=$(disconnections 1)
    (while :; do requests_in_the_name_of_host_1; done) &
    pinger=$!
    ping_ok 1 10.0.0.2 -s 60000 -c 100 -i 0.05 || { kill $pinger; return 1; }
    kill $pinger
    wait $pinger || true
    [ "$DRIVER" = stock ] || [ "$(disconnections 1)" = "$before" ] || fail "connections broke: $before -> $(disconnections 1)"
    # A rejected host connects after the flood.
    wait_for 20 reaches 2 10.0.0.1
}

test_malformed_private_data_is_rejected() {
    local kind
    for kind in zeros ones short_mtu; do
        /test/cm_requests.py --count 20 --from "$(lid 1)" --to "$(lid 2)" --private $kind \
            --address "$(on 2 cat /sys/class/net/ib1/address)"
    done
    wait_for 10 reaches 1 10.0.0.2
    [ "$DRIVER" = stock ] || says -E 'malformed (4|6)0$' /sys/kernel/debug/ipoib/ib1_cm || fail "$(head -n 1 /sys/kernel/debug/ipoib/ib1_cm)"
}
