# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034
# A small Debian with the driver of this tree in updates/, for tests that boot it from initramfs images of its own:
# sourced by test-nfs-root and test-secure-boot, which run as root. Sets KVER, KDIR, KROOT, scratch, root (the
# directory) and logs.
# shellcheck source=../vm/vm.sh
. "$(dirname "${BASH_SOURCE[0]}")/../vm/vm.sh"
here=$top/tests/install

# begin NAME: makes the directories, of which only that of the logs stays.
begin() {
    name=$1 passed=0 failed=0
    logs=$top/build/logs/$name
    [ "$(id -u)" = 0 ] || { echo "$name: it takes root to make a Debian with mmdebstrap" >&2; exit 1; }
    rm -rf "$logs"
    mkdir -p "$logs"
    scratch=$(mktemp -d "$top/build/$name.XXXXXX")
    trap 'rm -rf --one-file-system "$scratch"' EXIT
    root=$scratch/root
}

# Runs a command in a shell of its own, where any failing command ends it.
check() { # NAME COMMAND...
    local status
    set +e
    (set -e; "${@:2}") >"$scratch/said" 2>&1
    status=$?
    set -e
    if [ $status = 0 ]; then
        passed=$((passed + 1))
        echo "ok $name: $1"
    else
        failed=$((failed + 1))
        tail -n 25 "$scratch/said" | sed 's/^/# /'
        echo "not ok $name: $1"
    fi
    cat "$scratch/said" >>"$logs/log"
}
# The rows that a VM printed, with their failures counted; a VM without an end is a failure.
count_rows() { # NAME LOG
    local line ended=
    while IFS= read -r line; do
        case ${line%%$'\r'*} in
        'ok '*) passed=$((passed + 1)) ;;
        'not ok '*) failed=$((failed + 1)) ;;
        '# end') ended=1 && continue ;;
        '# '*) ;;
        *) continue ;;
        esac
        line=${line%%$'\r'*}
        line=${line/#ok /ok $name: $1: }
        echo "${line/#not ok /not ok $name: $1: }"
    done <"$2"
    [ -n "$ended" ] && return
    failed=$((failed + 1))
    echo "not ok $name: $1: ran to its end; logs: ${logs#"$top/"}"
}
finish() {
    echo "# $name: $SECONDS s; logs: ${logs#"$top/"}"
    echo "$passed passed, $failed failed, 0 skipped"
    [ "$failed" = 0 ] && [ "$passed" != 0 ]
}

# Unpacks the Debian, which is made once and kept under build/vm/, and installs the driver and the test fabric.
make_small_root() {
    local assignments packages base module
    assignments=$("$top/tests/vm/kernel" 6.1)
    eval "$assignments"
    "$top/scripts/build-for-vm" 6.1
    packages="dnsmasq-base,dracut-core,dracut-network,initramfs-tools,linux-image-$KVER,mokutil,network-manager,nfs-common,nfs-kernel-server,opensm,systemd-sysv,udev,zstd"
    base=$top/build/vm/small-root-$(sha256sum <<<"$packages" | cut -c1-12).tar
    if [ ! -e "$base" ]; then
        "$top/tests/vm/need" mmdebstrap >&2
        echo "making a small Debian: about three minutes"
        rm -f "$top"/build/vm/small-root-*
        # Without the kernel's hooks: the tests make the images.
        mmdebstrap --quiet --variant=minbase --include="$packages" --dpkgopt='path-exclude=/etc/kernel/*/*' \
            --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
            --dpkgopt='path-exclude=/usr/share/locale/*' --aptopt='APT::Install-Recommends "false"' \
            bookworm "${base%.tar}.new.tar" >&2
        mv "${base%.tar}.new.tar" "$base"
    fi
    mkdir "$root"
    tar -x --exclude='./dev/*' -C "$root" -f "$base"
    for module in ib_ipoib soft_ib; do
        install -D -m 644 "$top/build/modules/$KVER/$module.ko" "$root/lib/modules/$KVER/updates/$module.ko"
    done
    chroot "$root" depmod "$KVER"
}

# Runs a command in it, with the kernel's file systems.
in_root() {
    # shellcheck disable=SC2016 # expanded by the inner shell
    unshare --mount --propagation private bash -c '
        mount --rbind /dev "$0/dev"; mount -t proc proc "$0/proc"; mount -t sysfs sysfs "$0/sys"; mount -t tmpfs tmpfs "$0/run"
        exec chroot "$0" env PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C "$@"' "$root" "$@"
}

make_disk() { # FILE
    truncate -s 2G "$1"
    mke2fs -q -t ext4 -d "$root" "$1"
}
