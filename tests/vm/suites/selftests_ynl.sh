# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# The kernel's ynl (tests/vm/selftests), whose values are compared with those of ethtool and ip, on kernels 6.12 and 7.
PORTS=4
HOSTS=1
MODE=connected
FABRIC='vectors=4'
SELFTESTS=1

# shellcheck source=/dev/null
. ./selftests.sh

case ${series:-} in
6.12) cli=ynl/cli.py links=rt_link ;;
*) cli=ynl/pyynl/cli.py links=rt-link ;;
esac
ask_ynl() { # FAMILY ARGUMENT...
    on 1 python3 "/selftests/tools/net/$cli" --spec "/selftests/Documentation/netlink/specs/$1.yaml" --no-schema \
        --output-json "${@:2}"
}
ynl() { ask_ynl netdev --dump "$1" ${2:+--json "$2"}; } # COMMAND OF NETDEV-GENL [REQUEST]
index() { on 1 cat /sys/class/net/ib0/ifindex; }
# The interface's objects.
ours_of() { jq -c --argjson index "$(index)" '.[] | select(.ifindex == $index)'; }
of_ethtool() { awk -v name="$2:" '$1 == name { print $2; found = 1 } END { exit !found }' "$1"; } # FILE NAME
of_ip() { jq ".[0].stats64.${2/-/.}" "$1"; } # FILE rx-packets|...

# Values between those that others show before and after.
lies_between() { # NAME VALUE BEFORE AFTER
    echo "# $1: $3 <= $2 <= $4"
    if [ "$2" -lt "$3" ] || [ "$2" -gt "$4" ]; then fail "$1 is not between"; fi
}
# Counters of ethtool and ip before and after ynl has read its own: files in $results.
read_statistics() {
    local when
    for when in before after; do
        [ $when = before ] || {
            ynl qstats-get "{\"ifindex\": $(index)}" >"$results/device"
            ynl qstats-get "{\"ifindex\": $(index), \"scope\": \"queue\"}" >"$results/of_queues"
        }
        on 1 ethtool -S ib0 >"$results/ethtool.$when"
        on 1 ip -s -j link show ib0 >"$results/ip.$when"
    done
}
xfail_stock_ynl_shows_the_counters_of_ethtool_and_ip='the in-tree driver has no statistics in netdev-genl'
test_ynl_shows_the_counters_of_ethtool_and_ip() {
    local name value type queue packets bytes rows=0 before=$results/ethtool.before after=$results/ethtool.after
    flood 1 10.0.0.2 200
    read_statistics
    for name in rx-packets rx-bytes tx-packets tx-bytes; do
        value=$(jq ".[0].\"$name\"" "$results/device")
        [ "$value" -gt 200 ]
        lies_between "$name, ip's" "$value" "$(of_ip "$results/ip.before" $name)" "$(of_ip "$results/ip.after" $name)"
        lies_between "$name, ethtool's" "$value" "$(of_ethtool "$before" ${name/-/_})" \
            "$(of_ethtool "$after" ${name/-/_})"
    done
    while read -r type queue packets bytes; do
        rows=$((rows + 1))
        for name in packets bytes; do
            lies_between "$type$queue $name" "${!name}" "$(of_ethtool "$before" "$type${queue}_$name")" \
                "$(of_ethtool "$after" "$type${queue}_$name")"
        done
    done < <(jq -r '.[] | ."queue-type" as $t | [$t, ."queue-id", .[$t + "-packets"], .[$t + "-bytes"]] | @tsv' \
        "$results/of_queues")
    [ $rows = 5 ]
}

# A queue has its NAPI context from its first connection on.
queues_with_napi_are() { # NUMBER
    ynl queue-get "{\"ifindex\": $(index)}" | ours_of >"$results/queue-get"
    [ "$(grep -c napi-id "$results/queue-get")" = "$1" ]
}
xfail_stock_ynl_shows_queues_and_their_napi_contexts='the in-tree driver assigns its queue no NAPI context'
test_ynl_shows_queues_and_their_napi_contexts() {
    wait_for 5 queues_with_napi_are 3
    ynl napi-get "{\"ifindex\": $(index)}" | ours_of >"$results/napi-get"
    sed 's/^/# /' "$results/queue-get" "$results/napi-get"
    [ "$(grep -c '"type": *"rx"' "$results/queue-get")" = "$(channels_of RX)" ]
    [ "$(grep -c '"type": *"tx"' "$results/queue-get")" = "$(channels_of TX)" ]
    # Each receive queue has a NAPI context of its own, of this interface.
    [ "$(jq 'select(.type == "rx") | ."napi-id"' "$results/queue-get" | sort -u)" = \
        "$(jq .id "$results/napi-get" | sort)" ]
    [ "$(wc -l <"$results/napi-get")" = 3 ]
}

# Each receive queue has two pools for messages; the first one's third is for datagrams, which fill its ring.
xfail_stock_ynl_shows_page_pools='the in-tree driver has no page pools'
test_ynl_shows_page_pools() {
    local ring
    wait_for 5 queues_with_napi_are 3
    ynl page-pool-get | ours_of | jq -c 'select(has("detach-time") | not)' >"$results/page-pool-get"
    sed 's/^/# /' "$results/page-pool-get"
    [ "$(wc -l <"$results/page-pool-get")" = 7 ]
    [ "$(jq '."napi-id"' "$results/page-pool-get" | sort -u)" = \
        "$(jq 'select(.type == "rx") | ."napi-id"' "$results/queue-get" | sort -u)" ]
    jq -e ".\"inflight-mem\" >= .inflight * $(getconf PAGESIZE)" "$results/page-pool-get" >/dev/null
    ring=$(on 1 ethtool -g ib0 | awk '/Current/ { current = 1 } current && $1 == "RX:" { print $2 }')
    [ "$(jq .inflight "$results/page-pool-get" | sort -n | tail -n 1)" -ge "$ring" ]
}

# The description of IPoIB's attributes is this project's (tests/vm/selftests).
test_ynl_shows_the_links_attributes() {
    ask_ynl "$links" --do getlink --json "{\"ifi-index\": $(index)}" >"$results/link"
    jq -c '[.ifname, .mtu, .linkinfo]' "$results/link" | sed 's/^/# /'
    [ "$(jq -r '.ifname, .mtu, .linkinfo.kind, .linkinfo.data.pkey, .linkinfo.data.mode, .linkinfo.data.umcast' \
        "$results/link" | xargs)" = 'ib0 65520 ipoib 65535 1 0' ]
}
