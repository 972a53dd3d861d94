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

from verbs import ATTACH_MCAST, CREATE_CQ, CREATE_QP, ERROR, INIT, LOCAL_WRITE, PATH_MTU, PKEY_INDEX, POLL_CQ, POST_SEND, \
    QKEY, REMOTE_READ, RESET, RNR_TIMER, RTR, RTS, SIGNALED, SQ_PSN, SQD, UC, UD, Hca, Qp, Region

# IB_USER_VERBS_CMD_*
CREATE_AH, CREATE_SRQ, MODIFY_SRQ = 5, 32, 33
EXTENDED = 1 << 31
COMM_EST = 4
# IB_QP_*, and states of migration
ALT_PATH, PATH_MIG_STATE = 1 << 14, 1 << 18
MIGRATED, REARM = 0, 1
# A group of no subnet manager, with the LID of the broadcast group.
GROUP, GROUP_LID = bytes([0xff, 0x12] + 13 * [0] + [0x99]), 0xc000


def pair():
    """Connected queue pairs of two HCAs."""
    mine, theirs = Qp(Hca("soft_ib0"), LOCAL_WRITE), Qp(Hca("soft_ib1"), LOCAL_WRITE)
    mine.connect(theirs)
    theirs.connect(mine)
    return mine, theirs


def counter(hca, name):
    with open(f"/sys/kernel/debug/soft_ib/{hca}/counters", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.split()[0] == name)


def knob(hca, name, value):
    with open(f"/sys/kernel/debug/soft_ib/{hca}/{name}", "w", encoding="ascii") as file:
        file.write(str(value))


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


def modified_in_rts(mask, **attributes):
    mine, _ = pair()
    mine.modify(None, mask, **attributes)


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


def address(qp, lid, group=None, domain=None):
    """The handle of an address handle."""
    path = struct.pack("16sIBBBxHBBBBBx", group or bytes(16), 0, 0, 0, 0, lid, 0, 0, 0, bool(group), 1)
    body = struct.pack("QII", 0, domain or qp.hca.domain, 0) + path
    return struct.unpack("I", qp.hca.command(CREATE_AH, body, 4))[0]


def send_datagram(qp, number, to, qpn=0xffffff):
    work = struct.pack("QIIII", number, 0, 2, SIGNALED, 0) + struct.pack("IIII16x", to, qpn, 0, 0)
    qp.post(POST_SEND, work, [])


def qkey():
    datagrams(Hca("soft_ib0")).modify(None, QKEY)


# Objects


def address_of_another_domain(other):
    near = Hca("soft_ib0")
    qp = datagrams(near)
    send_datagram(qp, 1, address(qp, near.lid, domain=near.new_domain() if other else None), qp.number)


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


def refused_behind_a_read():
    """A message that is longer than its receive, behind a read whose response waits for a link without credits: the
    packets arrive again and again."""
    mine, theirs = Qp(Hca("soft_ib0"), LOCAL_WRITE), Qp(Hca("soft_ib1"), LOCAL_WRITE | REMOTE_READ)
    theirs.connect(mine)
    mine.initialise()
    mine.hear(theirs)
    mine.speak(timeout=12)
    data, place = Region(mine.hca, bytes(4096), LOCAL_WRITE), Region(theirs.hca, bytes(3000), LOCAL_WRITE)
    for number in (1, 2):
        theirs.receive(number, [(place.address, 3000, place.key)])
    before = counter(0, "rc_sent_again")
    knob(1, "hold_sends", 1)
    try:
        mine.send(1, "read", [])
        mine.send(2, "send", [(data.address, 4096, data.key)])
        await_count(0, "rc_sent_again", before + 6)
    finally:
        knob(1, "hold_sends", 0)
    return all_done(theirs.hca, 2)


def all_done(hca, least):
    """Work requests and statuses of what completes: of at least that many, and until nothing does for half a second."""
    done, deadline, end = [], 0.0, time.monotonic() + 20
    while time.monotonic() < (deadline if len(done) >= least else end):
        for work, how, _ in hca.poll():
            done.append(f"{work} {how}")
            deadline = time.monotonic() + 0.5
    return ", ".join(done)


