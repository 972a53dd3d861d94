#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""ping_sizes.py ADDRESS SIZE...: one ICMP echo of each payload size, of random content, compared byte by byte.

A size may be a range FROM-TO or FROM-TO/STEP. Prints each size that was lost or changed; fails if there was one.
"""
import os
import random
import socket
import struct
import sys
import time


def sizes_of(words):
    for word in words:
        span, _, step = word.partition("/")
        first, _, last = span.partition("-")
        yield from range(int(first), int(last or first) + 1, int(step or 1))


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class Pinger:
    def __init__(self, address):
        self.v6 = ":" in address
        family, protocol = (socket.AF_INET6, socket.IPPROTO_ICMPV6) if self.v6 else (socket.AF_INET, socket.IPPROTO_ICMP)
        self.socket = socket.socket(family, socket.SOCK_RAW, protocol)
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            self.socket.setsockopt(socket.SOL_SOCKET, option, 1 << 20)
        self.socket.connect((address, 0))
        self.identifier = os.getpid() & 0xFFFF
        self.reply_type = 129 if self.v6 else 0

    def ping(self, sequence, payload):
        header = struct.pack("!BBHHH", 128 if self.v6 else 8, 0, 0, self.identifier, sequence)
        if not self.v6:  # the kernel fills ICMPv6's in
            header = struct.pack("!BBHHH", 8, 0, checksum(header + payload), self.identifier, sequence)
        self.socket.send(header + payload)
        deadline = time.monotonic() + 3
        while (left := deadline - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                data = self.socket.recv(70000)
            except TimeoutError:
                break
            if not self.v6:
                data = data[(data[0] & 15) * 4:]
            kind, _, _, identifier, number = struct.unpack("!BBHHH", data[:8])
            if (kind, identifier, number) == (self.reply_type, self.identifier, sequence):
                return "" if data[8:] == payload else "changed"
        return "lost"


def main():
    pinger = Pinger(sys.argv[1])
    failed = count = 0
    for count, size in enumerate(sizes_of(sys.argv[2:]), 1):
        try:
            wrong = pinger.ping(count & 0xFFFF, random.randbytes(size))
        except OSError as error:
            wrong = str(error)
        if wrong:
            failed += 1
            print(f"# {size} bytes: {wrong}")
    print(f"# {count} sizes, {failed} failed")
    sys.exit(failed != 0)


main()
