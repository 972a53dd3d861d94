# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The checks of a Scene, by the RFCs and the InfiniBand specification: functions check_NAME(scene), which raise
packets.Wrong."""
import re
import struct
import zlib

from captures.packets import MULTICAST_QPN, RC_FIRST, RC_LAST, RC_MIDDLE, RC_ONLY, UD_SEND, kind, require

# Hosts of suites/wire.sh: two hosts, and a subnet administrator elsewhere.
HOSTS = {"10.0.0.2": "fe80::2:c903:0:110", "10.0.0.3": "fe80::2:c903:0:210"}
BROADCAST = "ff12:401b:ffff::ffff:ffff"
CHILD_PKEY = 0x8001
Q_KEY = 0x0B1B
LINK_MTU = 2048
CONNECTED_MTU = 65520
ENCAPSULATION = 4

# Bits of SA component masks (IBA 15.2.5.17, 15.2.5.16).
MEMBER = {name: 1 << bit for bit, name in enumerate(
    ["mgid", "portgid", "q_key", "mlid", "mtuselector", "mtu", "tclass", "p_key", "rateselector", "rate",
     "packetlifetimeselector", "packetlifetime", "sl", "flowlabel", "hoplimit", "scope", "joinstate", "proxyjoin"])}
PATH = {"dgid": 1 << 2, "sgid": 1 << 3, "dlid": 1 << 4, "slid": 1 << 5, "flowlabel": 1 << 8, "hoplimit": 1 << 9,
        "tclass": 1 << 10, "reversible": 1 << 11, "numbpath": 1 << 12, "p_key": 1 << 13}


# The link and transport layers


def check_every_packet_is_whole(scene):
    """LRH, GRH, BTH (IBA 7.7, 8.3, 9.2): lengths that agree, reserved bits that are zero, management on its lane."""
    for name, packets in scene.captures.items():
        require(len(packets) >= 10, f"{name} has {len(packets)} packets")
        for packet in packets:
            require("_ws.malformed" not in packet.marks, f"{name} {packet.number}: tshark finds it malformed")
            # tshark does not reassemble messages, and misses the rest of the IP packet; nor those of tables.
            if kind(packet) and packet.number_of("bth.opcode") != RC_FIRST:
                require(not packet.marks, f"{name} {packet.number}: tshark says {packet.texts('_ws.expert.message')}")
            packet.require(erf__lctr=0, lrh__lver=0, lrh__reserved2=0, lrh__reserved5=0, bth__tver=0, bth__reserved7=0)
            packet.require(lrh__pktlen=(len(packet.raw) - 2) // 4, lrh__lnh=3 if packet.text("grh.sgid") else 2)
            packet.require(lrh__vl=15 if packet.number_of("bth.destqp") == 0 else 0)
            if packet.text("grh.sgid"):
                packet.require(grh__ipver=6, grh__nxthdr=0x1B, grh__paylen=len(packet.raw) - 8 - 40 - 2)


def check_both_crcs_are_correct(scene):
    """IBA 7.8, computed by code independent of the fabric's."""
    for packet in scene:
        masked = bytearray(packet.raw[:-6])
        masked[0] |= 0xF0
        bth = 8
        if packet.raw[1] & 3 == 3:
            masked[:8] = b"\xff" * 8
            masked[8] |= 0x0F
            masked[9:12] = b"\xff" * 3
            masked[15] = 0xFF
            bth += 40
        masked[bth + 4] = 0xFF
        icrc = zlib.crc32(masked).to_bytes(4, "little")
        require(packet.raw[-6:-2] == icrc, f"packet {packet.number}: ICRC {packet.raw[-6:-2].hex()}, not {icrc.hex()}")
        rest = 0xFFFF
        for byte in packet.raw[:-2]:
            rest ^= byte
            for _ in range(8):
                rest = rest >> 1 ^ (0xD008 if rest & 1 else 0)
        vcrc = (rest ^ 0xFFFF).to_bytes(2, "little")
        require(packet.raw[-2:] == vcrc, f"packet {packet.number}: VCRC {packet.raw[-2:].hex()}, not {vcrc.hex()}")


