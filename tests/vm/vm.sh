# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034
# Boots a VM: sourced by run, demo and shell. It knows kernels, images and QEMU, and nothing of the tests.
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
here=$top/tests/vm

# Sets kernel, driver and the rest of the arguments from "--kernel S --driver D ...".
parse_arguments() {
    kernel=6.1 driver=ours tests=
    while [ $# -gt 0 ]; do
        case $1 in
        --kernel) kernel=$2 ;;
        --driver) driver=$2 ;;
        --tests) tests=$2 ;;
        *) echo "unknown argument '$1'" >&2; return 1 ;;
        esac
        shift 2
    done
    case $driver in ours | stock) ;; *) echo "DRIVER=$driver is neither ours nor stock" >&2; return 1 ;; esac
}

# Makes everything that a boot needs; sets KVER, KROOT and images.
prepare_vm() {
    "$here/need" qemu-system-x86 cpio zstd kmod
    local assignments
    assignments=$("$here/kernel" "$kernel")
    eval "$assignments"
    mapfile -t images < <("$here/image" "$KVER" "$KROOT")
    modules=$top/build/modules/$KVER
    for module in soft_ib ib_ipoib; do
        [ -e "$modules/$module.ko" ] || { echo "$modules/$module.ko is missing: run make vm-modules" >&2; return 1; }
    done
}

# make_initrd FILE NAME=VALUE...: the images, and what changes from run to run.
make_initrd() {
    local file=$1 tree
    shift
    tree=$(mktemp -d)
    # It is the VM's root directory, and daemons that are not root must get in.
    chmod 755 "$tree"
    mkdir -p "$tree/test"
    cp -r "$here/guest/." "$here/suites" "$here/splat" "$tree/test/"
    cp "$modules/soft_ib.ko" "$tree/test/"
    [ "$driver" != ours ] || cp "$modules/ib_ipoib.ko" "$tree/test/"
    printf '%q\n' "DRIVER=$driver" "$@" >"$tree/test/config"
    ln -s test/init "$tree/init"
    { cat "${images[@]}"; (cd "$tree" && find . -print0 | cpio --null --create --format=newc --quiet | zstd -q -1); } >"$file"
    rm -rf "$tree"
}

# The accelerator: KVM where the processor has it for us, else emulation, which is quick enough.
accelerator() {
    if grep -qE '\b(vmx|svm)\b' /proc/cpuinfo && [ -w /dev/kvm ]; then
        echo kvm -cpu host
    else
        echo tcg,thread=multi -cpu max
    fi
}

# boot INITRD CONSOLE_LOG [QEMU ARGUMENT...]: the kernel's console goes to the log, the guest's second serial line to
# standard output.
boot() {
    local initrd=$1 console=$2 accelerate
    shift 2
    read -ra accelerate < <(accelerator)
    qemu-system-x86_64 -accel "${accelerate[@]}" -smp 2 -m 3G -nic none -display none -no-reboot \
        -kernel "$KROOT/boot/vmlinuz-$KVER" -initrd "$initrd" \
        -append "console=ttyS0 loglevel=7 panic=-1 oops=panic softlockup_panic=0 mitigations=off net.ifnames=0" \
        -serial "file:$console" "$@"
}
