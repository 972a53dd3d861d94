# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2016,SC2120,SC2119
# Functions that suites, demo and shell share in the guest: the fabric, OpenSM, the driver, and hosts. Waits poll with a
# timeout.
#
#   network namespaces, one for each host; the suite's PORTS is their number n
#  +- h1 -------------+  +- h2 -------------+       +- h<n> ------------+
#  | ib0              |  | ib1              |       | ib<n-1>           |
#  |  10.0.0.1/24     |  |  10.0.0.2/24     |  ...  |  10.0.0.<n>/24    |
#  |  fd00::1/64      |  |  fd00::2/64      |       |  fd00::<n>/64     |
#  +--------+---------+  +--------+---------+       +--------+----------+
#           |                     |                          |             driver: ib_ipoib
#  +--------+---------+  +--------+---------+       +--------+----------+
#  | soft_ib0, 1 port |  | soft_ib1, 1 port |  ...  | soft_ib<n-1>      |  HCAs, debugfs soft_ib/0 .. soft_ib/<n-1>
#  +--------+---------+  +--------+---------+       +--------+----------+
#           | OpenSM's port       |                          |             OpenSM: initial namespace, soft_ib0
#  +--------+---------------------+--------------------------+----------+
#  |                      switch of the fabric                          |
#  +--------------------------------------------------------------------+
#  MACHINES=2: the last host, its HCA, driver and a second switch are in another VM. The switches' trunk is
#  eth0 of both (192.0.2.1, 192.0.2.2). SM_HOST names the host whose port, and VM, OpenSM has.
debug=/sys/kernel/debug/soft_ib

# Messages that the in-tree driver may log in any test: its transmit poll may return a full budget after completion; its
# files in debugfs have the interface's name without its namespace; it logs each path that it cannot query while no
# subnet manager is known, and failed sends of connections whose peer has ended them.
if [ "$DRIVER" = stock ]; then
    KNOWN_FAULTS='Budget exhausted after napi|debugfs: File .* in directory .ipoib. already present|ib_sa_path_rec_get failed: -11'
    KNOWN_FAULTS+='|failed cm send event'
    export KNOWN_FAULTS
fi

fail() {
    echo "# $*"
    return 1
}

# True if standard input has a line with the pattern. Reads to the end, unlike grep -q, after whose match the writer may
# fail: with pipefail the pipe would fail, and its negation succeed, although there is such a line.
says() { [ "$(grep -c "$@")" -gt 0 ]; } # [grep option] PATTERN

# The kernel log is never cleared: run-suite reads all of it. Messages since the last mark_log:
mark_log() { # in this shell or a caller's
    log_mark="mark $BASHPID.$RANDOM$RANDOM"
    echo "test: $log_mark" >/dev/kmsg
}
log_since_mark() { dmesg | awk -v mark="test: $log_mark" 'index($0, mark) { n = 0; next } { line[n++] = $0 } END { for (i = 0; i < n; i++) print line[i] }'; }
logged() { log_since_mark | says -E "$1"; } # PATTERN

# Names a fault in the kernel log that the test provokes: it counts neither here nor on the console.
expect_in_log() { # PATTERN
    echo "# expects in the kernel log: $1"
    echo "$1" >>/run/expected_in_log
}
# The kernel removes each GID of a port from its table while it reads the table anew: joins and reads may find none if
# ports must reregister repeatedly, or are unplugged.
expect_missing_gids() { expect_in_log 'ib_address_create failed.* -?(61|ENODATA)|failed to read the GID table of port ., error -2'; }

# With kill_rc the HCA of a peer refuses what is sent over connections (IB_WC_REM_OP_ERR).
expect_refused_sends() { expect_in_log 'failed cm send event \(status=11'; }

# A command that must fail, with a message that is given as a regular expression.
refused() { # MESSAGE COMMAND...
    ! "${@:2}" >/run/refusal 2>&1 || fail "was accepted: ${*:2}" || return 1
    says -E "$1" /run/refusal || fail "${*:2}: $(cat /run/refusal)"
}
# The message if this driver is loaded. The in-tree driver's may be any.
ours() { [ "$DRIVER" = stock ] || echo "$1"; } # MESSAGE

