# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034
# Figures of memory in the documents, and the comparison of measured ones with them.

# Documentation/performance.md: an interface with its rings filled.
interface_kib=1635
# Documentation/performance.md: a connection, both ends, with the queues that the HCA has for it.
connection_kib=87
# Documentation/performance.md: what connections add on the first queue of each direction, and on a further one.
first_queue_kib=19000
further_queue_kib=4550
# Difference between measurements of one idle interface.
idle_slack_kib=512
# The same with pages of 64 KiB.
if [ "$(getconf PAGESIZE)" = 65536 ]; then
    interface_kib=1784
    connection_kib=315
    first_queue_kib=23500
    further_queue_kib=4350
    idle_slack_kib=2048
fi
# Documentation/security.md: 49151 paths and as many neighbours take some 32 MB.
path_and_neighbour_bytes=$((32 * 1000 * 1000 / 49151))

# Fails unless the measured figure is within a tenth of the documented one.
about() { # MEASURED DOCUMENTED WHAT
    echo "# $3: $1, documented $2"
    { [ $(($1 * 10)) -ge $(($2 * 9)) ] && [ $(($1 * 10)) -le $(($2 * 11)) ]; } || fail "$3: $1 is not about $2"
}
