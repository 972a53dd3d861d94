// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The stack's protocols: address resolution as ARP does it, data between two parties, data to groups; and the checks of
// what arrives.
#include <algorithm>
#include <cstring>

#include <ipoib/encapsulation.hpp>
#include <ipoib/mgid.hpp>

#include "world.hpp"

namespace sim {

using ipoib::HwAddr;

namespace {

constexpr std::uint32_t data_magic = 0xda7ada7a, open_data_magic = 0xda7a0be4, question_magic = 0xa4ba4b00;
constexpr Time confirmed_for = 30 * second;
constexpr unsigned int to_group = 0x40000000, all_groups = ~0U;

struct Question {
    std::uint32_t magic, from, to;
    bool answer;
    std::uint8_t address[HwAddr::size];
};

struct Neighbour {
    enum class State { none, asked, known, probed } state = State::none;
    HwAddr address;
    Time confirmed = 0, asked = 0;
    unsigned int tries = 0;
    std::vector<unsigned int> waiting;
};

} // namespace

std::uint8_t pattern(std::uint64_t number, std::size_t at)
{
    return static_cast<std::uint8_t>(number * 31 + at * 7 + (at >> 8));
}

bool checksum_is_open(const std::uint8_t* data)
{
    return std::memcmp(data, &open_data_magic, sizeof(open_data_magic)) == 0;
}

void fill_checksum(std::uint8_t* data)
{
    SIM_CHECK(checksum_is_open(data), "a checksum is filled in that is not open");
    std::memcpy(data, &data_magic, sizeof(data_magic));
}

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

sk_buff* Stack::packet(net_device* dev, const HwAddr& to, std::uint16_t type, const void* header,
                       std::size_t header_bytes, unsigned int bytes, unsigned int segment_bytes)
{
    Random& random = world->scheduler.random();
    const auto start = static_cast<unsigned int>(header_bytes);
    const std::uint64_t number = type == 0x0800 ? static_cast<const Data*>(header)->number : 0;
    const auto byte_at = [=](unsigned int at) {
        const unsigned int segment = segment_bytes ? (at - start) / segment_bytes : 0;
        return pattern(number + segment, at - segment * segment_bytes);
    };
    const unsigned int linear = bytes > 200 && random.one_in(2) ? 128 : bytes;
    sk_buff* skb = skb_create(64, linear);
    skb->headlen = linear;
    std::memcpy(skb->data, header, header_bytes);
    for (unsigned int i = start; i < linear; ++i)
        skb->data[i] = byte_at(i);
    for (unsigned int done = linear; done < bytes;) {
        const bool last = skb->frags.size() == 15;
        const auto part = static_cast<unsigned int>(random.between(100, 16000));
        std::vector<std::uint8_t> frag(last ? bytes - done : std::min(bytes - done, part));
        for (std::uint8_t& byte : frag)
            byte = byte_at(done++);
        skb->frags.push_back(std::move(frag));
    }
    if (segment_bytes) {
        skb->segment_bytes = segment_bytes;
        skb->segments = (bytes - start + segment_bytes - 1) / segment_bytes;
        skb->header_bytes = static_cast<unsigned int>(sizeof(ipoib::Encapsulation)) + start;
    }
    skb->wants_checksum = segment_bytes || (type == 0x0800 && random.one_in(4));
    if (skb->wants_checksum)
        std::memcpy(skb->data, &open_data_magic, sizeof(open_data_magic));
    skb->dev = dev;
    skb_watch(skb);
    const int pushed = ipoib_header_create(skb, type, to.bytes);
    SIM_CHECK(pushed == IPOIB_HEADER_BYTES, "a hard header of %d bytes", pushed);
    return skb;
}

void Stack::ask_for(net_device* dev, unsigned int who, const HwAddr& where)
{
    Question question{question_magic, index(dev->party), who, false, {}};
    std::memcpy(question.address, dev->address.data(), HwAddr::size);
    transmit(dev, packet(dev, where, 0x0806, &question, sizeof(question), sizeof(question)));
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
        ask_for(dev, who, HwAddr::from(dev->broadcast.data()));
        return;
    }
    if (neighbour.state == Neighbour::State::known && now - neighbour.confirmed > confirmed_for) {
        neighbour.state = Neighbour::State::probed;
        neighbour.asked = now;
        neighbour.tries = 1;
        ask_for(dev, who, neighbour.address);
    }
    const unsigned int self = index(dev->party), header_bytes = sizeof(Data);
    unsigned int segment_bytes = 0, segments = 1;
    if (bytes > dev->mtu && dev->segments && world->scheduler.random().one_in(2)) {
        segment_bytes = static_cast<unsigned int>(
            world->scheduler.random().between(std::min(500U, dev->mtu - header_bytes), dev->mtu - header_bytes));
        bytes = std::min(bytes, header_bytes + dev->most_segments * segment_bytes);
        segments = (bytes - header_bytes + segment_bytes - 1) / segment_bytes;
    } else {
        bytes = std::clamp(bytes, header_bytes, dev->mtu);
    }
    const Data data{data_magic, self, who, bytes, numbers_.of(self, who) + 1};
    numbers_.of(self, who) += segments;
    sent += segments;
    transmit(dev, packet(dev, neighbour.address, 0x0800, &data, sizeof(data), bytes, segment_bytes));
}