# Leaves out tests of another suite that this one includes by ". suites/other.sh".
without() { # TEST...
    local name
    for name in "$@"; do
        declare -F "test_$name" >/dev/null || fail "no test to leave out: $name" || return 1
        unset -f "test_$name"
    done
}

# Factor by which programs are slower than on an idle machine of two processors: the kernel may have checkers, the
# machine be slow or busy. Measured by the start of programs, which is most of the suites' work.
patience=${patience:-1}
measure_patience() {
    local started=$EPOCHREALTIME i
    for i in {1..10}; do ip -V >/dev/null; done
    patience=$(awk -v a="$started" -v b="$EPOCHREALTIME" -v usual="$usual_seconds" 'BEGIN { p = (b - a) / usual; print (p > 1 ? int(p + 0.99) : 1) }')
}
usual_seconds=0.12

# As sleep, without starting a program: nothing is ever written to this pipe.
exec {nothing}<> <(:)
pause() { read -rt "$1" -u "$nothing" || true; } # SECONDS

# wait_for SECONDS COMMAND...: until the command succeeds.
wait_for() {
    local deadline=$((SECONDS + patience * $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $deadline ] || fail "not within time: $*" || return 1
        pause 0.1
    done
}

repeat_for() { # SECONDS COMMAND...
    local end=$((SECONDS + $1))
    shift
    while [ $SECONDS -lt $end ]; do "$@"; done
}

kernel_is() { printf '%s\n' "$1" "$(uname -r)" | sort -CV; } # VERSION, or later
two_machines() { [ "${MACHINES:-1}" = 2 ]; }
# Host i is here, or, with MACHINES=2, the last one on the other machine, which executes requests (serve).
at() { # HOST COMMAND...: outside of the host's namespace
    local host=$1
    shift
    if two_machines && [ "$host" = "$PORTS" ]; then there "$@"; else "$@"; fi
}
# `ip netns exec` also mounts another /sys, which takes a third of the time of a short program, and which these programs
# do not read.
on() { # HOST COMMAND...
    case "$2 ${3:-}" in
    'ip vrf') at "$1" ip netns exec "h$1" "${@:2}" ;;
    'ip '*) at "$1" ip -n "h$1" "${@:3}" ;;
    'ping '* | 'iperf3 '* | 'ss '* | 'nstat '* | 'socat '* | 'ethtool '*) at "$1" nsenter "--net=/run/netns/h$1" "${@:2}" ;;
    *) at "$1" ip netns exec "h$1" "${@:2}" ;;
    esac
}

# The fabric

# The cable to another machine is a network interface.
trunk_up() { # INTERFACE
    modprobe -a virtio_pci virtio_net || return 1
    wait_for 5 test -e "/sys/class/net/$1" || return 1
    ip link set "$1" mtu 9000 txqueuelen 10000 up
}
# Executes a command of another machine's shell, which has the functions of this file.
ask() { # ADDRESS COMMAND...
    local line first=1 status=255
    while IFS= read -r line; do
        case $line in @@[0-9]*) status=${line#@@} && break ;; esac
        [ -n "$first" ] || echo
        first=
        printf %s "$line"
    done < <(printf '%q ' "${@:2}" | base64 -w 0 | socat -t 3600 - "TCP:$1:7")
    return "$status"
}
# On the last host's machine, also with the functions of the suite.
there() { ask 192.0.2.2 "$@"; } # COMMAND...

port_state_is() { [ "$(cat "/sys/class/infiniband/soft_ib$1/ports/1/state" 2>/dev/null)" = "$2" ]; }
all_ports_active() {
    local i
    for i in $(seq 0 $((PORTS - 1))); do at $((i + 1)) port_state_is "$i" "4: ACTIVE" || return 1; done
}

guid() { printf '0x%016x' $((0x0002c90300000010 + 0x100 * ($1 - 1))); } # HOST
lid() { echo $(($(at "$1" cat "/sys/class/infiniband/soft_ib$(($1 - 1))/ports/1/lid"))); } # HOST
# Number of ports that OpenSM has as members of a group; needs OpenSM's SM_Key.
members_of() { saquery --smkey 1 -m 2>/dev/null | awk -v m="MGID.*[.]$1\$" '$0 ~ /MGID/ { in_it = $0 ~ m } in_it && /PortGid/ { n++ } END { print n + 0 }'; }