def check_opensm_and_the_switch_communicate_on_qp0(scene):
    """SMPs (IBA 14.2): OpenSM sets the switch's multicast table, and gets responses."""
    asked = [p for p in scene if p.text("mad.mgmtclass") in ("0x01", "0x81") and p.number_of("mad.attributeid") == 0x1B]
    require(len(asked) >= 4, f"{len(asked)} SMPs about multicast forwarding tables")
    for packet in asked:
        packet.require(bth__destqp=0, deth__srcqp=0, lrh__sl=0, bth__opcode=UD_SEND, lrh__vl=15)
        # Queried by OpenSM's HCA, answered by the switch.
        require((packet.number_of("mad.method") == 0x81) == (packet.number_of("erf.flags.cap") == 1),
                f"packet {packet.number}: not by whom it should be")


# Groups


def members(scene, capture, method, port=None):
    return [packet for packet in scene.find(capture, f"SA {method} MCMemberRecord .*")
            if port is None or packet.text("mcmemberrecord.portgid") == port]


def check_broadcast_group_is_joined_first(scene):
    """RFC 4391 5: by MGID, port GID, P_Key and join state alone; the response has the other parameters."""
    mask = MEMBER["mgid"] | MEMBER["portgid"] | MEMBER["p_key"] | MEMBER["joinstate"]
    for port in HOSTS.values():
        first = members(scene, "up", "Set", port)[0]
        first.require(mcmemberrecord__mgid=BROADCAST, mcmemberrecord__joinstate=1, mcmemberrecord__p_key=0xFFFF,
                      mcmemberrecord__scope=0, sa__componentmask=mask, bth__destqp=1, deth__srcqp=1,
                      deth__q_key=0x80010000, bth__p_key=0xFFFF, sa__smkey=0)
        for name in MEMBER.keys() - {"mgid", "portgid", "p_key", "joinstate"}:
            first.require(**{"mcmemberrecord__" + name: 0})


def check_other_groups_are_joined_with_the_broadcast_groups_parameters(scene):
    """RFC 4391 10: Q_Key, MTU, TClass, rate, SL, flow label, hop limit as the broadcast group has them."""
    copied = {"q_key", "mtu", "tclass", "rate", "sl", "flowlabel", "hoplimit"}
    said = {"mgid", "portgid", "p_key", "joinstate", "mtuselector", "rateselector"} | copied
    mask = sum(MEMBER[name] for name in said)
    terms = [p for p in members(scene, "up", "GetResp") if p.text("mcmemberrecord.mgid") == BROADCAST][0]
    terms.require(mcmemberrecord__q_key=Q_KEY, mcmemberrecord__mtu=4)
    others = [p for p in members(scene, "up", "Set") + members(scene, "datagram", "Set")
              if p.text("mcmemberrecord.mgid") != BROADCAST]
    for packet in others:
        # "Exactly" is selector 2.
        packet.require(sa__componentmask=mask, mcmemberrecord__p_key=0xFFFF, mcmemberrecord__mtuselector=2,
                       mcmemberrecord__rateselector=2)
        for name in copied:
            packet.require(**{"mcmemberrecord__" + name: terms.number_of("mcmemberrecord." + name)})


def check_ip_groups_have_their_mgids(scene):
    """RFC 4391 4: signature, P_Key, and the low 28 or 80 bits of the group."""
    for port in HOSTS.values():
        joined = {p.text("mcmemberrecord.mgid") for p in members(scene, "up", "Set", port)}
        solicited = "ff12:601b:ffff::1:ff00:" + port.rsplit(":", 1)[1]
        for group in (BROADCAST, "ff12:401b:ffff::1", "ff12:601b:ffff::1", solicited):
            require(group in joined, f"{port} did not join {group}, but {sorted(joined)}")


