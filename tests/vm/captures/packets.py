# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Captures of the fabric's wire (ERF files), as tshark decodes them: packets, their fields, and the kinds by which two
drivers' packets are compared."""
import json
import re
import struct
import subprocess
from collections import defaultdict

FIRST_MULTICAST_LID = 0xC000
MULTICAST_QPN = 0xFFFFFF
UD_SEND, RC_FIRST, RC_MIDDLE, RC_LAST, RC_ONLY, RC_ACK = 100, 0, 1, 2, 4, 17

METHODS = {0x01: "Get", 0x02: "Set", 0x12: "GetTable", 0x15: "Delete", 0x81: "GetResp", 0x95: "DeleteResp"}
ATTRIBUTES = {0x35: "PathRecord", 0x38: "MCMemberRecord"}
CM_MESSAGES = {0x10: "REQ", 0x11: "MRA", 0x12: "REJ", 0x13: "REP", 0x14: "RTU", 0x15: "DREQ", 0x16: "DREP"}


class Wrong(Exception):
    """A failed check."""


def require(condition, *what):
    if not condition:
        raise Wrong(" ".join(str(word) for word in what))


class Packet:
    """A decoded packet: fields by tshark's names (without the prefix "infiniband."), each a list of texts."""

    def __init__(self, number, raw, layers):
        self.number, self.raw = number, raw
        self.fields, self.marks = defaultdict(list), set()
        for name, layer in layers.items():
            if name != "frame":
                self._take(name, layer)

    def _take(self, name, value):
        if name.startswith("_ws."):
            self.marks.add(name)
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, dict):
                for inner, part in each.items():
                    self._take(inner, part)
            else:
                self.fields[name].append(each)

    def texts(self, name):
        return self.fields.get("infiniband." + name) or self.fields.get(name) or []

    def text(self, name):
        return (self.texts(name) or [None])[0]

    def number_of(self, name):
        text = self.text(name)
        require(text is not None, f"packet {self.number} has no {name}")
        return int(text, 0 if text.startswith("0x") else 10)

    def require(self, **expected):
        """Fields by name, with __ for a dot: number or text."""
        for name, value in expected.items():
            name = name.replace("__", ".")
            found = self.number_of(name) if isinstance(value, int) else self.text(name)
            require(found == value, f"packet {self.number}: {name} is {found}, not {value}")

    @property
    def multicast(self):
        return FIRST_MULTICAST_LID <= self.number_of("lrh.dlid") < 0xFFFF

    @property
    def payload(self):
        """Payload behind the transport headers, without pad."""
        header = 8 + (40 if self.raw[1] & 3 == 3 else 0)
        opcode, pad = self.raw[header], self.raw[header + 1] >> 4 & 3
        return self.raw[header + 12 + {UD_SEND: 8, RC_ACK: 4}.get(opcode, 0):len(self.raw) - 6 - pad]


def records(data):
    """Packets of an ERF file."""
    while data:
        length, = struct.unpack_from("!H", data, 10)
        yield data[16:length]
        data = data[length:]


def decode(path):
    text = subprocess.run(["tshark", "-r", path, "-T", "json", "--no-duplicate-keys"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True).stdout
    layers = [packet["_source"]["layers"] for packet in json.loads(text or b"[]")]
    raw = list(records(path.read_bytes()))
    require(len(layers) == len(raw), f"{path.name}: tshark sees {len(layers)} packets of {len(raw)}")
    return [Packet(number, raw, layer) for number, (raw, layer) in enumerate(zip(raw, layers), 1)]


def kind(packet):
    """Kind of the packet, by which two drivers' packets are compared; None: not a host's."""
    if packet.text("mad.mgmtclass"):
        manager, method = packet.number_of("mad.mgmtclass"), packet.number_of("mad.method")
        attribute = packet.number_of("mad.attributeid")
        if manager == 0x07:
            return "CM " + CM_MESSAGES.get(attribute, hex(attribute))
        # Table queries are the suite's own.
        if manager != 0x03 or attribute not in ATTRIBUTES or METHODS.get(method, "GetTable") == "GetTable":
            return None
        group = packet.text("mcmemberrecord.mgid")
        return f"SA {METHODS[method]} {ATTRIBUTES[attribute]}" + (f" {group}" if group else "")
    opcode, pkey = packet.number_of("bth.opcode"), packet.number_of("bth.p_key")
    if opcode in (RC_MIDDLE, RC_LAST, RC_ACK):
        return {RC_MIDDLE: "RC middle", RC_LAST: "RC last", RC_ACK: "RC acknowledge"}[opcode]
    transport = {UD_SEND: "", RC_FIRST: "RC first ", RC_ONLY: "RC only "}.get(opcode, f"opcode {opcode} ")
    return transport + inside(packet) + ("" if pkey == 0xFFFF else f" in {pkey:#x}")


def inside(packet):
    if packet.text("arp.opcode"):
        way = "" if packet.multicast else " unicast"
        return f"ARP {packet.text('arp.opcode')} for {packet.text('arp.dst.proto_ipv4')}{way}"
    if packet.text("icmpv6.type"):
        # Content and length of discovery packets depend on their cause.
        length = f" of {packet.text('ipv6.plen')} bytes" if packet.text("icmpv6.type") != "143" else ""
        return f"ICMPv6 {packet.text('icmpv6.type')} {packet.text('ipv6.src')} to {packet.text('ipv6.dst')}{length}"
    if packet.text("icmp.type"):
        return f"ICMP {packet.text('icmp.type')} of {packet.text('ip.len')} bytes"
    if packet.text("udp.dstport"):
        return f"UDP to {packet.text('ip.dst') or packet.text('ipv6.dst')}"
    return " ".join(sorted({name.split(".")[0] for name in packet.fields} - {"erf", "infiniband"}))


class Scene:
    """Captures of one driver, by name."""

    def __init__(self, folder):
        self.captures = {path.stem: decode(path) for path in sorted(folder.glob("*.erf"))}

    def __iter__(self):
        return (packet for packets in self.captures.values() for packet in packets)

    def find(self, capture, pattern, least=1):
        found = [packet for packet in self.captures[capture] if re.fullmatch(pattern, kind(packet) or "")]
        require(len(found) >= least, f"{capture} has {len(found)} of '{pattern}', not {least}")
        return found
