#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""compare_fields.py STOCK OURS: compares two directories with the output of ip and ethtool for two drivers, field by
field.

Prints every difference, with its reason if it is listed below; fails if one is not.
"""
import re
import sys
from pathlib import Path

# File and field, reason of the difference, and optionally the values "stock / ours": all but the reason are regular
# expressions. Documentation/conformance.md says more.
QPN = "..:..:.."
EXPECTED = [
    (r"(link|statistics)\..*", r"0\.ifindex", "another interface"),
    (r"(link|statistics)\..*", r"0\.address", "another queue pair", fr"(..):{QPN}(:.*) / \1:{QPN}\2"),
    (r"(link|statistics)\..*", r"0\.num_[rt]x_queues", "connections use up to eight queues of each direction", r"\d+ / 8"),
    (r"link\.ib0\.8002", r"0\.tso_max_size", "packets of connected mode may be longer than 64 KiB", "65536 / 524280"),
    (r"(link|statistics)\..*", r"0\.qdisc", "what has several transmit queues has a qdisc for each", r"\w+ / mq"),
    (r"statistics\..*", r"0\.stats64\..*", "traffic differs from run to run"),
    (r"features\..*", r"rx-(gro-hw|checksumming)", "the driver merges segments, and verifies those", "off.* / on"),
    (r"driver\..*", r"supports-priv-flags", "there is one: icrc-as-checksum"),
    (r"coalesce\..*", r"Adaptive RX", "moderation can follow the traffic"),
    (r"names\..*", r".*", "more statistics, behind the eight", "None / present"),
    (r"settings\.ib0\.8002", r"Speed|Duplex|Auto-negotiation|MDI-X|PHYAD|Port", "what was never up has no carrier, and so no speed",
     r"40000Mb/s / Unknown!|Full / Unknown! \(255\)|on / off|None / Unknown|255 / 0|Other / Twisted Pair"),
    (r"sysfs\.blue", r"mode|pkey|umcast", "children of rtnetlink have the files too"),
    (r"(link|statistics|sysfs)\..*", r"0\.txqlen|tx_queue_len", "two send rings; Linux 7 has what every netdev has", "1000 / 256"),
]


def fields(path):
    """Lines of "name: value"; a missing file has none."""
    if not path.exists():
        return {}
    pairs = (re.split(r":\s*", line.strip(), maxsplit=1) for line in path.read_text().splitlines() if ":" in line)
    return {pair[0]: pair[1] for pair in pairs}


def reason(file, field, values):
    for file_pattern, field_pattern, why, *how in EXPECTED:
        if (re.fullmatch(file_pattern, file) and re.fullmatch(field_pattern, field)
                and re.fullmatch(how[0] if how else ".*", values)):
            return why
    return None


def main():
    stock, ours = Path(sys.argv[1]), Path(sys.argv[2])
    compared = unexpected = 0
    for file in sorted({path.name for path in [*stock.iterdir(), *ours.iterdir()]}):
        left, right = fields(stock / file), fields(ours / file)
        for field in sorted(left.keys() | right.keys()):
            compared += 1
            if left.get(field) == right.get(field):
                continue
            values = f"{left.get(field)} / {right.get(field)}"
            why = reason(file, field, values)
            unexpected += why is None
            print(f"{file} {field}: {values}: {why or 'NOT EXPECTED'}")
    print(f"{compared} fields, {unexpected} unexpected differences")
    return 1 if unexpected or compared < 600 else 0


if __name__ == "__main__":
    sys.exit(main())
