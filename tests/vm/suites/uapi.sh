# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Interfaces to programs and peers that no other suite checks: modinfo, properties of the netdev, log lines. Partition
# quiet has no broadcast group.
PORTS=2
HOSTS=1
PARTITIONS='blue=0x0001, ipoib : ALL=full;
quiet=0x0007 : ALL=full;'

# shellcheck source=/dev/null
. ./groups.sh

module() { [ "$DRIVER" = stock ] && echo ib_ipoib || echo /test/ib_ipoib.ko; }

# Module

test_modinfo_shows_name_licence_and_dependencies() {
    [ "$(modinfo -F license "$(module)")" = 'Dual BSD/GPL' ]
    [ "$(modinfo -F name "$(module)")" = ib_ipoib ]
    [ "$(modinfo -F depends "$(module)" | tr , '\n' | sort | xargs)" = 'ib_cm ib_core' ]
}

test_module_has_the_rtnl_link_alias() { modinfo -F alias "$(module)" | says -x rtnl-link-ipoib; }
test_module_has_an_author() { modinfo -F author "$(module)" | says .; }

test_nothing_is_registered_after_unload() {
    local modprobe
    on 1 ip -d link show ib0 | says ipoib
    unload_driver
    [ ! -e /sys/kernel/debug/ipoib ]
    ! awk '{ print $4 }' /proc/modules | says ib_ipoib || return 1
    # Keeps the kernel from loading a module for the link kind.
    modprobe=$(cat /proc/sys/kernel/modprobe)
    echo /bin/true >/proc/sys/kernel/modprobe
    refused 'Unknown device type' ip link add link lo name x type ipoib pkey 0x8001
    echo "$modprobe" >/proc/sys/kernel/modprobe
    # A client that is still registered would be called for a new HCA, in freed code.
    knob 2 plugged 0
    plug_in 2
    wait_for 30 port_state_is 1 '4: ACTIVE'
    ! born_as 2 || return 1
    load_driver
    add_hosts
    wait_for 20 reaches 1 10.0.0.2
}

test_parameters_have_their_types_and_modes() {
    local name
    for name in send_queue_size recv_queue_size max_nonsrq_conn_qp debug_level mcast_debug_level; do
        modinfo -F parm "$(module)" | says -E "^$name:.*\(int\)$" || fail "$name is no int" || return 1
    done
    for name in send_queue_size recv_queue_size max_nonsrq_conn_qp; do
        [ "$(stat -c %a /sys/module/ib_ipoib/parameters/$name)" = 444 ]
    done
    for name in debug_level mcast_debug_level; do
        [ "$(stat -c %a /sys/module/ib_ipoib/parameters/$name)" = 644 ]
    done
}

test_port_of_another_link_layer_gets_no_interface() {
    modprobe rdma_rxe
    ip link add ether type dummy
    ip link set ether up
    rdma link add rxe0 type rxe netdev ether
    [ -e /sys/class/infiniband/rxe0 ]
    ! ip -o link show type ipoib | grep . || return 1
    rdma link delete rxe0
    ip link del ether
    rmmod rdma_rxe
    ping_ok 1 10.0.0.2
}

# netdev

test_netdev_has_the_in_tree_properties() {
    [ "$(attribute 1 ib0 type)" = 32 ]
    [ "$(attribute 1 ib0 addr_len)" = 20 ]
    [ "$(attribute 1 ib0 dev_id)" = 0x0 ]
    [ "$(attribute 1 ib0 dev_port)" = 0 ]
    [ "$(attribute 1 ib0 addr_assign_type)" = 0 ]
    # IFF_BROADCAST, IFF_MULTICAST, and the flags of an interface that is up.
    [ $(($(attribute 1 ib0 flags) & 0x1002)) = $((0x1002)) ]
    [ $(($(attribute 1 ib0 flags) & ~0x1043)) = 0 ]
    [ "$(on 1 ip -d -j link show ib0 | jq '.[0].max_mtu')" = 65520 ]
    # Two send rings; the default of all netdevs in the in-tree driver of Linux 7.
    case $(attribute 1 ib0 tx_queue_len) in 256) ;; 1000) [ "$DRIVER" = stock ] ;; *) return 1 ;; esac
}

