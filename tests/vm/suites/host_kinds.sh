# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Hosts of three kinds on one fabric, as of ConnectX-4 and later: host 1 uses its HCA's own datapath (rdma_netdev), and
# host 2 connected mode instead, at MTU 65520; host 3 has no rdma_netdev, and is in datagram mode.
PORTS=3
MTU=4096
FABRIC='rdma_netdev=1'

# shellcheck source=/dev/null
. ./groups.sh
# shellcheck source=/dev/null
. ./copies.sh

# The in-tree driver uses an HCA's rdma_netdev always: its hosts cannot differ.
before_each() {
    [ "$DRIVER" = ours ] || return 77
    if [ ! -e /sys/module/ib_ipoib ]; then
        load_driver ipoib_enhanced_except=soft_ib1,soft_ib2
        ! two_machines || there load_driver
        add_hosts
    fi
    [ "$(mode 2)" = connected ] || set_mode 2 connected
    [ "$(mode 3)" = datagram ] || set_mode 3 datagram
    each_pair meets
}

# Not in a condition, in which set -e has no effect.
each_pair() { # COMMAND: with FROM and TO
    local pair
    for pair in '1 2' '2 1' '1 3' '3 1' '2 3' '3 2'; do
        # shellcheck disable=SC2086 # two arguments
        "$@" $pair
    done
}
meets() { # FROM TO
    wait_for 20 reaches "$1" "10.0.0.$2"
    wait_for 20 reaches "$1" "fd00::$2"
}
pings() { # FROM TO
    ping_ok "$1" "10.0.0.$2"
    ping_ok "$1" "fd00::$2"
}

test_hosts_are_of_three_kinds() {
    [ "$(counter 1 accelerated_devices) $(counter 2 accelerated_devices) $(counter 3 accelerated_devices)" = '1 0 0' ]
    [ "$(mode 1) $(mode 2) $(mode 3)" = 'datagram connected datagram' ]
    [ "$(mtu 1) $(mtu 2) $(mtu 3)" = '4092 65520 4092' ]
    # Only addresses without the HCA's own datapath say that connections are accepted.
    [ "$(for host in 1 2 3; do lladdr $host | cut -c1-2; done | xargs)" = '00 80 80' ]
}

test_all_pairs_ping() { each_pair pings; }

test_each_kind_uses_its_own_way() {
    local accelerated connected
    accelerated=$(counter 1 accelerated_sends) connected=$(counter 2 rc_sent)
    flood 1 10.0.0.3 200
    [ $(($(counter 1 accelerated_sends) - accelerated)) -ge 200 ]
    flood 2 10.0.0.3 200
    [ $(($(counter 2 rc_sent) - connected)) -ge 200 ]
    # No connection leads to host 1; one probe or another of a neighbour may go to host 3 meanwhile.
    connected=$(counter 2 rc_sent)
    flood 2 10.0.0.1 200
    [ $(($(counter 2 rc_sent) - connected)) -lt 10 ]
}

# The path's MTU: 65520 on connections, else 4092.
pmtu() { # FROM TO
    if [ "$(mtu "$1")" = 65520 ] && [ "$2" != 1 ]; then echo 65520; else echo 4092; fi
}
learns_the_pmtu() { # FROM TO
    local address expected header=28
    expected=$(pmtu "$1" "$2")
    for address in "10.0.0.$2" "fd00::$2"; do
        [ "$(learned_pmtu "$1" "$address")" = "$expected" ] || fail "$1 to $address: $(cat /run/tracepath)"
        ping_ok "$1" "$address" -M "do" -s $((expected - header))
        too_long "$1" "$address" $((expected - header + 1))
        header=48
    done
}
test_path_mtu_of_all_pairs() { each_pair learns_the_pmtu; }

# In fragments where the path's MTU is smaller. A socket that does not know that MTU gets an error for its first packet,
# which ping reports as lost.
sends_60000_bytes() { # FROM TO
    local address
    for address in "10.0.0.$2" "fd00::$2"; do
        on "$1" ping -q -c 2 -i 0.2 -W 1 -s 60000 "$address" >/dev/null 2>&1 || true
        on "$1" /test/ping_sizes.py "$address" 60000 4065 20000
    done
}
test_long_packets_of_all_pairs() { each_pair sends_60000_bytes; }

# A sender that does not know the path's MTU learns it from its first long segment.
copies_5_mib() { # FROM TO
    on "$1" ip route flush cache
    copies 5M "$1" "$2"
}
test_tcp_of_all_pairs() { each_pair copies_5_mib; }

hears() { # FROM TO
    group_is_heard 239.1.2.3 "$1" "$2"
    at "$2" nobody_listens
}
test_multicast_of_all_pairs() { each_pair hears; }

# Host 3 in connected mode, too: both directions of one pair carry 65520 bytes, and those of host 1 do not change.
test_path_mtu_with_two_hosts_in_connected_mode() {
    set_mode 3 connected
    [ "$(mtu 3)" = 65520 ]
    each_pair meets
    each_pair learns_the_pmtu
    each_pair sends_60000_bytes
}
