#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""netdev_genl.py INTERFACE DUMP: what netdev-genl reports of an interface, as lines:
qstats: statistics of its queues, "rx 0 PACKETS BYTES"; total: those of the whole, "rx - PACKETS BYTES";
napis: its receive queues' NAPI contexts, "rx 0 NAPI"; pools: its page pools' contexts and pages in use,
"pool NAPI PAGES"."""
import socket
import struct
import sys

GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 16, 3, 1, 2
NLM_F_REQUEST, NLM_F_DUMP, NLMSG_ERROR, NLMSG_DONE = 1, 0x300, 2, 3
NETDEV_CMD_PAGE_POOL_GET, NETDEV_CMD_QUEUE_GET, NETDEV_CMD_QSTATS_GET = 5, 10, 12
SCOPE_QUEUE, QUEUE_TYPE_RX = 1, 0


class QueueStats:
    IFINDEX, TYPE, ID, SCOPE, RX_PACKETS, RX_BYTES, TX_PACKETS, TX_BYTES = 1, 2, 3, 4, 8, 9, 10, 11


class Queue:
    ID, IFINDEX, TYPE, NAPI = 1, 2, 3, 4


class PagePool:
    ID, IFINDEX, NAPI, PAGES, DETACHED = 1, 2, 3, 4, 6


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


def show_statistics(stats):
    queue = number(stats[QueueStats.ID]) if QueueStats.ID in stats else "-"
    for direction, packets, count in (("rx", QueueStats.RX_PACKETS, QueueStats.RX_BYTES),
                                      ("tx", QueueStats.TX_PACKETS, QueueStats.TX_BYTES)):
        if packets in stats:
            print(direction, queue, number(stats[packets]), number(stats[count]))


def show_queue(queue):
    if number(queue[Queue.TYPE]) == QUEUE_TYPE_RX:
        print("rx", number(queue[Queue.ID]), number(queue.get(Queue.NAPI, b"")))


def show_pool(pool):
    # A destroyed pool is reported until its last page returns.
    if PagePool.DETACHED not in pool:
        print("pool", number(pool.get(PagePool.NAPI, b"")), number(pool[PagePool.PAGES]))


# Command, attributes of the request, the interface's attribute in a response, and what prints it.
DUMPS = {
    "qstats": (NETDEV_CMD_QSTATS_GET, attribute(QueueStats.SCOPE, struct.pack("=I", SCOPE_QUEUE)), QueueStats.IFINDEX,
               show_statistics),
    "total": (NETDEV_CMD_QSTATS_GET, b"", QueueStats.IFINDEX, show_statistics),
    "napis": (NETDEV_CMD_QUEUE_GET, b"", Queue.IFINDEX, show_queue),
    "pools": (NETDEV_CMD_PAGE_POOL_GET, b"", PagePool.IFINDEX, show_pool),
}


def main(interface, dump):
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16)
    name = attribute(CTRL_ATTR_FAMILY_NAME, b"netdev\0")
    family = number(next(ask(sock, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 0, name))[CTRL_ATTR_FAMILY_ID])
    index = socket.if_nametoindex(interface)
    command, wanted, ifindex, show = DUMPS[dump]
    for found in ask(sock, family, command, NLM_F_DUMP, wanted):
        if number(found.get(ifindex, b"")) == index:
            show(found)


if __name__ == "__main__":
    main(*sys.argv[1:])
