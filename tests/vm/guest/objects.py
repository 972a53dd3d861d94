#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Creates many objects of verbs on an HCA, by rdma-core's library: as many as are requested, or until one is refused.
Prints their number, the errno's name or "none", and the seconds until all were destroyed; "held" and waits for a line
before it destroys them."""
import argparse
import errno
import time

from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.enums import IBV_ACCESS_LOCAL_WRITE, IBV_QPT_RC
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QP, QPCap, QPInitAttr
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr

KINDS = ["pd", "cq", "mr", "qp", "srq"]


class Maker:
    def __init__(self, hca, depth):
        self.context = Context(name=hca)
        self.domain, self.queue = PD(self.context), CQ(self.context, 16)
        self.depth = depth

    def make(self, kind):
        if kind == "pd":
            return PD(self.context)
        if kind == "cq":
            return CQ(self.context, self.depth)
        if kind == "mr":
            return MR(self.domain, 64, IBV_ACCESS_LOCAL_WRITE)
        if kind == "srq":
            return SRQ(self.domain, SrqInitAttr(SrqAttr(max_wr=self.depth, max_sge=1)))
        limits = QPCap(max_send_wr=self.depth, max_recv_wr=self.depth, max_send_sge=1, max_recv_sge=1)
        return QP(self.domain, QPInitAttr(qp_type=IBV_QPT_RC, scq=self.queue, rcq=self.queue, cap=limits))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("count", type=int)
    parser.add_argument("--hca", default="soft_ib0")
    parser.add_argument("--depth", type=int, default=1)
    parser.add_argument("--hold", action="store_true")
    args = parser.parse_args()
    maker, objects, refusal = Maker(args.hca, args.depth), [], "none"
    start = time.monotonic()
    try:
        while len(objects) < args.count:
            objects.append(maker.make(args.kind))
    except PyverbsRDMAError as error:
        refusal = errno.errorcode[error.error_code]
    count = len(objects)
    if args.hold:
        print("held", flush=True)
        input()
    while objects:
        objects.pop().close()
    print(count, refusal, round(time.monotonic() - start, 1), flush=True)


main()
