# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# ipoib-report, on hosts in several states.
PORTS=2
HOSTS=1

# A host's namespace has a /sys of its own, without debugfs.
report_of() { on "$1" sh -c 'mount -t debugfs none /sys/kernel/debug && ./ipoib-report -' >/run/report; } # HOST
# One report of host 1 with a child serves several tests.
report_of_host_1() {
    if [ ! -e /run/report.1 ]; then
        make_blue
        wait_for 20 reaches 1 10.0.0.2
        echo "ib0: a line of this test" >/dev/kmsg
        echo "a line of another driver" >/dev/kmsg
        on 1 ip neigh show dev ib0 | says '10\.0\.0\.2'
        echo name-of-this-host >/proc/sys/kernel/hostname
        report_of 1
        echo '(none)' >/proc/sys/kernel/hostname
        is_complete
        mv /run/report /run/report.1
    fi
    cp /run/report.1 /run/report
}
has() { grep -qE -- "$1" /run/report || fail "the report has no line '$1'"; }                              # PATTERN
lacks() { ! grep -nE -- "$1" /run/report || fail "the report has '$1'"; }                                  # PATTERN
# Lines of the report between a command and the next one.
output_of() { sed -n "/^\\$ $1\$/,/^\\$/p" /run/report | sed '1d;$d'; } # COMMAND
is_complete() { [ "$(tail -n 1 /run/report)" = '# complete' ] || fail "the report is not complete"; }

make_blue() { on 1 test -e /sys/class/net/blue || on 1 ip link add link ib0 name blue type ipoib pkey 0x8001; }

test_report_has_module_kernel_and_parameters() {
    report_of_host_1
    has "^Linux $(uname -r | sed 's/[.+]/\\&/g') "
    has '^PRETTY_NAME="Debian'
    has '^/sys/module/ib_ipoib/parameters/send_queue_size: 128$'
    has '^/sys/module/ib_ipoib/parameters/recv_queue_size: 256$'
    if [ "$DRIVER" = ours ]; then
        has "^/sys/module/ib_ipoib/version: $(cat /sys/module/ib_ipoib/version)\$"
        has "^/sys/module/ib_ipoib/srcversion: $(cat /sys/module/ib_ipoib/srcversion)\$"
    else
        has "^# the loaded module has no version: it is the kernel's own\$"
    fi
}

test_report_has_interface_and_child() {
    report_of_host_1
    has '^======== interface ib0$'
    has '^======== interface blue$'
    has '^/sys/class/net/ib0/mode: datagram$'
    output_of 'ip -d -s link show dev blue' | says 'ipoib pkey *0x8001'
    # The in-tree driver's children of rtnetlink have no such files.
    [ "$DRIVER" = stock ] || has '^/sys/class/net/blue/pkey: 0x8001$'
    [ "$DRIVER" = stock ] || has '^/sys/class/net/blue/parent: ib0$'
    output_of 'ip -d -s link show dev ib0' | says "$(lladdr 1)"
    output_of 'ethtool -i ib0' | says 'driver: ib_ipoib'
    output_of 'ethtool -S ib0' | says -E 'tx_packets: [1-9]'
    output_of 'ethtool -k ib0' | says 'generic-receive-offload: on'
    # The in-tree driver has no ring sizes.
    [ "$DRIVER" = stock ] || output_of 'ethtool -g ib0' | says 'Current hardware settings'
    output_of 'cat .sys.kernel.debug.ipoib.ib0_path' | says 'GID: fe80:0:0:0:2:c903:0:110'
    output_of 'cat .sys.kernel.debug.ipoib.ib0_mcg' | says 'ffff:ffff'
}

test_report_has_hca_port_and_subnet() {
    report_of_host_1
    has '^/sys/class/infiniband/soft_ib0/ports/1/state: 4: ACTIVE$'
    has '^/sys/class/infiniband/soft_ib0/ports/1/pkeys/0: 0xffff$'
    has '^/sys/class/infiniband/soft_ib0/ports/1/gids/0: fe80:'
    lacks '/pkeys/[0-9]+: 0x0000$'
    lacks '/gids/[0-9]+: fe80:0000:0000:0000:0000:0000:0000:0000$'
    output_of 'rdma link' | says 'link soft_ib0/1'
    output_of ibstat | says "CA 'soft_ib0'"
    output_of sminfo | says 'sminfo: sm lid'
    output_of 'saquery -g' | says 'MGID'
}

test_report_has_the_drivers_log() {
    report_of_host_1
    has 'ib0: a line of this test'
    lacks 'a line of another driver'
}

test_report_has_no_ip_addresses_or_host_names() {
    report_of_host_1
    lacks '(^|[^0-9.])10\.0\.0\.[12]([^0-9.]|$)'
    lacks 'fd00::[12]'
    lacks name-of-this-host
}

test_report_names_missing_programs() {
    local name path=/run/few
    mkdir -p $path
    for name in bash sh cat sed grep tr head wc timeout id date uname ip awk sort uniq paste tail cut mktemp rm; do
        ln -sf "$(command -v $name)" "$path/$name"
    done
    # Directories that the script itself adds are hidden.
    on 1 unshare --mount sh -c "mount -t tmpfs none /usr/local/sbin && sed 's,:/usr/sbin:/sbin,,' ipoib-report >/run/few/report &&
        PATH=$path bash /run/few/report -" >/run/report
    is_complete
    has '^# ethtool is not installed$'
    has '^# programs that are not installed:.* rdma .*ibstat.* sminfo saquery .*ethtool'
    has '^======== interface ib0$'
    has '^/sys/class/net/ib0/mode: '
}

test_ordinary_user_gets_a_report() {
    install -m 755 ipoib-report /run/ipoib-report
    on 1 setpriv --reuid 65534 --regid 65534 --clear-groups /run/ipoib-report - >/run/report
    is_complete
    has '^Not root: '
    has '^/sys/class/net/ib0/mode: '
    output_of 'ethtool -S ib0' | says tx_packets
    has '^# /sys/kernel/debug/ipoib/ib0_path cannot be read$'
}

test_report_goes_to_a_file_of_the_users() {
    mkdir -p /run/here
    cp ipoib-report /run/here/
    on 1 sh -c 'cd /run/here && ./ipoib-report' >/run/said
    says 'ipoib-report: ipoib-report-[0-9]*-[0-9]*.txt' </run/said
    [ "$(stat -c %a /run/here/ipoib-report-*.txt)" = 600 ]
    tail -n 1 /run/here/ipoib-report-*.txt | says '# complete'
    rm -r /run/here
}

test_report_without_the_module() {
    unload_driver
    ./ipoib-report - >/run/report
    is_complete
    has '^# ib_ipoib is not loaded$'
    # The limits are those of all network namespaces, and shown in the initial one.
    has '^net\.ipv4\.neigh\.default\.gc_thresh3 = [1-9]'
    has '^# there is no interface of type InfiniBand in this network namespace$'
    has '^/sys/class/infiniband/soft_ib1/ports/1/state: '
    load_driver
    add_hosts
}
