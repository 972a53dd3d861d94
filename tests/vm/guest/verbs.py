#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Executes work requests of user-space verbs, from an HCA of the fabric to another, valid ones and errors that
ready-made programs never make; by the kernel's interface alone, without libibverbs. Prints the completions of both
sides for each ("-": none), and whether the data arrived."""
import argparse
import array
import glob
import itertools
import os
import struct
import time

LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ = 1, 2, 4
STATUS = {0: "success", 1: "length", 4: "protection", 5: "flushed", 9: "invalid-request", 10: "remote-access",
          11: "remote-operation", 12: "no-answer", 13: "not-ready"}
# Errors that break a queue pair and are reported to the peer: all work requests are completed then.
REFUSALS = {"invalid-request", "remote-access", "remote-operation"}
# IB_USER_VERBS_CMD_*, IB_WR_*, IB_QPS_*
GET_CONTEXT, ALLOC_PD, REG_MR, DEREG_MR, CREATE_COMP_CHANNEL, CREATE_CQ, POLL_CQ, REQ_NOTIFY_CQ, CREATE_QP, \
    QUERY_QP, MODIFY_QP, DESTROY_QP, POST_SEND, POST_RECV, ATTACH_MCAST = \
    0, 3, 9, 13, 17, 18, 21, 23, 24, 25, 26, 27, 28, 29, 30
OPERATIONS = {"write": 0, "write-immediate": 1, "send": 2, "send-immediate": 3, "read": 4}
# IB_QPT_*
RC, UC, UD = 2, 3, 4
RESET, INIT, RTR, RTS, SQD, ERROR = 0, 1, 2, 3, 4, 6
# IB_QP_*: bits of attributes.
PKEY_INDEX, QKEY, PATH_MTU, RNR_TIMER, SQ_PSN = 1 << 4, 1 << 6, 1 << 8, 1 << 15, 1 << 16
SIGNALED, SOLICITED = 2, 4
# In the byte order of the wire.
IMMEDIATE, = struct.unpack("I", b"\x01\x02\x03\x04")


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read().strip()


class Hca:
    def __init__(self, name, entries=64):
        device = next(d for d in glob.glob("/sys/class/infiniband_verbs/uverbs*") if read(d + "/ibdev") == name)
        self.file = os.open("/dev/infiniband/" + os.path.basename(device), os.O_RDWR)
        self.lid = int(read(f"/sys/class/infiniband/{name}/ports/1/lid"), 0)
        self.asynchronous, _ = struct.unpack("II", self.command(GET_CONTEXT, b"", 8))
        self.domain = self.new_domain()
        self.events, = struct.unpack("I", self.command(CREATE_COMP_CHANNEL, b"", 4))
        queue = struct.pack("QIIiI", 0, entries, 0, self.events, 0)
        self.cq, = struct.unpack_from("I", self.command(CREATE_CQ, queue, 8))

    def command(self, number, body, response_bytes):
        """Executes a command, which has a response if that has bytes."""
        if not response_bytes:
            os.write(self.file, struct.pack("IHH", number, len(body) // 4 + 2, 0) + body)
            return b""
        response = array.array("B", bytes(response_bytes))
        message = struct.pack("Q", response.buffer_info()[0]) + body
        os.write(self.file, struct.pack("IHH", number, len(message) // 4 + 2, response_bytes // 4) + message)
        return response.tobytes()

    def new_domain(self):
        return struct.unpack("I", self.command(ALLOC_PD, b"", 4))[0]

    def request_event(self, solicited):
        self.command(REQ_NOTIFY_CQ, struct.pack("II", self.cq, solicited), 0)

    def poll(self):
        """Statuses, by work request, of what has completed."""
        answer = self.command(POLL_CQ, struct.pack("II", self.cq, 16), 8 + 16 * 48)
        for i in range(struct.unpack_from("I", answer)[0]):
            work, status, _, _, _, immediate = struct.unpack_from("QIIIII", answer, 8 + 48 * i)
            yield work, STATUS.get(status, str(status)), immediate


class Region:
    """Registered memory. Its bytes begin somewhere in a page."""

    def __init__(self, hca, data, access, domain=None):
        self.hca, self.data = hca, array.array("B", data)
        self.address = self.data.buffer_info()[0]
        body = struct.pack("QQQII", self.address, len(data), self.address, domain or hca.domain, access)
        self.handle, self.key = struct.unpack("II", hca.command(REG_MR, body, 12)[:8])

    def withdraw(self):
        self.hca.command(DEREG_MR, struct.pack("I", self.handle), 0)


class Qp:
    def __init__(self, hca, access, kind=RC, size=32):
        self.hca, self.access = hca, access
        body = struct.pack("QIIIIIIIIIBBBB", 0, hca.domain, hca.cq, hca.cq, 0, size, size, 3, 3, 0, 1, kind, 0, 0)
        self.handle, self.number = struct.unpack_from("II", hca.command(CREATE_QP, body, 32))

    def destroy(self):
        self.hca.command(DESTROY_QP, struct.pack("II", self.handle, 0), 4)

    def modify(self, state, mask, peer=None, pkey_index=0, path_mtu=4, rnr_timer=12, timeout=15, retries=7,
               rnr_retries=7, migration=0, group=None):
        """Without a state (None) only the attributes of the mask. group: the MGID and LID of the peer's path."""
        mgid, lid = group or (bytes(16), peer.hca.lid if peer else 0)
        dest = struct.pack("16sIHHBBBBBBBB", mgid, 0, lid, 0, 0, 0, 0, 0, 0, 0, bool(group), 1)
        alternate = bytes(31) + b"\1"
        body = dest + alternate + struct.pack("IIIIIII", self.handle, mask | (state is not None), 0, 0, 0,
                                              peer.number if peer else 0, self.access)
        body += struct.pack("HHBBBBBBBBBBBBBB2x", pkey_index, 0, state or 0, 0, path_mtu, migration, 0, 4, 4, rnr_timer,
                            1, timeout, retries, rnr_retries, 1, 0)
        self.hca.command(MODIFY_QP, body, 0)

    def initialise(self, **attributes):
        self.modify(INIT, 1 << 3 | PKEY_INDEX | 1 << 5, **attributes)

    def hear(self, peer, **attributes):
        self.modify(RTR, 1 << 7 | PATH_MTU | 1 << 12 | RNR_TIMER | 1 << 17 | 1 << 20, peer, **attributes)

    def speak(self, **attributes):
        self.modify(RTS, 1 << 9 | 1 << 10 | 1 << 11 | 1 << 13 | SQ_PSN, **attributes)

    def connect(self, peer):
        self.initialise()
        self.hear(peer)
        self.speak()

    def post(self, command, work, elements):
        body = struct.pack("IIIII", self.handle, 1, len(elements), len(work), 0)[:16] + work
        self.hca.command(command, body + b"".join(struct.pack("QII", *e) for e in elements), 4)

    def send(self, number, operation, elements, address=0, key=0, flags=SIGNALED):
        work = struct.pack("QIIII", number, len(elements), OPERATIONS[operation], flags, IMMEDIATE)
        self.post(POST_SEND, work + struct.pack("QII16x", address, key, 0), elements)

    def receive(self, number, elements):
        self.post(POST_RECV, struct.pack("QII", number, len(elements), 0), elements)


