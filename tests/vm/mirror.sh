# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# Queries this machine's Debian mirror for other Debian releases and architectures: sourced by scripts that set top.

host=$(dpkg --print-architecture)
codename=$(. /etc/os-release && echo "$VERSION_CODENAME")

# The first part of the names of an architecture's compilers.
triplet_of() { # ARCHITECTURE
    case $1 in
    amd64) echo x86_64-linux-gnu ;;
    arm64) echo aarch64-linux-gnu ;;
    ppc64el) echo powerpc64le-linux-gnu ;;
    s390x) echo s390x-linux-gnu ;;
    esac
}

# The repositories of this release that the machine uses, as apt's sources; and the address of the first.
# shellcheck disable=SC2016 # apt-get expands it
sites() { apt-get indextargets --format '$(SITE) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian'; }
mirror() { sites | sed -n "s/ $codename main$//p" | head -n 1; }

# apt_of SUITE:ARCHITECTURE COMMAND...: runs a command of apt on a suite: this machine's own, or another one's lists,
# which are fetched once a day into build/.
apt_of() {
    local suite=${1%:*} arch=${1#*:} state=$top/build/apt/${1/:/-}
    shift
    if [ "$suite:$arch" = "$codename:$host" ]; then
        [ -n "$(apt-cache policy "linux-image-$host")" ] || [ "$(id -u)" != 0 ] || apt-get update -qq >&2
        "$1" -o APT::Sandbox::User=root "${@:2}"
        return
    fi
    mkdir -p "$state/lists/partial" "$state/cache"
    local options=(-o "Dir::State::Lists=$state/lists" -o "Dir::Cache=$state/cache" -o Dir::State::status=/dev/null
        -o "Dir::Etc::SourceList=$state/sources.list" -o Dir::Etc::SourceParts=/dev/null -o APT::Sandbox::User=root
        -o "APT::Architecture=$arch" -o "APT::Architectures=$arch")
    if [ "$suite" = "$codename" ]; then
        sites | sed "s/^/deb [arch=$arch] /" >"$state/sources.list"
    else
        echo "deb [arch=$arch] $(mirror) $suite main" >"$state/sources.list"
    fi
    if [ -z "$(find "$state/fetched" -mtime -1 2>/dev/null)" ]; then
        apt-get update -qq "${options[@]}" >&2
        touch "$state/fetched"
    fi
    "$1" "${options[@]}" "${@:2}"
}
