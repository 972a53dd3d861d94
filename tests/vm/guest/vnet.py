#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Packets with offload headers of the sender's choice (PACKET_VNET_HDR), for which a program needs CAP_NET_RAW alone:
vnet.py segment IF COUNT sends TCP packets to be segmented, whose IPv4 header the stack finds in the hardware address;
vnet.py checksum IF has checksums computed from each byte of the hardware address on;
vnet.py random IF ADDRESS COUNT SEED sends random headers, to the hardware address too.
Prints how many packets the kernel accepted and refused."""
import random
import socket
import struct
import sys

SOL_PACKET, PACKET_VNET_HDR = 263, 15
NEEDS_CSUM = 1
GSO_NONE, GSO_TCPV4, GSO_UDP, GSO_TCPV6, GSO_UDP_L4, GSO_ECN = 0, 1, 3, 4, 5, 0x80
BROADCAST = bytes.fromhex("00ffffffff12401bffff000000000000ffffffff")
ENCAPSULATION = bytes.fromhex("08000000")


class Sender:
    def __init__(self, interface):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
        self.socket.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        self.socket.bind((interface, 0x0800))
        self.accepted = self.refused = 0

    def send(self, frame, flags=0, gso_type=GSO_NONE, gso_size=0, csum_start=0, csum_offset=0, header_bytes=0):
        header = struct.pack("=BBHHHH", flags, gso_type, header_bytes, gso_size, csum_start, csum_offset)
        try:
            self.socket.send(header + frame)
            self.accepted += 1
        except OSError:
            self.refused += 1


def segment(sender, count):
    # Version and length of IPv4 in the first byte, TCP in the tenth: a byte of the P_Key, which the driver sets itself.
    address = b"\x45" + BROADCAST[1:9] + b"\x06" + BROADCAST[10:]
    # The TCP header begins with the encapsulation: five words, and 23 bytes of data.
    tcp = ENCAPSULATION + bytes(8) + b"\x50" + bytes(7)
    for _ in range(int(count)):
        sender.send(address + tcp + bytes(23), NEEDS_CSUM, GSO_TCPV4, gso_size=8, csum_start=20, csum_offset=16)


def checksum(sender):
    for start in range(20):
        sender.send(BROADCAST + ENCAPSULATION + bytes(76), NEEDS_CSUM, csum_start=start)


def random_headers(sender, address, count, seed):
    numbers = random.Random(int(seed))
    peer = bytes.fromhex(address.replace(":", ""))
    kinds = (GSO_NONE, GSO_TCPV4, GSO_TCPV4 | GSO_ECN, GSO_TCPV6, GSO_UDP, GSO_UDP_L4)
    for _ in range(int(count)):
        length = numbers.choice((0, 1, 20, 39, 60, 1400, 8000))
        frame = numbers.choice((peer, BROADCAST)) + ENCAPSULATION
        frame += numbers.choice((b"\x45", b"\x60", b"\x4f")) + bytes(8)
        frame += numbers.choice((b"\x06", b"\x11")) + bytes(10) + numbers.randbytes(length)
        sender.send(frame, numbers.choice((0, NEEDS_CSUM)), numbers.choice(kinds),
                    gso_size=numbers.choice((0, 8, 200, 1448, 65535)),
                    csum_start=numbers.choice((0, 19, 20, 24, 44, 64, numbers.randrange(65536))),
                    csum_offset=numbers.choice((0, 6, 16, numbers.randrange(65536))),
                    header_bytes=numbers.choice((0, 44, 64, 128, 1000)))


if __name__ == "__main__":
    command, interface, *arguments = sys.argv[1:]
    sender = Sender(interface)
    {"segment": segment, "checksum": checksum, "random": random_headers}[command](sender, *arguments)
    print(sender.accepted, sender.refused)
