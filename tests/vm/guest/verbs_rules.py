#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Makes requests of user-space verbs that are refused, and packets that a connection must not accept; by the kernel's
interface alone. Prints the outcome of each: the errno's name, "accepted", or what the case itself observes."""
import argparse
import array
import errno
import os
import select
import struct
import time

from verbs import CREATE_CQ, CREATE_QP, LOCAL_WRITE, PATH_MTU, PKEY_INDEX, POST_SEND, QKEY, RESET, RNR_TIMER, RTR, \
    RTS, INIT, SIGNALED, SQ_PSN, SQD, UD, Hca, Qp, Region

# IB_USER_VERBS_CMD_*
CREATE_AH, CREATE_SRQ, MODIFY_SRQ = 5, 32, 33
EXTENDED = 1 << 31
COMM_EST = 4


def pair():
    """Connected queue pairs of two HCAs."""
    mine, theirs = Qp(Hca("soft_ib0"), LOCAL_WRITE), Qp(Hca("soft_ib1"), LOCAL_WRITE)
    mine.connect(theirs)
    theirs.connect(mine)
    return mine, theirs


def counter(hca, name):
    with open(f"/sys/kernel/debug/soft_ib/{hca}/counters", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.split()[0] == name)


def await_count(hca, name, least):
    deadline = time.monotonic() + 20
    while counter(hca, name) < least:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{name} of {hca}: {counter(hca, name)} of {least}")
        time.sleep(0.01)


def status(hca, wait=20.0):
    """Status of the next completion, or "-"."""
    deadline = time.monotonic() + wait
    while not (done := [status for _, status, _ in hca.poll()]) and time.monotonic() < deadline:
        time.sleep(0.01)
    return done[0] if done else "-"


