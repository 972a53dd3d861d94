# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# DHCP servers and clients of Debian beside those of the suites dhcp and network_manager: Kea is on host 3, behind
# dnsmasq, which relays from host 1; systemd-networkd is the client on host 2. dhcpcd, and ISC's dhcpd and dhclient,
# refuse the interface.
PORTS=3
HOSTS=1
PACKAGES='dhcpcd-base isc-dhcp-client isc-dhcp-server kea-dhcp4-server'

# shellcheck source=/dev/null
. ./networkd.sh

# The identifier of a client, as RFC 4361 has it: type 255, IAID, and the DUID of a vendor, whose number is 43793.
client_id=ff:00:00:00:07:00:02:00:00:ab:11:01:02:03:04:05:06:07:08

stop_kea() { end_program kea-dhcp4 10; }
start_kea() { # HOST raw|udp
    stop_kea
    mkdir -p /run/kea
    rm -f /run/kea/leases*
    cat >/run/kea.conf <<CONFIGURATION
{ "Dhcp4": {
    "interfaces-config": { "interfaces": [ "$(interface_of "$1")" ], "dhcp-socket-type": "$2" },
    "lease-database": { "type": "memfile", "name": "/run/kea/leases" },
    "valid-lifetime": 120, "renew-timer": 4, "rebind-timer": 60,
    "subnet4": [ { "subnet": "10.7.0.0/24", "pools": [ { "pool": "10.7.0.10-10.7.0.19" } ],
        "reservations": [ { "client-id": "$client_id", "ip-address": "10.7.0.77" } ] } ],
    "loggers": [ { "name": "kea-dhcp4", "severity": "INFO", "output_options": [ { "output": "stdout" } ] } ]
} }
CONFIGURATION
    KEA_PIDFILE_DIR=/run/kea KEA_LOCKFILE_DIR=/run/kea on "$1" kea-dhcp4 -c /run/kea.conf >/run/kea.log 2>&1 &
    wait_for 20 grep -q DHCP4_STARTED /run/kea.log || fail "$(tail -n 5 /run/kea.log)"
}
stop_relay() { end_program dnsmasq 10; }
# Kea on host 3, whose answers to the relay, and to clients that renew, need a route.
serve() {
    start_kea 3 udp
    on 3 ip route replace 10.7.0.0/24 dev ib2
    stop_relay
    on 1 dnsmasq --keep-in-foreground --conf-file=/dev/null --user=root --port=0 --log-facility=- --log-dhcp \
        --interface=ib0 --bind-interfaces --dhcp-relay=10.7.0.1,10.0.0.3 >/run/dnsmasq.log 2>&1 &
    wait_for 10 grep -q 'DHCP relay from 10.7.0.1 to 10.0.0.3' /run/dnsmasq.log
}
leased() { on 2 ip -4 -o addr show dev ib1 | sed -nE 's,.* inet (10[.]7[.][0-9.]+)/.*,\1,p'; }
has_lease() { leased | says "$1"; } # ADDRESS, as a regular expression
gets_lease() {                      # ADDRESS
    if wait_for 30 has_lease "$1"; then return; fi
    tail -n 20 /run/kea.log /run/dnsmasq.log | sed 's,^,# ,'
    return 1
}
request() { # LINE OF [DHCPv4]...
    mkdir -p /run/network.2
    printf '%s\n' '[Match]' Name=ib1 '[Network]' DHCP=ipv4 LinkLocalAddressing=no '[DHCPv4]' "$@" \
        >/run/network.2/ib1.network
}
watch_for_discover() {
    on 1 tcpdump -i ib0 -n -vv -c 1 udp dst port 67 >/run/discover 2>/run/tcpdump.err &
    watcher=$!
    wait_for 10 grep -q 'listening on' /run/tcpdump.err
}
# Every test starts with neither client nor address.
before_each() {
    stop_networkd
    stop_relay
    stop_kea
    on 1 ip addr replace 10.7.0.1/24 dev ib0
    on 2 ip addr flush dev ib1
    on 2 ip addr add 10.0.0.2/24 dev ib1
    on 2 ip link set ib1 up
}

test_kea_serves_a_client_by_its_identifier() {
    serve
    watch_for_discover
    request ClientIdentifier=duid DUIDType=vendor DUIDRawData=00:00:ab:11:01:02:03:04:05:06:07:08 IAID=7
    start_networkd 2
    gets_lease '^10[.]7[.]0[.]77$'
    wait_for 10 reaches 2 10.7.0.1
    ping_ok 2 10.7.0.1
    ping_ok 1 10.7.0.77
    # RFC 4390: no hardware address, a client identifier, and a response by broadcast.
    wait "$watcher"
    grep -q 'htype 32, hlen 0' /run/discover
    grep -q 'Flags \[Broadcast\]' /run/discover
    grep -q "Client-ID.*hardware-type 255, ${client_id#ff:}" /run/discover
    # Kea keeps the lease under that identifier, without a hardware address.
    grep -q "^10.7.0.77,,$client_id," /run/kea/leases
}

test_kea_renews_a_lease_of_the_pool() {
    renewed() { [ "$(grep -c '^10.7.0.1[0-9],,ff:' /run/kea/leases)" -gt 1 ]; }
    serve
    request ClientIdentifier=duid
    start_networkd 2
    gets_lease '^10[.]7[.]0[.]1[0-9]$'
    wait_for 20 renewed
    ping_ok 1 "$(leased)"
}

# Kea itself hears no broadcast: its raw sockets know Ethernet only (isc-projects/kea, pull request 134), and its UDP
# sockets are bound to the interface's addresses.
test_kea_on_the_clients_link_answers_nobody() {
    local kind
    request ClientIdentifier=duid
    for kind in raw udp; do
        start_kea 1 $kind
        watch_for_discover
        start_networkd 2
        wait "$watcher"
        pause 3
        [ -z "$(leased)" ] || fail "$kind: a lease without an answer: $(leased)" || return 1
        stop_networkd
    done
}

# dhcpcd's filters for packet sockets know Ethernet only: it sends nothing.
test_dhcpcd_cannot_send() {
    serve
    refused 'bpf_open: Invalid argument' on 2 dhcpcd -4 -1 -d --noipv4ll --timeout 5 ib1
    grep -q '^timed out' /run/refusal
    [ -z "$(leased)" ]
    ! grep -q DHCPDISCOVER /run/dnsmasq.log || fail "the relay heard it" || return 1
}

test_isc_dhclient_refuses_the_interface() {
    refused 'Unsupported device type 32 for "?ib1' \
        on 2 dhclient -4 -1 -v -pf /run/dhclient.pid -lf /run/dhclient.leases ib1
}

test_isc_dhcpd_refuses_the_interface() {
    echo 'subnet 10.7.0.0 netmask 255.255.255.0 { range 10.7.0.10 10.7.0.19; }' >/run/dhcpd.conf
    : >/run/dhcpd.leases
    refused 'Unsupported device type 32 for "?ib0' \
        on 1 dhcpd -4 -f -d -cf /run/dhcpd.conf -lf /run/dhcpd.leases -pf /run/dhcpd.pid ib0
}
