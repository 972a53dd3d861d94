# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Programs that route: keepalived moves an address between hosts 2 and 3, which host 1 uses; FRRouting on host 1 and
# BIRD on host 2 tell each other their routes.
PORTS=3
HOSTS=1
PACKAGES='bird2 frr keepalived'

start_keepalived() { # HOST PRIORITY [LINE...]
    cat >"/run/keepalived.$1.conf" <<CONFIGURATION
vrrp_instance shared {
    interface $(interface_of "$1")
    state BACKUP
    virtual_router_id 51
    priority $2
    advert_int 1
    virtual_ipaddress {
        10.0.0.100/24 dev $(interface_of "$1")
    }
    $(printf '%s\n' "${@:3}")
}
CONFIGURATION
    on "$1" keepalived --dont-fork --log-console --log-detail --vrrp "--use-file=/run/keepalived.$1.conf" \
        "--pid=/run/keepalived.$1.pid" "--vrrp_pid=/run/vrrp.$1.pid" >"/run/keepalived.$1.log" 2>&1 &
}
stop_keepalived() { end_program keepalived 10; }
has_vip() { on "$1" ip -4 addr show dev "$(interface_of "$1")" | says 'inet 10[.]0[.]0[.]100/24'; } # HOST
has_no_vip() { ! has_vip "$1"; }
# Host 1's neighbour entry of the shared address is that host's.
vip_leads_to() { on 1 ip neigh show 10.0.0.100 | says -F "$(lladdr "$1")"; } # HOST
vip_is_with() { # HOST, OTHER HOST
    wait_for 20 has_vip "$1" || fail "$(tail -n 5 "/run/keepalived.$1.log")" || return 1
    wait_for 10 has_no_vip "$2"
}

test_keepalived_moves_the_address_when_a_link_goes_down() {
    # Only a gratuitous ARP changes a reachable entry within ten minutes.
    on 1 sysctl -qw net.ipv4.neigh.ib0.base_reachable_time_ms=600000
    on 1 ip neigh flush dev ib0
    start_keepalived 2 200
    vip_is_with 2 3
    start_keepalived 3 100
    wait_for 20 reaches 1 10.0.0.100
    vip_leads_to 2
    # VRRP has a group and a protocol of its own.
    on 3 timeout $((20 * patience)) tcpdump -i ib2 -n -c 2 ip proto 112 2>/dev/null |
        says '10.0.0.2 > 224.0.0.18: VRRPv2, Advertisement, vrid 51, prio 200'
    knob 2 link 0
    vip_is_with 3 2
    wait_for 10 vip_leads_to 3
    wait_for 10 reaches 1 10.0.0.100
    # The host with the higher priority takes it back.
    link_up 2
    wait_for 30 has_vip 2
    vip_is_with 2 3
    wait_for 10 vip_leads_to 2
    wait_for 10 reaches 1 10.0.0.100
    stop_keepalived
    wait_for 10 has_no_vip 2
}

test_keepalived_moves_the_address_with_unicast_in_connected_mode() {
    local host
    for host in 1 2 3; do set_mode $host connected; done
    on 1 ip neigh flush dev ib0
    start_keepalived 2 200 'unicast_peer {' 10.0.0.3 '}'
    vip_is_with 2 3
    start_keepalived 3 100 'unicast_peer {' 10.0.0.2 '}'
    wait_for 20 reaches 1 10.0.0.100
    ping_ok 1 10.0.0.100 -s 10000
    # A master that ends says so, with priority 0.
    pkill -F /run/keepalived.2.pid
    vip_is_with 3 2
    wait_for 10 vip_leads_to 3
    ping_ok 1 10.0.0.100 -s 10000
    stop_keepalived
    for host in 1 2 3; do set_mode $host datagram; done
}

start_frr() { # on host 1
    local program
    mkdir -p /run/frr
    echo 'log stdout' >/run/frr/zebra.conf
    cat >/run/frr/ospfd.conf <<CONFIGURATION
log stdout
interface ib0
 ip ospf area 0
 ip ospf hello-interval 1
 ip ospf dead-interval 4
interface lo
 ip ospf area 0
router ospf
 ospf router-id 198.51.100.1
CONFIGURATION
    chown -R frr:frr /run/frr
    on 1 ip addr replace 198.51.100.1/32 dev lo
    for program in zebra ospfd; do
        on 1 /usr/lib/frr/$program --vty_port 0 -z /run/frr/zserv.api -i /run/frr/$program.pid \
            -f /run/frr/$program.conf >/run/$program.log 2>&1 &
        wait_for 10 pgrep -x $program
    done
}
start_bird() { # on host 2
    cat >/run/bird.conf <<CONFIGURATION
router id 198.51.100.2;
protocol device { }
protocol kernel { ipv4 { import none; export all; }; }
protocol ospf v2 {
    ipv4 { import all; export none; };
    area 0 {
        interface "ib1" { type broadcast; hello 1; dead count 4; };
        interface "lo" { stub; };
    };
}
CONFIGURATION
    on 2 ip addr replace 198.51.100.2/32 dev lo
    on 2 bird -f -c /run/bird.conf -s /run/bird.ctl >/run/bird.log 2>&1 &
    wait_for 10 test -S /run/bird.ctl
}
knows_route() { # HOST TO PROTOCOL
    on "$1" ip route show "198.51.100.$2" | says "via 10[.]0[.]0[.]$2 dev $(interface_of "$1") proto $3"
}
both_know_routes() { knows_route 1 2 ospf && knows_route 2 1 bird; }
knows_no_route() { [ -z "$(on "$1" ip route show "198.51.100.$2")" ]; } # HOST TO
describe_routers() {
    on 2 birdc -s /run/bird.ctl show ospf neighbors
    tail -n 5 /run/{bird,zebra,ospfd}.log
    on 1 ip route
    on 2 ip route
}
test_frr_and_bird_exchange_routes_by_ospf() {
    start_frr
    start_bird
    wait_for 60 both_know_routes || fail "$(describe_routers)"
    wait_for 10 on 1 ping -q -c 1 -W 1 -I 198.51.100.1 198.51.100.2
    ping_ok 2 198.51.100.1 -I 198.51.100.2
    # A broadcast network elects a designated router.
    on 2 birdc -s /run/bird.ctl show ospf neighbors | says -E '^198[.]51[.]100[.]1[[:space:]].*Full/(DR|BDR) .*ib1'
    # Both forget the route when the link goes down, and learn it again.
    knob 2 link 0
    wait_for 20 knows_no_route 1 2
    wait_for 20 knows_no_route 2 1
    link_up 2
    wait_for 60 both_know_routes || fail "$(describe_routers)"
    pkill -x 'bird|zebra|ospfd'
}
