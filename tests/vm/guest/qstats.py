#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""qstats.py INTERFACE: statistics of its queues, as netdev-genl reports them: "rx 0 PACKETS BYTES" lines, and with the
argument "device" those of the whole: "rx - PACKETS BYTES"."""
import socket
import struct
import sys

GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 16, 3, 1, 2
NLM_F_REQUEST, NLM_F_DUMP, NLMSG_ERROR, NLMSG_DONE = 1, 0x300, 2, 3
NETDEV_CMD_QSTATS_GET = 12
IFINDEX, QUEUE_TYPE, QUEUE_ID, SCOPE, RX_PACKETS, RX_BYTES, TX_PACKETS, TX_BYTES = 1, 2, 3, 4, 8, 9, 10, 11
SCOPE_QUEUE = 1


def attribute(kind, value):
    data = struct.pack("=HH", 4 + len(value), kind) + value
    return data + bytes(-len(data) % 4)


def attributes(data):
    found = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        found[kind & 0x3fff] = data[4:length]
        data = data[(length + 3) & ~3:]
    return found


def ask(sock, family, command, flags, payload):
    """Yields the attributes of each response."""
    body = struct.pack("=BBH", command, 1, 0) + payload
    sock.send(struct.pack("=IHHII", 16 + len(body), family, NLM_F_REQUEST | flags, 1, 0) + body)
    while True:
        data = sock.recv(65536)
        while data:
            length, kind = struct.unpack_from("=IH", data)
            if kind == NLMSG_ERROR:
                error = struct.unpack_from("=i", data, 16)[0]
                sys.exit(f"netlink: error {error}")
            if kind == NLMSG_DONE:
                return
            yield attributes(data[20:length])
            data = data[(length + 3) & ~3:]
        if not flags & NLM_F_DUMP:
            return


def number(value):
    return int.from_bytes(value, sys.byteorder)


def main(interface, scope=""):
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16)
    name = attribute(CTRL_ATTR_FAMILY_NAME, b"netdev\0")
    family = number(next(ask(sock, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 0, name))[CTRL_ATTR_FAMILY_ID])
    index = socket.if_nametoindex(interface)
    wanted = b"" if scope == "device" else attribute(SCOPE, struct.pack("=I", SCOPE_QUEUE))
    for queue in ask(sock, family, NETDEV_CMD_QSTATS_GET, NLM_F_DUMP, wanted):
        if number(queue[IFINDEX]) != index:
            continue
        shown = number(queue[QUEUE_ID]) if QUEUE_ID in queue else "-"
        if RX_PACKETS in queue:
            print("rx", shown, number(queue[RX_PACKETS]), number(queue[RX_BYTES]))
        if TX_PACKETS in queue:
            print("tx", shown, number(queue[TX_PACKETS]), number(queue[TX_BYTES]))


if __name__ == "__main__":
    main(*sys.argv[1:])
