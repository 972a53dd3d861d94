#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Injects ARP requests (RFC 4391, 9.1.1) into an HCA of the fabric, each from another unused hardware address, whose
GID is the number of the request. They request one IP address, with another as the sender's. With --port each comes from
another queue pair of this port, which accepts connections, and from another IP address."""
import argparse
import ipaddress
import os

# Common part of unused addresses: flags, queue pair, subnet prefix.
PREFIX = "00abcdef" "fe80000000000000"


def sender(number, first_ip, port):
    """The sender's hardware and IP address."""
    if port:
        return f"80{0xA00000 + number:06x}{port[8:]}", first_ip + number
    return f"{PREFIX}{0x0002C90400000000 + number:016x}", first_ip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--first", type=int, default=0, help="number of the first")
    parser.add_argument("--hca", type=int, required=True)
    parser.add_argument("--to", required=True, help="hardware address")
    parser.add_argument("--asking-for", type=ipaddress.IPv4Address, required=True)
    parser.add_argument("--as", dest="sender", type=ipaddress.IPv4Address, required=True)
    parser.add_argument("--port", help="hardware address of one of its interfaces")
    arguments = parser.parse_args()

    address = bytes.fromhex(arguments.to.replace(":", ""))
    port = arguments.port and arguments.port.replace(":", "")
    before = f"dqpn={int.from_bytes(address[1:4], 'big')} sqpn={0xabcdef} qkey=0x0b1b hex=080600000020080014040001"
    inject = os.open(f"/sys/kernel/debug/soft_ib/{arguments.hca}/inject", os.O_WRONLY)
    for number in range(arguments.first, arguments.first + arguments.count):
        hardware, ip = sender(number, arguments.sender, port)
        target = (bytes(20) + arguments.asking_for.packed).hex()
        # One write, one frame.
        os.write(inject, f"{before}{hardware}{ip.packed.hex()}{target}\n".encode())


if __name__ == "__main__":
    main()
