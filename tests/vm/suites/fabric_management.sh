# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Management of the fabric by infiniband-diags: the agents of its switch and HCAs. HCA i (soft_ib<i - 1>) is at port i of
# the switch.
PORTS=3

switch_lid() { ibswitches | sed -nE 's/.* lid ([0-9]+) lmc.*/\1/p'; }
# A field of the first PortInfo that ibportstate prints, or, with "Peer", of the peer port's.
port_field() { # PORT FIELD [Peer]
    ibportstate "$(switch_lid)" "$1" query | awk -v name="$2" -v peer="${3:-}" '
        /PortInfo:/ { in_it = ($1 == "Peer") == (peer != "") }
        in_it && index($0, name ":") == 1 { sub(/^[^:]*:\.*/, ""); print; exit }'
}

test_tools_show_nodes_and_tables() {
    local lid i
    lid=$(switch_lid)
    ibstatus soft_ib1 | says -E "base lid:.*$(printf '0x%x' "$(lid 2)")$"
    [ "$(ibaddr -l "$(lid 2)")" = "LID start 0x$(printf '%x' "$(lid 2)") end 0x$(printf '%x' "$(lid 2)")" ] ||
        fail "$(ibaddr -l "$(lid 2)")" || return 1
    # LID and subnet manager's LID in PortInfo.
    smpdump "$(lid 2)" 0x15 1 >/run/portinfo
    grep -q "^$(printf '%04x %04x' "$(lid 2)" "$(lid 1)") " /run/portinfo || fail "$(cat /run/portinfo)" || return 1
    # Ports of the LIDs, by two programs.
    dump_fts >/run/tables
    ibroute "$lid" >/run/table
    for i in 1 2 3; do
        grep -qE "^0x$(printf '%04x' "$(lid $i)") 0*$i " /run/tables || fail "$(cat /run/tables)" || return 1
        grep -qE "^0x$(printf '%04x' "$(lid $i)") 0*$i " /run/table || fail "$(cat /run/table)" || return 1
    done
    smpquery nodedesc "$(lid 2)" | says soft_ib1
    smpquery switchinfo "$lid" | says '^LinearFdbTop:'
    # One port after another.
    perfquery -a -l "$lid" >/run/ports 2>&1
    grep -qE '^PortSelect:\.*3$' /run/ports || fail "$(cat /run/ports)" || return 1
    smpquery pkeys "$(lid 2)" | says '^ *0: 0xffff 0x0000'
    # One lane, for all service levels.
    smpquery sl2vl "$(lid 2)" | says -E 'in +0, out +0: \|( 0\|){16}'
    [ "$(smpquery vlarb "$(lid 2)" | grep -c '^WEIGHT: |0x0')" = 2 ]
    perfquery -a "$lid" 2>/dev/null | says '^PortSelect:\.*255$'
    ibqueryerrors | says ' 4 nodes checked, 0 bad nodes found'
}

test_saquery_lists_records_of_each_type() {
    local type
    for type in NR PIR SL2VL PKTR VLAR LR PR LFTR GIR SWIR; do
        saquery --smkey 1 $type >"/run/records.$type" || fail "$type: $(tail -n 3 "/run/records.$type")" || return 1
        echo "# $type: $(grep -c 'Record dump:' "/run/records.$type") records"
        grep -q 'Record dump:' "/run/records.$type" || fail "$type has no records" || return 1
    done
    # Three HCAs and a switch.
    [ "$(grep -c 'Record dump:' /run/records.NR)" = 4 ]
    [ "$(grep -c 'Record dump:' /run/records.SWIR)" = 1 ]
    # There may be none of these: groups, tables of them, registered services, and requests to be informed of events.
    for type in MCMR MFTR SR IIR; do saquery --smkey 1 $type || fail "$type" || return 1; done
}

test_ibsysstat_asks_another_host() {
    ibsysstat -S -C soft_ib1 >/run/sysstat.server 2>&1 &
    wait_for 10 ibsysstat -C soft_ib0 "$(lid 2)" ping >/run/sysstat
    ibsysstat -C soft_ib0 "$(lid 2)" host >/run/sysstat
    grep -q "$(hostname)" /run/sysstat || fail "$(cat /run/sysstat)" || return 1
    ibsysstat -C soft_ib0 "$(lid 2)" cpu >/run/sysstat
    pkill -x ibsysstat
    grep -qi mhz /run/sysstat || fail "$(cat /run/sysstat)" || return 1
}

