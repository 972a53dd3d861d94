# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154,SC2317
# Continuous traffic: from each host a TCP (odd ones) or UDP stream to the next, pings of changing sizes to the one
# after that, and a listener of a group, to which host 1 sends. Each program is short, and restarted again and again.
traffic=/run/traffic

next() { echo $(($1 % PORTS + 1)); }
each_host() { # COMMAND...: with the host as its last argument
    local each
    for each in $(seq "$PORTS"); do "$@" "$each"; done
}

again_and_again() { # COMMAND...
    while :; do "$@" >/dev/null 2>&1 || sleep 0.5; done &
    loops+=($!)
    disown  # otherwise bash prints its end
}
stream() { # HOST [iperf3 option...]
    on "$1" timeout 20 iperf3 -c "10.0.0.$(next "$1")" -t 8 "${@:2}" && echo >>"$traffic/streams.$1"
}
pings() { on "$1" timeout 20 ping -q -i 0.5 -c 25 -s $((SRANDOM % 8000)) "10.0.0.$(next "$(next "$1")")"; }
listener() { on "$1" timeout 20 socat -u "UDP4-RECV:4321,ip-add-membership=239.1.2.3:$(interface_of "$1")" "OPEN:$traffic/heard.$1,append"; }
talker() { while echo hello; do sleep 0.5; done | on 1 timeout 30 socat -u - UDP4-DATAGRAM:239.1.2.3:4321,ip-multicast-if=10.0.0.1; }
start_traffic_of() { # HOST
    touch "$traffic/streams.$1" "$traffic/heard.$1"
    again_and_again on "$1" timeout 30 iperf3 -s -1
    if [ $(($1 % 2)) = 1 ]; then again_and_again stream "$1" -b 2M; else again_and_again stream "$1" -u -b 500K; fi
    again_and_again pings "$1"
    again_and_again listener "$1"
}
start_traffic() {
    mkdir -p $traffic
    loops=()
    each_host start_traffic_of
    again_and_again talker
}
end_traffic() {
    kill "${loops[@]}" 2>/dev/null || true
    loops=()
    pkill -x socat || true
    stop_traffic
}

streams() { wc -l <"$traffic/streams.$1"; }        # HOST: number that ended well
heard() { stat -c %s "$traffic/heard.$1"; }        # HOST: bytes for the group
more_streams() { [ "$(streams "$1")" -gt "$2" ]; } # HOST COUNT
more_streams_of_each() { # one ends well from each host to the next
    local host before
    mapfile -t before < <(each_host streams)
    for host in $(seq "$PORTS"); do
        wait_for 60 more_streams "$host" "${before[host - 1]}" || fail "no stream of host $host to the next" || return 1
    done
}