void Stack::send_group(net_device* dev, unsigned int group, unsigned int bytes)
{
    const Bh bh;
    const unsigned int self = index(dev->party);
    bytes = std::clamp(bytes, static_cast<unsigned int>(sizeof(Data)), dev->mtu);
    const Data data{data_magic, self, to_group + group, bytes, ++numbers_.of(self, all_groups)};
    transmit(dev, packet(dev, group_address(dev, group), 0x0800, &data, sizeof(data), data.bytes));
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
        ask_for(dev, who, asked ? HwAddr::from(dev->broadcast.data()) : neighbour.address);
    }
}

void Stack::address_changed(net_device* dev)
{
    // What it knows of others stays; what others know of it is theirs to find out.
    for (auto& [_, neighbour] : dev->neighbours->of)
        if (neighbour.state == Neighbour::State::known)
            neighbour.confirmed = 0;
}

void Stack::notify_peers(net_device* dev)
{
    const Bh bh;
    ask_for(dev, index(dev->party), HwAddr::from(dev->broadcast.data()));
}

void Stack::receive(net_device* dev, sk_buff* skb)
{
    ++dev->came;
    SIM_CHECK(skb->dev == dev, "a packet that came by %s names another netdev", dev->name.c_str());
    const auto bytes = skb->bytes();
    const auto type = skb->protocol;
    const auto kind = skb->type;
    const bool verified = skb->verified;
    skb_free(skb);
    if (type == 0x0806)
        resolve(dev, bytes);
    else if (type == 0x0800)
        take_data(dev, bytes, kind, verified);
    else
        fail("%s: a packet of type %#x, which nobody sent", dev->name.c_str(), type);
}

void Stack::resolve(net_device* dev, const std::vector<std::uint8_t>& bytes)
{
    Question question;
    SIM_CHECK(bytes.size() == sizeof(question), "a question of %zu bytes", bytes.size());
    std::memcpy(&question, bytes.data(), sizeof(question));
    SIM_CHECK(question.magic == question_magic, "a question is garbled");
    const unsigned int self = index(dev->party);
    if (question.from == self || !dev->up)
        return;
    // Of who asks others, and is nobody that one had to do with, nothing is kept.
    const auto known = dev->neighbours->of.find(question.from);
    if (question.to != self && (known == dev->neighbours->of.end() || known->second.state == Neighbour::State::none))
        return;
    Neighbour& neighbour = dev->neighbours->of[question.from];
    neighbour.address = HwAddr::from(question.address);
    neighbour.state = Neighbour::State::known;
    neighbour.confirmed = world->scheduler.now();
    if (question.to == self && !question.answer) {
        Question answer{question_magic, self, question.from, true, {}};
        std::memcpy(answer.address, dev->address.data(), HwAddr::size);
        transmit(dev, packet(dev, neighbour.address, 0x0806, &answer, sizeof(answer), sizeof(answer)));
    }
    const auto waiting = std::move(neighbour.waiting);
    neighbour.waiting.clear();
    const Party peer{question.from / 2, question.from % 2};
    for (const unsigned int length : waiting)
        send_data(dev, peer, length);
}

void Stack::take_data(net_device* dev, const std::vector<std::uint8_t>& bytes, shim_packet_type type, bool verified)
{
    Data data;
    SIM_CHECK(bytes.size() >= sizeof(data), "data of %zu bytes", bytes.size());
    std::memcpy(&data, bytes.data(), sizeof(data));
    const bool open = checksum_is_open(bytes.data());
    SIM_CHECK((open || data.magic == data_magic) && data.bytes == bytes.size(), "data is garbled");
    SIM_CHECK(!open || verified, "data without a checksum goes up as if it had one");
    for (std::size_t i = sizeof(data); i < bytes.size(); ++i)
        SIM_CHECK(bytes[i] == pattern(data.number, i), "data is garbled at byte %zu of %zu", i, bytes.size());
    const unsigned int self = index(dev->party);
    if (data.to >= to_group) {
        SIM_CHECK(type == SHIM_PACKET_MULTICAST, "a packet to a group came as of type %d", type);
        ++world->group_packets.of(data.from, self);
        return;
    }
    SIM_CHECK(data.to == self, "%s: a packet from %u to %u came to %u", dev->name.c_str(), data.from, data.to, self);
    SIM_CHECK(type == SHIM_PACKET_HOST, "a packet to a host came as of type %d", type);
    Seen& seen = seen_.of(data.from, self);
    if (data.number > seen.highest) {
        const std::uint64_t ahead = data.number - seen.highest;
        seen.mask = ahead < 64 ? seen.mask << ahead | 1 : 1;
        seen.highest = data.number;
    } else if (seen.highest - data.number < 64) {
        const std::uint64_t bit = std::uint64_t(1) << (seen.highest - data.number);
        SIM_CHECK(!(seen.mask & bit), "packet %llu from %u to %u came twice",
                  static_cast<unsigned long long>(data.number), data.from, self);
        seen.mask |= bit;
    }
    ++received_.of(data.from, self);
    ++delivered;
}

} // namespace sim
