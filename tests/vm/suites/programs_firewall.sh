# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Packet filters: nftables in the namespace of host 2; firewalld in the initial namespace, the only one that it knows,
# with the third interface. Host 1 sends.
PORTS=3
PACKAGES='firewalld netbase nftables'

rules() { on 2 nft -f -; }
# Packets that a rule with a comment has counted.
counted_by() { on 2 nft list ruleset | sed -nE "s/.*counter packets ([0-9]+) .*comment \"$1\".*/\1/p"; } # COMMENT
listen() { # udp|tcp PORT [COMMAND...]: lines that arrive are in /run/arrived.PORT
    : >"/run/arrived.$2"
    "${@:3}" socat -u "$1-RECVFROM:$2,fork" "OPEN:/run/arrived.$2,append" 2>/dev/null &
    wait_for 5 eval "${*:3} ss -ltun | says ':$2 '"
}
tell() { echo told | on 1 socat -u - "UDP:$1:$2"; }         # ADDRESS PORT
arrived() { [ "$(wc -l <"/run/arrived.$1")" = "$2" ]; }     # PORT LINES

before_each() {
    [ -e /sys/module/ib_ipoib ] || {
        load_driver
        add_host 1
        add_host 2
        wait_for 30 addresses_ready 1
        wait_for 30 addresses_ready 2
    }
    wait_for 20 reaches 1 10.0.0.2
    on 2 nft flush ruleset
}

test_nftables_drops_rejects_and_counts() {
    rules <<'RULES'
table inet filter {
    chain input {
        type filter hook input priority 0
        iifname "ib1" udp dport 7001 counter drop comment "dropped"
        iifname "ib1" udp dport 7002 counter accept comment "accepted"
        iifname "ib1" tcp dport 7003 counter reject with tcp reset comment "rejected"
        iifname "ib1" icmp type echo-request counter accept comment "pinged"
    }
}
RULES
    listen udp 7001 on 2
    listen udp 7002 on 2
    for _ in 1 2 3; do tell 10.0.0.2 7001; done
    tell 10.0.0.2 7002
    wait_for 5 arrived 7002 1
    arrived 7001 0
    [ "$(counted_by dropped)" = 3 ]
    [ "$(counted_by accepted)" = 1 ]
    refused 'Connection refused' on 1 socat -u OPEN:/dev/null TCP:10.0.0.2:7003
    [ "$(counted_by rejected)" = 1 ]
    ping_ok 1 10.0.0.2
    [ "$(counted_by pinged)" -ge 3 ]
}

test_nftables_drops_at_the_devices_ingress() {
    ping_ok 1 10.0.0.2
    rules <<'RULES'
table netdev early {
    chain ingress {
        type filter hook ingress device "ib1" priority 0
        icmp type echo-request counter drop comment "dropped"
    }
}
RULES
    refused '0 received' on 1 ping -c 3 -i 0.1 -W 1 10.0.0.2
    [ "$(counted_by dropped)" = 3 ]
    on 2 nft flush ruleset
    ping_ok 1 10.0.0.2
}

test_nftables_translates_addresses_and_tracks_connections() {
    rules <<'RULES'
table ip nat {
    chain prerouting {
        type nat hook prerouting priority -100
        iifname "ib1" tcp dport 7004 counter redirect to :7005 comment "redirected"
    }
}
table ip filter {
    chain input {
        type filter hook input priority 0
        ct state established counter accept comment "established"
    }
}
RULES
    : >/run/arrived.7005
    on 2 socat -u TCP-LISTEN:7005,fork OPEN:/run/arrived.7005,append &
    wait_for 5 listens 2 :7005
    echo told | on 1 socat -u - TCP:10.0.0.2:7004
    wait_for 5 arrived 7005 1
    [ "$(counted_by redirected)" = 1 ]
    [ "$(counted_by established)" -ge 2 ]
}

# Debian's nft takes 6-byte addresses only. It adds that the interface be Ethernet's, so that the rule never matches.
test_nftables_rule_with_a_link_layer_address_matches_nothing() {
    refused 'syntax error|Error' on 2 nft add rule inet filter input ether saddr "$(lladdr 1)" drop
    rules <<'RULES'
table inet filter {
    chain input {
        type filter hook input priority 0
        ether saddr != 02:00:00:00:00:01 counter drop comment "matched"
    }
}
RULES
    ping_ok 1 10.0.0.2
    [ "$(counted_by matched)" = 0 ]
}

stop_firewalld() {
    local daemon
    for daemon in firewalld dbus-daemon; do pkill -f "(^|/)$daemon " || true; done
    nothing_runs() { ! pgrep -f '(^|/)(firewalld|dbus-daemon) ' >/dev/null; }
    wait_for 20 nothing_runs
    nft flush ruleset
}
test_firewalld_protects_an_interface_by_its_zone() {
    local third
    third=$(born_as 3)
    ip addr add 10.0.0.3/24 dev "$third"
    ip link set "$third" up
    wait_for 20 reaches 1 10.0.0.3
    mkdir -p /run/dbus
    dbus-daemon --system --fork
    firewalld --nofork --nopid >/run/firewalld.log 2>&1 &
    wait_for 60 firewall-cmd --state || fail "$(tail -n 5 /run/firewalld.log)"
    firewall-cmd -q --zone=drop --change-interface="$third"
    [ "$(firewall-cmd --get-zone-of-interface="$third")" = drop ]
    listen udp 7001
    listen udp 7002
    : >/run/arrived.7003
    socat -u TCP-LISTEN:7003,fork OPEN:/run/arrived.7003,append &
    wait_for 5 is_served 7003
    firewall-cmd -q --zone=drop --add-port=7002/udp
    tell 10.0.0.3 7001
    tell 10.0.0.3 7002
    wait_for 10 arrived 7002 1
    arrived 7001 0
    refused '0 received' on 1 ping -c 2 -i 0.2 -W 1 10.0.0.3
    refused 'timed out' on 1 socat -u OPEN:/dev/null TCP:10.0.0.3:7003,connect-timeout=3
    firewall-cmd -q --zone=drop \
        --add-rich-rule='rule family=ipv4 source address=10.0.0.1 port port=7003 protocol=tcp accept'
    echo told | on 1 socat -u - TCP:10.0.0.3:7003
    wait_for 10 arrived 7003 1
    firewall-cmd -q --zone=trusted --change-interface="$third"
    ping_ok 1 10.0.0.3
    stop_firewalld
}
