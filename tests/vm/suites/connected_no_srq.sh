# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034

# The suite connected on HCAs without shared receive queues.
FABRIC=srq=0
# shellcheck source=/dev/null
. suites/connected.sh

# The completion queue has entries for the receives of all connections.
test_4096_connections_are_allowed() {
    # The in-tree driver asks for entries for a whole ring of each, four times as many.
    [ "$DRIVER" = ours ] || return 77
    unload_driver
    load_driver max_nonsrq_conn_qp=4096
    use_connected_mode
    unload_driver
    load_driver
    use_connected_mode
}
use_connected_mode() {
    add_hosts
    set_mode 1 connected
    set_mode 2 connected
    both_work
}
