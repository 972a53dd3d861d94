#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""packet_limits.py INTERFACE BYTES: limits the packets that the stack hands over and merges, as "ip link set INTERFACE
gso_max_size BYTES gro_max_size BYTES gso_ipv4_max_size BYTES gro_ipv4_max_size BYTES" does since iproute2 6.3."""
import os
import socket
import struct
import sys

from netdev_genl import attribute

RTM_SETLINK, NLM_F_REQUEST, NLM_F_ACK = 19, 1, 4
# IFLA_GSO_MAX_SIZE, IFLA_GRO_MAX_SIZE, IFLA_GSO_IPV4_MAX_SIZE, IFLA_GRO_IPV4_MAX_SIZE
LIMITS = (41, 58, 63, 64)


def main(interface, size):
    body = struct.pack("=BxHiII", 0, 0, socket.if_nametoindex(interface), 0, 0)
    body += b"".join(attribute(limit, struct.pack("=I", size)) for limit in LIMITS)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as sock:
        sock.send(struct.pack("=IHHII", 16 + len(body), RTM_SETLINK, NLM_F_REQUEST | NLM_F_ACK, 1, 0) + body)
        if error := struct.unpack_from("=i", sock.recv(65536), 16)[0]:
            sys.exit(f"{interface}, {size} bytes: {os.strerror(-error)}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
