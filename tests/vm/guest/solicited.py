#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Requests events for solicited completions only, and prints which completions of receives raised one: those of a send
without and with the solicited event bit, and those that are flushed."""
import os
import select
import time

from verbs import ERROR, LOCAL_WRITE, SIGNALED, SOLICITED, Hca, Qp


def outcome(hca):
    """The next completion, which is awaited, and whether it raised an event."""
    deadline = time.monotonic() + 20
    while not (done := list(hca.poll())) and time.monotonic() < deadline:
        time.sleep(0.01)
    # The event comes right after its entry.
    raised = bool(select.select([hca.events], [], [], 1)[0])
    if raised:
        os.read(hca.events, 64)
    return f"{done[0][1]} {'event' if raised else 'none'}"


def main():
    near, far = Hca("soft_ib0"), Hca("soft_ib1")
    mine, theirs = Qp(near, LOCAL_WRITE), Qp(far, LOCAL_WRITE)
    mine.connect(theirs)
    theirs.connect(mine)
    for number in range(3):
        theirs.receive(number, [])
    far.request_event(solicited=True)
    mine.send(1, "send", [], flags=SIGNALED)
    print("unsolicited:", outcome(far))
    mine.send(2, "send", [], flags=SIGNALED | SOLICITED)
    print("solicited:", outcome(far))
    far.request_event(solicited=True)
    theirs.modify(ERROR, 0)
    print("error:", outcome(far))


main()
