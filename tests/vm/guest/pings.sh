# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# Pings between hosts, and what became of them. Part of lib.sh.

# Sums hosts' counters, as nstat shows them: those that match the first expression, less those that match the second
# one.
difference() { # EXPRESSION EXPRESSION HOST...
    local host sum=0 one
    for host in "${@:3}"; do
        one=$(on "$host" nstat -asz 'Icmp*Echo*' | awk -v plus="$1" -v minus="$2" '
            $1 ~ plus { n += $2; found++ } $1 ~ minus { n -= $2; found++ } END { print n + 0; exit found != 4 }') || return 1
        sum=$((sum + one))
    done
    echo $sum
}
# Echo requests that hosts sent and that the kernel has seen no reply to.
unanswered() { difference '^Icmp6?OutEchos$' '^Icmp6?InEchoRep(s|lies)$' "$@"; } # HOST...
# Echo requests that hosts received and whose replies the kernel gave up before the driver had them. Each processor has
# one ICMP socket (before 5.18: one for each namespace) with space for two replies of 64 KiB; those that do not fit are
# counted in IcmpOutErrors. Nor does a reply wait for the socket (icmp_xmit_lock()): in PREEMPT_RT from 6.18 on, a task
# that preempts the socket's owner gives up, without an error in the counters. Hosts that a suite removed, or has
# outside of their namespaces, do not count.
given_up() {
    local host hosts=()
    for host in $(seq "$PORTS"); do ! at "$host" test -e "/run/netns/h$host" || hosts+=("$host"); done
    difference '^Icmp6?InEchos$' '^Icmp6?OutEchoRep(s|lies)$' "${hosts[@]}"
}

# Whether pings lose nothing: begin_pings HOST..., then pings of these hosts, at once or in turn, whose output is in
# FILES, then none_was_lost FILE... Other pings meanwhile, and those to broadcast addresses, which most hosts ignore,
# would be counted too.
begin_pings() {
    ping_senders=("$@")
    unanswered_before=$(unanswered "$@") && given_up_before=$(given_up)
}
# Counts since begin_pings: replies that were given up, and other requests without a reply, which were lost.
count_pings() {
    local requests replies
    requests=$(unanswered "${ping_senders[@]}") && replies=$(given_up) && pings_given_up=$((replies - given_up_before)) &&
        pings_lost=$((requests - unanswered_before - pings_given_up))
}
no_more_are_lost() { count_pings && [ "$pings_lost" -le 0 ]; }
# After a first answer, ping itself waits for the last ones no longer than two round trips, and counts as lost the
# packets that a path lookup delays or its socket has no space for: the kernel's counters decide then. Each ping command
# must have had an answer. Replies may have been given up to a tenth, rounded down, of the requests that are long or
# whose kernel has PREEMPT_RT.
none_was_lost() {
    local losing sent
    [ "$(grep -l ' 0% packet loss' "$@" | wc -l)" != $# ] || return 0
    if [ "$(grep -l ' [1-9][0-9]* received, [0-9.]*% packet loss' "$@" | wc -l)" = $# ] &&
        wait_for 5 no_more_are_lost; then
        sent=$(awk -v realtime="$(uname -v | grep -o PREEMPT_RT || true)" '
            match($0, /[0-9]+(\([0-9]+\))? (bytes of data|data bytes)/) { long = substr($0, RSTART) + 0 > 16384 }
            / packets transmitted/ && (long || realtime) { n += $1 } END { print n + 0 }' "$@")
        [ "$pings_given_up" = 0 ] || echo "# replies that the kernel gave up: $pings_given_up"
        [ "$pings_given_up" -gt $((sent / 10)) ] || return 0
    fi
    mapfile -t losing < <(grep -L ' 0% packet loss' "$@" || true)
    grep -H . "${losing[@]}" /dev/null | sed 's/^/# /'
    ! count_pings || echo "# lost: $pings_lost, replies given up: $pings_given_up"
    return 1
}
# Pings without loss.
lossless() { # HOST ping arguments
    local out
    out=$(mktemp /run/ping.XXXXXX)
    begin_pings "$1" || return 1
    on "$1" ping -q "${@:2}" >"$out" 2>&1 || true
    none_was_lost "$out" || return 1
    rm "$out"
}
ping_ok() { lossless "$1" -W 2 -c 3 -i 0.1 "${@:3}" "$2"; } # FROM ADDRESS [ping arguments]
# The host's own stack refuses a packet that is longer than the MTU.
too_long() { # FROM ADDRESS BYTES
    # Another machine returns standard output alone.
    ! on "$1" sh -c "ping -c 1 -W 1 -M do -s $3 $2 2>&1" >/run/ping.out || fail "$3 bytes were sent" || return 1
    grep -q 'message too long' /run/ping.out || { sed 's/^/# /' /run/ping.out; return 1; }
}
# Pings all nodes from host 1, which host 1's own stack answers too: host 2's statistics tell that they arrived.
multicast_arrives() {
    local before
    before=$(statistic 2 multicast)
    on 1 ping -q -c 3 -i 0.1 -W 10 ff02::1%ib0 >/dev/null
    wait_for 5 eval "[ \$(statistic 2 multicast) -ge $((before + 3)) ]"
}
# Pings the broadcast address, which another host, but not this one, answers.
pings_broadcast() { # FROM, ANSWERING HOST
    on "$2" sysctl -qw net.ipv4.icmp_echo_ignore_broadcasts=0
    on "$1" ping -q -b -c 3 -i 0.2 -W 10 10.0.0.255 >/run/ping.out 2>&1 || true
    grep -q ' 0% packet loss' /run/ping.out || { sed 's/^/# /' /run/ping.out; return 1; }
}
# Flood ping, as fast as answers come.
flood() { lossless "$1" -f -c "$3" "${@:4}" "$2"; } # FROM ADDRESS COUNT [ping arguments]
# Pings 500 times a second until stop_traffic, and leaves processor time to what is tested, as a flood would not.
background_ping() { on "$1" ping -q -i 0.002 "${@:2}" >/dev/null 2>&1 & } # FROM ADDRESS [ping arguments]
# Waits until a host has received 10 more echo requests, or COUNT, of background_ping.
pings_arrive() { arrive "$1" IcmpInEchos "${2:-10}"; } # HOST [COUNT]
reaches() { on "$1" ping -q -W "$patience" -c 1 "$2" >/dev/null; }
here_reaches() { ping -q -W "$patience" -c 1 "$1" >/dev/null; } # ADDRESS, outside of the hosts
