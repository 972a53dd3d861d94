# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034

# The suite connected on HCAs without shared receive queues.
FABRIC=srq=0
# shellcheck source=/dev/null
. suites/connected.sh
