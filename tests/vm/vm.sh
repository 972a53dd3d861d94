# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034
# Boots a VM: sourced by run, demo and shell. It knows kernels, images and QEMU, and nothing of the tests.
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
here=$top/tests/vm

# Sets kernel, driver and the rest of the arguments from "--kernel S --driver D ...".
parse_arguments() {
    kernel=6.1 driver=ours peer_kernel='' peer_driver=stock tests=
    while [ $# -gt 0 ]; do
        case $1 in
        --kernel) kernel=$2 ;;
        --driver) driver=$2 ;;
        --peer-kernel) peer_kernel=$2 ;;
        --peer-driver) peer_driver=$2 ;;
        --tests) tests=$2 ;;
        *) echo "unknown argument '$1'" >&2; return 1 ;;
        esac
        shift 2
    done
    peer_kernel=${peer_kernel:-$kernel}
    local name
    for name in "$driver" "$peer_driver"; do
        case $name in ours | stock) ;; *) echo "driver '$name' is neither ours nor stock" >&2; return 1 ;; esac
    done
}

# Makes everything that a boot needs; sets KVER, KROOT and images.
prepare_vm() {
    "$here/need" qemu-system-x86 cpio kmod binutils xz-utils zstd
    local output
    # By a variable: a failure ends the script then.
    output=$("$here/kernel" "$kernel")
    eval "$output"
    output=$("$here/image" "$KVER" "$KROOT")
    mapfile -t images <<<"$output"
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
    { cat "${images[@]}"; (cd "$tree" && find . -print0 | cpio --null --create --format=newc --quiet); } >"$file"
    rm -rf "$tree"
}

# The processors: KVM where the processor has it for us, else emulation, which is quick enough. With clock=instructions
# one, whose time is the number of its instructions: what is measured by it can be repeated. Otherwise as many as the
# variable processors says, or two.
processors() {
    if [ "${clock:-}" = instructions ]; then
        # Without ERMS and FSRM: one instruction would copy or clear a byte, where hardware does dozens at a time.
        echo tcg -icount shift=1,sleep=off -cpu max,-erms,-fsrm -smp 1
    elif grep -qE '\b(vmx|svm)\b' /proc/cpuinfo && [ -w /dev/kvm ]; then
        echo kvm -cpu host -smp "${processors:-2}"
    else
        # A simple one: what the newer ones have is dear to emulate. But RDRAND: the kernel's random numbers are ready at
        # once, and it has no code to patch for it while both processors run, over which emulation stumbles now and then.
        echo tcg,thread=multi -cpu qemu64,+rdrand -smp "${processors:-2}"
    fi
}

# What every kernel here is told. With a program always at the same addresses (norandmaps) the emulator translates it once,
# not at each start: the suites start thousands.
kernel_parameters='console=ttyS0 panic=-1 oops=panic mitigations=off norandmaps'

# boot INITRD CONSOLE_LOG [QEMU ARGUMENT...]: the kernel's console goes to the log. Where the machine is busy the timer may
# tick later than the kernel would wait to see: no_timer_check. One processor counts its locked instructions as two would:
# noreplace-smp. The second one is switched on when the kernel has patched its code: maxcpus=1.
boot() {
    local initrd=$1 console=$2 cpus kernel
    shift 2
    read -ra cpus < <(processors)
    kernel=$("$here/bootable" "$KROOT/boot/vmlinuz-$KVER")
    qemu-system-x86_64 -accel "${cpus[@]}" -m 3G -nic none -display none -no-reboot \
        -kernel "$kernel" -initrd "$initrd" \
        -append "$kernel_parameters loglevel=7 softlockup_panic=0 no_timer_check noreplace-smp maxcpus=1 net.ifnames=0" \
        -serial "file:$console" "$@"
}

# Prints the faults in a console's log, but for those of the driver that lib.sh knows, and fails if there are any.
console_is_clean() { # CONSOLE_LOG DRIVER
    # shellcheck disable=SC2016 # it is for the inner shell to expand
    KNOWN_FAULTS=$(DRIVER=$2 bash -c '. "$0/guest/lib.sh"; echo "${KNOWN_FAULTS:-}"' "$here") "$here/splat" "$1"
}
