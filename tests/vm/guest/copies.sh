# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154,SC2317
# A copy by TCP to another host.

# Random bytes with the same digest at both ends.
copies() { # BYTES FROM TO
    at "$2" rm -f /run/sent
    on "$3" timeout $((600 * patience)) sh -c 'socat -u TCP-LISTEN:9,reuseaddr - | sha256sum >/run/received' &
    wait_for 10 listens "$3" ':9 '
    on "$2" bash -c "set -o pipefail
        head -c $1 /dev/urandom | tee >(sha256sum >/run/sent) | timeout $((600 * patience)) socat -u - TCP:10.0.0.$3:9"
    wait $!
    wait_for 10 at "$2" test -s /run/sent
    echo "# $1: $(at "$2" cut -c1-16 /run/sent) sent, $(at "$3" cut -c1-16 /run/received) received"
    [ "$(at "$2" cat /run/sent)" = "$(at "$3" cat /run/received)" ]
}
