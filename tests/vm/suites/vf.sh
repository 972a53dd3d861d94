# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Virtual functions: settings of `ip link set ... vf` reach the HCA, and `ip link show` has the HCA's values.
PORTS=2
HOSTS=1
FABRIC=vfs=3

vf_line() { on "$1" ip link show "$(interface_of "$1")" | grep -E "^ *vf $2 "; } # HOST VF
shows() { vf_line "$1" "$2" | says -F "$3"; }                                    # HOST VF TEXT

test_ip_link_shows_exactly_the_virtual_functions() {
    local vf
    for vf in 0 1 2; do
        shows 1 $vf "link/infiniband $(on 1 cat /sys/class/net/ib0/address)"
        shows 1 $vf 'NODE_GUID 00:00:00:00:00:00:00:00, PORT_GUID 00:00:00:00:00:00:00:00, link-state auto'
    done
    ! vf_line 1 3 || return 1
}

test_guids_are_set_and_shown() {
    on 1 ip link set ib0 vf 0 node_guid 00:11:22:33:44:55:66:77
    on 1 ip link set ib0 vf 0 port_guid 00:11:22:33:44:55:66:88
    on 1 ip link set ib0 vf 2 port_guid 00:11:22:33:44:55:66:99
    shows 1 0 'NODE_GUID 00:11:22:33:44:55:66:77, PORT_GUID 00:11:22:33:44:55:66:88'
    shows 1 1 'NODE_GUID 00:00:00:00:00:00:00:00, PORT_GUID 00:00:00:00:00:00:00:00'
    shows 1 2 'NODE_GUID 00:00:00:00:00:00:00:00, PORT_GUID 00:11:22:33:44:55:66:99'
}

test_link_state_is_set_and_shown() {
    local state
    for state in enable disable auto; do
        on 1 ip link set ib0 vf 1 state $state
        shows 1 1 "link-state $state"
        shows 1 0 'link-state auto'
    done
}

test_statistics_of_a_function_are_shown() {
    on 1 ip -s link show ib0 | grep -A 4 'vf 1 ' | tr -s ' \n' ' ' >/run/vf1
    grep -q 'RX: bytes packets mcast bcast dropped 2003 2001 2006 2005 2007' /run/vf1
    grep -q 'TX: bytes packets dropped 2004 2002 2008' /run/vf1
}

test_absent_function_is_refused() {
    refused 'Invalid argument' on 1 ip link set ib0 vf 3 node_guid 00:11:22:33:44:55:66:77
    refused 'Invalid argument' on 1 ip link set ib0 vf 3 state enable
}

test_unsupported_settings_are_refused() {
    refused 'Operation not supported' on 1 ip link set ib0 vf 0 vlan 5
    refused 'Operation not supported' on 1 ip link set ib0 vf 0 spoofchk on
}

test_functions_of_two_hcas_are_separate() {
    on 1 ip link set ib0 vf 0 node_guid 00:11:22:33:44:55:66:77
    on 2 ip link set ib1 vf 0 node_guid 00:11:22:33:44:55:66:aa
    shows 2 0 'NODE_GUID 00:11:22:33:44:55:66:aa'
    shows 1 0 'NODE_GUID 00:11:22:33:44:55:66:77'
}

test_child_shows_no_functions() {
    on 1 ip link add link ib0 name blue type ipoib pkey 0x8001
    ! on 1 ip link show blue | says 'vf 0' || return 1
    on 1 ip link del blue
}

test_functions_survive_the_drivers_reload() {
    on 1 ip link set ib0 vf 1 port_guid 00:11:22:33:44:55:66:bb
    unload_driver
    load_driver
    add_hosts
    shows 1 1 'PORT_GUID 00:11:22:33:44:55:66:bb'
}

test_interface_with_functions_carries_traffic() {
    wait_for 20 reaches 1 10.0.0.2
    ping_ok 1 10.0.0.2
    on 1 ethtool -i ib0 | says 'bus-info: soft_ib.0'
}
