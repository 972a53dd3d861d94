# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# A peer that sends messages on active connections of the driver. Row o of Documentation/past-faults.md.
PORTS=2
PROCESSORS=2
HOSTS=1
MODE=connected

test_messages_on_active_connections_are_refused() {
    local before bytes sizes='4 8 100 1000 4000 8 8 8'
    # The in-tree driver takes one kind of connection for the other, and writes to its structure.
    may_end_the_vm 'RIP: 0010:ipoib_cm_send' || return 77
    [ "$DRIVER" = ours ] || sizes=$(printf '8 %.0s' {1..100})
    # Both ways, so that host 1's shared buffers exist.
    ping_ok 1 10.0.0.2 -s 60000
    ping_ok 2 10.0.0.1 -s 60000
    before=$(counter 1 rnr_nak)
    for bytes in $sizes; do
        knob 2 talk_back "$bytes"
        # The peer's HCA ends the connection, with the packets in flight.
        wait_for 20 reaches 1 10.0.0.2
    done
    echo "# refused $(($(counter 1 rnr_nak) - before)) messages"
    [ $(($(counter 1 rnr_nak) - before)) -ge 8 ]
    ping_ok 1 10.0.0.2 -s 60000
    ping_ok 2 10.0.0.1 -s 60000
    [ "$(on 1 cat /sys/class/net/ib0/statistics/rx_errors)" = 0 ]
}
