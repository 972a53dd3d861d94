#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""neighbours.py COUNT INTERFACE LLADDR PACKETS: sends to COUNT neighbours in turns, unused queue pair numbers behind
the port of the link-layer address; with "groups" for an address, to COUNT groups without listeners. Prints the
nanoseconds per packet, after a first packet to each."""
import ipaddress
import socket
import subprocess
import sys
import time

count, interface, address, packets = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
groups = address == "groups"
network = ipaddress.ip_network("239.64.0.0/16" if groups else "10.64.0.0/16")
hosts = [str(network[i + 1]) for i in range(count)]


def commands():
    yield f"route replace {network} dev {interface}"
    if not groups:
        octets = address.split(":")
        for i, host in enumerate(hosts):
            octets[1:4] = (0x100000 + i).to_bytes(3, "big").hex(":").split(":")
            yield f"neigh replace {host} lladdr {':'.join(octets)} nud permanent dev {interface}"


def all_joined():
    with open(f"/sys/kernel/debug/ipoib/{interface}_mcg", encoding="ascii") as file:
        return sum(line.split() == ["complete:", "yes"] for line in file) >= count


subprocess.run(["ip", "-batch", "-"], input="\n".join(commands()), text=True, check=True)
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


def send(many):
    for i in range(many):
        sender.sendto(b"x", (hosts[i % count], 9))


send(max(count, 1000))
# The path is queried once, a group each, and the number of waiting packets is limited.
time.sleep(1)
while groups and not all_joined():
    time.sleep(0.1)
send(max(count, 1000))
begun = time.monotonic_ns()
send(packets)
print((time.monotonic_ns() - begun) / packets)