def check_senders_to_a_group_join_send_only(scene):
    """Send-only full members (join state 8, IBA 15.2.5.17.2); receivers are full members (1)."""
    for packet in members(scene, "up", "Set"):
        group = packet.text("mcmemberrecord.mgid")
        packet.require(mcmemberrecord__joinstate=8 if group == "ff12:601b:ffff::16" else 1)
    for packet in members(scene, "datagram", "Set", HOSTS["10.0.0.2"]):
        packet.require(mcmemberrecord__joinstate=8)


def check_multicast_is_addressed_to_the_group(scene):
    """RFC 4391 10: to the MLID of the SA's response, QPN 0xffffff, with port GID and MGID in the GRH."""
    for address, group in (("239.1.2.3", "ff12:401b:ffff::f01:203"), ("ff15::77", "ff12:601b:ffff::77")):
        answers = [p for p in members(scene, "datagram", "GetResp") if p.text("mcmemberrecord.mgid") == group]
        require(answers, f"{group} was not joined")
        for packet in scene.find("datagram", "UDP to " + re.escape(address)):
            packet.require(lrh__dlid=answers[0].number_of("mcmemberrecord.mlid"), bth__destqp=MULTICAST_QPN,
                           deth__q_key=Q_KEY, grh__sgid=HOSTS["10.0.0.2"], grh__dgid=group,
                           grh__hoplmt=answers[0].number_of("mcmemberrecord.hoplimit"))
            require(packet.number > answers[0].number, f"packet {packet.number} went before the group was joined")


def check_every_group_is_left(scene):
    """By MGID, port GID and join state (IBA 15.2.5.17.3)."""
    mask = MEMBER["mgid"] | MEMBER["portgid"] | MEMBER["joinstate"]
    for port in HOSTS.values():
        left = {}
        for packet in members(scene, "down", "Delete", port):
            packet.require(sa__componentmask=mask)
            left[packet.text("mcmemberrecord.mgid")] = packet.number_of("mcmemberrecord.joinstate")
        for packet in members(scene, "up", "Set", port):
            group, state = packet.text("mcmemberrecord.mgid"), packet.number_of("mcmemberrecord.joinstate")
            require(left.get(group) == state, f"{port} joined {group} as {state} and left it as {left.get(group)}")


# Addresses and paths


def hardware_address(packet, name):
    """Flags, QPN, GID."""
    octets = bytes.fromhex((packet.text(name) or "").replace(":", ""))
    require(len(octets) in (20, 22), f"packet {packet.number}: {name} has {len(octets)} bytes")
    if len(octets) == 22:
        require(octets[:2] == b"\0\0", f"packet {packet.number}: {name} is not padded in front")
        octets = octets[2:]
    gid = ":".join(f"{octets[at] << 8 | octets[at + 1]:x}" for at in range(4, 20, 2))
    return octets[0], int.from_bytes(octets[1:4], "big"), gid.replace(":0:0:0:", "::")


def check_arp_has_20_byte_addresses(scene):
    """RFC 4391 9.1.1, 9.2: type 32; flags, the source QPN, and the GID of the port; the flag for RC is
    RFC 4755's (3.1)."""
    for capture in ("datagram", "connected"):
        request = scene.find(capture, "ARP 1 for 10.0.0.3")[0]
        reply = scene.find(capture, "ARP 2 for 10.0.0.2 unicast")[0]
        for packet, opcode in ((request, 1), (reply, 2)):
            packet.require(arp__hw__type=32, arp__proto__type=0x0800, arp__hw__size=20, arp__proto__size=4,
                           arp__opcode=opcode, rwh__etype=0x0806)
            flags, qpn, gid = hardware_address(packet, "arp.src.hw")
            require(flags == 0x80, f"packet {packet.number}: flags {flags:#x}")
            packet.require(deth__srcqp=qpn)
            require(gid == HOSTS[packet.text("arp.src.proto_ipv4")], f"packet {packet.number}: GID {gid}")
        request.require(arp__dst__hw=":".join(["00"] * 20), grh__dgid=BROADCAST, grh__sgid=HOSTS["10.0.0.2"],
                        bth__destqp=MULTICAST_QPN)
        require(reply.text("arp.dst.hw") == request.text("arp.src.hw"), "the reply is not to the one that asked")
        reply.require(bth__destqp=hardware_address(request, "arp.src.hw")[1], lrh__lnh=2)


