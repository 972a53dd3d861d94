#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Does random things to two HCAs by user-space verbs, for SECONDS or until SIGTERM: valid requests and invalid ones,
with handles, keys and numbers that are right, of destroyed objects, of other programs, or invented. Several threads
share the objects, so that one may use what another one destroys; SEED repeats their choices, not their times. All
errors are accepted, and an HCA that was unplugged is opened again. /run/chaos/counts.PID has how many operations of
each kind succeeded, "completed" for work requests, and how many failed with which error."""
import argparse
import collections
import ctypes
import errno
import mmap
import os
import random
import signal
import struct
import threading
import time
from types import SimpleNamespace

from verbs import ALLOC_PD, ATTACH_MCAST, CREATE_CQ, CREATE_QP, DEREG_MR, DESTROY_QP, MODIFY_QP, POLL_CQ, POST_RECV, \
    POST_SEND, QUERY_QP, RC, REG_MR, REQ_NOTIFY_CQ, UC, UD, Hca, read

# IB_USER_VERBS_CMD_*
DEALLOC_PD, CREATE_AH, DESTROY_AH, REREG_MR, RESIZE_CQ, DESTROY_CQ = 4, 5, 8, 11, 19, 20
DETACH_MCAST, CREATE_SRQ, MODIFY_SRQ, QUERY_SRQ, DESTROY_SRQ, POST_SRQ_RECV = 31, 32, 33, 34, 35, 36
TYPES = {RC: "rc", UC: "uc", UD: "ud"}
RESET, INIT, RTR, RTS, ERROR = 0, 1, 2, 3, 6
# Bits of IB_QP_*: attributes of a transition.
STATE, ACCESS, PKEY, PORT, QKEY, AV, MTU, TIMEOUT, RETRIES, RNR_RETRIES, RQ_PSN, READS, RNR_TIMER, SQ_PSN, PEER_READS, \
    PEER = (1 << bit for bit in (0, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16, 17, 20))
TO_RTR = {RC: AV | MTU | PEER | RQ_PSN | PEER_READS | RNR_TIMER, UC: AV | MTU | PEER | RQ_PSN, UD: 0}
TO_RTS = {RC: SQ_PSN | TIMEOUT | RETRIES | RNR_RETRIES | READS, UC: SQ_PSN, UD: SQ_PSN}
OPERATIONS = {"write": 0, "write-immediate": 1, "send": 2, "send-immediate": 3, "read": 4, "swap": 5, "add": 6}
# User space has no keys to invalidate: refused, or an error at the peer.
INVALIDATIONS = {"local-invalidate": 7, "send-invalidate": 9}
ATOMICS = ("swap", "add")
FENCE, SIGNALED, SOLICITED, INLINE = 1, 2, 4, 8
# IB_WC_*
COMPLETIONS = {0: "send", 1: "write", 2: "read", 3: "swap", 4: "add", 128: "receive", 129: "receive-of-write"}
EVERYTHING = 0xf
COMMON_QKEY = 0x11111111
MOST = {"pd": 2, "cq": 6, "mr": 12, "srq": 3, "qp": 16, "ah": 6}
BOARD = "/run/chaos"


def address_of(memory):
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def publish(name, text):
    with open(f"{BOARD}/new.{os.getpid()}.{threading.get_ident()}", "w", encoding="ascii") as file:
        file.write(text)
    os.rename(file.name, f"{BOARD}/{name}")


class Side:
    """An HCA, and the program's objects on it."""

    def __init__(self, name):
        self.hca = Hca(name)
        self.pools = {kind: [] for kind in MOST}
        self.pools["pd"].append(SimpleNamespace(handle=self.hca.domain))
        self.pools["cq"].append(SimpleNamespace(handle=self.hca.cq, ignored=False))
        for file in (self.hca.events, self.hca.asynchronous):
            os.set_blocking(file, False)

    def call(self, number, body, response_bytes=8):
        return self.hca.command(number, body, response_bytes)

    def tell(self, number, body):
        """A command without a response."""
        self.hca.command(number, body, 0)

    def create(self, number, body, response_bytes):
        return struct.unpack_from("II", self.call(number, body, response_bytes) + bytes(8))