# The code of an MTU (IBA 14.2.5.6): 3 for 1024, 4 for 2048, 5 for 4096.
mtu_code() { case $1 in 1024) echo 3 ;; 2048) echo 4 ;; 4096) echo 5 ;; esac; } # MTU
# The default partition, and those of a suite's PARTITIONS.
write_partitions() {
    mkdir -p /etc/opensm
    {
        echo "Default=0x7fff, ipoib, mtu=$(mtu_code "${MTU:-2048}") : ALL=full;"
        [ -z "${PARTITIONS:-}" ] || echo "$PARTITIONS"
    } >/etc/opensm/partitions.conf
}
# Uses the first port, or that of host SM_HOST.
start_opensm() { # extra arguments
    write_partitions
    opensm --guid "$(guid "${SM_HOST:-1}")" --Pconfig /etc/opensm/partitions.conf --log_file /run/opensm.log "$@" \
        >/run/opensm.out 2>&1 &
}
# True if all hosts, or COUNT, are members of the broadcast group.
all_are_members() { [ "$(members_of ff12:401b:ffff::ffff:ffff)" = "${1:-$PORTS}" ]; } # [COUNT]
# Starts OpenSM if an earlier test stopped it, and waits until all hosts have joined.
ensure_opensm() {
    ! opensm_is_gone || start_opensm
    wait_for 30 all_are_members
}
# Found by name: a test is a shell of its own, and may stop a program that another one started.
is_gone() { ! pgrep -x -r D,R,S "$1" >/dev/null; } # PROGRAM, as the kernel names it: 15 characters at most
end_program() { # PROGRAM SECONDS
    pkill -x "$1" || true
    wait_for "$2" is_gone "$1"
}
opensm_is_gone() { is_gone opensm; }
stop_opensm() { end_program opensm 20; }

load_fabric() { # parameters
    modprobe -a ib_umad ib_uverbs
    # shellcheck disable=SC2086
    insmod /test/soft_ib.ko mtu="${MTU:-2048}" ${QUEUES:+vectors=$QUEUES} ${FABRIC:-} "$@"
}
start_fabric() {
    if two_machines; then
        trunk_up eth0 && ip addr add 192.0.2.1/24 dev eth0 || return 1
        wait_for 60 there true || return 1
        load_fabric hcas=$((PORTS - 1)) trunk=eth0 || return 1
        # shellcheck disable=SC2086 # several parameters
        there load_fabric hcas=1 first_hca=$((PORTS - 1)) trunk=eth0 ${PEER_FABRIC:-} || return 1
    else
        load_fabric hcas="$PORTS" || return 1
    fi
    at "${SM_HOST:-1}" start_opensm || return 1
    wait_for 30 all_ports_active
}