test_features_of_every_hca_are_on() {
    on 1 ethtool -k ib0 >/run/features
    grep -qx 'vlan-challenged: on \[fixed\]' /run/features
    grep -qx 'highdma: on \[fixed\]' /run/features
    grep -qE '^.tx-scatter-gather: on' /run/features
}

test_vlan_is_refused() {
    modprobe 8021q
    refused 'VLANs not supported on device' on 1 ip link add link ib0 name tagged type vlan id 5
}

# Documentation/operations.md names these, and what to use instead.
test_upper_interfaces_of_ethernet_are_refused() {
    local kind
    for kind in macvlan ipvlan; do
        modprobe $kind
        refused 'Invalid argument' on 1 ip link add link ib0 name upper type $kind
    done
    on 1 ip link add upper type bridge
    refused 'Invalid argument' on 1 ip link set ib0 master upper
    on 1 ip link del upper
}

test_new_interface_has_a_kernel_chosen_name_and_its_hca_as_device() {
    unload_driver
    load_driver
    wait_for 5 born_as 2
    [ -e /sys/class/net/ib0 ]
    [ -e /sys/class/net/ib1 ]
    # The name has no assignment type (NET_NAME_UNKNOWN), so the file cannot be read.
    ! cat /sys/class/net/ib0/name_assign_type 2>/dev/null || return 1
    case $(readlink -f /sys/class/net/ib0/device) in */soft_ib.0) ;; *) return 1 ;; esac
    ! grep -q DEVTYPE /sys/class/net/ib0/uevent || return 1
    [ "$(cat /sys/class/net/ib0/operstate)" = down ]
    add_hosts
    # A child has no parent device in sysfs.
    on 1 ip link add link ib0 name blue type ipoib pkey 0x8001
    ! on 1 test -e /sys/class/net/blue/device || return 1
    [ "$(attribute 1 blue dev_port)" = 0 ]
    [ "$(attribute 1 blue iflink)" = "$(attribute 1 ib0 ifindex)" ]
    [ "$(attribute 1 ib0 iflink)" = "$(attribute 1 ib0 ifindex)" ]
    on 1 ip link del blue
}

test_addr_assign_type_shows_a_childs_set_address() {
    on 1 ip link add link ib0 name blue address "$(lladdr 1)" type ipoib pkey 0x8001
    [ "$(attribute 1 blue addr_assign_type)" = 3 ]
    on 1 ip link del blue
    on 1 ip link add link ib0 name blue type ipoib pkey 0x8001
    [ "$(attribute 1 blue addr_assign_type)" = 0 ]
    on 1 ip link del blue
}

test_unnamed_child_is_called_ipoib0() {
    on 1 ip link add link ib0 type ipoib pkey 0x8001
    on 1 test -e /sys/class/net/ipoib0
    on 1 ip link del ipoib0
}

test_child_without_a_link_is_refused() {
    local words
    case $DRIVER in ours) words='an ipoib child needs a parent: link DEVICE' ;; *) words='Invalid argument' ;; esac
    refused "$words" on 1 ip link add name x type ipoib pkey 0x8001
    ! on 1 test -e /sys/class/net/x || return 1
}

xfail_stock_link_netnsid_is_reported='the in-tree driver reports none'
test_link_netnsid_is_reported() {
    local found=
    ip netns add elsewhere
    on 1 ip link add link ib0 name blue netns elsewhere type ipoib pkey 0x8001
    found=$(ip -n elsewhere -j link show blue | jq '.[0].link_netnsid')
    ip -n elsewhere link del blue
    ip netns del elsewhere
    [ "$found" != null ]
}

test_private_ioctls_are_not_supported() {
    # The core reads SIOCSHWTSTAMP's (0x89b0) struct hwtstamp_config, whose zeros are valid, before it calls the driver.
    on 1 python3 -c 'import array, errno, fcntl, socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
config = array.array("i", [0] * 3)
for request in 0x8947, 0x89b0, 0x89b1, 0x89f0:
    try:
        fcntl.ioctl(s, request, struct.pack("16sQ16x", b"ib0", config.buffer_info()[0]))
    except OSError as error:
        assert error.errno == errno.EOPNOTSUPP, f"{request:#x}: {error}"
    else:
        raise SystemExit(f"{request:#x} was accepted")'
}

# The frame

