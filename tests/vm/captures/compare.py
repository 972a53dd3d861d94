# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Compares the captures of two drivers field by field: only the differences in the table of
Documentation/wire-format.md are allowed."""
import re
from collections import defaultdict
from pathlib import Path

from captures.packets import FIRST_MULTICAST_LID, MULTICAST_QPN, kind, require

DOCUMENT = Path(__file__).parents[3] / "Documentation/wire-format.md"

# Fields that differ between runs: bytes that tshark decodes further too; random numbers and times; checksums.
VARYING = re.compile(
    r"erf.*|_ws\..*|.*\.(in)?variant\.crc"
    r"|infiniband\.(lrh|grh|bth|deth|aeth|mad|mad\.data|rmpp|payload|sa\.drdlid|smplid\.smpdata|reserved)"
    r"|infiniband\.(mad\.transactionid|bth\.psn|aeth\.msn|cm\.re[qp]\.startpsn|cm\.req|cm\.rep|cm\..*commid)"
    r"|ip\.(id|checksum.*|.*host)|ipv6\.(.*host|flow|.*eui64.*|.*_mac)|icmpv6\.(opt\.nonce|echo.*|mldr.*)"
    r"|icmp.*\.(ident.*|seq.*|checksum.*|resp.*|data.*)|data.*|udp\.(srcport|port|checksum.*|stream|time.*)")
# The number of groups in a listener report depends on timing.
REPORTS = re.compile(r"ICMPv6 143 .*|.*igmp.*")
REPORT_LENGTHS = re.compile(r"infiniband\.(lrh\.pktlen|grh\.paylen|bth\.padcnt)|ipv6\.plen|ip\.len|igmp.*")
# Packets that may come outside of the capture.
OF_THE_STACK = re.compile(r"(RC only )?ARP .*|(RC only )?ICMPv6 1(3[3-6]|43) .*|.*igmp.*")


def normal(field, text, packet):
    """The value, without queue pair numbers and the LIDs of groups."""
    if field in ("infiniband.bth.destqp", "infiniband.deth.srcqp"):
        return text if int(text, 0) in (0, 1, MULTICAST_QPN) else "QPN"
    if field.endswith("qpn") or field.endswith("remoteqpneecn"):
        return "QPN" if int(text, 0) else text
    if field.endswith(("arp.src.hw", "arp.dst.hw")) and any(c not in "0:" for c in text):
        return text[:3] + "QPN" + text[11:]
    if field.endswith("linkaddr"):
        return text[:9] + "QPN" + text[17:]
    if re.fullmatch(r"infiniband\.cm\.re[qp]\.private", field):
        return text[:3] + "QPN" + text[11:]
    if field == "infiniband.cm.req.serviceid":
        return text[:-6] + "QPN"
    if field in ("infiniband.lrh.dlid", "infiniband.mcmemberrecord.mlid"):
        value = int(text, 0)
        return "MLID" if FIRST_MULTICAST_LID <= value < 0xFFFF else text
    return text


def summary(packets):
    """kind: field: set of values."""
    result = defaultdict(lambda: defaultdict(set))
    for packet in packets:
        of = kind(packet)
        if of is None:
            continue
        for field, texts in packet.fields.items():
            if VARYING.fullmatch(field) or (REPORTS.fullmatch(of) and REPORT_LENGTHS.fullmatch(field)):
                continue
            result[of][field] |= {normal(field, text, packet) for text in texts}
    return result


def differences(stock, ours):
    """Rows (capture, kind, field, in-tree, here)."""
    for capture in sorted(stock.captures.keys() | ours.captures.keys()):
        left, right = (summary(scene.captures.get(capture, [])) for scene in (stock, ours))
        for of in sorted(left.keys() | right.keys()):
            if of not in left or of not in right:
                if not OF_THE_STACK.fullmatch(of):
                    yield capture, of, "-", *("sent" if of in side else "not sent" for side in (left, right))
                continue
            for field in sorted(left[of].keys() | right[of].keys()):
                values = [", ".join(sorted(side[of].get(field, {"none"}))) for side in (left, right)]
                if values[0] != values[1]:
                    yield capture, of, field, *values


def intended():
    """The table of the document: rows (capture, kind, field, in-tree, here): (why, section)."""
    rows = {}
    for line in DOCUMENT.read_text().splitlines():
        cells = [cell.strip().strip("`") for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and len(cells) == 7 and cells[0] not in ("capture", "---"):
            rows[tuple(cells[:5])] = tuple(cells[5:])
    return rows


def compare(stock, ours):
    listed = intended()
    compared = sum(len(fields) for packets in stock.captures.values() for fields in summary(packets).values())
    unlisted = 0
    for row in differences(stock, ours):
        why = listed.pop(row, None)
        unlisted += why is None
        print("#", "; ".join(row[:3]) + f": {row[3]} / {row[4]}:", ", ".join(why) if why else "NOT EXPECTED")
    for row in listed:
        print("#", "; ".join(row), "is listed, and does not differ")
    print(f"# {compared} fields of {sum(map(len, stock.captures.values()))} packets in tree compared with "
          f"{sum(map(len, ours.captures.values()))} here")
    require(compared >= 1000, f"{compared} fields compared")
    require(not unlisted and not listed, f"{unlisted} unlisted differences, {len(listed)} listed that are none")
