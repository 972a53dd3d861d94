#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Injects connection requests (IBA 12.6.5) into an HCA of the fabric, from the LID of an existing port and the
address of a host that does not exist: each with its own communication id, queue pair and UD QPN; or all with the
address of an existing host."""
import argparse
import struct


NOBODY = bytes.fromhex("fe80000000000000") + bytes.fromhex("0002c903000f0010")


def request(number, local_lid, remote_lid, address, peer, private):
    service = 0x1000000000000000 | int.from_bytes(address[1:4], "big")
    gid = address[4:20]
    mad = struct.pack("!BBBBHHQHHI", 1, 7, 2, 3, 0, 0, 0x5500000000 + number, 0x0010, 0, 0)
    message = struct.pack("!IIQQII", 0x77000000 + number, 0, service, 0x0002C903000F0010, 0, 0)
    message += struct.pack("!III", (0x400000 + number) << 8 | 4, 0, 20 << 3)  # transport: RC
    message += struct.pack("!I", 24 << 3)  # PSN 0, response timeout 24: no REP is repeated within a minute, no retries
    message += struct.pack("!HBB", 0xFFFF, 4 << 4, 15 << 4 | 1 << 3)  # MTU 2048, SRQ
    message += struct.pack("!HH", remote_lid, local_lid) + peer + gid
    message += struct.pack("!IBBBB", 7, 0, 1, 1 << 3, 18 << 3)  # rate, hop limit, subnet local
    message += bytes(44) + private.ljust(92, b"\0")
    assert len(mad + message) == 256
    return mad + message


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--first", type=int, default=1, help="number of the first, for more of them than one call's")
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--from", dest="sender", type=int, required=True)
    parser.add_argument("--to", type=int, required=True)
    parser.add_argument("--address", required=True)
    parser.add_argument("--private", choices=("good", "zeros", "ones", "short_mtu"), default="good")
    parser.add_argument("--name", help="the address of the host in whose name they come")
    parser.add_argument("--hca", type=int, default=1)
    options = parser.parse_args()
    address = bytes.fromhex(options.address.replace(":", ""))
    name = bytes.fromhex(options.name.replace(":", "")) if options.name else None
    for number in range(options.first, options.first + options.count):
        private = {
            "good": struct.pack("!II", int.from_bytes(name[1:4], "big") if name else number, 65524),
            "zeros": bytes(8),
            "ones": b"\xff" * 92,
            "short_mtu": struct.pack("!II", number, 4),
        }[options.private]
        # A communication id is used only once.
        unique = number + ("good", "zeros", "ones", "short_mtu").index(options.private) * 100000 + (500000 if name else 0)
        mad = request(unique, options.to, options.sender, address, name[4:] if name else NOBODY, private)
        with open(f"/sys/kernel/debug/soft_ib/{options.hca}/inject", "w", encoding="ascii") as inject:
            inject.write(f"dqpn=1 sqpn=1 qkey=0x80010000 slid={options.sender} hex={mad.hex()}")


main()
