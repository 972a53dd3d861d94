# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# HCAs without offloads, whose sends have four SGEs: the headers and three fragments of data.
PORTS=2
HOSTS=1
FABRIC='offloads=0 send_sges=4'

# shellcheck source=/dev/null
. ./features.sh

# Sends a file in pieces of BYTES bytes, each on a page of its own, so that none is joined with the one before. They are
# passed to the socket 16 at a time, so that TCP makes packets of many segments.
send_pieces() { # BYTES COUNT
    head -c $(($2 * 4096)) /dev/urandom >/run/pages
    python3 - "$1" "$2" <<'PYTHON' >/run/sent
import sys
size, count = map(int, sys.argv[1:])
with open("/run/pages", "rb") as pages:
    for i in range(count):
        pages.seek(i * 4096)
        sys.stdout.buffer.write(pages.read(size))
PYTHON
    on 2 sh -c 'socat -u TCP-LISTEN:4000,reuseaddr OPEN:/run/got,creat,trunc' &
    wait_for 5 listens 2 :4000
    on 1 timeout $((30 * patience)) python3 - "$1" "$2" <<'PYTHON'
import os, socket, sys
size, count = map(int, sys.argv[1:])
to = socket.create_connection(("10.0.0.2", 4000))
out, into = os.pipe()
with open("/run/pages", "rb") as pages:
    for i in range(count):
        os.splice(pages.fileno(), into, size, offset_src=i * 4096)
        if i % 16 == 15 or i == count - 1:
            left = (i % 16 + 1) * size
            while left:
                left -= os.splice(out, to.fileno(), left)
PYTHON
    wait $!
    cmp /run/sent /run/got
}

test_segments_of_many_fragments_are_sent() {
    local dropped made
    transfer 5
    dropped=$(statistic 1 tx_dropped)
    # Five or six fragments in each segment of 1948 to 1988 bytes.
    send_pieces 400 2000
    [ "$(statistic 1 tx_dropped)" = "$dropped" ] || fail "$(($(statistic 1 tx_dropped) - dropped)) packets were dropped"
    [ "$DRIVER" = ours ] || return 0
    made=$(statistic_of 1 tx_tso_segments)
    # Fewer fragments than SGEs.
    send_pieces 1500 600
    made=$(($(statistic_of 1 tx_tso_segments) - made))
    [ "$made" -gt 400 ] || fail "only $made datagrams were made of larger packets"
    [ "$(statistic 1 tx_dropped)" = "$dropped" ]
}

test_pings_and_udp_of_many_fragments_arrive() {
    ping_ok 1 10.0.0.2 -s 20000
    udp 1 2 20M -t 2
}
