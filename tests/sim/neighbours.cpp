// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Address resolution by ARP, and the packets that wait for it.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include <ipoib/encapsulation.hpp>
#include <ipoib/mgid.hpp>

#include "world.hpp"

namespace sim {

using ipoib::HwAddr;

namespace {

constexpr std::uint32_t arp_magic = 0xa4ba4b00;
constexpr Time confirmed_for = 30 * second;

struct Arp {
    std::uint32_t magic, from, to;
    std::uint16_t identification;
    bool answer;
    std::uint8_t address[HwAddr::size];
    std::uint8_t padding;
};
static_assert(sizeof(Arp) == 36 && std::has_unique_object_representations_v<Arp>);

struct Neighbour {
    enum class State { none, asked, known, probed } state = State::none;
    HwAddr address;
    Time confirmed = 0, asked = 0;
    unsigned int tries = 0;
    std::vector<unsigned int> waiting;
};

} // namespace

struct Neighbours {
    std::map<unsigned int, Neighbour> of;
};

std::shared_ptr<Neighbours> make_neighbours() { return std::make_shared<Neighbours>(); }

HwAddr Stack::group_address(const net_device* dev, unsigned int group)
{
    HwAddr address = HwAddr::from(dev->broadcast.data());
    for (unsigned int i = 0; i < 4; ++i)
        address.bytes[19 - i] = static_cast<std::uint8_t>(group >> 8 * i);
    return address;
}

sk_buff* Stack::packet(net_device* dev, const HwAddr& to, std::uint16_t type, const std::vector<std::uint8_t>& bytes,
                       unsigned int linear)
{
    Random& random = world->scheduler.random();
    const auto count = static_cast<unsigned int>(bytes.size());
    linear = count > 200 && random.one_in(2) ? std::max(linear, 128U) : count;
    sk_buff* skb = skb_create(64, linear);
    skb->headlen = linear;
    std::memcpy(skb->data, bytes.data(), linear);
    for (unsigned int done = linear; done < count;) {
        const bool last = skb->frags.size() == 15;
        const auto part = static_cast<unsigned int>(random.between(100, 16000));
        const unsigned int end = last ? count : std::min(count, done + part);
        skb->frags.emplace_back(bytes.begin() + done, bytes.begin() + end);
        done = end;
    }
    skb->dev = dev;
    skb_watch(skb);
    const int pushed = ipoib_header_create(skb, type, to.bytes);
    SIM_CHECK(pushed == IPOIB_HEADER_BYTES, "a hard header of %d bytes", pushed);
    return skb;
}

void Stack::send_arp(net_device* dev, unsigned int to, bool answer, const HwAddr& where)
{
    const unsigned int self = index(dev->party);
    Arp arp{arp_magic, self, to, ledger.next(self, Ledger::arp_flow, 0), answer, {}, 0};
    std::memcpy(arp.address, dev->address.data(), HwAddr::size);
    Sent& sent = ledger.remember(self, Ledger::arp_flow, 0);
    sent.bytes = sent.header_bytes = sizeof(arp);
    sent.to = where;
    std::memcpy(sent.header, &arp, sizeof(arp));
    const std::vector<std::uint8_t> bytes(sent.header, sent.header + sizeof(arp));
    transmit(dev, packet(dev, where, 0x0806, bytes, 0));
}

void Stack::request_address(net_device* dev, unsigned int who, const HwAddr& where)
{
    send_arp(dev, who, false, where);
}

void Stack::send_data(net_device* dev, Party to, unsigned int bytes)
{
    const Bh bh;
    const unsigned int who = index(to);
    Neighbour& neighbour = dev->neighbours->of[who];
    const Time now = world->scheduler.now();
    if (neighbour.state == Neighbour::State::none || neighbour.state == Neighbour::State::asked) {
        if (neighbour.waiting.size() < 3)
            neighbour.waiting.push_back(bytes);
        if (neighbour.state == Neighbour::State::asked)
            return;
        neighbour.state = Neighbour::State::asked;
        neighbour.asked = now;
        neighbour.tries = 1;
        request_address(dev, who, HwAddr::from(dev->broadcast.data()));
        return;
    }
    if (neighbour.state == Neighbour::State::known && now - neighbour.confirmed > confirmed_for) {
        neighbour.state = Neighbour::State::probed;
        neighbour.asked = now;
        neighbour.tries = 1;
        request_address(dev, who, neighbour.address);
    }
    if (world->scheduler.random().one_in(4))
        send_stream(dev, to, neighbour.address, bytes);
    else
        send_datagram(dev, to, neighbour.address, bytes);
}

void Stack::look_at_neighbours(net_device* dev)
{
    const Time now = world->scheduler.now();
    for (auto& [who, neighbour] : dev->neighbours->of) {
        const bool asked = neighbour.state == Neighbour::State::asked;
        if ((!asked && neighbour.state != Neighbour::State::probed) || now - neighbour.asked < second)
            continue;
        if (++neighbour.tries > 3) {
            neighbour.state = Neighbour::State::none;
            neighbour.waiting.clear();
            continue;
        }
        neighbour.asked = now;
        const Bh bh;
        request_address(dev, who, asked ? HwAddr::from(dev->broadcast.data()) : neighbour.address);
    }
}

void Stack::address_changed(net_device* dev)
{
    // A host's own entries are kept; those of others are theirs to correct.
    for (auto& [_, neighbour] : dev->neighbours->of)
        if (neighbour.state == Neighbour::State::known)
            neighbour.confirmed = 0;
}

void Stack::notify_peers(net_device* dev)
{
    const Bh bh;
    // Without a carrier seen by linkwatch the stack drops packets.
    if (dev->active)
        dev->untold_since = 0;
    request_address(dev, index(dev->party), HwAddr::from(dev->broadcast.data()));
}

void Stack::receive(net_device* dev, sk_buff* skb)
{
    SIM_CHECK(skb->dev == dev, "a packet that came by %s names another netdev", dev->name.c_str());
    auto bytes = skb->bytes();
    check_link_header(skb);
    dev->came += skb->merged;
    dev->came_multicast += skb->type == SHIM_PACKET_MULTICAST;
    dev->came_bytes += bytes.size();
    if (skb->merged > 1)
        dev->came_bytes += (skb->merged - 1) * Ip(bytes.data()).header_bytes();
    if (skb->protocol == 0x0806)
        resolve(dev, skb, bytes);
    else if (skb->protocol == 0x0800)
        take_data(dev, skb, bytes);
    else
        fail("%s: a packet of type %#x, which no node sent", dev->name.c_str(), skb->protocol);
    skb_free(skb);
}

// Packet sockets see a hard header without destination.
void Stack::check_link_header(const sk_buff* skb)
{
    SIM_CHECK(skb->link_header && skb->link_header + IPOIB_HEADER_BYTES == skb->data,
              "a packet comes up without its link header");
    std::uint8_t expected[IPOIB_HEADER_BYTES] = {};
    expected[20] = static_cast<std::uint8_t>(skb->protocol >> 8);
    expected[21] = static_cast<std::uint8_t>(skb->protocol);
    SIM_CHECK(std::memcmp(skb->link_header, expected, sizeof(expected)) == 0, "the link header of a packet is garbled");
}

void Stack::resolve(net_device* dev, const sk_buff* skb, const std::vector<std::uint8_t>& bytes)
{
    Arp arp;
    SIM_CHECK(bytes.size() == sizeof(arp), "an ARP message of %zu bytes", bytes.size());
    std::memcpy(&arp, bytes.data(), sizeof(arp));
    SIM_CHECK(arp.magic == arp_magic, "an ARP message is garbled");
    if (const Sent* sent = ledger.find(arp.from, Ledger::arp_flow, 0, arp.identification)) {
        SIM_CHECK(std::memcmp(sent->header, bytes.data(), sizeof(arp)) == 0, "an ARP message is not as it was sent");
        // While the interface's P_Key changes, so does its broadcast address.
        const bool settled = dev->carrier && dev->ca->pkeys == ib_device().pkeys;
        const auto to_all =
            settled || skb->type == SHIM_PACKET_BROADCAST ? SHIM_PACKET_BROADCAST : SHIM_PACKET_MULTICAST;
        SIM_CHECK(skb->type == (sent->to.multicast() ? to_all : SHIM_PACKET_HOST),
                  "an ARP message to %s came as of type %d", sent->to.multicast() ? "all" : "a host", skb->type);
    }
    if (arp.from == index(dev->party))
        check_own_may_come(dev);
    const unsigned int self = index(dev->party);
    if (arp.from == self || !dev->up)
        return;
    // Requests for others create no entry unless the sender is known.
    const auto known = dev->neighbours->of.find(arp.from);
    if (arp.to != self && (known == dev->neighbours->of.end() || known->second.state == Neighbour::State::none))
        return;
    Neighbour& neighbour = dev->neighbours->of[arp.from];
    neighbour.address = HwAddr::from(arp.address);
    neighbour.state = Neighbour::State::known;
    neighbour.confirmed = world->scheduler.now();
    if (arp.to == self && !arp.answer) {
        send_arp(dev, arp.from, true, neighbour.address);
    }
    const auto waiting = std::move(neighbour.waiting);
    neighbour.waiting.clear();
    const Party peer{arp.from / 2, arp.from % 2};
    for (const unsigned int length : waiting)
        send_data(dev, peer, length);
}

} // namespace sim