class Objects:
    """Creates and destroys objects, each in the pool of its kind."""

    def __init__(self, names, seed, until):
        self.random = random.Random(seed)
        self.until, self.ended = until, False
        self.names = names
        self.sides = {name: self.opened(name) for name in names}

    def goes_on(self):
        return not self.ended and time.monotonic() < self.until

    def opened(self, name):
        """Waits for an HCA that is unplugged."""
        while self.goes_on():
            try:
                return Side(name)
            except (OSError, StopIteration):
                time.sleep(0.05)
        raise SystemExit

    def chance(self, one_in=16):
        return self.random.randrange(one_in) == 0

    def any_side(self):
        return self.sides[self.random.choice(self.names)]

    def pick(self, side, kind):
        """An object; rarely one whose handle is a wrong one."""
        if self.chance(40):
            return SimpleNamespace(handle=self.random.choice([0, 1, self.random.randrange(64), 0xffffffff]), type=RC,
                                   number=self.random.getrandbits(24), pd=None, peer=None, srq=None, ignored=False,
                                   parts=3, inline=0, address=self.random.getrandbits(64), length=4096,
                                   key=self.random.getrandbits(32))
        return self.random.choice(side.pools[kind])

    def made(self, side, kind, **members):
        side.pools[kind].append(SimpleNamespace(**members))

    def drop(self, side, kind, destroy):
        """Destroys an object. Its handle is sometimes used again."""
        pool = side.pools[kind]
        item = self.pick(side, kind)
        destroy(item)
        if item in pool and not self.chance(8):
            pool.remove(item)

    def is_full(self, side, kind):
        return len(side.pools[kind]) >= self.random.randint(1, MOST[kind])

    def do_pd(self, side):
        if self.is_full(side, "pd"):
            self.drop(side, "pd", lambda pd: side.tell(DEALLOC_PD, struct.pack("I", pd.handle)))
            return "pd destroyed"
        self.made(side, "pd", handle=side.create(ALLOC_PD, b"", 4)[0])
        return "pd"

    def do_cq(self, side):
        if self.is_full(side, "cq"):
            self.drop(side, "cq", lambda cq: side.call(DESTROY_CQ, struct.pack("II", cq.handle, 0)))
            return "cq destroyed"
        entries = self.random.choice([1, 8, 200, 3000, 1 << 21 if self.chance() else 50])
        channel = self.random.choice([-1, side.hca.events])
        handle, _ = side.create(CREATE_CQ, struct.pack("QIIiI", 0, entries, 0, channel, 0), 8)
        self.made(side, "cq", handle=handle, ignored=self.chance(4))
        return "cq"

    def do_resize(self, side):
        entries = self.random.choice([0, 1, 20, 500])
        side.call(RESIZE_CQ, struct.pack("II", self.pick(side, "cq").handle, entries))
        return "cq resized"

    def region(self, memory, length):
        """Address, length and access of a region, and the address by which work requests name it."""
        offset = self.random.choice([0, 0, 8, 13])
        address = address_of(memory) + offset
        named = address if self.chance(2) else (self.random.getrandbits(52) << 12) + address % 4096
        others = [0, 1, 2, 3, 5, 1 << 20 | 1, self.random.getrandbits(8)]
        return address, length - offset, named, self.random.choice(others) if self.chance(4) else EVERYTHING

    def do_mr(self, side):
        if self.is_full(side, "mr"):
            self.drop_mr(side)
            return "mr destroyed"
        length = self.random.choice([16, 100, 4096, 10000, 70000, 300000])
        memory = mmap.mmap(-1, length)
        address, length, named, access = self.region(memory, length)
        pd = self.pick(side, "pd")
        body = struct.pack("QQQII", address, length, named, pd.handle, access)
        handle, key = side.create(REG_MR, body, 12)
        self.made(side, "mr", handle=handle, key=key, address=named, length=length, pd=pd, memory=memory, access=access)
        return "mr"

    def drop_mr(self, side):
        def destroy(mr):
            # The memory may be unmapped before.
            if self.chance(3) and hasattr(mr, "memory"):
                mr.memory.close()
            side.tell(DEREG_MR, struct.pack("I", mr.handle))
        self.drop(side, "mr", destroy)

    def do_srq(self, side):
        if self.is_full(side, "srq"):
            self.drop(side, "srq", lambda srq: side.call(DESTROY_SRQ, struct.pack("II", srq.handle, 0)))
            return "srq destroyed"
        pd = self.pick(side, "pd")
        depth, elements = self.random.choice([1, 10, 100]), self.random.choice([1, 3, 18, 40])
        body = struct.pack("QIIII", 0, pd.handle, depth, elements, 0)
        self.made(side, "srq", handle=side.create(CREATE_SRQ, body, 16)[0], pd=pd)
        return "srq"

    def do_limit(self, side):
        srq = self.pick(side, "srq")
        if self.chance(2):
            side.call(QUERY_SRQ, struct.pack("II", srq.handle, 0), 16)
            return "srq queried"
        side.tell(MODIFY_SRQ, struct.pack("IIII", srq.handle, 3 if self.chance() else 2, 50, self.random.randrange(20)))
        return "srq limited"

    def do_qp(self, side):
        if self.is_full(side, "qp"):
            self.drop(side, "qp", lambda qp: side.call(DESTROY_QP, struct.pack("II", qp.handle, 0)))
            return "qp destroyed"
        kind, pd = self.random.choice([RC, RC, RC, UC, UD]), self.pick(side, "pd")
        srq = self.pick(side, "srq") if kind == RC and self.chance(3) and side.pools["srq"] else None
        depth = 20000 if self.chance(40) else self.random.choice([1, 4, 16, 60])
        inline = self.random.choice([0, 64, 128, 129 if self.chance() else 20])
        parts = self.random.choice([1, 3, 18])
        body = struct.pack("QIIIIIIIIIBBBB", 0, pd.handle, self.pick(side, "cq").handle, self.pick(side, "cq").handle,
                           srq.handle if srq else 0, depth, depth, parts, 3, inline,
                           self.random.randrange(2), self.random.randrange(16) if self.chance() else kind,
                           srq is not None, 0)
        handle, number = side.create(CREATE_QP, body, 32)
        self.made(side, "qp", handle=handle, number=number, type=kind, pd=pd, srq=srq, peer=None, parts=parts,
                  inline=inline)
        return "qp " + TYPES[kind]

    def do_ah(self, side):
        if self.is_full(side, "ah"):
            self.drop(side, "ah", lambda ah: side.tell(DESTROY_AH, struct.pack("I", ah.handle)))
            return "ah destroyed"
        lid = self.random.getrandbits(16) if self.chance() else self.any_side().hca.lid
        route = self.random.randbytes(16) + struct.pack("IBBBB", self.random.getrandbits(20), self.chance(20), 64, 0, 0)
        body = struct.pack("QII", 0, self.pick(side, "pd").handle, 0) + route
        body += struct.pack("HBBBBBB", lid, self.random.randrange(16), 0, 0, self.chance(8), not self.chance(20), 0)
        self.made(side, "ah", handle=side.create(CREATE_AH, body, 4)[0])
        return "ah"


