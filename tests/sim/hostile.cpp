// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Invalid responses of the subnet administrator, and invalid and forged messages of the communication manager. The
// driver has to survive them, and to communicate after they end.
#include <cstring>
#include <iterator>

#include <ipoib/connected.hpp>

#include "world.hpp"

namespace sim {

namespace {

// LIDs without an owner, or of a group.
constexpr std::uint16_t bad_lids[] = {0, 0xbfff, 0xc000, 0xc123, 0xfffe, 0xffff};
constexpr std::uint8_t bad_mtus[] = {0, 1, 2, 3, 5, 6, 7, 63, 255};
constexpr std::uint16_t bad_mlids[] = {0, 1, 0xbfff, 0xc000, 0xc001, 0xd000, 0xfffe, 0xffff};
constexpr std::uint16_t bad_pkeys[] = {0, 0x8000, 0x7fff, 0x8001, 0x1234};
// Longest messages that a peer may announce.
constexpr std::uint32_t bad_lengths[] = {0, 1, 4, 5, 40, 75, 76, 500, 0x10000, 0x7fffffff, 0xffffffff};
constexpr std::uint32_t bad_numbers[] = {0, 1, 0xffffff, 0x1000000, 0xffffffff};

template <class T, std::size_t n>
T one_of(const T (&values)[n])
{
    return values[world->scheduler.random().below(n)];
}

std::vector<std::uint8_t> random_bytes(std::size_t count)
{
    std::vector<std::uint8_t> bytes(count);
    for (std::uint8_t& byte : bytes)
        byte = static_cast<std::uint8_t>(world->scheduler.random().next() >> 32);
    return bytes;
}

} // namespace

// The subnet administrator

bool Sm::lies()
{
    const Time now = world->scheduler.now();
    if (lies_until <= now || !world->scheduler.random().one_in(2))
        return false;
    believed_until_ = now + 120 * second;
    return true;
}

bool Sm::lied() const { return believed_until_ > world->scheduler.now(); }

void Sm::spoil(sa_path_rec& record)
{
    Random& random = world->scheduler.random();
    if (random.one_in(4))
        record.dgid.raw[random.below(16)] ^= 0xff;
    // Never another node's LID: packets would reach the wrong node.
    record.dlid = random.one_in(4) ? static_cast<std::uint16_t>(random.between(0x8000, 0xbfff)) : one_of(bad_lids);
}

void Sm::spoil(shim_mcmember& member)
{
    Random& random = world->scheduler.random();
    for (auto left = random.between(1, 3); left > 0; --left)
        switch (random.below(9)) {
        case 0:
            member.mtu = one_of(bad_mtus);
            break;
        case 1:
            member.rate = static_cast<std::uint8_t>(random.one_in(2) ? 0 : random.below(256));
            break;
        case 2:
            member.mgid.raw[random.below(16)] ^= 0xff;
            break;
        case 3:
            member.mlid = one_of(bad_mlids);
            break;
        case 4:
            member.hop_limit = static_cast<std::uint8_t>(random.below(256));
            break;
        case 5:
            member.qkey = static_cast<std::uint32_t>(random.next());
            break;
        case 6:
            member.pkey = one_of(bad_pkeys);
            break;
        case 7:
            member.port_gid.raw[random.below(16)] ^= 0xff;
            member.join_state = static_cast<std::uint8_t>(random.below(256));
            break;
        default:
            member.sl = static_cast<std::uint8_t>(random.below(256));
            member.flow_label = static_cast<std::uint32_t>(random.next());
            member.traffic_class = static_cast<std::uint8_t>(random.below(256));
            break;
        }
}

// The communication manager

bool Cm::hostile() const { return hostile_until > world->scheduler.now(); }

// Changes a message on its way.
void Cm::change(Mad& mad) const
{
    Random& random = world->scheduler.random();
    if (!random.one_in(3))
        return;
    if (mad.kind == Kind::rej)
        mad.reason = static_cast<unsigned int>(random.one_in(2) ? random.below(40) : random.below(0x10000));
    if (mad.data.size() < sizeof(ipoib::PrivateData))
        return;
    if (random.one_in(4)) {
        mad.data = random_bytes(mad.data.size());
        return;
    }
    ipoib::PrivateData data;
    std::memcpy(&data, mad.data.data(), sizeof(data));
    if (random.one_in(2))
        data.parameters.qpn = kernel::Be32(one_of(bad_numbers));
    if (random.one_in(2))
        data.parameters.receive_mtu = kernel::Be32(one_of(bad_lengths));
    // Leaves the ICRC offer unchanged: both ends must agree on it.
    std::memcpy(mad.data.data(), &data, sizeof(data.parameters));
    // A REP gets an unused queue pair number. The far end of a REQ has remembered its own.
    if (mad.kind == Kind::rep && random.one_in(4))
        mad.qpn = static_cast<std::uint32_t>(random.between(0x100000, 0xffffff));
}

void Cm::forge(unsigned int node)
{
    Random& random = world->scheduler.random();
    std::vector<ib_cm_id*> all;
    for (const auto& [_, id] : ids_)
        if (id->ca->node == node && !id->destroyed && id->state != ib_cm_id::State::listens)
            all.push_back(id);
    if (all.empty())
        return;
    const ib_cm_id& id = *all[random.below(all.size())];
    if (id.remote_node == nobody)
        return;
    constexpr Kind kinds[] = {Kind::rep, Kind::rtu, Kind::rej, Kind::dreq, Kind::drep};
    Mad mad{one_of(kinds), id.remote_node, node, random.one_in(2) ? id.remote_id : random.next() >> 1, id.serial};
    mad.qpn = static_cast<std::uint32_t>(random.between(0x100000, 0xffffff));
    mad.reason = static_cast<unsigned int>(random.one_in(2) ? random.below(40) : random.below(0x10000));
    if (mad.kind == Kind::rep) {
        mad.data = random_bytes(SHIM_CM_REP_PRIVATE_BYTES);
        change(mad);
    }
    arrive(mad);
}

void Cm::forge_request(unsigned int node)
{
    Random& random = world->scheduler.random();
    std::vector<const ib_cm_id*> listeners;
    for (const auto& [_, id] : ids_)
        if (id->ca->node == node && !id->destroyed && id->state == ib_cm_id::State::listens)
            listeners.push_back(id);
    if (listeners.empty())
        return;
    const auto from = static_cast<unsigned int>((node + 1 + random.below(world->node_count - 1)) % world->node_count);
    // An unused identifier number, and as a rule an unused queue pair number.
    Mad mad{Kind::req, from, node, (std::uint64_t(1) << 62) + random.below(1 << 30), 0};
    mad.service = listeners[random.below(listeners.size())]->service;
    mad.qpn =
        static_cast<std::uint32_t>(random.one_in(16) ? random.between(0x40, 0x80) : random.between(0x100000, 0xffffff));
    // Private data as the claimed peer would send.
    const net_device* dev = world->stack.find({from, 0});
    ipoib::PrivateData data{
        {kernel::Be32(dev ? ipoib::HwAddr::from(dev->address.data()).qpn() : 0x40), kernel::Be32(2048)}, {}};
    mad.data.resize(SHIM_CM_REQ_PRIVATE_BYTES);
    std::memcpy(mad.data.data(), &data, sizeof(data));
    change(mad);
    if (random.one_in(3)) {
        mad.stranger = true;
        const auto bytes = random_bytes(sizeof(mad.seems.raw));
        std::memcpy(mad.seems.raw, bytes.data(), bytes.size());
    }
    arrive(mad);
}

} // namespace sim
