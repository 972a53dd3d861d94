# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# Rows of tests whose output goes to a log. Sourced after suite, the first word of the rows, and log are set; ends with
# end_of_rows.
passed=0 failed=0
: >"$log"
check() { # NAME COMMAND...
    if "${@:2}" >>"$log" 2>&1; then
        passed=$((passed + 1))
        echo "ok $suite: $1"
    else
        failed=$((failed + 1))
        echo "not ok $suite: $1; log: ${log#"$PWD/"}"
    fi
}
end_of_rows() {
    echo "$passed passed, $failed failed, 0 skipped"
    [ "$failed" = 0 ]
}
