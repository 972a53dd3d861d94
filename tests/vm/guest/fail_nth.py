#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Performs an operation with its first memory allocation failing, undoes it, repeats it with the second failing, and
so on until all of them have failed once (/proc/thread-self/fail-nth; fault injection is configured by the suite);
with STRIDE=n only each nth fails. Prints the number of failed allocations, and of operations refused for that; an
error other than "out of memory" is a failure, as is an operation that cannot be done or undone once memory is
available. Expects at least one refused operation, unless UNREPORTED=1: where the driver does without the memory, or
cannot report its lack."""
import array
import errno
import fcntl
import os
import socket
import struct
import sys

# EINVAL: netdev_register_kobject() ignores that the device's name found no memory, and device_add() needs one. This
# error comes a few times, since the number of allocations before the name's varies; more often is a fault.
MAX_NAMELESS = 5
REFUSALS = {errno.ENOMEM, errno.ENOBUFS, errno.EINVAL}


class File:
    """Writes a text, and to undo it another, maybe to another file."""

    def __init__(self, arguments):
        self.file, self.text, self.undo_file, self.undo_text = arguments
        self.file, self.undo_file = os.open(self.file, os.O_WRONLY), os.open(self.undo_file, os.O_WRONLY)

    def do(self):
        os.write(self.file, self.text.encode())

    def undo(self):
        os.write(self.undo_file, self.undo_text.encode())


class Up:
    """Brings an interface up, and down."""
    GET, SET = 0x8913, 0x8914  # SIOCGIFFLAGS, SIOCSIFFLAGS

    def __init__(self, arguments):
        self.interface, = arguments
        self.socket = socket.socket()

    def flags(self, up):
        request = array.array("B", struct.pack("16sH22x", self.interface.encode(), 0))
        fcntl.ioctl(self.socket, self.GET, request)
        flags, = struct.unpack_from("H", request, 16)
        struct.pack_into("H", request, 16, flags | 1 if up else flags & ~1)
        return request

    def do(self):
        fcntl.ioctl(self.socket, self.SET, self.flags(True))

    def undo(self):
        fcntl.ioctl(self.socket, self.SET, self.flags(False))


class Rings:
    """Sets the size of the receive ring, and sets it back."""
    SIOCETHTOOL, SRINGPARAM = 0x8946, 0x11

    def __init__(self, arguments):
        self.interface, self.entries, self.entries_before, self.send_entries = arguments
        self.socket = socket.socket()

    def set(self, entries):
        parameters = array.array("I", [self.SRINGPARAM, 0, 0, 0, 0, int(entries), 0, 0, int(self.send_entries)])
        request = struct.pack("16sP16x", self.interface.encode(), parameters.buffer_info()[0])
        fcntl.ioctl(self.socket, self.SIOCETHTOOL, request)

    def do(self):
        self.set(self.entries)

    def undo(self):
        self.set(self.entries_before)


class Link:
    """Creates a child by rtnetlink, and deletes it."""
    NEWLINK, DELLINK, REQUEST, ACK, CREATE, EXCLUSIVE = 16, 17, 1, 4, 0x400, 0x200
    IFNAME, PARENT, LINKINFO, KIND, DATA, PKEY = 3, 5, 18, 1, 2, 1

    def __init__(self, arguments):
        self.parent, self.name, self.pkey = arguments
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)

    @staticmethod
    def attribute(kind, data):
        return struct.pack("HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)

    def ask(self, kind, flags, attributes):
        body = struct.pack("BxHiII", 0, 0, 0, 0, 0) + self.attribute(self.IFNAME, self.name.encode() + b"\0") + attributes
        self.socket.send(struct.pack("IHHII", 16 + len(body), kind, self.REQUEST | self.ACK | flags, 1, 0) + body)
        # The response has the error; without memory for a response there is none, and the socket reports that.
        error = struct.unpack_from("i", self.socket.recv(65536), 16)[0]
        if error:
            raise OSError(-error, os.strerror(-error))

    def do(self):
        data = self.attribute(self.PKEY, struct.pack("H", int(self.pkey, 0)))
        info = self.attribute(self.KIND, b"ipoib") + self.attribute(self.DATA, data)
        self.ask(self.NEWLINK, self.CREATE | self.EXCLUSIVE, self.attribute(
            self.PARENT, struct.pack("I", socket.if_nametoindex(self.parent))) + self.attribute(self.LINKINFO, info))

    def undo(self):
        self.ask(self.DELLINK, 0, b"")


class Failing:
    """Within it, the nth allocation fails."""

    def __init__(self):
        self.file = os.open("/proc/thread-self/fail-nth", os.O_RDWR)
        self.nth = self.left = 0

    def __enter__(self):
        os.write(self.file, str(self.nth).encode())

    def __exit__(self, *_):
        self.left = int(os.pread(self.file, 16, 0))
        os.write(self.file, b"0")


OPERATIONS = {"write": File, "up": Up, "rings": Rings, "link": Link}


def main():
    operation = OPERATIONS[sys.argv[1]](sys.argv[2:])
    failing, refused, nameless = Failing(), 0, 0
    stride = int(os.environ.get("STRIDE", 1))
    while not failing.left:
        failing.nth += stride
        try:
            with failing:
                operation.do()
        except OSError as error:
            nameless += error.errno == errno.EINVAL
            if failing.left or error.errno not in REFUSALS or nameless > MAX_NAMELESS:
                sys.exit(f"# allocation {failing.nth}: {error}")
            refused += 1
        else:
            operation.undo()
    failed = failing.nth // stride - 1
    print(f"# {failed} allocations failed, {refused} times it was refused")
    if failed == 0:
        sys.exit("# none was hit: the driver's addresses, or the stacks, are not seen")
    if refused == 0 and not os.environ.get("UNREPORTED"):
        sys.exit("# nothing was refused: the driver keeps the failures to itself")


main()