def flushed_in_order():
    """A queue pair that fails with full queues, each of which is flushed in several bursts of the HCA's."""
    stranger, _ = pair()
    failing = Qp(Hca("soft_ib1", 256), LOCAL_WRITE, size=100)
    # Which does not answer: its peer is another one.
    failing.connect(stranger)
    for number in range(100):
        failing.receive(1000 + number, [])
        failing.send(number, "send", [])
    failing.modify(ERROR, 0)
    done = all_done(failing.hca, 200).split(", ")
    receives, sends = ([d for d in done if (int(d.split()[0]) >= 1000) == of] for of in (True, False))
    right = [f"{1000 + number} flushed" for number in range(100)], [f"{number} flushed" for number in range(100)]
    return "same" if (receives, sends) == right else f"{receives} {sends}"


def numbers_of_completions():
    """Creates 1100 queue pairs one after another, and compares each one's number with that in its completion."""
    hca, wrong, deadline = Hca("soft_ib0"), [], time.monotonic() + 60
    for _ in range(1100):
        failing = Qp(hca, LOCAL_WRITE, size=1)
        failing.initialise()
        failing.modify(ERROR, 0)
        failing.receive(1, [])
        count = 0
        while not count and time.monotonic() < deadline:
            answer = hca.command(POLL_CQ, struct.pack("II", hca.cq, 1), 8 + 48)
            count, = struct.unpack_from("I", answer)
        if struct.unpack_from("I", answer, 8 + 28)[0] != failing.number:
            wrong.append(failing.number)
        failing.destroy()
    return f"wrong: {wrong}" if wrong else "right"


def completions_of_a_destroyed_qp():
    """Completions that are left when one of two queue pairs of a queue is destroyed."""
    hca = Hca("soft_ib0")
    first, second = (Qp(hca, LOCAL_WRITE) for _ in range(2))
    for qp in (first, second):
        qp.initialise()
        qp.modify(ERROR, 0)
    # One after the other, so that the completions of both alternate.
    for number, qp in enumerate([second, first, second, first, first, second]):
        qp.receive(number, [])
        time.sleep(0.05)
    first.destroy()
    return all_done(hca, 3)


def group_member():
    """A datagram queue pair with Q_Key 0 that is a member of the group, and its memory for a datagram's GRH."""
    member = datagrams(Hca("soft_ib1"))
    member.hca.command(ATTACH_MCAST, GROUP + struct.pack("IHH", member.handle, GROUP_LID, 0), 0)
    return member, Region(member.hca, bytes(40), LOCAL_WRITE)


def connection_to_a_group():
    """A message of an unreliable connection whose path is that of a group; then a datagram to the group."""
    (member, place), other = group_member(), datagrams(Hca("soft_ib0"))
    member.receive(1, [(place.address, 40, place.key)])
    sender = Qp(Hca("soft_ib0"), LOCAL_WRITE, UC)
    sender.initialise()
    sender.modify(RTR, 1 << 7 | PATH_MTU | 1 << 12 | 1 << 20, group=(GROUP, GROUP_LID))
    sender.modify(RTS, SQ_PSN)
    sender.send(1, "send", [])
    results = [status(sender.hca), status(member.hca, 0.3)]
    send_datagram(other, 2, address(other, GROUP_LID, GROUP))
    return " ".join([*results, status(member.hca)])


def group_without_grh():
    """Datagrams to the group from all slots of a queue, then from the same slots to its LID without a GRH."""
    (member, place), sender = group_member(), datagrams(Hca("soft_ib0"))
    results = []
    for group in (GROUP, None):
        member.receive(1, [(place.address, 40, place.key)])
        to = address(sender, GROUP_LID, group)
        for number in range(32):
            send_datagram(sender, number, to)
            status(sender.hca)
        results.append(status(member.hca, 0.5))
    return " ".join(results)


CASES = {
    "psn-in-rts": lambda: modified_in_rts(SQ_PSN),
    "path-mtu-in-rts": lambda: modified_in_rts(PATH_MTU),
    "rnr-timer-in-rts": lambda: modified_in_rts(RNR_TIMER),
    "migrated": lambda: modified_in_rts(PATH_MIG_STATE, migration=MIGRATED),
    "rearm": lambda: modified_in_rts(PATH_MIG_STATE, migration=REARM),
    "alternate-path": lambda: modified_in_rts(ALT_PATH),
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
    "refused-behind-a-read": refused_behind_a_read,
    "flushed-in-order": flushed_in_order,
    "numbers-of-completions": numbers_of_completions,
    "completions-of-a-destroyed-qp": completions_of_a_destroyed_qp,
    "connection-to-a-group": connection_to_a_group,
    "group-without-grh": group_without_grh,
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