counter() { at "$1" awk -v name="$2" '$1 == name { print $2; found = 1 } END { exit !found }' "$debug/$(($1 - 1))/counters"; } # HOST NAME
queues_kib() { cat "$debug"/*/counters | awk '$1 == "queue_bytes" { n += $2 } END { print int(n / 1024) }'; }
# Ends of connections, queue pairs of type RC, on all HCAs.
connection_ends() { rdma resource show qp | grep -c 'type RC' || true; }
connection_ends_are() { [ "$(connection_ends)" = "$1" ]; }
write() { echo "$2" >"$1"; }                                                                     # FILE TEXT
knob() { at "$1" write "$debug/$(($1 - 1))/$2" "$3"; }                                           # HOST NAME VALUE
# Makes OpenSM sweep. Without that it may never find a link that has come up: it ignores a trap that has come more than
# ten times, each within 5 s of the former, and a sweep in progress clears the switch's PortStateChange.
sweep() { at "${SM_HOST:-1}" pkill -HUP -x opensm || true; }
link_up() { # HOST
    knob "$1" link 1
    sweep
}
# Plugs an HCA in; an interface that comes up at once may find no GIDs.
plug_in() { # HOST
    expect_missing_gids
    knob "$1" plugged 1
    sweep
}

# Captures of everything on the fabric's wire (soft_ib/README.md); the host's check-captures checks the handed-out
# ones. Start background processes before, or they hold the capture open.
start_capture() { exec {capture}<$debug/capture; }
end_capture() { # NAME
    mkdir -p "$(dirname "/run/captures/$1")"
    echo >$debug/capture
    cat <&"$capture" >"/run/captures/$1.erf"
    exec {capture}<&-
    [ "$(cat $debug/capture_lost)" = 0 ] || fail "$(cat $debug/capture_lost) packets are missing in the capture $1"
}
hand_out() { tar cz -C /run "$1" | base64 >"$CAPTURES"; } # DIRECTORY in /run
hand_out_captures() { hand_out captures; }

# The driver

load_driver() { # parameters
    if [ "$DRIVER" = stock ]; then
        modprobe ib_ipoib "$@"
    else
        modinfo -F depends /test/ib_ipoib.ko | tr , '\n' | xargs modprobe -a
        insmod /test/ib_ipoib.ko "$@"
    fi
}
load_drivers() { load_driver && { ! two_machines || there load_driver; }; }
unload_driver() { rmmod ib_ipoib; }
parameter() { cat "/sys/module/ib_ipoib/parameters/$1"; }

# Runs before each test, so that tests can run alone: nothing, unless a suite defines it.
before_each() { :; }

# Hosts

interface_of() { echo "ib$(($1 - 1))"; }
statistic() { on "$1" cat "/sys/class/net/$(interface_of "$1")/statistics/$2"; }
stack_counter() { on "$1" nstat -asz "$2" | awk -v name="$2" '$1 == name { print $2; found = 1 } END { exit !found }'; } # HOST NAME
statistic_of() { on "$1" ethtool -S "$(interface_of "$1")" | awk -v name="$2:" '$1 == name { print $2; found = 1 } END { exit !found }'; } # HOST NAME
# Packets sent by other transmit queues than the first.
further_packets() { on "$1" ethtool -S "$(interface_of "$1")" | awk '/^ *tx[1-7]_packets:/ { n += $2 } END { print n + 0 }'; } # HOST
carrier() { [ "$(on "$1" cat "/sys/class/net/${2:-$(interface_of "$1")}/carrier" 2>/dev/null)" = 1 ]; } # HOST [INTERFACE]
no_carrier() { ! carrier "$@"; }
lladdr() { on "$1" cat "/sys/class/net/${2:-$(interface_of "$1")}/address"; } # HOST [INTERFACE]
addresses_ready() { ! on "$1" ip -6 addr show dev "$(interface_of "$1")" | says tentative && carrier "$1"; }

# Name, in the initial namespace, of the interface on a host's HCA.
born_as() {
    local devices=("/sys/devices/soft_ib.$(($1 - 1))/net"/*)
    [ -e "${devices[0]}" ] || return 1
    echo "${devices[0]##*/}"
}

