// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "fabric.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>

#include <ipoib/encapsulation.hpp>

#include "world.hpp"

namespace sim {

namespace {

constexpr unsigned int grh_bytes = 40;
constexpr std::uint16_t full_member = 0x8000;

// Checks UDP and TCP checksums over IPv4, as an HCA does.
bool checksum_is_right(const std::vector<std::uint8_t>& datagram)
{
    constexpr std::size_t before = sizeof(ipoib::Encapsulation);
    return datagram.size() >= before + 28 && datagram[0] == 0x08 && datagram[1] == 0 && datagram[before] == 0x45 &&
           checksum_of(datagram.data() + before, datagram.size() - before) == Checksum::right;
}

} // namespace

bool same_partition(std::uint16_t a, std::uint16_t b)
{
    return a && b && ((a ^ b) & ~full_member) == 0 && ((a | b) & full_member);
}

Time Fabric::flight_time() const
{
    Random& random = world->scheduler.random();
    return 2 * microsecond +
           (random.one_in(64) ? random.log_between(microsecond, 5 * millisecond) : random.below(5000));
}

ib_device* Fabric::owner(std::uint16_t lid) const
{
    ib_device* ca = lid < owners_.size() ? owners_[lid] : nullptr;
    return ca && ca->lid == lid ? ca : nullptr;
}

std::uint16_t Fabric::fresh_lid(ib_device& ca)
{
    owners_.push_back(&ca);
    return static_cast<std::uint16_t>(owners_.size() - 1);
}

void Fabric::send(Datagram datagram)
{
    ib_device& from = *datagram.from;
    Random& random = world->scheduler.random();
    if (!from.active || random.one_in(from.loss_one_in)) {
        ++lost;
        return;
    }
    std::vector<ib_device*> to;
    if (datagram.multicast)
        to = world->sm.listeners(datagram.dlid, from);
    else if (ib_device* ca = owner(datagram.dlid))
        to.push_back(ca);
    const auto shared = std::make_shared<const Datagram>(std::move(datagram));
    for (ib_device* ca : to) {
        if (random.one_in(ca->loss_one_in)) {
            ++lost;
            continue;
        }
        Time& last = last_.of(from.node, ca->node);
        last = std::max(last + 1, world->scheduler.now() + flight_time());
        world->scheduler.at(last, [this, ca, shared] { arrive(*ca, *shared); });
    }
}

// A switch discards what is longer than the next link's MTU.
bool Fabric::is_discarded(const ib_device& at, const Datagram& datagram)
{
    if (datagram.bytes.size() <= at.mtu)
        return false;
    SIM_CHECK(world->sm.lied(), "a datagram of %zu bytes for a port whose MTU is %u", datagram.bytes.size(), at.mtu);
    if (!datagram.multicast)
        world->stack.excuse(datagram.bytes.data(), datagram.bytes.size());
    return true;
}

void Fabric::arrive(ib_device& at, const Datagram& datagram)
{
    // No later packet of the pair is in flight, and a new one cannot overtake this one any more.
    if (last_.value(datagram.from->node, at.node) == world->scheduler.now())
        last_.forget(datagram.from->node, at.node);
    if (!at.active || !at.present || at.stalled_until > world->scheduler.now() || is_discarded(at, datagram)) {
        ++lost;
        return;
    }
    const std::string mgid(reinterpret_cast<const char*>(datagram.dgid.raw), sizeof(datagram.dgid.raw));
    std::vector<std::uint8_t> bytes(grh_bytes + datagram.bytes.size(), 0xee);
    if (datagram.multicast) {
        std::memcpy(bytes.data() + 8, datagram.from->gid.raw, 16);
        std::memcpy(bytes.data() + 24, datagram.dgid.raw, 16);
    }
    std::copy(datagram.bytes.begin(), datagram.bytes.end(), bytes.begin() + grh_bytes);
    // One queue pair, or all attached to the group.
    const auto first = datagram.multicast ? at.qps.begin() : at.qps.find(datagram.qpn);
    const auto end = datagram.multicast || first == at.qps.end() ? at.qps.end() : std::next(first);
    for (auto it = first; it != end; ++it) {
        const auto& [number, qp] = *it;
        const bool serves =
            qp->state == ib_qp::State::rtr || qp->state == ib_qp::State::rts || qp->state == ib_qp::State::send_error;
        if (qp->connected || !serves || qp->qkey != datagram.qkey ||
            !same_partition(at.pkeys.at(qp->pkey_index), datagram.pkey))
            continue;
        if (datagram.multicast && !qp->groups.contains({mgid, datagram.dlid}))
            continue;
        if (qp->fail_to_take())
            continue;
        Completion completion;
        completion.source_qpn = datagram.source_qpn;
        completion.slid = datagram.slid;
        completion.grh = datagram.multicast;
        completion.checksum_ok = at.features & SHIM_FEATURE_IP_CSUM && checksum_is_right(datagram.bytes);
        completion.echo = datagram.multicast && datagram.from == &at && datagram.source_qpn == number;
        const bool taken = qp->take(bytes, completion);
        ++(taken ? carried : lost);
        if (!taken && !datagram.multicast)
            world->stack.excuse(datagram.bytes.data(), datagram.bytes.size());
    }
}

} // namespace sim
