# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154,SC2317
# systemd-networkd on a host.

# With the files in /run/network.<HOST>. With a read-only /sys, networkd does not wait for udev, which knows the initial
# namespace only.
start_networkd() { # HOST
    mkdir -p "/run/network.$1"
    : >"/run/networkd.$1.log"
    [ -s /etc/machine-id ] || echo 000102030405060708090a0b0c0d0e0f >/etc/machine-id
    on "$1" sh -c "mount --bind /run/network.$1 /etc/systemd/network
        mount -o remount,ro /sys
        mkdir -p /run/systemd
        mount -t tmpfs tmpfs /run/systemd
        exec /lib/systemd/systemd-networkd" >>"/run/networkd.$1.log" 2>&1 &
    wait_for 10 grep -q 'Enumeration completed' "/run/networkd.$1.log"
}
networkd_is_gone() { is_gone systemd-network; }
stop_networkd() { end_program systemd-network 10; }
