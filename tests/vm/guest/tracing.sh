# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# Functions for suites that look at the kernel's trace events.

tracing=/sys/kernel/tracing
mount_tracefs() { mountpoint -q $tracing || mount -t tracefs tracefs $tracing; }
# Events of a system while a command runs, in /run/trace.
trace() { # SYSTEM/EVENT|SYSTEM COMMAND...
    local event=$1
    shift
    mount_tracefs
    echo >$tracing/trace
    echo 1 >"$tracing/events/$event/enable"
    "$@"
    echo 0 >"$tracing/events/$event/enable"
    cp $tracing/trace /run/trace
}
seen() { # EXTENDED REGULAR EXPRESSION
    ! grep -qE "$1" /run/trace || return 0
    tail -n 20 /run/trace | sed 's/^/# /'
    fail "no '$1' in the trace, which ends as above"
}
