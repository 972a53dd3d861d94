# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034
# Boots a VM: sourced by run, demo and shell. Handles kernels, images and QEMU, but no tests.
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
here=$top/tests/vm
# By architecture: the emulator, Debian's package of it, the kernel's console, and the names of the lines beside that.
case ${ARCH:=$(dpkg --print-architecture)} in
amd64) qemu=qemu-system-x86_64 package=qemu-system-x86 console_device=ttyS0 terminal=ttyS1 captures=ttyS2 ;;
arm64) qemu=qemu-system-aarch64 package=qemu-system-arm console_device=ttyAMA0 terminal=ttyS0 captures=ttyS1 ;;
ppc64el) qemu=qemu-system-ppc64 package=qemu-system-ppc console_device=hvc0 terminal=ttyS0 captures=ttyS1 ;;
s390x) qemu=qemu-system-s390x package=qemu-system-misc console_device=ttyS0 terminal=hvc0 captures=hvc1 ;;
*) echo "ARCH '$ARCH' is none of amd64, arm64, ppc64el, s390x" >&2; exit 1 ;;
esac

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

# Makes all inputs of a boot; sets KVER, KROOT and images.
prepare_vm() {
    "$here/need" "$package" cpio kmod binutils xz-utils zstd
    local output
    # Assigned to a variable, so that a failure ends the script.
    output=$("$here/kernel" "$kernel")
    eval "$output"
    output=$("$here/image" "$KVER" "$KROOT")
    mapfile -t images <<<"$output"
    modules=$top/build/modules/$KVER
    for module in soft_ib ib_ipoib; do
        [ -e "$modules/$module.ko" ] || { echo "$modules/$module.ko is missing: run make vm-modules" >&2; return 1; }
    done
}

# Files that each VM has in /test, and further ones of some.
test_files=("$here"/guest/* "$here/suites" "$here/splat" "$top"/soft_ib/{topology,draw} "$top/monitoring" "$top/scripts/ipoib-report")
guest_programs=()
# make_initrd FILE NAME=VALUE...: joins the images and the files that differ between runs.
make_initrd() {
    local file=$1 tree
    shift
    tree=$(mktemp -d)
    # The VM's root directory must be accessible to daemons that are not root.
    chmod 755 "$tree"
    mkdir -p "$tree/test"
    cp -r "${test_files[@]}" "$modules/soft_ib.ko" "${guest_programs[@]}" "$tree/test/"
    [ "$driver" != ours ] || cp "$modules/ib_ipoib.ko" "$tree/test/"
    printf '%q\n' "DRIVER=$driver" "TERMINAL=/dev/$terminal" "CAPTURES=/dev/$captures" "$@" >"$tree/test/config"
    ln -s test/init "$tree/init"
    { cat "${images[@]}"; (cd "$tree" && find . -print0 | cpio --null --create --format=newc --quiet); } >"$file"
    rm -rf "$tree"
}

# Processors: KVM if this machine has it and no plugin counts, else emulation, which is fast enough. With
# clock=instructions one processor, whose clock counts its instructions: measurements can be repeated. Otherwise the
# number in the variable processors, or two.
processors() {
    local machine
    case $ARCH in
    # The cores of Ampere's and AWS's servers, which know pages of 4, 16 and 64 KiB.
    arm64) machine='-machine virt,gic-version=3 -cpu neoverse-n1' ;;
    # An emulated processor cannot have these protections against speculation, nor does it need them.
    ppc64el) machine='-machine pseries,cap-cfpc=broken,cap-sbbc=broken,cap-ibs=broken,cap-ccf-assist=off -cpu power9' ;;
    # This machine has no serial lines.
    s390x) machine='-machine s390-ccw-virtio -device virtio-serial' ;;
    esac
    if [ "${clock:-}" = instructions ]; then
        # Without ERMS and FSRM: one instruction would copy or clear a byte, where hardware does dozens at a time.
        [ "$ARCH" != amd64 ] || machine='-cpu max,-erms,-fsrm'
        echo tcg -icount shift=1,sleep=off "$machine" -smp 1
    elif grep -qE '\b(vmx|svm)\b' /proc/cpuinfo && [ -w /dev/kvm ] && [ "$ARCH" = amd64 ] && [ -z "${profiler:-}" ]; then
        echo kvm -cpu host -smp "${processors:-2}"
    elif [ "$ARCH" = amd64 ]; then
        # A simple model: newer features are slow to emulate. With RDRAND: the kernel's random numbers are ready at
        # once, and the kernel does not patch code for them while both processors run, on which emulation sometimes
        # fails.
        echo tcg,thread=multi -cpu qemu64,+rdrand -smp "${processors:-2}"
    else
        echo tcg,thread=multi "$machine" -smp "${processors:-2}"
    fi
}

# Parameters of all kernels here. With a program always at the same addresses (norandmaps) the emulator translates it
# once, not at each start: the suites start thousands.
kernel_parameters="console=$console_device panic=-1 oops=panic mitigations=off norandmaps"
# no_timer_check: on a busy machine the timer may tick later than the kernel expects. noreplace-smp: one processor
# counts locked instructions as two would. maxcpus=1: the second processor is switched on when the kernel has patched
# its code.
[ "$ARCH" != amd64 ] || kernel_parameters+=' no_timer_check noreplace-smp maxcpus=1'

# Prints the arguments of a line beside the console, for a character device: stdio, null or file:PATH.
line() { # DEVICE NUMBER
    local kind=${1%%:*} path=${1#*:} device=pci-serial
    case $ARCH in
    amd64) printf '%s\n' -serial "$1"; return ;;
    s390x) device=virtconsole ;;
    esac
    [ "$kind" = "$path" ] && path= || path=,path=$path
    printf '%s\n' -chardev "$kind,id=line$2$path" -device "$device,chardev=line$2"
}

# boot INITRD CONSOLE_LOG TERMINAL CAPTURES [QEMU ARGUMENT...]: the kernel's console goes to the log; TERMINAL and
# CAPTURES are the character devices of the guest's lines of these names.
boot() {
    local initrd=$1 console=$2 cpus lines kernel
    read -ra cpus < <(processors)
    mapfile -t lines < <(line "$3" 1; line "$4" 2)
    shift 4
    kernel=$("$here/bootable" "$KROOT/boot/vmlinuz-$KVER")
    "$qemu" -accel "${cpus[@]}" -m 3G -nic none -display none -no-reboot \
        -kernel "$kernel" -initrd "$initrd" \
        -append "$kernel_parameters loglevel=7 softlockup_panic=0 net.ifnames=0" \
        -serial "file:$console" "${lines[@]}" "$@"
}

# Fails unless the bench ran to its end.
bench_ended() { # BASE, of its logs
    grep -q '^bench: end' "$1.log" && return
    echo "the VM stopped early; logs: ${1#"$top/"}.log and .console" >&2
    tail -n 5 "$1.log" >&2
    return 1
}

# Prints the faults in a console's log, except those of the driver that lib.sh lists, and fails if there are any.
console_is_clean() { # CONSOLE_LOG DRIVER
    # shellcheck disable=SC2016 # expanded by the inner shell
    KNOWN_FAULTS=$(DRIVER=$2 bash -c '. "$0/guest/lib.sh"; echo "${KNOWN_FAULTS:-}"' "$here") "$here/splat" "$1"
}
