# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Output of ip and ethtool for one configuration, with this driver and with the kernel's own in the same VM, compared
# field by field: only the differences that guest/compare_fields.py lists, with their reasons, are allowed.
PORTS=2
PARTITIONS='blue=0x0001, ipoib : ALL=full;'

load_the_other() {
    case $1 in
    stock) modprobe ib_ipoib ;;
    ours) insmod /test/ib_ipoib.ko ;;
    esac
}
# A JSON text as lines of path and value.
flatten() { jq -r 'paths(scalars) as $p | ($p | map(tostring) | join(".")) + ": " + (getpath($p) | tostring)'; }

# Two hosts, a child of each kind of creation, some traffic: then all information, into /run/shown.<driver>.
show() { # DRIVER
    local dev out=/run/shown.$1
    mkdir -p "$out"
    modinfo -F depends ib_ipoib | tr , '\n' | xargs modprobe -a
    load_the_other "$1"
    add_hosts
    on 1 ip link add link ib0 name blue type ipoib pkey 0x8001 umcast 1
    make_child 1 0x8002
    # Through sysfs: if rtnetlink changes the mode the in-tree driver may return without RTNL (past-faults.md, a).
    on 1 sh -c 'echo connected >/sys/class/net/ib0.8002/mode'
    on 1 ip link set blue up
    wait_for 20 reaches 1 10.0.0.2
    ping_ok 1 10.0.0.2 -s 1000
    for dev in ib0 blue ib0.8002; do
        on 1 ip -d -j link show "$dev" | flatten >"$out/link.$dev"
        on 1 ip -s -j link show "$dev" | flatten >"$out/statistics.$dev"
        on 1 ethtool -i "$dev" >"$out/driver.$dev"
        on 1 ethtool -k "$dev" >"$out/features.$dev"
        on 1 ethtool -c "$dev" >"$out/coalesce.$dev"
        on 1 ethtool -S "$dev" | sed 's/: .*/: present/' >"$out/names.$dev"
        on 1 ethtool "$dev" >"$out/settings.$dev"
        on 1 sh -c "cd /sys/class/net/$dev && for f in type addr_len dev_id dev_port flags mtu tx_queue_len mode pkey umcast; do
            echo \"\$f: \$(cat \$f 2>/dev/null)\"; done" >"$out/sysfs.$dev"
    done
    rmmod ib_ipoib
}

test_both_drivers_show_the_same_fields() {
    [ "$DRIVER" = ours ] || return 77
    show stock
    show ours
    ./compare_fields.py /run/shown.stock /run/shown.ours | sed 's/^/# /'
    [ "${PIPESTATUS[0]}" = 0 ]
}