add_host() { at "$1" add_host_here "$1"; } # HOST
add_host_here() {
    local dev born
    dev=$(interface_of "$1")
    [ -e "/run/netns/h$1" ] || ip netns add "h$1" || return 1
    wait_for 5 born_as "$1" || return 1
    born=$(born_as "$1")
    # A replugged HCA gets the lowest free number here.
    ip link set "$born" netns "h$1" name "$dev" || return 1
    {
        echo link set lo up
        echo "addr add 10.0.0.$1/24 dev $dev"
        # IPv6 takes no interface whose MTU is below 1280 bytes (RFC 8200, 5).
        [ "${MTU:-2048}" -lt 1284 ] || echo "addr add fd00::$1/64 dev $dev"
        echo "link set $dev up"
    } | on "$1" ip -batch -
}
add_hosts() {
    local i
    for i in $(seq 1 "$PORTS"); do add_host "$i" || return 1; done
    for i in $(seq 1 "$PORTS"); do wait_for 30 addresses_ready "$i" || return 1; done
}
mode() { on "$1" cat "/sys/class/net/$(interface_of "$1")/mode"; }
mtu() { on "$1" cat "/sys/class/net/$(interface_of "$1")/mtu"; }
set_mode() { on "$1" sh -c "echo $2 >/sys/class/net/$(interface_of "$1")/mode"; } # HOST connected|datagram
set_mtu() { on "$1" ip link set "$(interface_of "$1")" mtu "$2"; }                # HOST MTU
# Sets a suite's MODE on all hosts.
set_modes() {
    local i
    for i in $(seq 1 "$PORTS"); do [ -z "${MODE:-}" ] || set_mode "$i" "$MODE" || return 1; done
}
take_down() { on "$1" ip link set "$(interface_of "$1")" down; } # HOST
# Up again, with the IPv6 address that going down has removed.
bring_up() { # HOST
    on "$1" ip link set "$(interface_of "$1")" up
    on "$1" ip addr replace "fd00::$1/64" dev "$(interface_of "$1")"
}
# Creates a child through sysfs. The in-tree driver creates it in the initial namespace, not in its parent's.
make_child() { # HOST PKEY
    local child
    child=$(interface_of "$1").${2#0x}
    on "$1" sh -c "echo $2 >/sys/class/net/${child%.*}/create_child"
    ! at "$1" test -e "/sys/class/net/$child" || at "$1" ip link set "$child" netns "h$1"
}
attribute() { on "$1" cat "/sys/class/net/$2/$3"; }                               # HOST INTERFACE FILE
file() { cat "/sys/class/net/$1/$2"; }                                            # INTERFACE FILE, outside of the hosts
link_local() { on "$1" ip -6 -o addr show dev "$(interface_of "$1")" scope link | sed -nE 's,.* inet6 ([^/]+)/.*,\1,p'; }

# Hosts 1 and 2 get all their addresses and carrier, in whatever state they were, and lose nothing between them.
both_work() {
    on 1 ip addr replace fd00::1/64 dev ib0
    on 2 ip addr replace fd00::2/64 dev ib1
    wait_for 30 carrier 1
    wait_for 30 carrier 2
    wait_for 20 reaches 1 10.0.0.2
    ping_ok 2 10.0.0.1
    flood 1 10.0.0.2 200
}

# Traffic

# shellcheck source=pings.sh
. "$(dirname "${BASH_SOURCE[0]}")/pings.sh"

# Path MTU that tracepath finds, whose output is in /run/tracepath.
learned_pmtu() { # FROM ADDRESS
    on "$1" timeout $((30 * patience)) tracepath -n -m 3 "$2" 2>&1 | tee /run/tracepath | sed -nE 's/.*pmtu ([0-9]+)$/\1/p' | tail -n 1
}
# Waits until a host's counter has grown by COUNT.
arrive() { # HOST COUNTER COUNT
    wait_for 30 counted "$1" "$2" $(($(stack_counter "$1" "$2") + $3)) || fail "$2 of host $1 does not grow"
}
counted() { [ "$(stack_counter "$1" "$2")" -ge "$3" ]; } # HOST COUNTER COUNT
segments_arrive() { arrive "$1" TcpInSegs 1000; }        # HOST
listens() { on "$1" ss -ltn | says "$2"; } # HOST [ADDRESS]:PORT
is_served() { ss -ltn | says ":$1"; }      # PORT, outside of the hosts
serve_iperf() { # HOST [iperf3's arguments]
    if at "$1" pgrep -f "iperf3 -s -B 10.0.0.$1 " >/dev/null; then return; fi
    on "$1" iperf3 -s -B "10.0.0.$1" "${@:2}" --daemon >/dev/null
    wait_for 5 listens "$1" :5201
}
iperf() { # FROM TO arguments...
    local from=$1 to=$2
    shift 2
    serve_iperf "$to"
    on "$from" timeout $((60 * patience)) iperf3 -c "10.0.0.$to" "$@" >/run/iperf.out 2>&1 || { tail -n 5 /run/iperf.out | sed 's/^/# /'; return 1; }
    echo "# $(grep -E 'receiver' /run/iperf.out | tail -n 1 | tr -s ' ')"
}

# UDP from one host to another with a loss below 1 %: the sockets' buffers hold the packets that arrive while the reader
# waits for a processor, so losses are the driver's or the link's.
udp() { # FROM TO BITRATE arguments...
    local from=$1 to=$2 rate=$3
    shift 3
    local host
    for host in "$from" "$to"; do at "$host" sysctl -qw net.core.rmem_max=16777216 net.core.wmem_max=16777216; done
    iperf "$from" "$to" -u -b "$rate" -w 8M "$@"
    grep receiver /run/iperf.out | says -E '\(0(\.[0-9]+)?%\)'
}

# TCP from one host to another until end_stream, with each byte compared; one stream at a time to each host. The number
# of bytes so far is in /run/stream.<TO>.
declare -A stream_sender stream_receiver
start_stream() { # FROM TO [BYTES A SECOND [ADDRESS]]
    local address=${4:-10.0.0.$2}
    pkill -KILL -f "stream.py [a-z]* $address 7000" || true
    on "$2" ./stream.py listen "$address" 7000 "/run/stream.$2" >"/run/stream.$2.received" 2>&1 &
    stream_receiver[$2]=$!
    wait_for 20 listens "$2" "$address]\?:7000"
    echo "$address" >"/run/stream.$2.to"
    on "$1" ./stream.py send "$address" 7000 "${3:-0}" >"/run/stream.$2.sent" 2>&1 &
    stream_sender[$2]=$!
    stream_goes_on "$2"
}
streamed() { cat "/run/stream.$1"; } # TO
streamed_more_than() { [ "$(streamed "$1")" -gt "$2" ]; }
# Waits for 300 KB more.
stream_goes_on() { # TO [SECONDS]
    wait_for "${2:-30}" streamed_more_than "$1" $(($(streamed "$1") + 300000)) ||
        fail "$(cat "/run/stream.$1.sent" "/run/stream.$1.received")"
}
end_stream() { # TO
    kill -0 "${stream_sender[$1]}" || fail "the stream had ended before: $(cat "/run/stream.$1.sent")" || return 1
    pkill -f "stream.py send $(cat "/run/stream.$1.to") 7000 " || true
    wait "${stream_sender[$1]}"
    wait "${stream_receiver[$1]}" || fail "$(cat "/run/stream.$1.received")" || return 1
    [ "$(cat "/run/stream.$1.sent")" = "$(cat "/run/stream.$1.received")" ] ||
        fail "sent: $(cat "/run/stream.$1.sent"); received: $(cat "/run/stream.$1.received")" || return 1
    echo "# $(cat "/run/stream.$1.received") bytes"
}

# TCP from 1 to 2, 3 to 4, ... at once.
four_pairs_of_iperf() {
    local host pids=()
    for host in 2 4 6 8; do serve_iperf $host; done
    for host in 1 3 5 7; do
        on $host timeout $((30 * patience)) iperf3 -c "10.0.0.$((host + 1))" -t 3 >"/run/iperf.$host" &
        pids+=($!)
    done
    wait "${pids[@]}"
    for host in 1 3 5 7; do grep -q receiver "/run/iperf.$host" || return 1; done
}

# Matches whole command lines, so that processes of `ip netns exec` before the program starts end too. Such a process
# would look for a host that may be gone by then, and hold its namespace for two minutes.
no_traffic() { ! pkill -f '(^|[ /])(iperf3|ping) -'; }
stop_traffic() {
    # The sender ends the stream before it exits, which the peer has to answer.
    pkill -KILL -f '[/]stream.py ' || true
    wait_for 10 no_traffic
}

# The end

# kmemleak, which KERNEL=debug has, finds no allocated memory without a pointer to it. It reports objects that are 5 s
# old, and whose content two scans found unchanged.
no_memory_is_leaked() {
    local file=/sys/kernel/debug/kmemleak
    [ -e $file ] || return 0
    sleep 6
    echo scan >$file
    echo scan >$file
    cat $file >/run/kmemleak
    [ ! -s /run/kmemleak ] || { sed 's/^/# kmemleak: /' /run/kmemleak; return 1; }
}

nothing_left() { # on this machine
    stop_traffic
    local ns directory
    for ns in $(ip netns list | awk '{ print $1 }'); do ip netns del "$ns"; done
    if [ -e /sys/module/ib_ipoib ]; then wait_for 10 unload_driver || return 1; fi
    stop_opensm
    if [ -e /sys/module/soft_ib ]; then wait_for 10 rmmod soft_ib || return 1; fi
    ! grep -E '^(ib_ipoib|soft_ib) ' /proc/modules || fail "a module is still loaded" || return 1
    ! ls -d /sys/class/net/ib* 2>/dev/null || fail "an interface is left" || return 1
    ! ls -d /sys/class/infiniband/* 2>/dev/null || fail "an HCA is left" || return 1
    for directory in /sys/kernel/debug/{ipoib,soft_ib}; do [ ! -e "$directory" ] || fail "$directory is left" || return 1; done
    no_memory_is_leaked
}
nothing_left_anywhere() {
    nothing_left
    ! two_machines || there nothing_left
}
