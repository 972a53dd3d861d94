# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# The kernel's own tests of network drivers, on ib0: those of tools/testing/selftests/drivers/net of its Debian source
# (tests/vm/selftests), unchanged, on kernels 6.12 and 7.
PORTS=4
HOSTS=1
MODE=connected
FABRIC='vectors=4'
SELFTESTS=1

# shellcheck source=/dev/null
. ./selftests.sh

# The message of programs that expect channels and rings of every driver.
unsupported='Netlink error: Operation not supported'

# Lines of standard input that are for this kernel and driver: those without a prefix, and those whose prefix has them,
# as "[7 ours]".
expected() {
    awk -v here=" $series $DRIVER " '
        /^\[/ {
            n = split(substr($0, 2, index($0, "]") - 2), conditions, " ")
            for (i = 1; i <= n; i++) if (!index(here, " " conditions[i] " ")) next
            sub(/^[^]]*\] /, "")
        }
        { print }'
}
# The program's KTAP result, a line for each case: "CASE ok", "CASE SKIP|XFAIL its reason", or "CASE not ok: " with the
# first check that failed, the exception, or the error of the command that failed.
cases_of() { # PROGRAM
    awk -v program="$1" '
        /^# Check failed / { if (!why) why = substr($0, 3) }
        /^# Exception\| [A-Za-z_.]+: / { if (!why) { why = substr($0, 14); sub(/^[A-Za-z_.]*\./, "", why) } }
        /^# Exception\| +STDERR: / { if (why ~ /^CmdExitFailure/) { why = $0; sub(/.* STDERR: */, "", why) } }
        match($0, "^(not )?ok [0-9]+ " program "[.]") {
            result = /^not/ ? "not ok" (why ? ": " why : "") : "ok"
            name = substr($0, RLENGTH + 1)
            if (sub(/ # (SKIP|XFAIL)/, " &", name)) { result = name; sub(/^[^#]*# /, "", result); sub(/ .*/, "", name) }
            sub(/ +$/, "", result)
            print name " " result
            why = ""
        }'
}

# Runs a program in host 1, with host 2 as its remote end, and compares its result with all the cases expected, which
# standard input has. Status 77: this kernel has no such program, or it has tested nothing.
judge() { # PROGRAM [ARGUMENT...]
    local name=${1##*/}
    [ -e "$tests/$1.py" ] || return 77
    expected >"$results/$name.expected"
    on 1 env NETIF=ib0 LOCAL_V4=10.0.0.1 LOCAL_V6=fd00::1 REMOTE_V4=10.0.0.2 REMOTE_V6=fd00::2 \
        REMOTE_TYPE=netns REMOTE_ARGS=h2 timeout $((100 * patience)) python3 "$tests/$1.py" "${@:2}" \
        >"$results/$name" 2>&1 || true
    cases_of "$name" <"$results/$name" >"$results/$name.cases"
    sed 's/^/# /' "$results/$name.cases"
    diff "$results/$name.cases" "$results/$name.expected" >"$results/$name.diff" ||
        { tail -n 40 "$results/$name" | sed 's/^/# /'; sed 's/^/# /' "$results/$name.diff"; return 1; }
    grep -qvE '^[^ ]+ (SKIP|XFAIL) ' "$results/$name.cases" || return 77
}
# Puts a program before the one of its name for the rest of a test: standard input has what it does first, in bash.
wrap() { # PROGRAM
    local directory=/run/wrapped.$1
    mkdir -p "$directory"
    # shellcheck disable=SC2016 # expanded there
    { echo '#!/bin/bash'; echo "original=$(command -v "$1")"; cat; echo 'exec "$original" "$@"'; } >"$directory/$1"
    chmod +x "$directory/$1"
    PATH=$directory:$PATH
}

test_ping() {
    judge ping <<END
[6.12] test_v4 ok
[6.12] test_v6 ok
[6.12] test_tcp ok
[7] test_default_v4 ok
[7] test_default_v6 ok
[7] test_xdp_generic_sb ok
[7] test_xdp_generic_mb ok
[7] test_xdp_native_sb SKIP device does not support native-XDP
[7] test_xdp_native_mb ok
[7] test_xdp_offload SKIP device does not support offloaded XDP
END
}

# The last case fails for an interface without combined channels, before it tests anything.
test_stats() {
    judge stats <<END
[6.12] check_pause XFAIL pause not supported by the device
[6.12] check_fec XFAIL FEC not supported by the device
[7] check_pause SKIP pause not supported by the device
[7] check_fec SKIP FEC not supported by the device
[7] check_fec_hist SKIP FEC not supported by the device
[ours] pkt_byte_sum ok
[ours] qstat_by_ifindex ok
[ours] check_down ok
[stock] pkt_byte_sum SKIP qstats not supported by the device
[stock] qstat_by_ifindex SKIP No ifindex supports qstats
[stock] check_down SKIP qstats not supported by the device
[7] procfs_hammer ok
[7 ours] procfs_downup_hammer not ok: KeyError: 'combined-count'
[7 stock] procfs_downup_hammer not ok: NlError: $unsupported
END
}

# That case with its fault mended.
skippable_stats_are_read_while_it_goes_down_and_up='newer than 6.12'
test_stats_are_read_while_it_goes_down_and_up() {
    [ "$series" = 7 ] || return 77
    sed "s/channels\['combined-count'\] == 0/not channels.get('combined-count')/" "$tests/stats.py" >"$tests/hammer.py"
    ! cmp -s "$tests/stats.py" "$tests/hammer.py" || fail 'the fault is not there' || return 1
    judge hammer -t procfs_downup_hammer <<END
[ours] procfs_downup_hammer ok
[stock] procfs_downup_hammer not ok: NlError: $unsupported
END
}

test_queues() {
    judge queues <<END
get_queues ok
[ours] addremove_queues ok
[stock] addremove_queues SKIP cannot decrement queue: already at 1
[7] check_down ok
[7] check_xsk ok
END
}

skippable_napi_id='newer than 6.12'
case ${series:-} in 7) xfail_stock_napi_id='packets of connections bypass GRO, which notes the NAPI ID' ;; esac
test_napi_id() {
    judge napi_id <<END
test_napi_id ok
END
}

# The program knows combined channels alone: here they are the receive queues. Those but the first have a NAPI context
# while they have a connection, and after a change of channels another one: the program asks for the former ID.
skippable_napi_threaded='newer than 6.12'
test_napi_threaded() {
    local none="NlError: Netlink error: No such file or directory {'bad-attr': '.id'}"
    # The message of ethtool, which the program runs.
    local refusal='netlink error: Operation not supported'
    [ "$series" = 7 ] || return 77
    wrap ethtool <<'END'
set -o pipefail
case "$*" in
'--json -l '*) "$original" -l "$3" | awk '/^RX:/ { n = $2 } END { print "[{\"combined\": " n "}]" }'; exit ;;
'-L '*' combined '*) exec "$original" -L "$2" rx "$4" ;;
esac
END
    judge napi_threaded -t napi_init <<END
[ours] napi_init ok
[stock] napi_init not ok: $refusal
END
    before_each
    judge napi_threaded -t change_num_queues <<END
[ours] change_num_queues not ok: $none
[stock] change_num_queues not ok: $refusal
END
    before_each
    judge napi_threaded -t enable_dev_threaded_disable_napi_threaded <<END
[ours] enable_dev_threaded_disable_napi_threaded not ok: $none
[stock] enable_dev_threaded_disable_napi_threaded not ok: $refusal
END
}