def cut(region, first, length, key=None):
    """Three elements, of which the second is odd in place and size."""
    parts = [length // 3, min(7, length - length // 3)]
    parts.append(length - sum(parts))
    address, elements = region.address + first, []
    for part in parts:
        elements.append((address, part, key or region.key))
        address += part
    return elements


WRONGS = ["key", "bounds", "access", "domain", "withdrawn", "remote-key", "remote-bounds", "remote-access",
          "remote-withdrawn", "refused", "receive-key", "receive-length"]


def run(operation, size, wrong, hold):
    reads = operation == "read"
    near, far = Hca("soft_ib0"), Hca("soft_ib1")
    everything = LOCAL_WRITE | REMOTE_WRITE | REMOTE_READ
    granted = LOCAL_WRITE if wrong == "refused" else everything
    mine, theirs = Qp(near, everything), Qp(far, granted)
    mine.connect(theirs)
    theirs.connect(mine)
    data, nothing = os.urandom(size + 64), bytes(size + 64)
    here = Region(near, nothing if reads else data, 0 if wrong == "access" else LOCAL_WRITE,
                  near.new_domain() if wrong == "domain" else None)
    there = Region(far, data if reads else nothing, LOCAL_WRITE if wrong == "remote-access" else everything)
    if wrong == "withdrawn":
        here.withdraw()
    if wrong == "remote-withdrawn":
        there.withdraw()

    # The work requests before and after are valid, which shows that only this one was wrong.
    good_here, good_there = Region(near, b"before", LOCAL_WRITE), Region(far, bytes(6), LOCAL_WRITE)
    theirs.receive(1, [(good_there.address, 6, good_there.key)])
    # Key 1 is the kernel's own, for all of its memory.
    theirs.receive(2, cut(there, 11, size - (wrong == "receive-length"), 1 if wrong == "receive-key" else None))
    theirs.receive(3, [])
    mine.send(1, "send", [(good_here.address, 6, good_here.key)])
    mine.send(2, operation, cut(here, 65 if wrong == "bounds" else 11, size, 1 if wrong == "key" else None),
              there.address + (65 if wrong == "remote-bounds" else 11), 1 if wrong == "remote-key" else there.key)
    mine.send(3, "send", [])

    if hold:
        print("holding", flush=True)
        time.sleep(1e6)
    done, immediates = ({}, {}), []
    deadline = time.monotonic() + 20
    # The last completion is awaited on the other side too.
    while time.monotonic() < deadline:
        refused = not REFUSALS.isdisjoint(done[0].values())
        last = len(done[0]) == 3 and (not refused or len(done[1]) == 3)
        for side, hca in enumerate((near, far)):
            for work, status, immediate in hca.poll():
                done[side][work] = status
                if side and work == 2:
                    immediates.append(immediate)
        if last:
            break
    got, wanted = (here, there) if reads else (there, here)
    same = got.data[11:11 + size] == wanted.data[11:11 + size] and not any(got.data[:11]) and not any(got.data[11 + size:])
    if operation.endswith("immediate") and immediates != [IMMEDIATE]:
        same = False
    os.close(near.file)
    os.close(far.file)
    return " ".join([*(done[0].get(i, "-") for i in (1, 2, 3)), "|", *(done[1].get(i, "-") for i in (1, 2)), "|",
                     "same" if same else "different"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("operations", nargs="+", choices=OPERATIONS)
    parser.add_argument("--bytes", nargs="+", type=int, default=[5000])
    parser.add_argument("--wrong", nargs="+", default=[""], choices=WRONGS)
    parser.add_argument("--hold", action="store_true", help="wait for the end with all that was made")
    args = parser.parse_args()
    for case in itertools.product(args.operations, args.bytes, args.wrong):
        print(*case, ":", run(*case, args.hold), flush=True)


if __name__ == "__main__":
    main()
