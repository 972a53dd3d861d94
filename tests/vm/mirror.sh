# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# Queries this machine's Debian mirror for other Debian releases: sourced by kernel and newer-kernel, which set top.

codename=$(. /etc/os-release && echo "$VERSION_CODENAME")

mirror() {
    # shellcheck disable=SC2016 # apt-get expands it
    apt-get indextargets --format '$(SITE)' 'Created-By: Packages' "Codename: $codename" | sed -n 1p
}

# apt_of SUITE COMMAND...: runs a command of apt on a suite: this machine's own, or another one's lists, which are
# fetched once a day into build/.
apt_of() {
    local suite=$1 state=$top/build/apt/$1
    shift
    if [ "$suite" = "$codename" ]; then
        [ -n "$(apt-cache policy linux-image-amd64)" ] || [ "$(id -u)" != 0 ] || apt-get update -qq >&2
        "$@"
        return
    fi
    mkdir -p "$state/lists/partial" "$state/cache"
    local options=(-o "Dir::State::Lists=$state/lists" -o "Dir::Cache=$state/cache" -o Dir::State::status=/dev/null
        -o "Dir::Etc::SourceList=$state/sources.list" -o Dir::Etc::SourceParts=/dev/null -o APT::Sandbox::User=root)
    echo "deb $(mirror) $suite main" >"$state/sources.list"
    if [ -z "$(find "$state/fetched" -mtime -1 2>/dev/null)" ]; then
        apt-get update -qq "${options[@]}" >&2
        touch "$state/fetched"
    fi
    "$1" "${options[@]}" "${@:2}"
}
