# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Libraries over user-space verbs on the fabric: UCX, Open MPI on UCX, and libfabric, between two HCAs.
PORTS=2
HOSTS=1
PACKAGES='libfabric-bin openmpi-bin python3-mpi4py ucx-utils'

# shellcheck source=/dev/null
. ./perftest.sh

grew_by() { # HOST NAME BEFORE LEAST
    [ $(($(counter "$1" "$2") - $3)) -ge "$4" ] || fail "$2 of host $1: $3, now $(counter "$1" "$2")"
}
between_hosts() { # PORT, SERVER'S COMMAND -- CLIENT'S COMMAND
    local port=$1 server_command=()
    shift
    while [ "$1" != -- ]; do server_command+=("$1"); shift; done
    shift
    on 1 timeout $((60 * patience)) "${server_command[@]}" >/run/server.out 2>&1 &
    local server=$!
    wait_for 20 listens 1 ":$port" || both_failed
    on 2 timeout $((60 * patience)) "$@" >/run/client.out 2>&1 || both_failed
    wait $server || both_failed
}

# UCX's transports, and on them its messages of any size, which read or write memory of the peer.

ucx_transport() { # TRANSPORT TEST TIMES [ARGUMENT...]
    between_hosts 13337 ucx_perftest -d soft_ib0:1 -x "$1" -t "$2" -n "$3" "${@:4}" -- \
        ucx_perftest -d soft_ib1:1 -x "$1" -t "$2" -n "$3" "${@:4}" 10.0.0.1
    echo "# $1 $2: $(grep '^Final:' /run/client.out | xargs)"
    says -E "^Final: +$3 " /run/client.out || both_failed
}
test_ucx_over_connections() {
    local before test
    before=$(counter 2 rc_sent)
    for test in am_lat am_bw put_lat put_bw; do ucx_transport rc_verbs $test 200; done
    for test in fadd cswap; do ucx_transport rc_verbs $test 200; done
    ucx_transport rc_verbs get 200 -D bcopy
    ucx_transport rc_verbs get 100 -D zcopy -s 1000000
    ucx_transport rc_verbs put_bw 100 -D zcopy -s 1000000
    grew_by 2 rc_sent "$before" $((8 * 200 + 100 * 1000000 / 2048))
}
test_ucx_over_datagrams() {
    local before test
    before=$(counter 2 send_wr)
    for test in am_lat am_bw; do ucx_transport ud_verbs $test 200; done
    grew_by 2 send_wr "$before" 400
}
ucx_messages() { # TRANSPORTS TEST BYTES TIMES
    between_hosts 13337 env "UCX_TLS=$1" UCX_NET_DEVICES=soft_ib0:1 ucx_perftest -t "$2" -s "$3" -n "$4" -- \
        env "UCX_TLS=$1" UCX_NET_DEVICES=soft_ib1:1 ucx_perftest -t "$2" -s "$3" -n "$4" 10.0.0.1
    echo "# $1 $2 of $3 bytes: $(grep '^Final:' /run/client.out | xargs)"
    says -E "^Final: +$4 " /run/client.out || both_failed
}
test_ucx_messages() {
    local transport
    for transport in rc_v ud_v; do
        ucx_messages $transport tag_lat 8 200
        ucx_messages $transport tag_bw 1000000 20
        ucx_messages $transport ucp_am_bw 100000 20
    done
}

# Open MPI: mpirun in host 1 starts a process there, and another in host 2 by a program that enters it, as by ssh. Each
# has a host name of its own, and the HCA of its host.
prepare_mpi() {
    printf '%s\n' '127.0.0.1 localhost' '10.0.0.1 host1' '10.0.0.2 host2' >/etc/hosts
    cat >/run/enter <<'PROGRAM'
#!/bin/bash
host=$1; shift
exec ip netns exec "h${host#host}" unshare --uts bash -c "echo $host >/proc/sys/kernel/hostname; $*"
PROGRAM
    cat >/run/process <<'PROGRAM'
#!/bin/bash
read -r host </proc/sys/kernel/hostname
UCX_NET_DEVICES=soft_ib$((${host#host} - 1)):1 exec python3 -m mpi4py ./mpi.py
PROGRAM
    chmod +x /run/enter /run/process
}
mpi() { # ARGUMENT...
    prepare_mpi
    timeout $((120 * patience)) /run/enter host1 mpirun --allow-run-as-root -np 2 --host host1,host2 \
        --mca plm_rsh_agent /run/enter "$@" /run/process >/run/mpi.out 2>&1 || fail "$(tail -n 15 /run/mpi.out)"
    says -x 'equal bytes: 8458242' /run/mpi.out || fail "$(tail -n 15 /run/mpi.out)"
}
test_open_mpi_over_ucx() {
    local transport before
    for transport in rc_v ud_v; do
        before=$(counter 1 send_wr)
        mpi --mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any \
            --mca osc ucx --mca osc_ucx_tls any --mca osc_ucx_devices any -x UCX_TLS=$transport
        grew_by 1 send_wr "$before" 50
    done
}

# libfabric, by the RDMA CM

pingpong() { # PROVIDER ENDPOINT
    modprobe rdma_ucm
    wait_for 5 test -e /dev/infiniband/rdma_cm
    between_hosts 47592 fi_pingpong -p "$1" -e "$2" -c -- fi_pingpong -p "$1" -e "$2" -c 10.0.0.1
    sed 's/^/# /' /run/client.out | tail -n 2
}
test_libfabric_over_connections() {
    local before
    before=$(counter 2 rc_sent)
    pingpong verbs msg
    pingpong 'verbs;ofi_rxm' rdm
    grew_by 2 rc_sent "$before" 1000
}
