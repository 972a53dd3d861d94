# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Sockets over RDMA, by the kernel's RDS and SMC on the fabric's HCAs: each sends a file from 10.0.0.1 to 10.0.0.2.
PORTS=2
HOSTS=1

# shellcheck source=/dev/null
. ./initial_namespace.sh

mib=4
is_listening() { grep -q listening /run/receiver; }
# Runs guest/sockets.py twice, by a function with the number of the host as its first argument.
send_file() { # PROTOCOL FUNCTION
    local receiver bytes=$((mib << 20))
    head -c $bytes /dev/urandom >/run/data
    "$2" 2 timeout $((60 * patience)) ./sockets.py "$1" receive 10.0.0.2 /run/received $bytes >/run/receiver 2>&1 &
    receiver=$!
    wait_for 10 is_listening || fail "$(cat /run/receiver)"
    "$2" 1 timeout $((60 * patience)) ./sockets.py "$1" send 10.0.0.2 /run/data 10.0.0.1
    wait $receiver || fail "$(cat /run/receiver)"
    cmp /run/data /run/received
}

# SMC-R is for RoCE: it uses no GID of InfiniBand, and its sockets become TCP's.
! kernel_is 7 || skippable_smc_falls_back_to_tcp='the kernel has no SMC'
test_smc_falls_back_to_tcp() {
    local before
    modinfo smc >/dev/null 2>&1 || return 77
    modprobe -a smc smc_diag
    before=$(counter 1 rc_sent)
    send_file smc on
    [ "$(counter 1 rc_sent)" = "$before" ]
    modprobe -r smc_diag smc
}

without_namespace() { "${@:2}"; }
test_rds_delivers_messages() {
    local before
    enter_initial_namespace
    sysctl -qw net.core.rmem_max=16777216
    modprobe rds_rdma
    before=$(counter 1 rc_sent)
    send_file rds without_namespace
    [ "$(counter 1 rc_sent)" -ge $((before + (mib << 20) / 2048)) ]
    # From 7.3 rds_rdma corrupts a list if it is unloaded while it closes connections.
    kernel_is 7.3 || modprobe -r rds_rdma rds
    leave_initial_namespace
}