test_both_ends_of_each_switch_port_are_queried_by_lid() {
    local port
    for port in 1 2 3; do
        [ "$(port_field $port LinkState)" = Active ] || fail "port $port: $(port_field $port LinkState)" || return 1
        [ "$(port_field $port Lid Peer)" = "$(lid $port)" ] || fail "port $port: peer $(port_field $port Lid Peer)" || return 1
    done
}

# The tests below change the link of the third HCA.
set_port() { ibportstate "$(switch_lid)" 3 "$@" >/run/ibportstate; } # OPERATION...
rate() { sed -E 's/ Gb.sec \(([0-9]+X).*/ \1/' /sys/class/infiniband/soft_ib2/ports/1/rate; }
rate_is() { [ "$(rate)" = "$1" ]; }
is_active() { port_state_is 2 '4: ACTIVE' && [ "$(port_field 3 LinkState)" = Active ]; }
becomes_active() {
    sweep
    wait_for 30 is_active
}
link_downed() { perfquery "$(switch_lid)" 3 | sed -nE 's/^LinkDownedCounter:\.*([0-9]+)/\1/p'; }
port_changes() { grep -c 'num:128' /run/opensm.log || true; }
has_port_changes() { [ "$(port_changes)" -gt "$1" ]; } # COUNT

# After a test that failed.
before_each() {
    ! opensm_is_gone || start_opensm
    ! is_active || [ "$(rate)" != '40 4X' ] || return 0
    knob 3 link 1
    knob 3 width 4
    knob 3 speed 4
    set_port enable
    set_port speed 15 width 255 reset
    becomes_active
}

test_switch_port_is_disabled_and_enabled() {
    local changes
    becomes_active
    changes=$(port_changes)
    set_port disable
    wait_for 5 port_state_is 2 '1: DOWN'
    [ "$(port_field 3 LinkState)" = Down ]
    [ "$(port_field 3 PhysLinkState)" = Disabled ]
    wait_for 10 has_port_changes "$changes" || fail "OpenSM got no trap"
    # Another cable does not enable it.
    knob 3 link 0
    knob 3 link 1
    [ "$(port_field 3 PhysLinkState)" = Disabled ]
    set_port enable
    becomes_active
    [ "$(port_field 3 PhysLinkState)" = LinkUp ]
}

test_reset_brings_the_link_up_anew() {
    local before
    becomes_active
    before=$(link_downed)
    set_port reset
    becomes_active
    [ "$(link_downed)" = $((before + 1)) ] || fail "$before, then $(link_downed)"
}

test_width_and_speed_are_set_and_negotiated() {
    becomes_active
    [ "$(rate)" = '40 4X' ] || fail "$(rate)" || return 1
    set_port width 1 reset
    wait_for 5 rate_is '10 1X'
    becomes_active
    [ "$(port_field 3 LinkWidthActive)" = 1X ]
    [ "$(port_field 3 LinkWidthActive Peer)" = 1X ]
    set_port speed 1 width 255 reset
    wait_for 5 rate_is '10 4X'
    becomes_active
    [ "$(port_field 3 LinkSpeedActive)" = '2.5 Gbps' ]
    set_port speed 3 width 1 reset
    wait_for 5 rate_is '5 1X'
    set_port speed 15 width 255 reset
    wait_for 5 rate_is '40 4X'
    becomes_active
}

test_values_that_the_port_does_not_support_are_refused() {
    becomes_active
    ! set_port width 8 2>/run/refusal || fail "8x was accepted" || return 1
    ! set_port speed 8 2>/run/refusal || fail "speed 8 was accepted" || return 1
    is_active
}