# Without combined channels the last case says that it does not apply.
skippable_ring_reconfig='newer than 6.12'
test_ring_reconfig() {
    judge ring_reconfig <<END
[ours] channels ok
[ours] ringparam ok
[ours] reconfig_tx_stall SKIP device does not support combined channels
[stock] channels not ok: NlError: $unsupported
[stock] ringparam not ok: NlError: $unsupported
[stock] reconfig_tx_stall not ok: NlError: $unsupported
END
}

skippable_shaper='the driver shapes nothing'
test_shaper() {
    [ "$series" = 7 ] || return 77
    [ "$DRIVER" = stock ] || on 1 ethtool -L ib0 tx 4
    judge shaper <<END
get_shapers SKIP shapers not supported by the device
get_caps SKIP shapers not supported by the device
set_qshapers SKIP shapers not supported by the device
del_qshapers SKIP queue shapers not supported by device, skipping delete
set_nshapers SKIP shapers not supported by the device
del_nshapers SKIP netdev shaper not supported by device, skipping delete
set_all_supported_attrs SKIP queue scope shapers not supported by the device
invalid_set_preserves_state SKIP queue scope shapers not supported by the device
[ours] mixed_parent_group_requires_parent SKIP node scope shapers not supported by the device
[stock] mixed_parent_group_requires_parent SKIP netdev has 1 queues, 2 required
recursive_empty_node_cleanup SKIP node scope shapers not supported by the device
[ours] basic_groups SKIP netdev scope shapers not supported by the device
[stock] basic_groups SKIP netdev has 1 queues, 3 required
[ours] basic_groups_with_rate SKIP netdev scope shapers not supported by the device
[stock] basic_groups_with_rate SKIP netdev has 1 queues, 3 required
[ours] qgroups SKIP node scope shapers not supported by the device
[stock] qgroups SKIP netdev has 1 queues, 4 required
[ours] set_node_shaper SKIP node scope shapers not supported by the device
[stock] set_node_shaper SKIP netdev has 1 queues, 2 required
[ours] group_update_rate SKIP node scope shapers not supported by the device
[stock] group_update_rate SKIP netdev has 1 queues, 3 required
[ours] delegation SKIP node scope shapers not supported by the device
[stock] delegation SKIP netdev has 1 queues, 4 required
nested_depth_limit SKIP node scope shapers not supported by the device
delete_child_reparent SKIP node scope shapers not supported by the device
move_queue_between_nodes SKIP node scope shapers not supported by the device
reject_reparenting SKIP node scope shapers not supported by the device
dup_leaves SKIP node scope shapers not supported by the device
[ours] queue_update SKIP device does not support queue scope
[stock] queue_update SKIP netdev has 1 queues, 4 required
END
}