def check_neighbour_discovery_has_link_layer_options(scene):
    """RFC 4391 9.3: three times 8 bytes, of which two are padding."""
    asked = scene.find("datagram", "ICMPv6 135 fd00::2 to ff02::1:ff00:3 .*")[0]
    told = scene.find("datagram", "ICMPv6 136 fd00::3 to fd00::2 .*")[0]
    for packet, option, name in ((asked, 1, "src"), (told, 2, "target")):
        packet.require(icmpv6__opt__type=option, icmpv6__opt__length=3)
        flags, qpn, gid = hardware_address(packet, f"icmpv6.opt.{name}_linkaddr")
        packet.require(deth__srcqp=qpn)
        require(flags == 0x80 and gid in HOSTS.values(), f"packet {packet.number}: {flags:#x} {gid}")
    asked.require(grh__dgid="ff12:601b:ffff::1:ff00:3")
    told.require(bth__destqp=hardware_address(asked, "icmpv6.opt.src_linkaddr")[1])


def check_encapsulation_is_type_and_zero(scene):
    """RFC 4391 6, RFC 4755 4: in front of datagrams and messages."""
    count = 0
    for packet in scene:
        begins = packet.number_of("bth.opcode") in (UD_SEND, RC_FIRST, RC_ONLY)
        if not begins or packet.number_of("bth.destqp") < 2:
            continue
        count += 1
        ethertype, reserved = struct.unpack_from("!HH", packet.payload)
        version = packet.payload[ENCAPSULATION] >> 4
        expected = {0x0800: version == 4, 0x86DD: version == 6, 0x0806: packet.text("arp.opcode") is not None}
        require(reserved == 0 and expected.get(ethertype), f"packet {packet.number}: {packet.payload[:5].hex()}")
    require(count >= 20, f"{count} packets")


def check_path_is_queried_and_used(scene):
    """One path, by GIDs, TClass and P_Key (IBA 15.2.5.16); later packets use the response's LIDs."""
    mask = sum(PATH[name] for name in ("dgid", "sgid", "tclass", "numbpath", "p_key"))
    for capture in ("datagram", "child", "connected"):
        pkey = CHILD_PKEY if capture == "child" else 0xFFFF
        for packet in scene.find(capture, "SA Get PathRecord", 2):
            packet.require(sa__componentmask=mask, pathrecord__numbpath=1, pathrecord__p_key=pkey, pathrecord__tclass=0,
                           bth__destqp=1)
            ends = {packet.text("pathrecord.dgid"), packet.text("pathrecord.sgid")}
            require(ends == set(HOSTS.values()), f"packet {packet.number}: {ends}")
        lids = {(p.number_of("pathrecord.slid"), p.number_of("pathrecord.dlid"))
                for p in scene.find(capture, "SA GetResp PathRecord", 2)}
        for packet in scene.find(capture, "(RC only )?ICMP [08] .*", 2):
            way = packet.number_of("lrh.slid"), packet.number_of("lrh.dlid")
            require(way in lids, f"packet {packet.number} goes {way}, not {lids}")


