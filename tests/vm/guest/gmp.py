#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""gmp.py HCA LID CLASS VERSION METHOD ATTRIBUTE [DATA]: sends a MAD to queue pair 1 of a port, from an HCA of this
machine. Prints the status of the response (IBA 13.4.7) and its attribute, or "none" if there is none within a second.
Numbers are as in Python; DATA is the beginning of the attribute, in hexadecimal digits."""
import fcntl
import os
import struct
import sys

GENERAL_QKEY = 0x80010000
TIMEOUT_MS = 1000
DATA_OFFSET = 64


def main():
    hca, lid, management_class, version, method, attribute = (int(text, 0) for text in sys.argv[1:7])
    data = bytes.fromhex(sys.argv[7]) if len(sys.argv) > 7 else b""
    file = os.open(f"/dev/infiniband/umad{hca}", os.O_RDWR)
    # The OUI of a vendor's class is 0. No RMPP.
    request = bytearray(struct.pack("=I4IBBB3sBx", 0, 0, 0, 0, 0, 1, management_class, version, b"", 0))
    fcntl.ioctl(file, 0xC01C1B01, request)
    ident = struct.unpack_from("=I", request)[0]
    header = struct.pack("=5I", ident, 0, TIMEOUT_MS, 0, 0)
    header += struct.pack("!IIHBBBBBB16sI", 1, GENERAL_QKEY, lid, 0, 0, 0, 0, 0, 0, bytes(16), 0)
    mad = struct.pack("!BBBBHHQHHI40x", 1, management_class, version, method, 0, 0, 0x4711, attribute, 0, 0)
    mad += data.ljust(256 - DATA_OFFSET, b"\0")
    assert len(header) == 56 and len(mad) == 256
    os.write(file, header + mad)
    answer = os.read(file, 512)
    if struct.unpack_from("=I", answer, 4)[0]:
        print("none")
        return
    response = answer[56:]
    print(f"0x{struct.unpack_from('!H', response, 4)[0]:04x}", response[DATA_OFFSET:].hex())


main()