skippable_hds='HCAs split no headers off'
test_hds() {
    judge hds <<END
[ours] get_hds SKIP tcp-data-split not supported by device
[stock] get_hds SKIP ring-get not supported by device
[ours] get_hds_thresh SKIP hds-thresh not supported by device
[stock] get_hds_thresh SKIP ring-get not supported by device
set_hds_disable SKIP ring-set not supported by the device
set_hds_enable SKIP ring-set not supported by the device
[ours] set_hds_thresh_random SKIP hds-thresh not supported by device
[stock] set_hds_thresh_random SKIP ring-get not supported by device
set_hds_thresh_zero SKIP ring-set not supported by the device
[ours] set_hds_thresh_max SKIP hds-thresh not supported by device
[stock] set_hds_thresh_max SKIP ring-get not supported by device
[ours] set_hds_thresh_gt SKIP hds-thresh not supported by device
[stock] set_hds_thresh_gt SKIP ring-get not supported by device
[ours] set_xdp SKIP tcp-data-split not supported by device
[stock] set_xdp SKIP ring-get not supported by device
[ours] enabled_set_xdp SKIP tcp-data-split not supported by device
[stock] enabled_set_xdp SKIP ring-get not supported by device
[ours] ioctl SKIP tcp-data-split not supported by device
[stock] ioctl SKIP ring-get not supported by device
[ours] ioctl_set_xdp SKIP tcp-data-split not supported by device
[stock] ioctl_set_xdp SKIP ring-get not supported by device
[ours] ioctl_enabled_set_xdp SKIP tcp-data-split not supported by device
[stock] ioctl_enabled_set_xdp SKIP ring-get not supported by device
END
}

