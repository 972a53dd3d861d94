# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154,SC2317
# Listeners of multicast groups, and senders.

listen() { on "$1" python3 /test/group.py listen "$2" "$(interface_of "$1")"; } # HOST GROUP: prints what arrives
listening() { on "$1" ip maddr show dev "$(interface_of "$1")" | says "$2"; }    # HOST GROUP
nobody_listens() { pkill -f 'group.py listen' || true; }
send() { on "$1" python3 /test/group.py send "$2" "$(interface_of "$1")" "$3"; } # HOST GROUP TEXT

# Hosts TO listen to a group, until nobody_listens, and hear what host FROM sends. They join some time after the socket
# option, and the switch may learn of members some time after OpenSM.
group_is_heard() { # GROUP FROM TO...
    local to
    for to in "${@:3}"; do listen "$to" "$1" >"/run/heard.$to" & done
    wait_for 20 all_hear "$@"
}
all_hear() { # GROUP FROM TO...
    local to
    send "$2" "$1" hello
    for to in "${@:3}"; do grep -q hello "/run/heard.$to" || return 1; done
}
