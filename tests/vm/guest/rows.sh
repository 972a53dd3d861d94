# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
# Rows of the bench that need a peer and not the fabric, as "name value" lines. The sourcing script defines PEER, an
# address, and:
#   here COMMAND...                   runs it where the peer is reached
#   serve PROGRAM                     iperf3 or qperf answers at the peer, or fails
#   watched NAME OUTPUT COMMAND...    runs it, with its output there, and may count meanwhile
#   counted NAME                      prints the counts
# and may set ROWS, the names of selected rows.

row() { printf '%s %s\n' "$1" "$2"; } # NAME VALUE
wanted() { [ -z "${ROWS:-}" ] || [[ " $ROWS " == *" $1 "* ]]; }
scratch=$(mktemp -d)

# Length of a row's command: its duration, or, with LENGTH=short or long, its amount of work.
amount() { # FOR-BENCH SHORT LONG
    case ${LENGTH:-} in
    "") echo "$1" ;;
    short) echo "$2" ;;
    long) echo "$3" ;;
    esac
}

round_trip() { # NAME
    wanted "$1" || return 0
    watched "$1" "$scratch/ping" here ping -q -f -c "$(amount 2000 500 10500)" "$PEER"
    row "$1 us" "$(awk -F/ '/^rtt/ { print $5 * 1000 }' "$scratch/ping")"
}

repeated() { # COUNT COMMAND...
    local i
    for ((i = 0; i < $1; ++i)); do "${@:2}"; done
}

# Several connections, one after another: each settles at one of TCP's speeds (development.md).
tcp() { # NAME [iperf3's arguments]
    wanted "$1" || return 0
    serve iperf3
    local how rate
    read -ra how < <(amount "-t 1 -O 0.3" "-n 4M" "-n 24M")
    watched "$1" "$scratch/iperf" repeated 5 here iperf3 -c "$PEER" "${how[@]}" "${@:2}" --json
    rate=$(jq -s 'map(if .error then error(.error) else .end | (.sum_received.bits_per_second + (.sum_received_bidir_reverse.bits_per_second // 0)) / 1e6 end) | add / length' "$scratch/iperf")
    row "$1 Mbit/s" "$rate"
    counted "$1"
}

# TCP of one byte there and back.
requests() { # NAME
    wanted "$1" || return 0
    serve qperf
    watched "$1" "$scratch/qperf" here qperf -uu "$PEER" -t 2 tcp_lat
    row "$1 requests/s" "$(awk '/latency/ { gsub(",", "", $3); print 1e9 / (2 * $3) }' "$scratch/qperf")"
    counted "$1"
}

udp_small() { # NAME [iperf3's arguments]
    wanted "$1" || return 0
    serve iperf3
    local how
    read -ra how < <(amount "-t 2" "-k 2000" "-k 22000")
    watched "$1" "$scratch/iperf" here iperf3 -c "$PEER" -u -l 64 -b 0 "${how[@]}" "${@:2}" --json
    row "$1 packets/s" "$(jq '.end.sum | (.packets - .lost_packets) / .seconds' "$scratch/iperf")"
}

ping_under_load() { # NAME
    wanted "$1" || return 0
    serve iperf3
    here iperf3 -c "$PEER" -t 4 >"$scratch/iperf" &
    sleep 0.5
    here ping -i 0.01 -c 300 "$PEER" | sed -nE 's,.*time=([0-9.]+) ms,\1,p' | sort -n >"$scratch/times"
    wait $!
    row "$1 median us" "$(awk '{ t[NR] = $1 * 1000 } END { print t[int((NR + 1) / 2)] }' "$scratch/times")"
    row "$1 p99 us" "$(awk '{ t[NR] = $1 * 1000 } END { print t[int(NR * 0.99)] }' "$scratch/times")"
}
