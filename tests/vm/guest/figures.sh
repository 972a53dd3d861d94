# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034
# Figures of memory in the documents, and the comparison of measured ones with them. `scripts/check-figures` looks for
# each number of an assignment in the document that the comment above it names.

# Documentation/performance.md: an interface with its rings filled.
interface_kib=1730
# Documentation/performance.md: a connection, both ends, with the queues that the HCA has for it.
connection_kib=95
# Documentation/security.md: the same, on average of a thousand.
connection_of_many_kib=104
# Documentation/security.md: the most that is not the HCAs' queues, with pages of any size.
connection_beside_queues_kib=22
# Documentation/performance.md: what the first connections add, with 1, 4 and 8 queues of each direction.
connections_kib=([1]=19000 [4]=32650 [8]=50850)
# Documentation/performance.md: the same with pages of 64 KiB.
if [ "$(getconf PAGESIZE)" = 65536 ]; then
    interface_kib=1784
    connection_kib=315
    connection_of_many_kib= # not measured
    connections_kib=([1]=23000 [4]=36000 [8]=55000)
fi
# Documentation/security.md: the limit of paths, and of neighbours, and the memory of both together.
limit_of_paths=49151
paths_and_neighbours_mb=32

# Fails unless the measured figure is within a tenth of the documented one.
about() { # MEASURED DOCUMENTED WHAT
    echo "# $3: $1, documented $2"
    { [ $(($1 * 10)) -ge $(($2 * 9)) ] && [ $(($1 * 10)) -le $(($2 * 11)) ]; } || fail "$3: $1 is not about $2"
}
# Fails unless connections take the documented memory, and, beside the HCAs' queues, which are rounded up to pages, no
# more than the documented limit.
connections_take() { # NUMBER KIB KIB-OF-QUEUES DOCUMENTED
    local beside=$((($2 - $3) / $1))
    echo "# $1 connections: $2 KiB, $3 KiB of it queues of the HCAs; beside them $beside KiB of a connection"
    [ "$DRIVER" = ours ] || return 0
    [ "$beside" -le $connection_beside_queues_kib ] || fail "a connection takes $beside KiB beside the HCAs' queues"
    [ -z "$4" ] || about $(($2 / $1)) "$4" 'KiB of a connection'
}
