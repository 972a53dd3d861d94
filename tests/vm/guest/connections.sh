# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154,SC2317
# Connections, between host 1 and all others, and the queues that they use.

# True if interfaces have several queues by default.
several_queues() { [ "${QUEUES:-1}" -gt 1 ]; }

# Number of a host's established connections.
connections_of() { grep -c "^$2 .*state established" "/sys/kernel/debug/ipoib/$(interface_of "$1")_cm" || true; } # HOST active|passive
are_connections() { [ "$(connections_of "$1" active)" = "$2" ]; }                                                # HOST COUNT

# The queues that host 1 has connections on, with their number: "0:2 1:2 ".
queues_used() { # passive|active
    awk -v side="$1" '$1 == side && /state established/ { n[$NF]++ } END { for (q in n) printf "%s:%d ", q, n[q] }' \
        /sys/kernel/debug/ipoib/ib0_cm | tr ' ' '\n' | sort | tr '\n' ' ' | sed 's/^ //'
}
# Host 1 and each other host reach each other.
all_connect() {
    local host
    for host in $(seq 2 "$PORTS"); do
        wait_for 20 reaches "$host" 10.0.0.1 && wait_for 20 reaches 1 "10.0.0.$host" || return 1
    done
}
# A host whose REQ was rejected, or not answered, sends datagrams until its back-off is over.
each_has_a_connection() { # passive|active
    all_connect
    [ "$(queues_used "$1" | tr ' ' '\n' | awk -F: '{ n += $2 } END { print n }')" -ge $((PORTS - 1)) ]
}
