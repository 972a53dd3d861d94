# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2120,SC2119
# What suites, demo and shell share in the guest: the fabric, OpenSM, the driver, and hosts. Host i is network
# namespace h<i> with interface ib<i-1>, 10.0.0.<i>/24 and fd00::<i>/64. Waits poll; nothing sleeps and hopes.
debug=/sys/kernel/debug/soft_ib

# The in-tree driver's transmit poll may return a full budget after it completed, which the kernel says now and then.
if [ "$DRIVER" = stock ]; then export KNOWN_FAULTS='Budget exhausted after napi'; fi

fail() {
    echo "# $*"
    return 1
}

# wait_for SECONDS COMMAND...: until the command succeeds.
wait_for() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $deadline ] || fail "not within time: $*" || return 1
        sleep 0.1
    done
}

on() { # HOST COMMAND...
    local host=$1
    shift
    ip netns exec "h$host" "$@"
}

# The fabric

port_state_is() { [ "$(cat "/sys/class/infiniband/soft_ib$1/ports/1/state" 2>/dev/null)" = "$2" ]; }
all_ports_active() {
    local i
    for i in $(seq 0 $((PORTS - 1))); do port_state_is "$i" "4: ACTIVE" || return 1; done
}

lid() { echo $(($(cat "/sys/class/infiniband/soft_ib$(($1 - 1))/ports/1/lid"))); } # HOST
# How many ports OpenSM knows as members of a group; it tells whoever has its key.
members_of() { saquery --smkey 1 -m 2>/dev/null | awk -v m="MGID.*[.]$1\$" '$0 ~ /MGID/ { in_it = $0 ~ m } in_it && /PortGid/ { n++ } END { print n + 0 }'; }

# The default partition, and those of a suite's PARTITIONS. Code 4 is an MTU of 2048, 5 of 4096.
write_partitions() {
    mkdir -p /etc/opensm
    {
        echo "Default=0x7fff, ipoib, mtu=$([ "${MTU:-2048}" = 4096 ] && echo 5 || echo 4) : ALL=full;"
        [ -z "${PARTITIONS:-}" ] || echo "$PARTITIONS"
    } >/etc/opensm/partitions.conf
}
start_opensm() { # extra arguments
    write_partitions
    opensm --guid 0x0002c90300000010 --Pconfig /etc/opensm/partitions.conf --log_file /run/opensm.log "$@" \
        >/run/opensm.out 2>&1 &
}
# By name: a test is a shell of its own, so whoever started it is not always who stops it.
opensm_is_gone() { ! pgrep -x -r D,R,S opensm; }
stop_opensm() {
    pkill -x opensm || true
    wait_for 20 opensm_is_gone
}

start_fabric() {
    modprobe ib_umad
    # shellcheck disable=SC2086
    insmod /test/soft_ib.ko hcas="$PORTS" mtu="${MTU:-2048}" ${FABRIC:-}
    start_opensm
    wait_for 30 all_ports_active
}

counter() { awk -v name="$2" '$1 == name { print $2 }' "$debug/$(($1 - 1))/counters"; }  # HOST NAME
knob() { echo "$3" >"$debug/$(($1 - 1))/$2"; }                                            # HOST NAME VALUE

# The driver

load_driver() { # parameters
    if [ "$DRIVER" = stock ]; then
        modprobe ib_ipoib "$@"
    else
        modinfo -F depends /test/ib_ipoib.ko | tr , '\n' | xargs modprobe -a
        insmod /test/ib_ipoib.ko "$@"
    fi
}
unload_driver() { rmmod ib_ipoib; }
parameter() { cat "/sys/module/ib_ipoib/parameters/$1"; }

# Hosts

interface_of() { echo "ib$(($1 - 1))"; }
statistic() { on "$1" cat "/sys/class/net/$(interface_of "$1")/statistics/$2"; }
carrier() { [ "$(on "$1" cat "/sys/class/net/$(interface_of "$1")/carrier" 2>/dev/null)" = 1 ]; }
addresses_ready() { ! on "$1" ip -6 addr show dev "$(interface_of "$1")" | grep -q tentative && carrier "$1"; }

# The name, in the initial namespace, of the interface on a host's HCA.
born_as() {
    local device
    for device in /sys/class/net/*/device; do
        case $(readlink "$device") in */soft_ib.$(($1 - 1))) basename "$(dirname "$device")" && return ;; esac
    done
    return 1
}

