# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Programs that write the network's configuration: netplan for systemd-networkd, which configures host 2, and cloud-init
# for ifupdown, in the initial namespace with the third interface. Host 1 is the peer.
PORTS=3
PACKAGES='cloud-init netplan.io'

# shellcheck source=/dev/null
. ./networkd.sh

before_each() {
    [ -e /sys/module/ib_ipoib ] || {
        load_driver
        add_host 1
        add_host 2
    }
}

# netplan writes networkd's files below a directory: what `netplan apply` does, without systemd.
netplan_generates() { # the configuration is the input
    rm -rf /run/netplan
    mkdir -p /run/netplan/etc/netplan /run/network.2
    cat >/run/netplan/etc/netplan/ib.yaml
    chmod 600 /run/netplan/etc/netplan/ib.yaml
    netplan generate --root-dir /run/netplan >/run/netplan.out 2>&1 || fail "$(cat /run/netplan.out)" || return 1
    rm -f /run/network.2/*
    cp /run/netplan/run/systemd/network/* /run/network.2/
}
has_address() { on 2 ip addr show dev "$1" | says " $2 "; } # INTERFACE ADDRESS
test_netplan_configures_an_interface_by_its_hardware_address() {
    on 2 ip addr flush dev ib1
    on 2 ip link set ib1 down
    netplan_generates <<CONFIGURATION
network:
  version: 2
  renderer: networkd
  ethernets:
    fabric:
      match:
        macaddress: "$(lladdr 2)"
      mtu: 1800
      infiniband-mode: datagram
      dhcp4: false
      addresses: [10.0.0.2/24, "fd00::2/64"]
      routes: [{to: 192.0.2.0/24, via: 10.0.0.1}]
CONFIGURATION
    start_networkd 2
    wait_for 20 has_address ib1 10.0.0.2/24
    wait_for 20 has_address ib1 fd00::2/64
    [ "$(mtu 2)" = 1800 ]
    on 2 ip route show 192.0.2.0/24 | says 'via 10.0.0.1 dev ib1'
    wait_for 20 reaches 1 10.0.0.2
    ping_ok 1 10.0.0.2
    stop_networkd
}

# systemd 252 of Debian 12 has the setting, but no .network may have its section: netplan's mode has no effect.
test_netplan_cannot_set_the_mode_through_networkd() {
    netplan_generates <<CONFIGURATION
network:
  version: 2
  renderer: networkd
  ethernets:
    ib1:
      infiniband-mode: connected
      addresses: [10.0.0.2/24]
CONFIGURATION
    grep -A 1 -F '[IPoIB]' /run/network.2/10-netplan-ib1.network | says Mode=connected
    start_networkd 2
    wait_for 20 has_address ib1 10.0.0.2/24
    stop_networkd
    grep -q "Unknown section 'IPoIB'" /run/networkd.2.log
    [ "$(mode 2)" = datagram ]
}

# Two ways that work: NetworkManager as netplan's renderer (its connections are in the suite network_manager), and a
# rule of udev.
test_netplan_sets_the_mode_through_network_manager() {
    rm -rf /run/netplan
    mkdir -p /run/netplan/etc/netplan
    cat >/run/netplan/etc/netplan/ib.yaml <<CONFIGURATION
network:
  version: 2
  renderer: NetworkManager
  ethernets:
    ib1:
      infiniband-mode: connected
      addresses: [10.0.0.2/24]
CONFIGURATION
    netplan generate --root-dir /run/netplan >/run/netplan.out 2>&1 || fail "$(cat /run/netplan.out)"
    cat /run/netplan/run/NetworkManager/system-connections/* >/run/keyfile
    grep -qx 'type=infiniband' /run/keyfile
    grep -A 1 -Fx '[infiniband]' /run/keyfile | says -x 'transport-mode=connected'
}
test_udev_rule_sets_the_mode() {
    local third
    mode_is() { [ "$(file "$third" mode)" = "$1" ]; }
    third=$(born_as 3)
    mkdir -p /etc/udev/rules.d
    # ATTR{mode}="connected" has no newline, without which the in-tree driver refuses it.
    cat >/etc/udev/rules.d/70-ipoib-mode.rules <<'RULE'
ACTION=="add", SUBSYSTEM=="net", ATTR{type}=="32", RUN+="/bin/sh -c 'echo connected >/sys$devpath/mode'"
RULE
    /lib/systemd/systemd-udevd --daemon 2>/dev/null
    mode_is datagram
    udevadm trigger --action=add --subsystem-match=net
    wait_for 20 mode_is connected
    pkill -x systemd-udevd
    rm /etc/udev/rules.d/70-ipoib-mode.rules
    echo datagram >"/sys/class/net/$third/mode"
}

# cloud-init converts a configuration of the network to the files of RENDERER, below /run/converted.
convert() { # yaml|network_data.json RENDERER; the configuration is the input
    cat >/run/network-config
    rm -rf /run/converted
    cloud-init devel net-convert -p /run/network-config -k "$1" -d /run/converted -D debian -O "$2" \
        >/run/convert.out 2>&1 || fail "$(tail -n 5 /run/convert.out)"
}
# The third interface, in the initial namespace, as version 1 has it.
version_1() {
    cat <<CONFIGURATION
version: 1
config:
- type: infiniband
  name: $third
  mac_address: "$address"
  mtu: 2000
  subnets:
  - type: static
    address: 10.0.0.3/24
CONFIGURATION
}
version_2() {
    cat <<CONFIGURATION
version: 2
ethernets:
  fabric:
    match:
      macaddress: "$address"
    set-name: fabric0
    mtu: 2000
    addresses: [10.0.0.3/24]
CONFIGURATION
}
find_third() {
    third=$(born_as 3)
    address=$(file "$third" address)
}

test_cloud_init_renders_infiniband_of_version_1() {
    find_third
    version_1 | convert yaml eni
    grep -A 5 "^iface $third inet static" /run/converted/etc/network/interfaces.d/50-cloud-init >/run/stanza
    grep -qx ' *address 10.0.0.3/24' /run/stanza
    grep -qx " *hwaddress $address" /run/stanza
    grep -qx ' *mtu 2000' /run/stanza
    version_1 | convert yaml network-manager
    grep -rh -A 5 '^\[infiniband\]' /run/converted/etc/NetworkManager >/run/keyfile
    grep -qx 'transport-mode=datagram' /run/keyfile
    grep -qxi "mac-address=$address" /run/keyfile
    version_1 | convert yaml networkd
    cat "/run/converted/etc/systemd/network/10-cloud-init-$third.network" >/run/networkfile
    grep -qxi "MACAddress=$address" /run/networkfile
    grep -qx 'Address=10.0.0.3/24' /run/networkfile
}

# canonical/cloud-init, issue 3474, and pull request 6927.
test_cloud_init_leaves_infiniband_of_version_1_out_of_netplan() {
    find_third
    version_1 | convert yaml netplan
    ! grep -rq '10.0.0.3' /run/converted || fail "netplan has it" || return 1
}

test_cloud_init_renders_version_2_for_netplan_and_networkd() {
    find_third
    version_2 | convert yaml netplan
    grep -rqi "macaddress: .*$address" /run/converted/etc/netplan
    grep -rq '10.0.0.3/24' /run/converted/etc/netplan
    version_2 | convert yaml networkd
    grep -rqxi "MACAddress=$address" /run/converted/etc/systemd/network
    # Version 2 has no type for InfiniBand: NetworkManager's connection is one for Ethernet, which does not fit.
    version_2 | convert yaml network-manager
    grep -rqx 'type=ethernet' /run/converted/etc/NetworkManager
}

# OpenStack names the port by 6 bytes of its 20: the first and last three of the GUID.
test_cloud_init_finds_the_interface_of_openstacks_short_address() {
    find_third
    convert network_data.json eni <<CONFIGURATION
{ "links": [ { "id": "fabric", "type": "phy", "mtu": 2000,
      "ethernet_mac_address": "${address:36:9}${address:51}" } ],
  "networks": [ { "id": "n0", "link": "fabric", "type": "ipv4",
      "ip_address": "10.0.0.3", "netmask": "255.255.255.0" } ],
  "services": [] }
CONFIGURATION
    grep -q "^iface $third inet static" /run/converted/etc/network/interfaces.d/50-cloud-init
    grep -qx " *hwaddress $address" /run/converted/etc/network/interfaces.d/50-cloud-init
}

# As at boot: cloud-init reads its seed, finds the interface by its address, names it, and writes ifupdown's file.
run_cloud_init() { # the network's configuration is the input
    mkdir -p /var/lib/cloud/seed/nocloud /etc/cloud/cloud.cfg.d /etc/network
    cat >/var/lib/cloud/seed/nocloud/network-config
    echo 'instance-id: of-this-test' >/var/lib/cloud/seed/nocloud/meta-data
    echo '#cloud-config' >/var/lib/cloud/seed/nocloud/user-data
    printf '%s\n' 'datasource_list: [ NoCloud ]' 'system_info: { network: { renderers: [ eni ] } }' \
        >/etc/cloud/cloud.cfg.d/99-test.cfg
    echo 'source /etc/network/interfaces.d/*' >/etc/network/interfaces
    rm -rf /run/cloud-init /var/lib/cloud/instance /var/lib/cloud/instances /var/lib/cloud/data
    /lib/systemd/systemd-udevd --daemon 2>/dev/null
    cloud-init init --local >/run/cloud-init.out 2>&1 || fail "$(tail -n 5 /run/cloud-init.out)" || return 1
    pkill -x systemd-udevd
}
test_cloud_init_names_and_configures_an_interface() {
    find_third
    version_2 | run_cloud_init
    [ "$(born_as 3)" = fabric0 ]
    ifup fabric0 >/run/ifup.out 2>&1 || fail "$(cat /run/ifup.out)"
    [ "$(file fabric0 address)" = "$address" ]
    [ "$(file fabric0 mtu)" = 2000 ]
    wait_for 20 reaches 1 10.0.0.3
    ping_ok 1 10.0.0.3
    ifdown fabric0 >/run/ifup.out 2>&1 || fail "$(cat /run/ifup.out)"
    ip link set fabric0 name "$third"
}
test_cloud_init_configures_an_interface_of_type_infiniband() {
    find_third
    version_1 | run_cloud_init
    ifup "$third" >/run/ifup.out 2>&1 || fail "$(cat /run/ifup.out)"
    [ "$(file "$third" address)" = "$address" ]
    [ "$(file "$third" mtu)" = 2000 ]
    wait_for 20 reaches 1 10.0.0.3
    ping_ok 1 10.0.0.3
    ifdown "$third" >/run/ifup.out 2>&1 || fail "$(cat /run/ifup.out)"
}
