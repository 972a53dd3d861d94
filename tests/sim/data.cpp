// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Data between two parties and to groups: UDP, and streams of TCP, unsegmented, segmented by the driver or the HCA, and
// merged. Arriving data is compared with sent data.
#include <algorithm>
#include <cstring>

#include <ipoib/encapsulation.hpp>

#include "world.hpp"

namespace sim {

using ipoib::HwAddr;
using kernel::Be16;
using kernel::Be32;

namespace {

constexpr std::uint16_t udp_port = 1000, group_port = 3000, first_stream_port = 4000;
// TCP streams between two parties; every other one has timestamps.
constexpr unsigned int streams = 2;
constexpr std::uint8_t usual_time_to_live = 64;
constexpr std::uint16_t dont_fragment = 0x4000;
constexpr unsigned int ip_and_udp = sizeof(ipoib::Ipv4Header) + sizeof(UdpHeader);
// Time after a change by the subnet manager or a user until earlier packets have arrived.
constexpr Time settled_after = 60 * second, switched_after = 5 * second;
// Lifetime of a learnt path MTU, and the lowest accepted one (IPv4 needs 68 bytes).
constexpr Time path_mtu_expires = 60 * second;
constexpr unsigned int min_path_mtu = 68;

void write_ip(const Ip& ip, std::uint32_t from, std::uint32_t to, std::uint8_t protocol, unsigned int bytes,
              std::uint16_t identification)
{
    ip.header() = {
        .version_and_length = 0x45,
        .service = 0,
        .total_bytes = Be16(static_cast<std::uint16_t>(bytes)),
        .identification = Be16(identification),
        .fragment = Be16(dont_fragment),
        .time_to_live = usual_time_to_live,
        .protocol = protocol,
        .checksum = Be16(0),
        .source = Be32(from),
        .destination = Be32(to),
    };
}

void finish_ip(const Ip& ip)
{
    ip.header().checksum = Be16(0);
    ip.header().checksum = Be16(static_cast<std::uint16_t>(~sum_of(&ip.header(), sizeof(ipoib::Ipv4Header))));
}

Party party_at(std::uint32_t address) { return {address >> 8 & 0xffff, (address & 0xff) - 1}; }

} // namespace

// Sending

sk_buff* Stack::ip_packet(net_device* dev, const HwAddr& to, std::vector<std::uint8_t> bytes,
                          unsigned int segment_bytes)
{
    Random& random = world->scheduler.random();
    const Ip ip(bytes.data());
    const unsigned int header_bytes = ip.header_bytes();
    fill(bytes.data() + header_bytes, bytes.size() - header_bytes, ip.key(), ip.place());
    finish_ip(ip);
    ip.transport_checksum() = Be16(pseudo_header_sum(ip, bytes.size()));
    const bool open = segment_bytes || random.one_in(4);
    if (!open)
        fill_checksum(bytes.data(), bytes.size());
    remember_segments(dev, to, bytes, segment_bytes);
    sk_buff* skb = packet(dev, to, 0x0800, bytes, segment_bytes ? header_bytes : 0);
    skb->wants_checksum = open;
    if (segment_bytes) {
        skb->segment_bytes = segment_bytes;
        skb->segments = (static_cast<unsigned int>(bytes.size()) - header_bytes + segment_bytes - 1) / segment_bytes;
        skb->header_bytes = static_cast<unsigned int>(sizeof(ipoib::Encapsulation)) + header_bytes;
    }
    return skb;
}

void Stack::remember_segments(const net_device* dev, const HwAddr& to, const std::vector<std::uint8_t>& bytes,
                              unsigned int segment_bytes)
{
    const Ip ip(bytes.data());
    const unsigned int header_bytes = ip.header_bytes();
    const auto data_bytes = static_cast<unsigned int>(bytes.size()) - header_bytes;
    const unsigned int each = segment_bytes ? segment_bytes : std::max(data_bytes, 1U);
    unsigned int number = 0;
    for (unsigned int done = 0; number == 0 || done < data_bytes; done += each, ++number) {
        const unsigned int part = std::min(each, data_bytes - done);
        Sent& sent = ledger.remember(index(dev->party), flow_of(ip), ip.udp().source.value());
        sent.bytes = header_bytes + part;
        sent.header_bytes = static_cast<std::uint16_t>(header_bytes);
        sent.to = to;
        sent.by_connection = false;
        std::memcpy(sent.header, bytes.data(), header_bytes);
        if (segment_bytes)
            make_segment_headers(sent.header, number, segment_bytes, part, done + part == data_bytes);
    }
}

unsigned int Stack::flow_of(const Ip& ip)
{
    const std::uint32_t to = ip.header().destination.value();
    return to >> 28 == 0xe ? Ledger::group_flow : index(party_at(to));
}

Sent* Stack::sent_as(const std::uint8_t* packet)
{
    const Ip ip(packet);
    return ledger.find(index(party_at(ip.header().source.value())), flow_of(ip), ip.udp().source.value(),
                       ip.header().identification.value());
}

void Stack::went_by_connection(const std::uint8_t* packet, std::size_t bytes)
{
    if (bytes < ip_and_udp || packet[0] != 0x45)
        return;
    if (Sent* sent = sent_as(packet))
        sent->by_connection = true;
}

void Stack::excuse(const std::uint8_t* bytes, std::size_t count, unsigned int segments)
{
    constexpr std::size_t before = sizeof(ipoib::Encapsulation);
    if (count < before + ip_and_udp || bytes[before] != 0x45)
        return;
    const Ip ip(bytes + before);
    if (flow_of(ip) != Ledger::group_flow)
        lost_.of(index(party_at(ip.header().source.value())), flow_of(ip)) += segments;
}

void Stack::excuse(const sk_buff* skb) { excuse(skb->data + HwAddr::size, skb->headlen - HwAddr::size, skb->segments); }

void Stack::lower_pmtu(const sk_buff* skb, unsigned int mtu)
{
    constexpr std::size_t before = sizeof(ipoib::Encapsulation);
    if (skb->headlen < before + ip_and_udp || skb->data[before] != 0x45)
        return;
    const Ip ip(skb->data + before);
    if (flow_of(ip) != Ledger::group_flow)
        path_mtus_.of(index(party_at(ip.header().source.value())), flow_of(ip)) = {mtu, world->scheduler.now()};
}

unsigned int Stack::longest(const net_device* dev, Party to) const
{
    const PathMtu path = path_mtus_.value(index(dev->party), index(to));
    const bool counts = path.bytes && world->scheduler.now() - path.since < path_mtu_expires;
    return counts ? std::clamp(path.bytes, min_path_mtu, dev->mtu) : dev->mtu;
}

void Stack::send_datagram(net_device* dev, Party to, const HwAddr& where, unsigned int bytes)
{
    const unsigned int self = index(dev->party), who = index(to);
    bytes = std::clamp(bytes, ip_and_udp, longest(dev, to));
    std::vector<std::uint8_t> packet(bytes);
    const Ip ip(packet.data());
    write_ip(ip, address_of(dev->party), address_of(to), protocol_udp, bytes, ledger.next(self, who, udp_port));
    ip.udp() = {Be16(udp_port), Be16(udp_port), Be16(static_cast<std::uint16_t>(bytes - 20)), Be16(0)};
    count_sent(dev, to, 1);
    transmit(dev, ip_packet(dev, where, std::move(packet), 0));
}

void Stack::send_group(net_device* dev, unsigned int group, unsigned int bytes)
{
    const Bh bh;
    bytes = std::clamp(bytes, ip_and_udp, dev->mtu);
    std::vector<std::uint8_t> packet(bytes);
    const Ip ip(packet.data());
    write_ip(ip, address_of(dev->party), address_of_group(group), protocol_udp, bytes,
             ledger.next(index(dev->party), Ledger::group_flow, group_port));
    ip.udp() = {Be16(group_port), Be16(group_port), Be16(static_cast<std::uint16_t>(bytes - 20)), Be16(0)};
    transmit(dev, ip_packet(dev, group_address(dev, group), std::move(packet), 0));
}

// Position of the stream's next segment. A segment may be skipped, and sent after its successor with its own length.
std::uint32_t Stack::next_place(Stream& stream, Skipped& skipped, unsigned int& data_bytes, bool may_skip)
{
    if (skipped.bytes) {
        data_bytes = std::exchange(skipped.bytes, 0);
        return skipped.place;
    }
    std::uint32_t place = stream.next;
    if (may_skip && world->scheduler.random().one_in(24)) {
        skipped = {place, data_bytes};
        place += data_bytes;
        stream.next += 2 * data_bytes;
    } else {
        stream.next += data_bytes;
    }
    return place;
}

// Writes the TCP header of a segment of the stream, and at times an odd value into either header.
void Stack::write_tcp(const Ip& ip, Stream& stream, std::uint16_t port, std::uint32_t place, unsigned int header_bytes,
                      bool last)
{
    Random& random = world->scheduler.random();
    ip.tcp() = {
        .source = Be16(port),
        .destination = Be16(port),
        .sequence = Be32(place),
        .acknowledgement = Be32(stream.acknowledged += random.one_in(16) ? 1000 : 0),
        .length = static_cast<std::uint8_t>((header_bytes - 20) / 4 << 4),
        .flags = ack,
        .window = Be16(static_cast<std::uint16_t>(1000 + random.one_in(16))),
        .checksum = Be16(0),
        .urgent = Be16(0),
    };
    stream.clock += random.one_in(16);
    if (auto* times = ip.timestamps())
        *times = {Be32(ipoib::TcpTimestamps::usual_preamble), Be32(stream.clock), Be32(stream.clock - 7)};
    if (last || random.one_in(16))
        ip.tcp().flags |= psh;
    if (random.one_in(8))
        make_odd(ip);
}

// Segments of a stream, one after the other, some of which must not be merged with the others; or one large packet.
void Stack::send_stream(net_device* dev, Party to, const HwAddr& where, unsigned int bytes)
{
    Random& random = world->scheduler.random();
    const unsigned int self = index(dev->party), who = index(to);
    const auto port = static_cast<std::uint16_t>(first_stream_port + random.below(streams));
    Stream& stream = streams_.of(self, who)[port % streams];
    const bool timestamps = port % 2;
    const unsigned int header_bytes = timestamps ? 52 : 40, room = longest(dev, to) - header_bytes;
    const bool large = bytes > dev->mtu && dev->segments && random.one_in(2);
    // Copying messages of connected mode's MTU would take half of a run's time.
    const unsigned int most = random.one_in(16) ? room : std::min(room, 4000U);
    const auto usual = static_cast<unsigned int>(random.one_in(2) ? most : random.between(1, most));
    unsigned int segment_bytes = 0, left = static_cast<unsigned int>(random.between(1, 10));
    if (large) {
        segment_bytes = static_cast<unsigned int>(random.between(std::min(500U, room), room));
        bytes = std::min({bytes, 65535U, header_bytes + dev->max_segments * segment_bytes});
        left = 1;
    }
    std::vector<sk_buff*> packets;
    Skipped skipped;
    for (; left > 0; --left) {
        auto data_bytes = large ? bytes - header_bytes : usual;
        if (!large && random.one_in(24))
            data_bytes = static_cast<unsigned int>(random.between(1, usual));
        const std::uint32_t place = next_place(stream, skipped, data_bytes, !large && left > 1);
        std::vector<std::uint8_t> packet(header_bytes + data_bytes);
        const Ip ip(packet.data());
        write_ip(ip, address_of(dev->party), address_of(to), protocol_tcp, header_bytes + data_bytes,
                 ledger.next(self, who, port));
        write_tcp(ip, stream, port, place, header_bytes, left == 1);
        packets.push_back(ip_packet(dev, where, std::move(packet), segment_bytes));
        count_sent(dev, to, packets.back()->segments);
    }
    transmit(dev, packets);
}

// Sets one of the rare header values that keep segments from being merged, as a router or the sender may.
void Stack::make_odd(const Ip& ip)
{
    Random& random = world->scheduler.random();
    ipoib::TcpHeader& tcp = ip.tcp();
    switch (random.below(9)) {
    case 0: // Congestion experienced.
        ip.header().service |= 3;
        break;
    case 1:
        tcp.flags |= ece;
        break;
    case 2:
        tcp.flags |= cwr;
        break;
    case 3:
        tcp.flags |= fin;
        break;
    case 4:
        tcp.flags |= urg;
        tcp.urgent = Be16(1);
        break;
    case 5:
        if (auto* times = ip.timestamps())
            times->value = Be32(times->value.value() - static_cast<std::uint32_t>(random.between(1, 1000)));
        break;
    case 6:
        tcp.acknowledgement = Be32(tcp.acknowledgement.value() - static_cast<std::uint32_t>(random.between(1, 5000)));
        break;
    case 7:
        --ip.header().time_to_live;
        break;
    default:
        ip.header().fragment = Be16(0);
        break;
    }
}

// Receiving

void Stack::take_data(net_device* dev, sk_buff* skb, std::vector<std::uint8_t>& bytes)
{
    const Ip ip(bytes.data());
    const ipoib::Ipv4Header& header = ip.header();
    SIM_CHECK(bytes.size() >= ip_and_udp && header.version_and_length == 0x45 && bytes.size() >= ip.header_bytes() &&
                  (ip.is_tcp() || header.protocol == protocol_udp),
              "data is garbled, of %zu bytes", bytes.size());
    SIM_CHECK(header.total_bytes.value() == bytes.size(), "an IP packet of %u bytes comes as one of %zu",
              header.total_bytes.value(), bytes.size());
    SIM_CHECK(sum_of(bytes.data(), sizeof(header)) == 0xffff, "the checksum of an IP header is wrong");
    const std::size_t data_bytes = bytes.size() - ip.header_bytes();
    const std::size_t whole = differs(bytes.data() + ip.header_bytes(), data_bytes, ip.key(), ip.place());
    SIM_CHECK(whole == data_bytes, "data is garbled at byte %zu of %zu", whole, data_bytes);

    const Party from = party_at(header.source.value());
    const unsigned int self = index(dev->party), to = flow_of(ip);
    const bool to_group = to == Ledger::group_flow;
    SIM_CHECK(to_group || to == self, "%s: a packet from %u to %u came to %u", dev->name.c_str(), index(from), to,
              self);
    SIM_CHECK(skb->type == (to_group ? SHIM_PACKET_MULTICAST : SHIM_PACKET_HOST), "a packet to a %s came as of type %d",
              to_group ? "group" : "host", skb->type);
    if (index(from) == self)
        check_own_may_come(dev);
    check_checksum(dev, skb, bytes);
    compare(skb, bytes, self);
    const unsigned int count = skb->merged;
    if (const Sent* sent = sent_as(bytes.data()); sent && sent->by_connection) {
        connected_.of(index(from), self) += count;
        check_order(dev, *sent, ip);
    }
    if (to_group) {
        ++world->group_packets.of(index(from), self);
        return;
    }
    received_.of(index(from), self) += count;
    delivered += count;
}

void Stack::connection_changed(const net_device* dev, const std::uint8_t* gid, std::string_view before,
                               std::string_view after)
{
    Connections& to_peer = connections(index(dev->party), gid);
    to_peer.established -= before == "established";
    // A connection to a former address of the peer may still be established.
    const bool moved =
        std::any_of(by_party_.begin(), by_party_.end(), [now = world->scheduler.now(), gid](const auto& entry) {
            const net_device& peer = *entry.second;
            return now - peer.address_changed < settled_after && std::equal(gid + 8, gid + 16, peer.ca->gid.raw + 8);
        });
    const bool further =
        to_peer.established > 0 && !moved && (after == "wanted" || after == "requested" || after == "established");
    to_peer.established += after == "established";
    if (!further)
        to_peer.changed = world->scheduler.now();
}

unsigned int Stack::established(unsigned int node, const std::uint8_t* gid)
{
    return connections(index({node, 0}), gid).established + connections(index({node, 1}), gid).established;
}

std::size_t Stack::connected_pairs() const
{
    return static_cast<std::size_t>(std::count_if(connections_.begin(), connections_.end(),
                                                  [](const auto& entry) { return entry.second.established > 0; }));
}

void Stack::note_order(const sk_buff* skb)
{
    constexpr std::size_t before = sizeof(ipoib::HardHeader);
    if (skb->headlen < before + ip_and_udp || skb->data[before] != 0x45)
        return;
    const Ip ip(skb->data + before);
    if (Sent* sent = sent_as(skb->data + before))
        sent->place = ++ledger.flow(index(skb->dev->party), flow_of(ip), ip.udp().source.value()).queued;
}

void Stack::check_order(const net_device* dev, const Sent& sent, const Ip& ip)
{
    const Party sender = party_at(ip.header().source.value());
    const unsigned int from = index(sender);
    Ledger::Flow& flow = ledger.flow(from, flow_of(ip), ip.udp().source.value());
    // A stalled HCA has packets of former connections.
    const Time now = world->scheduler.now();
    const bool excused = now < std::max(dev->ca->excused_until, world->devices[sender.node]->excused_until);
    SIM_CHECK(sent.place > flow.came ||
                  now - connections(from, dev->ca->gid.raw).changed < (excused ? settled_after : switched_after),
              "packet %llu of a flow from %u to %u comes after packet %llu",
              static_cast<unsigned long long>(sent.place), from, flow_of(ip),
              static_cast<unsigned long long>(flow.came));
    flow.came = std::max(flow.came, sent.place);
}

void Stack::check_own_may_come(net_device* dev)
{
    // The sender may have used a former address of the receiver.
    const Time changed = std::max(dev->address_changed, dev->ca->lid_changed);
    SIM_CHECK(world->scheduler.now() - changed < settled_after, "%s: its own packet to a group came back",
              dev->name.c_str());
    ++dev->came_own;
}

void Stack::check_checksum(const net_device* dev, const sk_buff* skb, const std::vector<std::uint8_t>& bytes)
{
    // The checksum of a merged packet holds the pseudo header's sum; the driver marks the packet as verified.
    if (skb->merged > 1) {
        SIM_CHECK(dev->gro_hw || world->scheduler.now() - dev->offloads_changed < switched_after,
                  "%s: segments are merged, which the user does not want", dev->name.c_str());
        return;
    }
    const Checksum state = checksum_of(bytes.data(), bytes.size());
    SIM_CHECK(state == Checksum::right || skb->verified, "data without a checksum goes up as if it had one");
    SIM_CHECK(state != Checksum::wrong, "data goes up with a wrong checksum");
    const Sent* sent = sent_as(bytes.data());
    if (!skb->verified || !sent || sent->by_connection)
        return;
    SIM_CHECK(state == Checksum::right, "a datagram goes up without a checksum");
    SIM_CHECK(dev->rx_checksum || world->scheduler.now() - dev->offloads_changed < switched_after,
              "%s: a checksum counts as verified that the user wants to be looked at", dev->name.c_str());
}

// Checks that the packet, of one segment or several, equals the sent ones, and marks those as arrived.
void Stack::compare(const sk_buff* skb, std::vector<std::uint8_t>& bytes, unsigned int self)
{
    const Ip ip(bytes.data());
    Sent* sent = sent_as(bytes.data());
    if (!sent)
        return;
    std::uint8_t expected[sizeof(sent->header)];
    std::memcpy(expected, sent->header, sent->header_bytes);
    const Ip model(expected);
    const std::uint64_t bit = self < 64 ? std::uint64_t(1) << self : 0;
    const std::uint16_t port = ip.udp().source.value();
    unsigned int total = sent->bytes;
    for (unsigned int i = 0;; ++i) {
        SIM_CHECK(!(sent->came & bit), "packet %llu from %u to %u came twice",
                  static_cast<unsigned long long>(sent->counter), index(party_at(ip.header().source.value())), self);
        sent->came |= bit;
        if (i + 1 >= skb->merged)
            break;
        const Sent* before = sent;
        sent = follower(*before, ip, port);
        if (!sent)
            return;
        add_merged(model, *before, *sent, skb->merged_bytes);
        total += sent->data_bytes();
    }
    if (skb->merged > 1) {
        merged += skb->merged;
        SIM_CHECK(sent->data_bytes() <= skb->merged_bytes, "a merged packet ends with a longer segment");
        model.header().total_bytes = Be16(static_cast<std::uint16_t>(total));
        finish_ip(model);
    }
    SIM_CHECK(total == bytes.size(), "a packet of %u bytes comes as one of %zu", total, bytes.size());
    model.transport_checksum() = ip.transport_checksum();
    SIM_CHECK(std::memcmp(expected, bytes.data(), ip.header_bytes()) == 0,
              "the headers of a packet of %u segments are not those that were sent", skb->merged);
}

Sent* Stack::follower(const Sent& before, const Ip& ip, std::uint16_t port)
{
    const unsigned int from = index(party_at(ip.header().source.value()));
    const std::uint32_t place = Ip(before.header).tcp().sequence.value() + before.data_bytes();
    for (std::uint16_t i = 1; i <= 32; ++i) {
        Sent* sent = ledger.find(from, flow_of(ip), port, static_cast<std::uint16_t>(before.counter + i));
        if (sent && Ip(sent->header).tcp().sequence.value() == place)
            return sent;
    }
    return nullptr;
}

// Headers of a merged packet, of which next is one more segment. By segmentation of the packet, as a router does it,
// the same segments come out again: only PSH, at the end, may differ.
void Stack::add_merged(const Ip& model, const Sent& before, const Sent& next, unsigned int segment_bytes)
{
    const Ip ip(next.header), last(before.header);
    SIM_CHECK(before.data_bytes() == segment_bytes, "a segment of %u bytes is merged into those of %u",
              before.data_bytes(), segment_bytes);
    SIM_CHECK(last.tcp().flags == ack, "a segment with flags %#x is merged with one behind it", last.tcp().flags);
    SIM_CHECK((ip.tcp().flags & ~psh) == ack, "a segment with flags %#x is merged", ip.tcp().flags);
    SIM_CHECK(next.header_bytes == before.header_bytes, "segments with different options are merged");
    std::uint8_t expected[sizeof(next.header)];
    std::memcpy(expected, before.header, before.header_bytes);
    const Ip follower(expected);
    follower.header().identification = Be16(static_cast<std::uint16_t>(last.header().identification.value() + 1));
    follower.header().total_bytes = ip.header().total_bytes;
    follower.header().checksum = ip.header().checksum;
    follower.tcp().sequence = ip.tcp().sequence;
    follower.tcp().flags = ip.tcp().flags;
    follower.tcp().checksum = ip.tcp().checksum;
    SIM_CHECK(std::memcmp(expected, next.header, next.header_bytes) == 0, "segments with different headers are merged");
    model.tcp().flags |= ip.tcp().flags;
}

} // namespace sim
