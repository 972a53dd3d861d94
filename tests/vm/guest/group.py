#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Multicast for the tests: listen GROUP IF | send GROUP IF TEXT | listen-many N IF | send-many IF (groups on stdin)."""
import socket
import struct
import sys

PORT = 4321


def index(interface):
    return socket.if_nametoindex(interface)


def receiver(group, interface):
    six = ":" in group
    s = socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((group, PORT, 0, index(interface)) if six else (group, PORT))
    join(s, group, interface)
    return s


def join(s, group, interface):
    if ":" in group:
        s.setsockopt(socket.IPPROTO_IPV6, 20, socket.inet_pton(socket.AF_INET6, group) + struct.pack("@I", index(interface)))
    else:
        s.setsockopt(socket.IPPROTO_IP, 35, socket.inet_aton(group) + socket.inet_aton("0.0.0.0") + struct.pack("@i", index(interface)))


def sender(group, interface):
    s = socket.socket(socket.AF_INET6 if ":" in group else socket.AF_INET, socket.SOCK_DGRAM)
    if ":" in group:
        s.setsockopt(socket.IPPROTO_IPV6, 17, index(interface))
    else:
        s.setsockopt(socket.IPPROTO_IP, 32, struct.pack("@4s4si", b"", b"", index(interface)))
    return s


def show(s):
    while True:
        print(s.recv(2000).decode(), flush=True)


command, arguments = sys.argv[1], sys.argv[2:]
if command == "listen":
    show(receiver(*arguments))
elif command == "send":
    sender(*arguments[:2]).sendto(arguments[2].encode(), (arguments[0], PORT))
elif command == "listen-many":
    # A socket may join a limited number of groups: a part of them for each.
    sockets = []
    for i in range(int(arguments[0])):
        if i % 15 == 0:
            sockets.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            sockets[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sockets[-1].bind(("", PORT))
        join(sockets[-1], "239.10.0.%d" % i, arguments[1])
    show(sockets[-1])
elif command == "send-many":
    for line in sys.stdin:
        sender(line.strip(), arguments[0]).sendto(b"x", (line.strip(), PORT))