def check_datagrams_fill_the_link(scene):
    """RFC 4391 7: a link MTU of 2048 carries 2044 bytes of IP."""
    for packet in scene.find("datagram", f"ICMP [08] of {LINK_MTU - ENCAPSULATION} bytes", 2):
        require(len(packet.payload) == LINK_MTU, f"packet {packet.number} has {len(packet.payload)} bytes")
        packet.require(bth__opcode=UD_SEND, deth__q_key=Q_KEY, lrh__lnh=2)


def check_child_uses_its_partition(scene):
    """RFC 4391 4, 5: its P_Key in BTH, MGIDs and SA queries."""
    group = BROADCAST.replace("ffff", f"{CHILD_PKEY:x}", 1)
    for port in HOSTS.values():
        joins = members(scene, "child", "Set", port)
        first = [p for p in joins if p.number_of("mcmemberrecord.p_key") == CHILD_PKEY][0]
        first.require(mcmemberrecord__mgid=group, sa__componentmask=0x10083)
    for packet in members(scene, "child", "Set"):
        mgid, pkey = packet.text("mcmemberrecord.mgid"), packet.number_of("mcmemberrecord.p_key")
        require(mgid.split(":")[2] == f"{pkey:x}", f"packet {packet.number}: {mgid} with P_Key {pkey:#x}")
    request = scene.find("child", "ARP 1 for 10.1.0.3 in 0x8001")[0]
    request.require(grh__dgid=group, bth__p_key=CHILD_PKEY)
    for packet in scene.find("child", "ICMP [08] .*", 2):
        packet.require(bth__p_key=CHILD_PKEY)


# Connections


def private(packet, message):
    """RFC 4755 6: the UD QPN and the maximum length of received messages."""
    octets = bytes.fromhex(packet.text(f"cm.{message}.private").replace(":", ""))
    reserved, qpn, mtu = octets[0], int.from_bytes(octets[1:4], "big"), int.from_bytes(octets[4:8], "big")
    require(reserved == 0 and not any(octets[8:]), f"packet {packet.number}: private data {octets.hex()}")
    return qpn, mtu


def datagram_qpns(scene):
    """UD QPNs by GID, from ARP."""
    found = {}
    for packet in scene.find("connected", "ARP .*", 2):
        _, qpn, gid = hardware_address(packet, "arp.src.hw")
        found[gid] = qpn
    return found


def check_connection_is_requested(scene):
    """CM REQ (IBA 12.6.5): for the service named after the peer's UD QPN (RFC 4755 3.5), RC, on the path's LIDs."""
    qpns = datagram_qpns(scene)
    for packet in scene.find("connected", "CM REQ", 2):
        near, far = packet.text("cm.req.prim_localgid"), packet.text("cm.req.prim_remotegid")
        require({near, far} == set(HOSTS.values()), f"packet {packet.number}: {near} to {far}")
        # 1, the type (RC), 24 bits that are zero, and the QPN.
        packet.require(cm__req__serviceid=1 << 60 | qpns[far], cm__req__transpsvctype=0, cm__req__pkey=0xFFFF,
                       cm__req__pppmtu=4, cm__req__srq=1, cm__req__localqkey=0, cm__req__alt_locallid=0,
                       cm__req__prim_locallid=packet.number_of("lrh.slid"),
                       cm__req__prim_remotelid=packet.number_of("lrh.dlid"), cm__req__prim_subnetlocal=1,
                       bth__destqp=1, deth__q_key=0x80010000)
        qpn, mtu = private(packet, "req")
        require(qpn == qpns[near], f"packet {packet.number}: UD QPN {qpn:#x}, not {qpns[near]:#x}")
        require(mtu == CONNECTED_MTU + ENCAPSULATION, f"packet {packet.number}: receives {mtu}")


def of_conversation(packets, message, commid):
    return [p for p in packets if p.text(f"cm.{message}.remotecommid") == commid]