# The checksums of received packets, and of sent ones: in datagram mode, connections have none. A receiver of the
# program ends after a fixed time, too soon for a slow machine.
skippable_csum='newer than 6.12'
test_csum() {
    local program=/selftests/tools/testing/selftests/net/lib/csum seconds=$((2 * patience < 15 ? 2 * patience : 15))
    [ "$series" = 7 ] || return 77
    [ -e $program.real ] || mv $program $program.real
    printf '#!/bin/sh\nexec %s "$@" -L %s\n' $program.real "$seconds" >$program
    chmod +x $program
    set_mode 1 datagram
    set_mode 2 datagram
    on 1 ethtool -K ib0 rx on tx on >/dev/null
    both_work
    judge hw/csum <<END
ipv4_rx_tcp ok
ipv4_rx_tcp_invalid ok
ipv4_rx_udp ok
ipv4_rx_udp_invalid ok
ipv4_tx_udp_csum_offload ok
ipv4_tx_udp_zero_checksum ok
ipv6_rx_tcp ok
ipv6_rx_tcp_invalid ok
ipv6_rx_udp ok
ipv6_rx_udp_invalid ok
ipv6_tx_udp_csum_offload SKIP Test requires tx checksum offload on ib0
ipv6_tx_udp_zero_checksum SKIP Test requires tx checksum offload on ib0
END
}

# The bond's type changes with an interface that is not Ethernet. The test takes nlmon's; here it is a child of ib0.
test_bond_type_change() {
    wrap ip <<END
case "\$*" in
*' type nlmon') echo >>$results/children; exec "\$original" link add link ib0 name test-noneth0 type ipoib ;;
esac
END
    : >"$results/children"
    on 1 bash "$tests/bonding/bond-eth-type-change.sh" >"$results/bond" 2>&1 ||
        { sed 's/^/# /' "$results/bond"; return 1; }
    sed 's/^/# /' "$results/bond"
    [ "$(grep -c '\[ OK \]' "$results/bond")" = 2 ]
    [ "$(wc -l <"$results/children")" = 2 ]
}

# A program that a newer kernel's source brings gets a row here, or a reason in conformance.md, as those of hw/ have.
test_no_other_program_is_there() {
    local program
    while read -r program; do
        case $program in
        hds.py | napi_id.py | napi_threaded.py | ping.py | queues.py | ring_reconfig.py | shaper.py | stats.py) ;;
        bonding/bond-eth-type-change.sh) ;;
        # Made here.
        hammer.py) ;;
        # Not run.
        gro.py | macsec.py | netpoll_basic.py | psp.py | so_txtime.py | xdp.py) ;;
        lib/* | hw/* | netcons_basic.sh | netconsole/* | team/*) ;;
        bonding/bond-arp-interval-causes-panic.sh | bonding/bond-break-lacpdu-tx.sh | bonding/bond-lladdr-target.sh) ;;
        bonding/bond_ipsec_offload.sh | bonding/bond_lacp_prio.sh | bonding/bond_lacp_strict.sh) ;;
        bonding/bond_macvlan_ipvlan.sh | bonding/bond_options.sh | bonding/bond_passive_lacp.sh) ;;
        bonding/bond_stacked_header_parse.sh | bonding/bond_topo_?d1c.sh | bonding/bond_vlan_real_dev.sh) ;;
        bonding/dev_addr_lists.sh | bonding/lag_lib.sh | bonding/mode-?-recovery-updelay.sh) ;;
        bonding/netcons_over_bonding.sh) ;;
        *) fail "$program is not run" ;;
        esac
    done < <(cd "$tests" && find . -name '*.py' -o -name '*.sh' | sed 's,^\./,,')
}
