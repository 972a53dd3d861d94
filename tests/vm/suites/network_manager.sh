# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# NetworkManager and udev configure ib1, in the initial namespace, the only one that udev knows. Host 1 is the peer.
PORTS=2
PARTITIONS='blue=0x0001, ipoib : ALL=full;'

start_network_manager() {
    mkdir -p /run/dbus /run/udev /etc/NetworkManager/system-connections
    printf '%s\n' '[main]' plugins=keyfile 'no-auto-default=*' dns=none auth-polkit=false dhcp=internal \
        >/etc/NetworkManager/NetworkManager.conf
    /lib/systemd/systemd-udevd --daemon 2>/dev/null
    udevadm trigger --action=add --subsystem-match=net
    udevadm settle --timeout=20
    dbus-daemon --system --fork
    NetworkManager --debug >/run/nm.log 2>&1 &
    wait_for 20 nmcli general status
}
stop_network_manager() {
    local daemon
    # The name of a process has 15 characters.
    for daemon in NetworkManager dbus-daemon systemd-udevd; do pkill -x "$daemon" || true; done
    nothing_runs() { ! pgrep -x 'NetworkManager|dbus-daemon|systemd-udevd'; }
    wait_for 10 nothing_runs
}

# Writes a keyfile; the arguments after the address are the keys of [infiniband].
connection() { # NAME INTERFACE METHOD ADDRESS [KEY=VALUE...]
    local file=/etc/NetworkManager/system-connections/$1.nmconnection
    {
        printf '%s\n' '[connection]' "id=$1" type=infiniband "interface-name=$2" autoconnect=false
        printf '%s\n' '[ipv4]' "method=$3" ${4:+"address1=10.$4.0.2/24"}
        printf '%s\n' '[ipv6]' method=link-local '[infiniband]' "${@:5}"
    } >"$file"
    chmod 600 "$file"
}
# Settings of ethtool, by udev when the interface appears, and by a connection.
write_link_file() {
    mkdir -p /etc/systemd/network
    printf '%s\n' '[Match]' OriginalName=ib1 '[Link]' RxBufferSize=512 TxBufferSize=256 RxChannels=2 TxChannels=3 \
        >/etc/systemd/network/50-ib1.link
}
current_are() { # ETHTOOL-OPTION RX TX
    ethtool "$1" ib1 | awk '/^Current/ { now = 1 } now && /^[RT]X:/ { print $2 }' | xargs | says -x "$2 $3"
}
# A connection is up with one of its addresses.
up() { nmcli --wait 40 connection up "$1" >/run/nmcli.out 2>&1 || { tail -n 20 /run/nmcli.out /run/nm.log | sed 's/^/# /'; return 1; }; }
down() { nmcli --wait 40 connection down "$1" >/run/nmcli.out 2>&1 || { sed 's/^/# /' /run/nmcli.out; return 1; }; }
is_gone() { [ ! -e "/sys/class/net/$1" ]; }
has_address() { ip addr show dev "$1" | says " $2"; }      # INTERFACE ADDRESS

# Sets up host 1, and loads the connections into NetworkManager.
before_each() {
    [ -e /sys/module/ib_ipoib ] || {
        load_driver
        add_host 1
        set_mode 1 connected
        on 1 ip link add link ib0 name blue type ipoib pkey 0x8001
        on 1 ip addr add 10.1.0.1/24 dev blue
        on 1 ip link set blue up
        wait_for 30 carrier 1
    }
    pgrep -x NetworkManager >/dev/null || {
        connection connected ib1 manual 0 transport-mode=connected mtu=65520
        connection datagram ib1 manual 0 transport-mode=datagram mtu=2000
        connection child ib1.8001 manual 1 transport-mode=connected p-key=32769 parent=ib1
        connection rings ib1 manual 0 transport-mode=datagram '[ethtool]' ring-rx=1024 ring-tx=128 coalesce-adaptive-rx=1
        write_link_file
        start_network_manager
    }
}
ensure() { nmcli -g NAME connection show --active | says -x "$1" || up "$1"; } # CONNECTION

xfail_stock_link_file_sets_rings_and_queues='the in-tree driver has one ring and one queue of fixed size'
test_link_file_sets_rings_and_queues() {
    current_are -g 512 256
    current_are -l 2 3
}

