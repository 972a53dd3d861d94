# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# Reads the headers of suites, and selects the suites to run: sourced by run, which sets here, kernel and tests.

# A suite has the tests of its file, and of files that it includes with ". suites/other.sh".
taken_over() { sed -nE 's,^\. (suites/[a-z0-9_]+\.sh)$,'"$here"'/\1,p' "$1"; } # file
suite_matches() { # file pattern
    local others
    mapfile -t others < <(taken_over "$1")
    grep -q "$2" "$1" "${others[@]}"
}
suite_has() { suite_matches "$1" "^$2()"; } # file function
has_two_machines() { suite_matches "$here/suites/$1.sh" '^MACHINES=2$'; } # suite
processors_of() { # suite
    local number
    if [ "${QUEUES:-}" = 4 ]; then echo 4; return; fi
    for number in 2 4; do
        if suite_matches "$here/suites/$1.sh" "^PROCESSORS=$number\$"; then echo $number; return; fi
    done
    echo 1
}
wants_fresh_vm() { suite_matches "$here/suites/$1.sh" '^FRESH=1$'; } # suite
is_long() { suite_matches "$here/suites/$1.sh" '^LONG=1$'; } # suite
wants_selftests() { suite_matches "$here/suites/$1.sh" '^SELFTESTS=1$'; } # suite
wants_packages() { suite_matches "$here/suites/$1.sh" '^PACKAGES='; } # suite
# The packages of all suites, not only of the selected ones: the image is the same whichever of them run.
packages_of_suites() { sed -n 's/^PACKAGES=//p' "$here"/suites/*.sh | tr -d "'\"" | xargs -n 1 | sort -u | xargs; }
needs_own_vm() { has_two_machines "$1" || is_long "$1" || wants_fresh_vm "$1"; } # suite
is_for_debug_kernels() { suite_matches "$here/suites/$1.sh" '^DEBUG_KERNEL=1$'; } # suite
on_debug_kernel() { [[ $kernel = debug* || $kernel = kcsan ]]; }

# Number of rows of a complete suite: its tests, or the selected ones, the set-up, and the check at its end. Counted in
# the files: the guest's own count would miss tests after a syntax error.
rows_of() { # suite tests
    local file=$here/suites/$1.sh others left_out
    [ -z "$2" ] || { echo $((2 + $(wc -w <<<"$2"))); return; }
    mapfile -t others < <(taken_over "$file")
    left_out=$(sed -nE '/^without /{:a;/\\$/{N;ba};p}' "$file" | sed 's/^without //; s/||.*//' | grep -oE '[a-z0-9_]+' | wc -l)
    echo $((2 + $(cat "$file" "${others[@]}" | grep -cE '^test_[a-z0-9_]+\(\)') - left_out))
}

# Prints the suites to run, each once, with the tests to run in it: "suite" (all of them) or "suite test test ...".
select_suites() {
    local suite name file found all
    local -A chosen=()
    all=$(find "$here/suites" -name '*.sh' -printf '%f\n' | sed 's/\.sh$//' | sort)
    if [ -z "$tests" ]; then
        for suite in $all; do
            has_two_machines "$suite" || is_long "$suite" || wants_packages "$suite" ||
                { is_for_debug_kernels "$suite" && ! on_debug_kernel; } || echo "$suite"
        done
        return
    fi
    for name in $tests; do
        found=
        for suite in $all; do
            file=$here/suites/$suite.sh
            if [ "$name" = "$suite" ]; then
                found=1 chosen[$suite]=all
            elif [ "${name%%/*}" = "$suite" ] && suite_has "$file" "test_${name#*/}"; then
                found=1 && [ "${chosen[$suite]:-}" = all ] || chosen[$suite]+=" ${name#*/}"
            elif suite_has "$file" "test_$name"; then
                found=1 && [ "${chosen[$suite]:-}" = all ] || chosen[$suite]+=" $name"
            fi
        done
        [ -n "$found" ] || { echo "TESTS: no suite and no test is called '$name'" >&2; return 1; }
    done
    for suite in $all; do
        case ${chosen[$suite]:-} in
        "") ;;
        all) echo "$suite" ;;
        *) echo "$suite${chosen[$suite]}" ;;
        esac
    done
}

# Prints the suites of that many processors, the longest first, so that none of them is left when the others have ended.
longest="recovery lifecycle rdma_netdev_filter connected_faults connected_thousand rdma_netdev fabric_events verbs \
connected_no_srq transmit_queue children_races icrc offload datagram connected memory concurrency offload_by_driver \
bonding verbs_chaos"
slowest_first() { # PROCESSORS
    local suite only place
    while read -r suite only; do
        [ "$(processors_of "$suite")" = "$1" ] || continue
        place=$(tr ' ' '\n' <<<"$longest" | grep -nx "$suite" | cut -d: -f1 || true)
        echo "${place:-99} $suite $only"
    done | sort -s -n -k 1,1 | cut -d' ' -f2-
}
