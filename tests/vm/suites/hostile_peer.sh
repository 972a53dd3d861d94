# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# A peer that sends messages on connections that the driver made to send. Row o of Documentation/past-faults.md.
PORTS=2
PROCESSORS=2
HOSTS=1
MODE=connected

test_messages_on_active_connections_are_refused() {
    local before bytes
    # It takes the structure of one kind of connection for that of the other, and writes to it.
    [ "$DRIVER" = ours ] || return 77
    # Both ways: what host 1 receives on others' connections goes into the buffers that all share.
    ping_ok 1 10.0.0.2 -s 60000
    ping_ok 2 10.0.0.1 -s 60000
    before=$(counter 1 rnr_nak)
    for bytes in 4 8 100 1000 4000 8 8 8; do
        knob 2 talk_back $bytes
        # The HCA of the peer ends the connection, with what was on its way.
        wait_for 20 reaches 1 10.0.0.2
    done
    echo "# refused $(($(counter 1 rnr_nak) - before)) messages"
    [ $(($(counter 1 rnr_nak) - before)) -ge 8 ]
    ping_ok 1 10.0.0.2 -s 60000
    ping_ok 2 10.0.0.1 -s 60000
    [ "$(on 1 cat /sys/class/net/ib0/statistics/rx_errors)" = 0 ]
}
