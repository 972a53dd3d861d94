#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Frames by packet socket: see IF TYPE prints the first that arrives, in hexadecimal; send IF HEX... sends some."""
import socket
import sys

command, interface, *arguments = sys.argv[1:]
if command == "see":
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(int(arguments[0], 0)))
    s.bind((interface, int(arguments[0], 0)))
    s.settimeout(10)
    while True:
        frame, (_, _, kind, _, _) = s.recvfrom(4096)
        if kind != socket.PACKET_OUTGOING:
            print(frame.hex())
            break
elif command == "send":
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    s.bind((interface, 0))
    for frame in arguments:
        s.send(bytes.fromhex(frame))
