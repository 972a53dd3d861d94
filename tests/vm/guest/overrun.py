#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Makes more completions of sends than their completion queue has space for. Prints the asynchronous events, the queue
pair's state, and how many completions were left in the queue."""
import os
import select
import struct

from verbs import ERROR, LOCAL_WRITE, QUERY_QP, Hca, Qp

SENDS, STATE_OFFSET, CQ_ERR = 16, 108, 0


def events(hca):
    """Those until none comes for a second."""
    while select.select([hca.asynchronous], [], [], 1)[0]:
        kind, = struct.unpack_from("I", os.read(hca.asynchronous, 16), 8)
        yield "CQ_ERR" if kind == CQ_ERR else str(kind)


def main():
    near, far = Hca("soft_ib0", entries=3), Hca("soft_ib1")
    mine, theirs = Qp(near, LOCAL_WRITE), Qp(far, LOCAL_WRITE)
    mine.connect(theirs)
    theirs.connect(mine)
    for number in range(SENDS):
        theirs.receive(number, [])
    for number in range(SENDS):
        mine.send(number, "send", [])
    raised = list(events(near))
    state = near.command(QUERY_QP, struct.pack("II", mine.handle, 1), 128)[STATE_OFFSET]
    print(*raised, "error" if state == ERROR else state, len(list(near.poll())))


main()