test_hca_limits_the_link() {
    becomes_active
    knob 3 width 1
    [ "$(rate)" = '10 1X' ] || fail "$(rate)" || return 1
    knob 3 speed 2
    [ "$(rate)" = '5 1X' ] || fail "$(rate)" || return 1
    becomes_active
    [ "$(port_field 3 LinkWidthActive)" = 1X ]
    [ "$(port_field 3 LinkSpeedActive)" = '5.0 Gbps' ]
    ! knob 3 width 3 2>/dev/null || fail "3 lanes were accepted" || return 1
    ! knob 3 width 4294967300 2>/dev/null || fail "2^32 + 4 lanes were accepted" || return 1
    ! knob 3 speed 4294967300 2>/dev/null || fail "speed 2^32 + 4 was accepted" || return 1
    knob 3 width 12
    knob 3 speed 4
    [ "$(rate)" = '40 4X' ] || fail "the switch has 12 lanes: $(rate)" || return 1
    becomes_active
}

# MADs of a program that has a queue pair, but neither QP0 nor /dev/umad

forge() { # LID QPN CLASS PORT
    timeout $((60 * patience)) setpriv --reuid 65534 --regid 65534 --clear-groups \
        python3 /test/forge.py soft_ib0 "$@" >/run/forged 2>&1 || fail "$(tail -n 3 /run/forged)"
    [ "$(cat /run/forged)" = 0 ] || fail "status $(cat /run/forged)"
}
test_programs_cannot_configure_ports() {
    local before
    becomes_active
    before=$(counter 1 drop_route)
    # The switch, by directed route and by LID, and another HCA.
    forge 0xffff 0 0x81 3
    forge "$(switch_lid)" 0 0x01 3
    forge "$(lid 3)" 0 0x01 1
    [ "$(counter 1 drop_route)" -ge $((before + 3)) ] || fail "$before, then $(counter 1 drop_route)"
    is_active
    [ "$(port_field 3 PhysLinkState)" = LinkUp ]
}
test_programs_cannot_send_to_general_agents() {
    local before
    before=$(counter 3 drop_qkey)
    forge "$(lid 3)" 1 0x04 1
    [ "$(counter 3 drop_qkey)" = $((before + 1)) ]
}

# Performance management

perf() { /test/gmp.py 0 "$1" 4 1 "${@:2}"; } # LID METHOD ATTRIBUTE [DATA]
# A sample of port PORT's packets: a tag, a quantity for each counter, ticks of a microsecond.
sample_control() { # PORT START INTERVAL
    printf '00%02x%052x%08x%08x4711000300040001' "$1" 0 "$2" "$3"
}
sample_result() { perf "$1" 1 0x11 | sed -E 's/^0x0000 (.{32}).*/\1/'; } # LID: tag, status, three counters
sample_is_done() { [[ $(sample_result "$1") = 47110000* ]]; }