add_host() {
    local dev born
    dev=$(interface_of "$1")
    ip netns list | grep -qw "h$1" || ip netns add "h$1"
    on "$1" ip link set lo up
    wait_for 5 born_as "$1"
    born=$(born_as "$1")
    # A HCA that was replugged gets the lowest number that is free here.
    ip link set "$born" netns "h$1" name "$dev"
    on "$1" ip addr add "10.0.0.$1/24" dev "$dev"
    on "$1" ip addr add "fd00::$1/64" dev "$dev"
    on "$1" ip link set "$dev" up
}
add_hosts() {
    local i
    for i in $(seq 1 "$PORTS"); do add_host "$i"; done
    for i in $(seq 1 "$PORTS"); do wait_for 30 addresses_ready "$i"; done
}
mode() { on "$1" cat "/sys/class/net/$(interface_of "$1")/mode"; }
mtu() { on "$1" cat "/sys/class/net/$(interface_of "$1")/mtu"; }
set_mode() { on "$1" sh -c "echo $2 >/sys/class/net/$(interface_of "$1")/mode"; } # HOST connected|datagram
set_mtu() { on "$1" ip link set "$(interface_of "$1")" mtu "$2"; }                # HOST MTU
# A suite's MODE: that of all hosts.
set_modes() {
    local i
    for i in $(seq 1 "$PORTS"); do [ -z "${MODE:-}" ] || set_mode "$i" "$MODE" || return 1; done
}
link_local() { on "$1" ip -6 -o addr show dev "$(interface_of "$1")" scope link | sed -nE 's,.* inet6 ([^/]+)/.*,\1,p'; }

ping_ok() { # FROM ADDRESS [ping arguments]
    local from=$1 to=$2
    shift 2
    on "$from" ping -q -W 2 -c 3 -i 0.1 "$@" "$to" >/run/ping.out 2>&1 || { sed 's/^/# /' /run/ping.out; return 1; }
    grep -q ' 0% packet loss' /run/ping.out || fail "$(grep loss /run/ping.out)"
}
# flood FROM ADDRESS COUNT [ping arguments]: as fast as answers come, and not one may be missing.
flood() {
    local from=$1 to=$2 count=$3
    shift 3
    on "$from" ping -q -f -c "$count" "$@" "$to" >/run/ping.out 2>&1 || true
    grep -q ' 0% packet loss' /run/ping.out || fail "$(grep transmitted /run/ping.out)"
}
reaches() { on "$1" ping -q -W 1 -c 1 "$2" >/dev/null; }

serve_iperf() { # HOST
    pgrep -f "iperf3 -s -B 10.0.0.$1 " >/dev/null && return
    on "$1" iperf3 -s -B "10.0.0.$1" --daemon >/dev/null
    wait_for 5 on "$1" sh -c 'ss -ltn | grep -q :5201'
}
iperf() { # FROM TO arguments...
    local from=$1 to=$2
    shift 2
    serve_iperf "$to"
    on "$from" timeout 60 iperf3 -c "10.0.0.$to" "$@" >/run/iperf.out 2>&1 || { tail -n 5 /run/iperf.out | sed 's/^/# /'; return 1; }
    echo "# $(grep -E 'receiver' /run/iperf.out | tail -n 1 | tr -s ' ')"
}

# TCP from 1 to 2, 3 to 4, ... at once.
four_pairs_of_iperf() {
    local host pids=()
    for host in 2 4 6 8; do serve_iperf $host; done
    for host in 1 3 5 7; do
        on $host timeout 30 iperf3 -c "10.0.0.$((host + 1))" -t 3 >"/run/iperf.$host" &
        pids+=($!)
    done
    wait "${pids[@]}"
    for host in 1 3 5 7; do grep -q receiver "/run/iperf.$host" || return 1; done
}

# systemd-networkd on a host, with the files in /run/network.<HOST>. It would wait for udev, which knows the initial
# namespace alone, were /sys not read-only.
start_networkd() { # HOST
    mkdir -p "/run/network.$1"
    [ -s /etc/machine-id ] || echo 000102030405060708090a0b0c0d0e0f >/etc/machine-id
    on "$1" sh -c "mount --bind /run/network.$1 /etc/systemd/network
        mount -o remount,ro /sys
        mkdir -p /run/systemd
        mount -t tmpfs tmpfs /run/systemd
        exec /lib/systemd/systemd-networkd" >>"/run/networkd.$1.log" 2>&1 &
    wait_for 10 grep -q 'Enumeration completed' "/run/networkd.$1.log"
}
networkd_is_gone() { ! pgrep -x systemd-network; }
stop_networkd() {
    pkill -x systemd-network || true
    wait_for 10 networkd_is_gone
}

stop_traffic() {
    pkill -x iperf3 || true
    pkill -x ping || true
}