# Waits until a packet socket of the type is open.
sniffs() { on "$1" cat /proc/net/packet | awk '{ print $4 }' | says -x "$2"; } # HOST TYPE-AS-HEX
# Stores the frame that arrives at host 2 while host 1 runs COMMAND.
arrives() { # TYPE COMMAND...
    local type=$1
    shift
    on 2 /test/frames.py see ib1 "0x$type" >/run/frame &
    local sniffer=$!
    wait_for 5 sniffs 2 "$type"
    "$@"
    wait $sniffer
}

test_packet_socket_sees_20_zero_bytes_and_the_encapsulation() {
    reaches 1 10.0.0.2
    arrives 0800 reaches 1 10.0.0.2
    grep -qE '^0{40}0800000045' /run/frame || fail "$(cut -c -60 /run/frame)"
}

test_rarp_and_tipc_pass_as_broadcast_and_unicast() {
    local broadcast to type
    broadcast=$(on 1 ip -j link show ib0 | jq -r '.[0].broadcast' | tr -d :)
    for to in "$broadcast" "$(lladdr 2 | tr -d :)"; do
        for type in 8035 88ca; do
            arrives $type on 1 /test/frames.py send ib0 "$to${type}0000c0ffee"
            grep -qE "^0{40}${type}0000c0ffee" /run/frame || fail "$(cut -c -60 /run/frame)"
        done
    done
}

test_multicast_gets_the_links_pkey() {
    # A frame for the group of 239.6.6.6 of another partition.
    local header=45000021000000000111 rest=0a000001ef06060610e110e1000d000068656c6c6f
    listen 2 239.6.6.6 >/run/heard &
    wait_for 5 listening 2 239.6.6.6
    said_and_heard() {
        # IPv4, UDP to port 4321 without a checksum: "hello".
        on 1 /test/frames.py send ib0 "00ffffffff12401b80050000000000000f06060608000000$header$(checksum)$rest"
        sleep 0.1
        grep -q hello /run/heard
    }
    checksum() { python3 -c 'import struct
h = bytes.fromhex("450000210000000001110000" "0a000001" "ef060606")
t = sum(struct.unpack("!10H", h))
print("%04x" % (~((t & 0xffff) + (t >> 16)) & 0xffff))'; }
    wait_for 8 said_and_heard
    nobody_listens
}

# Log lines that programs and operators look for

test_connected_mode_warns_of_multicast_drops() {
    mark_log
    set_mode 1 connected
    logged 'ib0: enabling connected mode will cause multicast packet drops'
    logged 'ib0: mtu > 2044 will cause multicast packet drops\.'
    set_mode 1 datagram
    wait_for 20 reaches 1 10.0.0.2
}

test_umcast_logs_that_user_groups_are_ignored() {
    mark_log
    on 1 sh -c 'echo 1 >/sys/class/net/ib0/umcast'
    logged 'ib0: ignoring multicast groups joined directly by userspace'
    [ "$(attribute 1 ib0 umcast)" = 1 ]
    on 1 sh -c 'echo 0 >/sys/class/net/ib0/umcast'
    [ "$(attribute 1 ib0 umcast)" = 0 ]
}

test_refused_child_of_a_child_is_logged() {
    mark_log
    on 1 ip link add link ib0 name blue type ipoib pkey 0x8001
    ! on 1 ip link add link blue name azure type ipoib pkey 0x8002 2>/dev/null || return 1
    logged 'blue: child creation disallowed for child devices'
    on 1 ip link del blue
}

test_absent_pkey_is_logged() {
    mark_log
    on 1 ip link add link ib0 name absent type ipoib pkey 0x8055
    on 1 ip link set absent up
    logged 'absent: P_Key 0x8055 is not found'
    ! carrier 1 absent || return 1
    on 1 ip link del absent
}

# The partition has no broadcast group: the subnet manager refuses, and the driver does not make one.
test_broadcast_group_is_never_created_and_a_refused_join_logged() {
    mark_log
    on 1 ip link add link ib0 name quiet type ipoib pkey 0x8007
    on 1 ip link set quiet up
    wait_for 20 logged 'quiet: multicast join failed for ff12:401b:8007:0000:0000:0000:ffff:ffff, status -22'
    ! carrier 1 quiet || return 1
    ! saquery -g | says 'ff12:401b:8007' || return 1
    on 1 ip link del quiet
}