test_samples_of_counters_are_taken() {
    local lid port result
    for lid in "$(lid 1)" "$(switch_lid)"; do
        # PortXmitPkts, PortRcvPkts and PortXmitData of port 1 for 3 s, more on a slow machine.
        port=1
        [ "$(perf "$lid" 2 0x10 "$(sample_control $port 0 $((3000000 * patience)))" | cut -c1-6)" = 0x0000 ]
        [[ $(sample_result "$lid") = 47110002* ]] || fail "not running: $(sample_result "$lid")" || return 1
        for _ in 1 2 3 4 5; do perfquery "$(switch_lid)" >/dev/null; done
        wait_for 10 sample_is_done "$lid"
        result=$(sample_result "$lid")
        [ $((16#${result:8:8})) -ge 5 ] || fail "sent: $result" || return 1
        [ $((16#${result:16:8})) -ge 5 ] || fail "received: $result" || return 1
        [ $((16#${result:24:8})) -ge $((5 * 64)) ] || fail "words sent: $result" || return 1
        perfquery "$(switch_lid)" >/dev/null
        [ "$(sample_result "$lid")" = "$result" ] || fail "it counts on" || return 1
    done
}

test_perfquery_shows_the_control_of_samples() {
    perfquery -c "$(switch_lid)" 2 >/run/control
    grep -q '^PortSelect:\.*2$' /run/control
    grep -q '^CounterWidth:\.*4$' /run/control
    perfquery -c "$(lid 2)" 1 >/run/control
    grep -q '^SampleStatus:\.*0$' /run/control
    perfquery --smplctl "$(lid 2)" 1 >/run/control
    # Optional attributes are refused at once.
    ! perfquery -E "$(lid 2)" 1 2>/run/refusal || fail "PortRcvErrorDetails was answered" || return 1
}

test_chosen_counters_are_cleared() {
    local lid sent received
    lid=$(lid 2)
    # Through another host's HCA: perfquery takes the first that the kernel lists, and an HCA does not count packets to
    # itself.
    query() { perfquery -C soft_ib0 "$@"; }
    field() { query "$lid" 1 | sed -nE "s/^$1:\\.*([0-9]+)/\\1/p"; }
    # Each query is a packet, so that a counter that was cleared is much smaller.
    for _ in 1 2 3 4 5 6 7 8 9 10; do query "$lid" 1 >/dev/null; done
    sent=$(field PortXmitPkts) received=$(field PortRcvPkts)
    # Errors only, then the packets sent only, then those received.
    query -R "$lid" 1 0x0fff
    [ "$(field PortXmitPkts)" -gt "$sent" ]
    query -R "$lid" 1 0x4000
    [ "$(field PortXmitPkts)" -le 5 ]
    [ "$(field PortRcvPkts)" -gt "$received" ]
    query -x -R "$lid" 1 0x8
    [ "$(field PortRcvPkts)" -le 5 ]
}

# Agents of other classes

status_of() { /test/gmp.py 0 "$@" | cut -d' ' -f1; }

test_requests_of_unsupported_classes_are_refused_at_once() {
    local lid
    lid=$(switch_lid)
    # CongestionInfo; a vendor's class; ClassPortInfo of device management and of a later version of performance
    # management.
    [ "$(status_of "$lid" 0x21 2 1 0x11)" = 0x0004 ]
    [ "$(status_of "$lid" 0x0a 1 2 0x17)" = 0x0004 ]
    [ "$(status_of "$lid" 0x06 1 1 1)" = 0x0004 ]
    [ "$(status_of "$lid" 4 2 1 1)" = 0x0004 ]
    # The kernel answers for HCAs: unsupported method and attribute.
    [ "$(status_of "$(lid 2)" 0x21 2 1 0x11)" = 0x000c ]
    [ "$(status_of "$(lid 2)" 0x0a 1 2 0x17)" = 0x000c ]
    [ "$(status_of "$(lid 1)" 0x0a 1 2 0x17)" = 0x000c ]
    # A report and a response get none: Send, GetResp.
    [ "$(status_of "$lid" 0x21 2 3 0x11)" = none ]
}

test_ibccquery_and_vendstat_do_not_wait() {
    local lid
    for lid in "$(switch_lid)" "$(lid 2)"; do
        ! ibccquery CongestionInfo "$lid" >/run/ccquery 2>&1 || fail "congestion control is supported" || return 1
        ! vendstat "$lid" >/run/vendstat 2>&1 || fail "a vendor's statistics are supported" || return 1
        ! says -i 'timed out' </run/ccquery || fail "$(cat /run/ccquery)" || return 1
        ! says -i 'timed out' </run/vendstat || fail "$(cat /run/vendstat)" || return 1
    done
}

test_agents_of_the_kernel_and_of_programs_get_their_requests() {
    saquery --list | says soft_ib2
    ibping -S -C soft_ib1 &
    wait_for 10 ibping -C soft_ib0 -c 3 "$(lid 2)"
    pkill -x ibping
}

# Trunks

# HCA 1 with two trunks, from each of which another machine's hello has come: its first HCA is number 9.
two_trunks() {
    local i
    stop_opensm
    wait_for 10 rmmod soft_ib
    for i in 0 1; do
        ip link add trunk$i mtu 4300 up type veth peer name far$i
        ip link set far$i mtu 4300 up
    done
    load_fabric hcas=1 trunk=trunk0,trunk1
    mark_log
    for i in 0 1; do
        say $i $hello
        wait_for 10 logged "the trunk over trunk$i is up"
    done
}
hello=0109000000
say() { # TRUNK HEX...
    local frames=("${@:2}")
    /test/frames.py send "far$1" "${frames[@]/#/ffffffffffff02000000000188b5}"
}
end_of_trunks() {
    rmmod soft_ib
    ip link del trunk0 2>/dev/null || true
    ip link del trunk1 2>/dev/null || true
    start_fabric
}

test_interface_of_a_trunk_can_be_removed() {
    local deletion
    is_removed() { ! kill -0 "$deletion" 2>/dev/null; }
    trap end_of_trunks EXIT
    two_trunks
    ip link del trunk0 &
    deletion=$!
    wait_for 10 is_removed || fail "the trunk holds it"
    logged 'the trunk over trunk0 is down'
    ! logged 'the trunk over trunk1 is down' || fail "both trunks are down"
}

# Sends forty SMPs of 300 bytes by directed route, which come by port 2, the first trunk, and leave by port 3, the
# second. Their first byte has the number of trunks that they have passed in the upper six bits. Prints the number of
# bytes that leave; there are few hellos of 19 bytes among them, one in 200 ms.
pass_through() { # FIRST-BYTE
    local lrh=f002ffff0048ffff bth=6400ffff0000000000000000 deth=0000000000000000 mad before frames trunk
    mad=$(printf '0181010100000102%016d0011000000000000%016dffffffff%0184d000103%0250d' 0 0 0 0)
    mapfile -t frames < <(yes "$1$lrh$bth$deth$mad" | head -n 40)
    # A trunk is down after five seconds without a hello, and up again some time after the next.
    for trunk in 0 1; do say $trunk $hello; done
    wait_for 10 trunks_are_up
    before=$(left_bytes)
    say 0 "${frames[@]}"
    pause 0.5
    echo $(($(left_bytes) - before))
}
trunks_are_up() {
    local trunk
    for trunk in 0 1; do
        [[ $(log_since_mark | grep "the trunk over trunk$trunk is" | tail -n 1) == *up ]] || return 1
    done
}
left_bytes() { cat /sys/class/net/far1/statistics/rx_bytes; }
test_frame_does_not_circle_between_machines() {
    local bytes
    # Frames that the second trunk did not take since they had passed 64.
    dropped() { awk '$1 == "trunk1" { print $3 }' "$debug/trunks"; }
    trap end_of_trunks EXIT
    two_trunks
    bytes=$(pass_through fa)
    [ "$bytes" -ge 12000 ] || fail "$bytes bytes pass the 64th trunk" || return 1
    [ "$(dropped)" = 0 ]
    bytes=$(pass_through fe)
    [ "$bytes" -lt 6000 ] || fail "$bytes bytes pass the 65th trunk" || return 1
    [ "$(dropped)" = 40 ] || fail "$(cat "$debug/trunks")" || return 1
    bytes=$(pass_through fa)
    [ "$bytes" -ge 12000 ] || fail "the trunks are down"
}

# Parameters

test_wrong_topologies_are_refused() {
    local parameters
    stop_opensm
    wait_for 10 rmmod soft_ib
    mark_log
    for parameters in 'switches=0' 'switches=49' 'switches=4x' 'switches=4 cables=0.1' 'switches=4 cables=0.1-h0-1' \
        'switches=4 cables=0.1-h300' 'switches=4 cables=0.4294967297-h0' 'switches=4294967300' 'switches=4,4 cables=0.1-1.0' \
        'switches=4 cables=0.5-h0' 'switches=4 cables=0.1-h0,0.1-h1' 'cables=0.1-h0' \
        'switches=4 subnets=2' 'vls=3' 'width=2' 'speed=3'; do
        # shellcheck disable=SC2086
        ! insmod /test/soft_ib.ko $parameters 2>/run/refusal || fail "$parameters was accepted" || return 1
        grep -q 'Invalid parameters' /run/refusal || fail "$parameters: $(cat /run/refusal)" || return 1
    done
    logged 'cables=0.1-h1: a port does not exist, or has another cable'
    logged 'switches=4x is not 1 to 48 ports'
    logged 'cables=0.1-1.0 is not two ports'
    start_fabric
}