def extended(hca, number, body, response):
    """A command in the extended form, of which both parts are multiples of 8 bytes."""
    memory = array.array("B", bytes(response))
    address = memory.buffer_info()[0]
    head = struct.pack("IHHQHHI", number | EXTENDED, len(body) // 8, response // 8, address, 0, 0, 0)
    os.write(hca.file, head + body)


# Attributes


def modified_in_rts(mask):
    mine, _ = pair()
    mine.modify(None, mask)


def attribute(name, value, step):
    """One attribute of a connection, in the step that sets it."""
    near = Hca("soft_ib0")
    qp = Qp(near, LOCAL_WRITE)
    qp.initialise(**({name: value} if step == INIT else {}))
    qp.hear(qp, **({name: value} if step == RTR else {}))
    qp.speak(**({name: value} if step == RTS else {}))


def drained():
    mine, _ = pair()
    mine.modify(SQD, 0)


def datagrams(hca):
    qp = Qp(hca, 0, UD)
    qp.modify(INIT, PKEY_INDEX | 1 << 5 | QKEY)
    qp.modify(RTR, 0)
    qp.modify(RTS, SQ_PSN)
    return qp


def qkey():
    datagrams(Hca("soft_ib0")).modify(None, QKEY)


# Objects


def address_of_another_domain(other):
    near = Hca("soft_ib0")
    qp = datagrams(near)
    path = struct.pack("16xIBBBxHBBBBBx", 0, 0, 0, 0, near.lid, 0, 0, 0, 0, 1)
    body = struct.pack("QII", 0, near.new_domain() if other else near.domain, 0) + path
    handle, = struct.unpack("I", near.command(CREATE_AH, body, 4))
    work = struct.pack("QIIII", 1, 0, 2, SIGNALED, 0) + struct.pack("IIII16x", handle, qp.number, 0, 0)
    qp.post(POST_SEND, work, [])


def three_send_elements():
    Qp(Hca("soft_ib0"), 0)


def qp_flags(flags):
    hca = Hca("soft_ib0")
    body = struct.pack("QIIIIIIIIIBBBB", 0, hca.domain, hca.cq, hca.cq, 0, 1, 1, 1, 1, 0, 0, UD, 0, 0)
    body += struct.pack("IIII", 0, flags, 0, 0)
    extended(hca, CREATE_QP, body, 40)


def cq_flags(flags):
    extended(Hca("soft_ib0"), CREATE_CQ, struct.pack("QIIiIII", 0, 16, 0, -1, 0, flags, 0), 16)


def srq_limit(limit):
    hca = Hca("soft_ib0")
    handle, = struct.unpack_from("I", hca.command(CREATE_SRQ, struct.pack("QIIII", 0, hca.domain, 16, 1, 0), 16))
    hca.command(MODIFY_SRQ, struct.pack("IIII", handle, 2, 0, limit), 0)


# Packets


def huge_receive():
    """Two elements of 2 GiB, which a message of a few bytes does not exceed."""
    mine, theirs = pair()
    data, place = Region(mine.hca, b"12345678", LOCAL_WRITE), Region(theirs.hca, bytes(8), LOCAL_WRITE)
    theirs.receive(1, [(place.address, 1 << 31, place.key)] * 2)
    mine.send(1, "send", [(data.address, 8, data.key)])
    done = status(theirs.hca)
    return f"{done} {'same' if place.data == data.data else 'different'}"


def communication_established():
    """A queue pair that only receives, and refuses a message for want of a receive before it accepts it."""
    mine, theirs = Qp(Hca("soft_ib0"), LOCAL_WRITE), Qp(Hca("soft_ib1"), LOCAL_WRITE)
    mine.connect(theirs)
    theirs.initialise()
    theirs.hear(mine)
    before = counter(1, "rnr_nak")
    mine.send(1, "send", [])
    await_count(1, "rnr_nak", before + 5)
    for number in range(4):
        theirs.receive(number, [])
        if number:
            mine.send(1, "send", [])
        if (done := status(theirs.hca)) != "success":
            return done
    events = 0
    while select.select([theirs.hca.asynchronous], [], [], 0.2)[0]:
        _, kind, _ = struct.unpack("QII", os.read(theirs.hca.asynchronous, 16))
        events += kind == COMM_EST
    return str(events)


def other_source():
    """A message to a connection from another port than the peer's, to which there is no answer; then the peer's."""
    mine, theirs = pair()
    stranger = Qp(theirs.hca, LOCAL_WRITE)
    stranger.initialise()
    stranger.hear(theirs)
    stranger.speak(timeout=8, retries=1)
    theirs.receive(1, [])
    stranger.send(2, "send", [])
    results = [status(theirs.hca)]
    mine.send(1, "send", [])
    results.append(status(theirs.hca))
    return " ".join(results)


def late_nak():
    """A NAK for a packet that was sent before a RESET, which arrives after it."""
    mine, theirs = pair()
    before = counter(1, "rnr_nak")
    mine.send(1, "send", [])
    await_count(1, "rnr_nak", before + 1)
    mine.modify(RESET, 0)
    mine.initialise()
    mine.hear(theirs)
    # Another queue pair of the peer's port writes without permission, which is answered to the peer.
    other = Qp(mine.hca, LOCAL_WRITE)
    other.connect(theirs)
    other.send(2, "write", [])
    theirs.receive(3, [])
    flushed = status(theirs.hca)
    time.sleep(0.2)
    mine.speak()
    return flushed


CASES = {
    "psn-in-rts": lambda: modified_in_rts(SQ_PSN),
    "path-mtu-in-rts": lambda: modified_in_rts(PATH_MTU),
    "rnr-timer-in-rts": lambda: modified_in_rts(RNR_TIMER),
    "qkey-in-rts": qkey,
    "timeout-31": lambda: attribute("timeout", 31, RTS),
    "timeout-32": lambda: attribute("timeout", 32, RTS),
    "timeout-64": lambda: attribute("timeout", 64, RTS),
    "retries-8": lambda: attribute("retries", 8, RTS),
    "rnr-retries-8": lambda: attribute("rnr_retries", 8, RTS),
    "rnr-timer-31": lambda: attribute("rnr_timer", 31, RTR),
    "rnr-timer-32": lambda: attribute("rnr_timer", 32, RTR),
    "pkey-index-128": lambda: attribute("pkey_index", 128, INIT),
    "drained": drained,
    "address": lambda: address_of_another_domain(False),
    "address-of-another-domain": lambda: address_of_another_domain(True),
    "three-send-elements": three_send_elements,
    "qp-flags": lambda: qp_flags(0),
    "block-multicast-loopback": lambda: qp_flags(2),
    "cq-flags": lambda: cq_flags(0),
    "ignore-overrun": lambda: cq_flags(2),
    "srq-limit-16": lambda: srq_limit(16),
    "srq-limit-17": lambda: srq_limit(17),
    "huge-receive": huge_receive,
    "communication-established": communication_established,
    "other-source": other_source,
    "late-nak": late_nak,
}


def outcome(case):
    try:
        return CASES[case]() or "accepted"
    except OSError as error:
        return errno.errorcode[error.errno]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="+", choices=CASES)
    for case in parser.parse_args().cases:
        print(case, ":", outcome(case), flush=True)


main()
