# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154,SC2317

# Timestamps of packets: chrony, which asks for them, on both hosts, and a program that asks for those of sent packets.
PORTS=2
HOSTS=1
PACKAGES='chrony'

before_each() { wait_for 20 reaches 1 10.0.0.2; }

# Debian's chrony as it is, except that it leaves the clock, which all hosts share, alone.
start_chrony() { # HOST LINE...
    printf '%s\n' "pidfile /run/chrony.$1.pid" "bindcmdaddress /run/chrony.$1/socket" 'cmdport 0' "${@:2}" \
        >"/run/chrony.$1.conf"
    mkdir -p "/run/chrony.$1"
    chmod 750 "/run/chrony.$1"
    on "$1" chronyd -x -d -u root -f "/run/chrony.$1.conf" >"/run/chrony.$1.log" 2>&1 &
    wait_for 10 grep -q 'starting' "/run/chrony.$1.log"
}
ntpdata() { on 2 chronyc -h /run/chrony.2/socket ntpdata 10.0.0.1; }
is_synchronized() { ntpdata | says -E '^Total good RX +: [1-9]'; }
test_chrony_uses_the_kernels_timestamps() {
    start_chrony 1 'local stratum 5' 'allow 10.0.0.0/24'
    start_chrony 2 'server 10.0.0.1 iburst minpoll -2 maxpoll 0 xleave' 'hwtimestamp *'
    wait_for 40 is_synchronized || fail "$(ntpdata; tail -n 5 /run/chrony.2.log)"
    wait_for 20 eval "ntpdata | says 'Interleaved *: Yes'"
    ntpdata >/run/ntpdata
    grep -E 'timestamping|delay' /run/ntpdata | sed 's/^/# /'
    # Sent packets have chrony's own time: it parses the copy that comes with a timestamp as a frame of Ethernet.
    grep -qE '^RX timestamping *: Kernel' /run/ntpdata
    grep -qE '^TX timestamping *: Daemon' /run/ntpdata
    # No interface of IPoIB has hardware timestamps, and chrony says nothing of it unless asked by name.
    refused 'Could not enable HW timestamping on ib1' sh -c "printf 'hwtimestamp ib1\n' >/run/chrony.hw.conf
        ip netns exec h2 timeout 3 chronyd -x -d -u root -f /run/chrony.hw.conf"
    pkill -x chronyd
}

# By SOF_TIMESTAMPING_TX_SOFTWARE, _SOFTWARE and _OPT_TSONLY, without a copy of the packet.
xfail_stock_sent_packets_have_the_kernels_timestamps='the in-tree driver gives sent packets none'
test_sent_packets_have_the_kernels_timestamps() {
    on 2 python3 - <<'PROGRAM'
import select, socket, struct, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, 37, 1 << 1 | 1 << 4 | 1 << 11)  # SO_TIMESTAMPING
before = time.time()
s.sendto(b"x", ("10.0.0.1", 7000))
poll = select.poll()
poll.register(s, 0)  # the error queue
assert poll.poll(5000), "no timestamp"
_, messages, _, _ = s.recvmsg(1, 512, socket.MSG_ERRQUEUE)
seconds, nanoseconds = next(struct.unpack("qq", m[2][:16]) for m in messages if m[1] == 37)
assert before <= seconds + nanoseconds / 1e9 <= time.time(), (before, seconds, nanoseconds)
PROGRAM
}