class Chaos(Objects):
    """Uses the objects."""

    # Operations by their frequency.
    WEIGHTS = {"send": 60, "receive": 25, "poll": 25, "connect": 12, "mr": 10, "qp": 10, "notify": 5, "wander": 4,
               "ah": 4, "cq": 3, "resize": 3, "limit": 3, "query": 3, "group": 3, "stranger": 3, "srq": 2, "pd": 2,
               "publish": 1, "reregister": 1}

    def __init__(self, names, seed, until):
        super().__init__(names, seed, until)
        self.lost = threading.Lock()
        self.succeeded, self.failed = collections.Counter(), collections.Counter()
        # Numbers of other programs, some of which are gone.
        self.published = []

    def modify(self, side, qp, mask, **set_to):
        values = {"lid": 0, "state": RTS, "mtu": 4, "reads": 8, "peer_reads": 16, "rnr_timer": 1, "timeout": 11,
                  "retries": 5, "rnr_retries": 5, "qkey": COMMON_QKEY, "psn": 0, "number": 0, "access": EVERYTHING,
                  "pkey": 0, "port": 1, **set_to}
        v = SimpleNamespace(**values)
        body = struct.pack("16xIHHBBBBBBBB", 0, v.lid, 0, 0, 0, 0, 0, 0, 0, 0, v.port) + bytes(32)
        body += struct.pack("IIIIIII", qp.handle, mask, v.qkey, v.psn, v.psn, v.number, v.access)
        body += struct.pack("HHBBBBBBBBBBBBBB2x", v.pkey, 0, v.state, 0, v.mtu, 0, 0, v.reads, v.peer_reads,
                            v.rnr_timer, v.port, v.timeout, v.retries, v.rnr_retries, 0, 0)
        side.tell(MODIFY_QP, body)

    def raise_qp(self, side, qp, lid, number, psn, access=EVERYTHING):
        """From any state to RTS."""
        # Both ends have the same MTU.
        values = {"lid": lid, "number": number, "psn": psn, "access": access, "mtu": 4 if psn % 2 else 1,
                  "reads": self.random.choice([0, 1, 4, 8, 16, 16]), "timeout": self.random.randint(8, 13),
                  "retries": self.random.choice([0, 7, 7]), "rnr_retries": self.random.choice([0, 6, 6, 7])}
        self.modify(side, qp, STATE, state=RESET)
        self.modify(side, qp, STATE | PKEY | PORT | (QKEY if qp.type == UD else ACCESS), state=INIT, **values)
        if not self.chance():
            self.attempt("receive", self.post_receive, side, qp)
        self.modify(side, qp, STATE | TO_RTR[qp.type], state=RTR, **values)
        if not self.chance(30):
            self.modify(side, qp, STATE | TO_RTS[qp.type], state=RTS, **values)

    def do_connect(self, side):
        """Connects two queue pairs of this program, or only one of them."""
        mine, other = self.pick(side, "qp"), self.any_side()
        # Preferably one without a peer, to keep other connections.
        fitting = [qp for qp in other.pools["qp"] if qp.type == mine.type]
        free = [qp for qp in fitting if not qp.peer]
        theirs = self.random.choice(free if free and not self.chance(4) else fitting or [mine])
        psn = self.random.choice([0, 1, 0xffffff, 0xfffff0, self.random.getrandbits(32)])
        access = EVERYTHING if not self.chance(8) else self.random.randrange(16)
        self.raise_qp(side, mine, other.hca.lid, theirs.number, psn)
        mine.peer = (other, theirs)
        if mine is not theirs:
            self.raise_qp(other, theirs, side.hca.lid, mine.number, psn, access)
            theirs.peer = (side, mine)
        for _ in range(self.random.randrange(8)):
            self.attempt("send", self.post_send, *self.random.choice([(side, mine), (other, theirs)]))
        return "connected " + TYPES[mine.type]

    def do_stranger(self, side):
        """Connects a queue pair to another program's, which may be gone, or to any number."""
        lines = self.published
        lid, number = self.random.choice(lines)[:2] if lines else (self.random.getrandbits(16), 0)
        if self.chance(4):
            number = self.random.getrandbits(24)
        qp = self.pick(side, "qp")
        self.raise_qp(side, qp, lid, number, self.random.choice([0, 1, 0xffffff]))
        qp.peer = None
        return "connected to a stranger"

    def do_wander(self, side):
        """Any transition, with any attributes."""
        qp = self.pick(side, "qp")
        values = {name: self.random.getrandbits(8) for name in ("reads", "peer_reads", "rnr_timer", "timeout", "mtu")}
        state = self.random.choice([RESET, INIT, RTR, RTS, 4, 5, ERROR, ERROR, self.random.getrandbits(8)])
        mask = STATE if self.chance(2) else self.random.getrandbits(21)
        self.modify(side, qp, mask, state=state, psn=self.random.getrandbits(32), lid=self.any_side().hca.lid,
                    number=self.random.getrandbits(32), access=self.random.getrandbits(8),
                    pkey=self.random.choice([0, 1, 70, 0xffff]) if self.chance(4) else 0,
                    **(values if self.chance(2) else {}))
        return "moved to any state"

    def do_query(self, side):
        side.call(QUERY_QP, struct.pack("II", self.pick(side, "qp").handle, 0x1fffff), 128)
        return "qp queried"

    def do_reregister(self, side):
        mr = self.pick(side, "mr")
        side.call(REREG_MR, struct.pack("IIQQQII", mr.handle, 7, mr.address, mr.length, mr.address, 0, 1))
        return "mr registered again"

    def elements(self, side, pd, bytes_at_most, parts_at_most):
        """Parts of regions, mostly of the queue pair's domain."""
        chosen, regions = [], [mr for mr in side.pools["mr"] if mr.pd is pd]
        parts = self.random.choice([0, 1, 1, 1, 2, 3, 18])
        if not self.chance(50):
            parts = min(parts, parts_at_most)
        for _ in range(parts):
            mr = self.pick(side, "mr") if self.chance(80) or not regions else self.random.choice(regions)
            first = self.random.choice([0, self.random.randrange(mr.length + 1)])
            length = min(mr.length - first, bytes_at_most // parts)
            if self.chance(80):
                length += self.random.choice([1, 0x7fffffff])
            chosen.append(((mr.address + first) % (1 << 64), length, mr.key ^ self.chance(80)))
        return chosen

    def target(self, qp):
        """Address, length and key of the peer's memory, or of any other."""
        if self.chance(20) and self.published:
            return self.random.choice(self.published)[2:]
        if not qp.peer:
            return self.random.getrandbits(64), 64, self.random.getrandbits(32)
        side, peer = qp.peer
        regions = [mr for mr in side.pools["mr"]
                   if mr.pd is peer.pd and (mr.access & EVERYTHING == EVERYTHING or self.chance(9))]
        mr = self.random.choice(regions or side.pools["mr"])
        return mr.address, mr.length, mr.key

    def post(self, side, command, qp, work, elements):
        body = struct.pack("IIII", qp.handle, 1, len(elements), len(work)) + work
        side.call(command, body + b"".join(struct.pack("QII", *e) for e in elements), 4)

    def do_send(self, side):
        connected = [qp for qp in side.pools["qp"] if qp.peer]
        return self.post_send(side, self.random.choice(connected) if connected and not self.chance(8)
                              else self.pick(side, "qp"))

    def post_send(self, side, qp):
        operation = self.random.choice(list(INVALIDATIONS if self.chance(30) else OPERATIONS))
        if qp.type == UD and not self.chance():
            operation = "send"
        address, room, key = self.target(qp)
        flags = self.random.choice([SIGNALED, SIGNALED, SIGNALED | SOLICITED, SIGNALED | FENCE, 0])
        size = self.random.choice([8, 100, 1000, 2048, 60000 if self.chance(8) else 3000])
        elements = self.elements(side, qp.pd, size if self.chance(50) else min(size, room), qp.parts)
        if operation in ATOMICS:
            elements = [(at, 8, local) for at, _, local in elements[:1]]
            address += -address % 8
        elif self.chance(4) and (qp.inline or self.chance()):
            # Inline data are read by address alone: what is not mapped is refused.
            elements, flags = [(at, length % 65, 0) for at, length, _ in elements[:1]], flags | INLINE
        if self.chance(40):
            address = (address + self.random.choice([1, 4096, 1 << 63])) % (1 << 64)
        work = struct.pack("QIIII", self.random.getrandbits(64), len(elements),
                           (OPERATIONS | INVALIDATIONS)[operation], flags, key)
        if qp.type == UD:
            peer = self.random.choice(self.any_side().pools["qp"])
            # Also to QP0 and QP1, which do not accept them.
            number = self.random.randrange(2) if self.chance(8) else peer.number
            work += struct.pack("IIII16x", self.pick(side, "ah").handle, number, COMMON_QKEY, 0)
        elif operation in ATOMICS:
            work += struct.pack("QQQII", address % (1 << 64), 0, self.random.getrandbits(64), key, 0)
        else:
            work += struct.pack("QII16x", address, key, 0)
        self.post(side, POST_SEND, qp, work, elements)
        return f"posted {operation}" if not flags & INLINE else "posted inline"

    def post_receive(self, side, qp):
        command, queue = (POST_SRQ_RECV, qp.srq) if qp.srq and not self.chance() else (POST_RECV, qp)
        for _ in range(self.random.randint(1, 5)):
            elements = self.elements(side, qp.pd, self.random.choice([100, 4096, 1 << 17]), 3)
            work = struct.pack("QII", self.random.getrandbits(64), len(elements), 0)
            self.post(side, command, queue, work, elements)
        return "posted to the srq" if command == POST_SRQ_RECV else "posted receive"

    def do_receive(self, side):
        return self.post_receive(side, self.pick(side, "qp"))

    def do_poll(self, side):
        cq = self.pick(side, "cq")
        # A queue that is never polled overruns.
        if cq.ignored:
            return "cq ignored"
        answer = side.call(POLL_CQ, struct.pack("II", cq.handle, 32), 8 + 32 * 48)
        for i in range(struct.unpack_from("I", answer)[0]):
            status, opcode = struct.unpack_from("II", answer, 8 + 48 * i + 8)
            # The opcode of an error has no meaning.
            if status == 0:
                self.succeeded["completed " + COMPLETIONS.get(opcode, str(opcode))] += 1
            else:
                self.failed[f"completed with status {status}"] += 1
        return "cq polled"

    def do_notify(self, side):
        side.tell(REQ_NOTIFY_CQ, struct.pack("II", self.pick(side, "cq").handle, self.random.randrange(2)))
        for name, file in (("event of a cq", side.hca.events), ("event of the hca", side.hca.asynchronous)):
            try:
                os.read(file, 4096)
                self.succeeded[name] += 1
            except BlockingIOError:
                pass
        return "cq armed"

    def do_group(self, side):
        qp = self.random.choice([qp for qp in side.pools["qp"] if qp.type == UD] or [self.pick(side, "qp")])
        group, lid = bytes([self.random.randrange(3)]), 0xc000 + self.random.randrange(2)
        body = b"\xff\x12\xc0\xde" + bytes(11) + group + struct.pack("IHH", qp.handle, lid, 0)
        command, name = self.random.choice([(ATTACH_MCAST, "group attached"), (DETACH_MCAST, "group detached")])
        side.tell(command, body)
        return name

    def do_publish(self, side):
        self.published = []
        for name in os.listdir(BOARD):
            if name.startswith("board."):
                self.published += [tuple(map(int, line.split())) for line in read(f"{BOARD}/{name}").splitlines()]
        pairs = zip(side.pools["qp"], side.pools["mr"])
        text = "".join(f"{side.hca.lid} {qp.number} {mr.address} {mr.length} {mr.key}\n" for qp, mr in pairs)
        publish(f"board.{os.getpid()}.{side.hca.lid}", text)
        self.report()
        return "published"

    def report(self):
        """Replaces the program's counts, so that one that is killed has some."""
        counts = [("succeeded", self.succeeded.copy()), ("failed", self.failed.copy())]
        publish(f"counts.{os.getpid()}", "".join(f"{n} {word} {name}\n" for word, count in counts
                                                 for name, n in sorted(count.items())))

    def reopen(self, name, side):
        """Opens an HCA again that was unplugged. Another thread may use the old file, which is not closed."""
        with self.lost:
            if self.sides[name] is side:
                self.sides[name] = self.opened(name)
                self.succeeded["hca opened again"] += 1

    def attempt(self, operation, do, *args):
        """Counts its result. Returns the errno of an error."""
        try:
            self.succeeded[do(*args)] += 1
        # An empty pool; an object that another thread has removed meanwhile.
        except (IndexError, ValueError):
            self.failed[operation + " no object"] += 1
        except OSError as error:
            self.failed[f"{operation} {errno.errorcode[error.errno]}"] += 1
            return error.errno
        return 0

    def one(self, operation):
        name = self.random.choice(self.names)
        side = self.sides[name]
        if self.attempt(operation, getattr(self, "do_" + operation), side) in (errno.EIO, errno.ENODEV):
            self.reopen(name, side)

    def run(self):
        while self.goes_on():
            for operation in self.random.choices(list(self.WEIGHTS), list(self.WEIGHTS.values()), k=50):
                self.one(operation)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("hcas", nargs=2)
    parser.add_argument("seconds", type=float)
    parser.add_argument("seed", type=int)
    args = parser.parse_args()
    chaos = Chaos(args.hcas, args.seed, time.monotonic() + args.seconds)

    def end(*_):
        chaos.ended = True
    signal.signal(signal.SIGTERM, end)
    threads = [threading.Thread(target=chaos.run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    chaos.report()


if __name__ == "__main__":
    main()
