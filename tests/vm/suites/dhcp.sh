# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# DHCP over IPoIB (RFC 4390): the request has no hardware address but a client identifier, and requests a broadcast
# response. dnsmasq serves on host 1; the client is systemd-networkd on host 2, whose packet socket has 20-byte
# addresses. Debian's dhclient cannot do it, with any driver: 'Unsupported device type 32'.
PORTS=2
HOSTS=1
PARTITIONS='blue=0x0001, ipoib : ALL=full;'

# shellcheck source=/dev/null
. ./networkd.sh

serve() { # INTERFACE SUBNET
    on 1 ip addr replace "10.$2.0.1/24" dev "$1"
    # A lease takes two minutes at least, but may be renewed before. The address is not pinged first, which takes 3 s of
    # the client's timeout.
    on 1 dnsmasq --keep-in-foreground --conf-file=/dev/null --user=root --port=0 --no-ping --log-facility=- --log-dhcp \
        --interface="$1" --bind-interfaces --dhcp-range="10.$2.0.10,10.$2.0.19,2m" --dhcp-leasefile="/run/leases.$1" \
        --dhcp-option=option:T1,4 --dhcp-option=option:T2,60 >"/run/dnsmasq.$1" 2>&1 &
    wait_for 10 grep -q 'sockets bound' "/run/dnsmasq.$1"
}
request() { # INTERFACE: host 2 gets its address there from DHCP
    printf '%s\n' '[Match]' "Name=$1" '[Network]' 'DHCP=ipv4' 'LinkLocalAddressing=no' >"/run/network.2/$1.network"
}
leased() { on 2 ip -4 -o addr show dev "$1" dynamic | sed -nE 's,.* inet ([0-9.]+)/.*,\1,p'; }   # INTERFACE
has_lease() { leased "$1" | says "^10[.]$2[.]0[.]1[0-9]$"; }                                 # INTERFACE SUBNET
gets_lease() {                                               # INTERFACE SUBNET SERVER'S-INTERFACE
    if wait_for 30 has_lease "$1" "$2"; then return; fi
    sed 's,^,# ,' "/run/dnsmasq.$3"
    return 1
}
has_no_lease() { [ -z "$(leased "$1")" ]; }
said() { grep -c "$2" "/run/dnsmasq.$1"; }                   # INTERFACE WORDS: number of the server's messages
said_more_than() { [ "$(said "$1" "$2")" -gt "$3" ]; }
stop_servers() { pkill -x dnsmasq || true; }

# Obtains a lease for ib1 of host 2, with the first request in /run/discover.
before_each() {
    networkd_is_gone || return 0
    mkdir -p /run/network.2
    request ib1
    serve ib0 5
    on 1 tcpdump -i ib0 -n -vv -c 1 udp dst port 67 >/run/discover 2>/run/tcpdump.err &
    wait_for 10 grep -q 'listening on' /run/tcpdump.err
    start_networkd 2
    gets_lease ib1 5 ib0
}

test_lease_is_obtained() {
    wait_for 10 reaches 2 10.5.0.1
    ping_ok 2 10.5.0.1
    ping_ok 1 "$(leased ib1)" -s 10000
    echo "# $(leased ib1)"
}

test_request_follows_rfc_4390() {
    grep -q 'htype 32, hlen 0' /run/discover
    grep -q 'Flags \[Broadcast\]' /run/discover
    grep -q 'Client-ID' /run/discover
    ! grep -q 'Client-Ethernet-Address' /run/discover || return 1
}

test_lease_is_renewed() {
    local before acks
    before=$(leased ib1)
    acks=$(said ib0 DHCPACK)
    wait_for 20 said_more_than ib0 DHCPACK "$acks"
    wait_for 20 said_more_than ib0 DHCPACK $((acks + 1))
    [ "$(leased ib1)" = "$before" ]
    # A renewal needs no discovery.
    [ "$(said ib0 DHCPDISCOVER)" -lt 3 ]
}

test_lease_returns_after_a_link_flap() {
    local before
    before=$(leased ib1)
    knob 2 link 0
    wait_for 10 has_no_lease ib1
    link_up 2
    wait_for 30 carrier 2
    gets_lease ib1 5 ib0
    [ "$(leased ib1)" = "$before" ]
    wait_for 20 reaches 1 "$before"
}

test_lease_is_obtained_in_connected_mode() {
    stop_networkd
    on 2 ip addr flush dev ib1
    set_mode 1 connected
    set_mode 2 connected
    start_networkd 2
    gets_lease ib1 5 ib0
    wait_for 10 reaches 2 10.5.0.1
    ping_ok 2 10.5.0.1 -s 60000
    stop_networkd
    set_mode 1 datagram
    set_mode 2 datagram
    stop_servers
}

test_lease_is_obtained_by_a_child() {
    stop_networkd
    stop_servers
    on 2 ip addr flush dev ib1
    on 1 ip link add link ib0 name blue type ipoib pkey 0x8001
    on 1 ip link set blue up
    on 2 ip link add link ib1 name blue type ipoib pkey 0x8001
    rm /run/network.2/ib1.network
    request blue
    serve blue 6
    start_networkd 2
    gets_lease blue 6 blue
    has_no_lease ib1
    wait_for 10 reaches 2 10.6.0.1
    ping_ok 2 10.6.0.1
    wait_for 20 said_more_than blue DHCPACK 1
    stop_networkd
    stop_servers
}