xfail_stock_connection_sets_rings_and_moderation='the in-tree driver has rings of fixed size'
test_connection_sets_rings_and_moderation() {
    up rings
    current_are -g 1024 128
    ethtool -c ib1 | says 'Adaptive RX: on'
    wait_for 20 here_reaches 10.0.0.1
}

test_connection_in_connected_mode() {
    nmcli -t -f TYPE,DEVICE device | says '^infiniband:ib1$'
    up connected
    [ "$(file ib1 mode)" = connected ]
    [ "$(file ib1 mtu)" = 65520 ]
    wait_for 20 has_address ib1 10.0.0.2/24
    wait_for 20 has_address ib1 fe80::
    wait_for 20 here_reaches 10.0.0.1
    ping_ok 1 10.0.0.2 -s 60000
    nmcli -t -f GENERAL.STATE device show ib1 | says '100 (connected)'
}

test_datagram_connection_replaces_the_connected_one() {
    ensure connected
    up datagram
    [ "$(file ib1 mode)" = datagram ]
    [ "$(file ib1 mtu)" = 2000 ]
    wait_for 20 here_reaches 10.0.0.1
    ping_ok 1 10.0.0.2 -s 10000
}

test_child_is_created_and_deleted() {
    ensure datagram
    up child
    [ "$(file ib1.8001 pkey)" = 0x8001 ]
    [ "$(file ib1.8001 parent)" = ib1 ]
    [ "$(file ib1.8001 mode)" = connected ]
    wait_for 20 has_address ib1.8001 10.1.0.2/24
    wait_for 20 here_reaches 10.1.0.1
    ping_ok 1 10.1.0.2 -s 10000
    down child
    wait_for 10 is_gone ib1.8001
    ping_ok 1 10.0.0.2
    up child
    wait_for 20 here_reaches 10.1.0.1
}

test_link_flap_is_followed() {
    ensure datagram
    ensure child
    carrier_is() { [ "$(file ib1 carrier)" = "$1" ]; }
    knob 2 link 0
    wait_for 10 carrier_is 0
    link_up 2
    wait_for 30 carrier_is 1
    wait_for 20 has_address ib1 10.0.0.2/24
    wait_for 20 here_reaches 10.0.0.1
    wait_for 20 here_reaches 10.1.0.1
}

test_down_removes_addresses() {
    ensure datagram
    ensure child
    down child
    wait_for 10 is_gone ib1.8001
    down datagram
    ! has_address ib1 10.0.0.2/24 || return 1
    ! reaches 1 10.0.0.2 || return 1
}

serve_dhcp() { # [ARGUMENT OF DNSMASQ...]
    on 1 ip addr replace 10.5.0.1/24 dev ib0
    on 1 dnsmasq --keep-in-foreground --conf-file=/dev/null --user=root --port=0 --log-facility=- --interface=ib0 \
        --bind-interfaces --dhcp-range=10.5.0.10,10.5.0.19,2m --dhcp-leasefile=/run/leases "$@" >/run/dnsmasq 2>&1 &
    wait_for 10 grep -q 'sockets bound' /run/dnsmasq
}
# The identifier of a ConnectX's network boot, by which a server knows the host: with the port's GUID.
test_network_boot_identifier_has_a_reservation() {
    local id
    id=ff:00:00:00:00:00:02:00:00:02:c9:00:$(cut -d: -f13-20 /sys/class/net/ib1/address)
    serve_dhcp "--dhcp-host=id:$id,10.5.0.77"
    connection boot ib1 auto '' transport-mode=datagram '[ipv4]' "dhcp-client-id=$id"
    nmcli connection reload
    up boot
    wait_for 30 has_address ib1 10.5.0.77
    wait_for 20 here_reaches 10.5.0.1
    end_program dnsmasq 10
    down boot
}
test_address_is_obtained_by_dhcp() {
    serve_dhcp
    connection dhcp ib1 auto '' transport-mode=datagram
    nmcli connection reload
    up dhcp
    wait_for 30 has_address ib1 10.5.0.1
    wait_for 20 here_reaches 10.5.0.1
    grep -q 'DHCPACK(ib0)' /run/dnsmasq
    end_program dnsmasq 10
    down dhcp
    stop_network_manager
}
