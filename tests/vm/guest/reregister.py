#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""reregister.py HCA COUNT INTERVAL: in the subnet manager's name, makes a port of this machine reregister COUNT times
(PortInfo:ClientReregister, IBA 14.2.5.6), every INTERVAL seconds. Prints a line for each. Reads the port's PortInfo and
writes it back, so a change that the subnet manager makes in between is undone: not for ports that it is configuring."""
import fcntl
import os
import struct
import sys
import time

GET, SET, PORT_INFO = 1, 2, 0x15


def agent(hca):
    file = os.open(f"/dev/infiniband/umad{hca}", os.O_RDWR)
    # For directed routes (class 0x81) on QP0.
    request = bytearray(struct.pack("=I4IBBB3sBx", 0, 0, 0, 0, 0, 0, 0x81, 1, b"", 0))
    fcntl.ioctl(file, 0xC01C1B01, request)
    return file, struct.unpack_from("=I", request)[0]


def ask(file, ident, method, number, port_info):
    header = struct.pack("=5I", ident, 0, 1000, 3, 0)
    header += struct.pack("!IIHBBBBBB16sI", 0, 0, 0xFFFF, 0, 0, 0, 0, 0, 0, bytes(16), 0)
    smp = struct.pack("!BBBBHBBQHHIQHH28x", 1, 0x81, 1, method, 0, 0, 0, number, PORT_INFO, 0, 1, 0, 0xFFFF, 0xFFFF)
    smp += port_info + bytes(128)
    assert len(header) == 56 and len(smp) == 256
    os.write(file, header + smp)
    while True:
        answer = os.read(file, 512)
        if struct.unpack_from("!Q", answer, 56 + 8)[0] & 0xFFFFFFFF == number:
            return bytearray(answer[56 + 64:56 + 128])


def main():
    hca, count, interval = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    file, ident = agent(hca)
    for number in range(count):
        info = ask(file, ident, GET, 2 * number + 1, bytes(64))
        # No change of states; the link's widths and speeds stay what they are.
        info[32] &= 0xF0
        info[33] &= 0x0F
        info[51] |= 0x80
        ask(file, ident, SET, 2 * number + 2, bytes(info))
        print(number + 1, flush=True)
        time.sleep(interval)


main()
