# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# The fabric's capture, of injected frames. suites/wire.sh captures the drivers' packets.
PORTS=2

inject_frame() { knob 1 inject "dqpn=2 bytes=$1"; } # PAYLOAD-BYTES
bytes_captured() { [ "$(stat -c %s /run/read)" -ge "$1" ]; }
test_capture_is_read_while_recording() {
    start_capture
    cat <&"$capture" >/run/read &
    local reader=$!
    exec {capture}<&-
    ! cat "$debug/capture" 2>/dev/null || fail "two may read"
    for _ in 1 2 3; do inject_frame 1000; done
    wait_for 5 bytes_captured 3000
    inject_frame 1000
    wait_for 5 bytes_captured 4000
    echo >"$debug/capture"
    wait $reader
    # Earlier frames are not kept.
    start_capture
    end_capture nothing
    [ "$(stat -c %s /run/captures/nothing.erf)" -lt 4000 ]
    rm /run/captures/nothing.erf
}

losses() { # FILE: the sum of its records' loss counters
    python3 -c 'import struct, sys
data, lost = sys.stdin.buffer.read(), 0
while data:
    length, here = struct.unpack_from("!HH", data, 10)
    data, lost = data[length:], lost + here
print(lost)' <"$1"
}
test_frames_beyond_the_capture_buffer_are_counted() {
    local lost
    start_capture
    # 17 MB.
    for _ in $(seq 2100); do inject_frame 8192; done
    lost=$(cat "$debug/capture_lost")
    [ "$lost" -ge 50 ]
    [ "$lost" -le 200 ]
    head -c 100000 <&"$capture" >/run/read
    inject_frame 8
    lost=$(cat "$debug/capture_lost")
    echo >"$debug/capture"
    cat <&"$capture" >>/run/read
    exec {capture}<&-
    [ "$(losses /run/read)" = "$lost" ] || fail "the records tell of $(losses /run/read), not of $lost"
    rm /run/read
}
