# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2317
# Functions for suites with two OpenSMs on one subnet: the one on host 1 is to be the master, that on host 2 the
# standby.

# Replaces lib.sh's function of this name, for the set-up of any suite.
start_opensm() {
    start_sm 1 15
    # If both started at once, the one of lower priority might become master first, and stay so until its next heavy
    # sweep.
    wait_for 20 state_is 1 MASTER
    start_sm 2 5
}
# Starts another OpenSM on a host's port. A standby polls the master each second, not each 10, and takes over after
# three polls, or SM_POLLS, without an answer.
start_sm() { # HOST PRIORITY
    local run=/run/sm$1
    mkdir -p "$run"
    write_partitions
    printf '%s\n' 'sminfo_polling_timeout 1000' "polling_retry_number ${SM_POLLS:-3}" >"$run/opensm.conf"
    OSM_CACHE_DIR=$run OSM_TMP_DIR=$run opensm --config "$run/opensm.conf" --guid "$(guid "$1")" --priority "$2" \
        --Pconfig /etc/opensm/partitions.conf --log_file "$run/log" >"$run/out" 2>&1 &
    echo $! >"$run/pid"
    disown  # otherwise bash prints its end
}
sm_is_gone() { ! kill -0 "$(cat "/run/sm$1/pid")" 2>/dev/null; } # HOST
kill_sm() { # HOST
    kill -9 "$(cat "/run/sm$1/pid")"
    wait_for 10 sm_is_gone "$1"
}
# The master, according to host 3's port, or that of host WITNESS; true if it answers as master.
sm_guid() { sminfo -C "soft_ib$((${WITNESS:-3} - 1))" 2>/dev/null | grep SMINFO_MASTER | sed -nE 's/.*sm guid (0x[0-9a-f]+),.*/\1/p'; }
master_is() { [ $(($(sm_guid))) = $(($(guid "$1"))) ]; } # HOST
state_is() { grep -oE 'Entering [A-Z]+ state|STANDBY|MASTER' "/run/sm$1/out" | tail -n 1 | says "$2"; } # HOST WORD
