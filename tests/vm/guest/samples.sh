# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2009,SC2154,SC2317
# Samples of the kernel's objects and memory, for comparison; and a full report of a host's state.
samples=/run/samples
page_kib=$(($(getconf PAGESIZE) / 1024))

# Memory that is neither free, nor a program's or a file's, nor on a processor's list of free pages.
kernel_kb() {
    awk -v page="$page_kib" '$1 == "MemTotal:" { n += $2 } $1 ~ /^(MemFree|Buffers|Cached|AnonPages|SReclaimable|PageTables):$/ { n -= $2 }
        $1 == "count:" { n -= page * $2 } END { print n }' /proc/meminfo /proc/zoneinfo
}
# Objects in slabs, without those of the kernel's checkers. Freed objects are not counted, though processors keep them,
# KASAN quarantines them for a while, and closed files are cached.
slab_kb() {
    local shrink
    echo 3 >/proc/sys/vm/drop_caches
    for shrink in /sys/kernel/slab/*/shrink; do echo 1 >"$shrink"; done
    awk 'NR > 2 && $1 !~ /^(kmemleak|debug_objects)_/ { n += $2 * $4 } END { print int(n / 1024) }' /proc/slabinfo
}
# A size in KiB, once settled: memory is freed with a delay.
settled() { # COMMAND...
    local last now=0
    for _ in $(seq 20); do
        last=$now now=$("$@")
        [ $((now - last)) -gt 32 ] || [ $((last - now)) -gt 32 ] || break
        sleep 0.5
    done
    echo "$now"
}
# Memory not in use by the kernel: free, on the processors' lists of free pages, or of programs, whose heaps are pages
# of 2 MiB at times.
free_now_kib() {
    sync
    echo 3 >/proc/sys/vm/drop_caches
    awk -v page="$page_kib" '/^(MemFree|AnonPages):/ { kib += $2 } /^ +count:/ { kib += page * $2 } END { print kib }' /proc/meminfo /proc/zoneinfo
}
free_kib() { settled free_now_kib; }
slab_objects() { awk -v pattern="^$1" '$1 ~ pattern { n += $2 } END { print n + 0 }' /proc/slabinfo; } # NAME
verbs_objects() { # one line for each kind
    rdma resource show | awk '{ for (i = 3; i < NF; i += 2) n[$i] += $(i + 1) } END { for (i in n) print "verbs_" i, n[i] }' | sort
}
interfaces() { # in all namespaces
    ip -o link
    local host
    for host in $(seq "$PORTS"); do on "$host" ip -o link; done
}
sample() { # NAME
    mkdir -p $samples
    sync
    {
        echo "slab_kb $(slab_kb)"
        echo "kernel_kb $(kernel_kb)"
        echo "packets $(slab_objects skbuff)"
    } >"$samples/memory.$1"
    {
        verbs_objects
        echo "connections $(connection_ends)"
        echo "interfaces $(interfaces | wc -l)"
        echo "namespaces $(slab_objects net_namespace)"
        echo "threads $(ps --ppid 2 -o comm= | grep -vc kworker)"
        echo "debugfs_files $(find /sys/kernel/debug/ipoib /sys/kernel/debug/soft_ib | wc -l)"
        echo "users_of_ib_ipoib $(cat /sys/module/ib_ipoib/refcnt)"
        echo "users_of_soft_ib $(cat /sys/module/soft_ib/refcnt)"
    } >"$samples/objects.$1"
}
compared() { # objects|memory: samples before and after
    [ "$(find $samples -name "$1.*" | wc -l)" = 2 ] || fail "there are no two samples"
    paste -d ' ' "$samples/$1.before" "$samples/$1.after" | awk '{ printf "# %-21s %8d before, %8d after\n", $1, $2, $4 }'
}
# Fails if the kernel's memory has grown by more than KIB. With KASAN it says nothing: that keeps freed objects, up to a
# 32nd of the memory.
kernel_grew_little() { # KIB
    grep -q ' kasan_quarantine_put$' /proc/kallsyms || [ "$(grown kernel_kb)" -le "$1" ]
}
grown() { awk -v name="$1" '$1 == name { n = $2 - n } END { print n }' "$samples"/memory.{before,after}; } # NAME

show_host() { # HOST
    local dev hca=/sys/class/infiniband/soft_ib$(($1 - 1))/ports/1
    dev=$(interface_of "$1")
    echo "host $1: port $(cat "$hca/state"), P_Keys $(sort -u "$hca"/pkeys/* | xargs)"
    on "$1" ip -s -d addr
    on "$1" ip neigh
    on "$1" ethtool -S "$dev"
    grep -H . "/sys/kernel/debug/ipoib/$dev"[._]* "$debug/$(($1 - 1))/counters" | cut -d / -f 5-
}
