# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Hosts of three kinds, of which the third is another machine with the kernel's own driver: hosts 1 and 2 use this one.
MACHINES=2
PEER_FABRIC='rdma_netdev=0'
# shellcheck source=/dev/null
. suites/host_kinds.sh

test_third_host_is_another_machine() {
    echo "# here: $DRIVER on $(uname -r); there: $(there printenv DRIVER) on $(there uname -r)"
    [ "$(ibnetdiscover | grep -c ^Switch)" = 2 ]
    [ "$(there ls /sys/class/infiniband)" = soft_ib2 ]
    [ "$(rdma link show | grep -c soft_ib)" = 2 ]
}