def check_connection_is_accepted(scene):
    """CM REP and RTU (IBA 12.6.8, 12.6.9): for the REQ, with the accepting side's private data."""
    qpns = datagram_qpns(scene)
    for request in scene.find("connected", "CM REQ", 2):
        reply = of_conversation(scene.find("connected", "CM REP"), "rep", request.text("cm.req"))
        require(reply, f"packet {request.number} has no REP")
        reply[0].require(lrh__slid=request.number_of("lrh.dlid"), cm__rep__srq=1, cm__rep__localqkey=0)
        qpn, mtu = private(reply[0], "rep")
        require(qpn == qpns[request.text("cm.req.prim_remotegid")], f"packet {reply[0].number}: UD QPN {qpn:#x}")
        require(mtu == CONNECTED_MTU + ENCAPSULATION, f"packet {reply[0].number}: receives {mtu}")
        ready = of_conversation(scene.find("connected", "CM RTU"), "rtu", reply[0].text("cm.rep"))
        require(ready, f"packet {reply[0].number} has no RTU")
        ready[0].require(cm__rtu__localcommid=request.text("cm.req"))
        require(request.number < reply[0].number < ready[0].number, "out of order")


def check_connection_carries_messages(scene):
    """RC SENDs (IBA 9.7): to the REP's QPN, numbered from the REP's PSN on, segmented by the path MTU, acknowledged."""
    for request in scene.find("connected", "CM REQ", 2):
        reply = of_conversation(scene.find("connected", "CM REP"), "rep", request.text("cm.req"))[0]
        expected, lengths, length = reply.number_of("cm.rep.startpsn"), [], 0
        for packet in scene.captures["connected"]:
            opcode = packet.number_of("bth.opcode")
            if opcode not in (RC_FIRST, RC_MIDDLE, RC_LAST, RC_ONLY) or \
                    packet.number_of("lrh.slid") != request.number_of("lrh.slid"):
                continue
            packet.require(bth__destqp=reply.number_of("cm.rep.localqpn"), bth__psn=expected, bth__p_key=0xFFFF)
            expected = (expected + 1) % (1 << 24)
            length += len(packet.payload)
            if opcode in (RC_FIRST, RC_MIDDLE):
                require(len(packet.payload) == LINK_MTU, f"packet {packet.number} has {len(packet.payload)} bytes")
            else:
                packet.require(bth__a=1)
                lengths.append(length)
                length = 0
        for bytes_of_ip in (84, 20028, CONNECTED_MTU):
            require(bytes_of_ip + ENCAPSULATION in lengths, f"messages have {lengths} bytes")
        answers = [p for p in scene.find("connected", "RC acknowledge")
                   if p.number_of("bth.destqp") == request.number_of("cm.req.localqpn")]
        require(len(answers) >= len(lengths), f"{len(answers)} acknowledgements of {len(lengths)} messages")
        answers[-1].require(bth__psn=(expected - 1) % (1 << 24), aeth__syndrome__opcode=0, aeth__msn=len(lengths))


def check_connection_is_closed(scene):
    """DREQ and DREP (IBA 12.6.10, 12.6.11; RFC 4755 3.4)."""
    ends = {p.text("cm.req"): p for p in scene.find("connected", "CM REQ", 2)}
    ends |= {p.text("cm.rep"): p for p in scene.find("connected", "CM REP", 2)}
    over = set()
    for packet in scene.find("connected", "CM DREQ", 2):
        packet.require(mad__attributeid=0x15)
        mine, other = packet.text("cm.dreq.localcommid"), packet.text("cm.dreq.remotecommid")
        require(mine in ends and other in ends, f"packet {packet.number} is for no connection")
        peer = ends[other]
        qpn = peer.number_of("cm.req.localqpn" if peer.text("cm.req") else "cm.rep.localqpn")
        packet.require(cm__req__remoteqpneecn=qpn)
        answer = of_conversation(scene.find("connected", "CM DREP"), "drsp", mine)
        require(answer, f"packet {packet.number} has no DREP")
        over |= {mine, other}
    require(over == ends.keys(), f"still there: {ends.keys() - over}")
