# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154,SC2317
# Programs of perftest, and others with a server and a client, whose output is in /run/server.out and /run/client.out. A
# suite defines run_perftest PROGRAM ARGUMENT..., which runs both sides.

both_failed() {
    local side
    for side in server client; do
        { grep -vE '^[- ]|^$' "/run/$side.out" || true; } | tail -n 8 | cut -c -150 | sed "s/^/# $side: /"
    done
    return 1
}
# Runs one of perftest's programs; its result, bytes and iterations first, is in /run/result.
perftest() { # PROGRAM ARGUMENT...
    for _ in 1 2 3; do
        ! run_perftest "$@" || break
        # perftest stops if the clock does not run evenly during its check, as on a VM of a busy machine.
        grep -q 'Correlation coefficient' /run/server.out /run/client.out || both_failed || return 1
    done
    grep -A 1 '#bytes' /run/client.out | tail -n 1 >/run/result
    echo "# $*: $(xargs </run/result)"
}
# True if the run made ITERATIONS, of BYTES each.
result_is() { [ "$(awk '{ print $1, $2 }' /run/result)" = "$1 $2" ] || fail "$(cat /run/client.out)"; } # BYTES ITERATIONS
