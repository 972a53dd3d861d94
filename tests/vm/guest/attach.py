#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""attach.py groups|members COUNT: attaches a queue pair to as many multicast groups, or as many queue pairs to one, by
user-space verbs on the first HCA, until one is refused. Prints their number and the errno's name or "none"."""
import errno
import struct
import sys

from verbs import ATTACH_MCAST, CREATE_QP, UD, Hca

FIRST_MULTICAST_LID = 0xc000


def datagram_pair(hca):
    body = struct.pack("QIIIIIIIIIBBBB", 0, hca.domain, hca.cq, hca.cq, 0, 1, 1, 1, 1, 0, 1, UD, 0, 0)
    return struct.unpack_from("I", hca.command(CREATE_QP, body, 32))[0]


def attach(hca, handle, group):
    body = struct.pack("!B11xI", 0xff, group) + struct.pack("IHH", handle, FIRST_MULTICAST_LID, 0)
    hca.command(ATTACH_MCAST, body, 0)


def main():
    kind, count = sys.argv[1], int(sys.argv[2])
    hca, done, refusal = Hca("soft_ib0"), 0, "none"
    handle = datagram_pair(hca)
    try:
        while done < count:
            if kind == "members" and done:
                handle = datagram_pair(hca)
            attach(hca, handle, done if kind == "groups" else 0)
            done += 1
    except OSError as error:
        refusal = errno.errorcode[error.errno]
    print(done, refusal)


main()
