# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154
# Boots the guest's bench with QEMU's plugin that counts what the guest does: sourced by bench and profile, after vm.sh.
kernel_parameters+=' nokaslr'

# Builds the plugin, and the guest's program that tells it where a measurement begins and ends.
build_profiler() { # DIRECTORY
    local compiler=gcc package=gcc
    case $ARCH in amd64 | arm64) ;; *) echo "instructions are not counted on $ARCH" >&2; return 1 ;; esac
    [ "$ARCH" = "$(dpkg --print-architecture)" ] || compiler=aarch64-linux-gnu-gcc package=gcc-aarch64-linux-gnu
    "$here/need" gcc $package
    gcc -O2 -shared -fPIC -fvisibility=hidden -o "$1/count.so" "$here/profiler/count.c"
    $compiler -static -nostdlib -o "$1/mark" "$here/profiler/mark.S"
    profiler=$1
    guest_programs=("$1/mark")
}

# Runs the rows, and writes BASE.log, the guest's output, and BASE.counts. With "clock=instructions" on one processor.
# Counts instructions, or what "of" names (count.c).
count_rows() { # BASE ROW...
    local initrd=$1.initrd
    make_initrd "$initrd" COMMAND=bench COUNT=1 "ROWS=${*:2}" "QUEUES=${QUEUES:-}"
    boot "$initrd" "$1.console" stdio null \
        -plugin "$profiler/count.so,out=$1.counts,processors=${processors:-1},of=${of:-instructions}" </dev/null | sed 's,\r$,,' >"$1.log"
    rm -f "$initrd"
    bench_ended "$1"
}
