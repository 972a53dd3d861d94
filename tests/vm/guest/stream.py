#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A TCP stream that lasts until SIGTERM: stream.py listen ADDRESS PORT FILE | send ADDRESS PORT RATE. The sender
sends RATE bytes a second (0: as many as possible), then ends the stream and prints the number of bytes. The receiver
compares each byte with the sent one, keeps the number so far in FILE, and prints it at the end; a wrong byte is a
failure."""
import random
import signal
import socket
import sys
import time

BLOCK = random.Random(1).randbytes(1 << 20)
# Two blocks, so that a part that starts anywhere in the first is contiguous.
TWICE = BLOCK + BLOCK
PART = 1 << 16


def part(position):
    start = position % len(BLOCK)
    return TWICE[start:start + PART]


def receive(address, port, file):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.create_server((address, port), family=family)
    with open(file, "w", encoding="ascii") as progress:
        stream, _ = listener.accept()
        count = 0
        while data := stream.recv(PART):
            if data != part(count)[:len(data)]:
                sys.exit(f"wrong bytes from {count} on")
            count += len(data)
            progress.seek(0)
            progress.write(f"{count}\n")
            progress.flush()
    print(count)


def send(address, port, rate):
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    stream = socket.create_connection((address, port))
    count, begun = 0, time.monotonic()
    while not ended:
        count += stream.send(part(count))
        ahead = count / rate - (time.monotonic() - begun) if rate else 0
        if ahead > 0:
            time.sleep(min(ahead, 0.1))
    stream.close()
    print(count)


def main():
    address, port = sys.argv[2], int(sys.argv[3])
    if sys.argv[1] == "listen":
        receive(address, port, sys.argv[4])
    else:
        send(address, port, int(sys.argv[4]))


main()
