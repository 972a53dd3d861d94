// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "quiet.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <ipoib/flow_balancer.hpp>

#include "world.hpp"

namespace sim {

namespace {

// Time for which traffic is judged, and time until packets in flight have arrived.
constexpr Time judged = 60 * second, settling = 5 * second;
// Time within which each node has communicated with all others several times.
constexpr Time round_of_traffic = 20 * second;
// Four garbage collections.
constexpr Time calm = 120 * second;
// Transitions of a connection that breaks, is requested again, and perhaps refused first.
constexpr unsigned int moves_each = 8;
// Maximum path queries of each interface in a minute. Aged paths are queried again, memberships and connections are
// kept.
constexpr unsigned int max_path_queries_each = 1;

struct Pair {
    const net_device *from, *to;
    std::uint64_t sent, received, lost, connected;
};

void run_for(Time time) { world->scheduler.run(world->scheduler.now() + time); }

// Pairs of interfaces in one partition.
std::vector<Pair> pairs()
{
    const Stack& stack = world->stack;
    std::vector<Pair> all;
    for (const net_device* from : stack.devs)
        for (const net_device* to : stack.devs)
            if (from != to && from->party.part == to->party.part)
                all.push_back({from, to, stack.sent_to(from->party, to->party), stack.received(from->party, to->party),
                               stack.lost(from->party, to->party), stack.connected(from->party, to->party)});
    return all;
}

void check_carriers()
{
    for (unsigned int node = 0; node < world->node_count; ++node)
        SIM_CHECK(world->stack.find({node, 0}), "node %u is not back: no interface", node);
    for (const net_device* dev : world->stack.devs)
        SIM_CHECK(dev->up && dev->carrier, "node %u is not back: %s is %s", dev->party.node, dev->name.c_str(),
                  dev->up ? "without carrier" : "down");
}

void check_mtus()
{
    for (const net_device* dev : world->stack.devs) {
        const unsigned int max_mtu = world->sm.link_mtu() - 4;
        SIM_CHECK(!ipoib_offloads_sends(dev) || dev->mtu == max_mtu || (dev->mtu_set && dev->mtu < max_mtu),
                  "%s: an MTU of %u, and its group's is %u", dev->name.c_str(), dev->mtu, max_mtu);
    }
}

void check_groups()
{
    const Pairs<std::uint64_t> before = world->group_packets;
    world->scheduler.run_process("groups", [] {
        for (net_device* dev : std::vector(world->stack.devs))
            for (int i = 0; i < 3; ++i) {
                world->stack.send_group(dev, 1, 60);
                world->scheduler.sleep(2 * second);
            }
    });
    run_for(settling);
    const auto index = [](const net_device* dev) { return dev->party.node * 2 + dev->party.part; };
    for (const Pair& pair : pairs())
        SIM_CHECK(world->group_packets.value(index(pair.from), index(pair.to)) >
                      before.value(index(pair.from), index(pair.to)),
                  "node %u does not reach node %u by their group (interfaces %u)", pair.from->party.node,
                  pair.to->party.node, pair.from->party.part);
}

// Packets may be lost only where a receiver has no buffers.
void check_loss(const std::vector<Pair>& before)
{
    const std::vector<Pair> after = pairs();
    SIM_CHECK(after.size() == before.size(), "interfaces come and go in quiet");
    for (std::size_t i = 0; i < after.size(); ++i) {
        const Pair &then = before[i], &now = after[i];
        const std::uint64_t sent = now.sent - then.sent, came = now.received - then.received;
        SIM_CHECK(came + now.lost - then.lost >= sent,
                  "%s to %s in quiet: of %llu packets %llu came, %llu were excused", now.from->name.c_str(),
                  now.to->name.c_str(), static_cast<unsigned long long>(sent), static_cast<unsigned long long>(came),
                  static_cast<unsigned long long>(now.lost - then.lost));
        const bool connects = !ipoib_offloads_sends(now.from) && now.to->address[0] & ipoib::HwAddr::flag_rc;
        const std::uint64_t connected = now.connected - then.connected;
        SIM_CHECK(connects ? connected == came || now.lost != then.lost : connected == 0,
                  "%s to %s: %llu packets of %llu came by a connection", now.from->name.c_str(), now.to->name.c_str(),
                  static_cast<unsigned long long>(connected), static_cast<unsigned long long>(came));
    }
}

} // namespace

void check_pairs()
{
    const std::vector<Pair> before = pairs();
    run_for(round_of_traffic);
    for (const Pair& pair : before)
        SIM_CHECK(world->stack.received(pair.from->party, pair.to->party) > pair.received,
                  "node %u does not reach node %u (interfaces %u)", pair.from->party.node, pair.to->party.node,
                  pair.from->party.part);
}

void judge_quiet()
{
    check_carriers();
    check_mtus();
    check_groups();
    check_pairs();

    world->silent = true;
    run_for(settling);
    const std::vector<Pair> before = pairs();
    const std::uint64_t queries = world->sm.queries, joins = world->sm.joins, requests = world->cm.requests,
                        starved = world->cm.starved;
    world->silent = false;
    run_for(judged);
    world->silent = true;
    run_for(settling);
    world->silent = false;
    check_loss(before);
    const std::size_t devs = world->stack.devs.size();
    SIM_CHECK(world->sm.queries - queries <= max_path_queries_each * devs, "%llu path record queries a minute in quiet",
              static_cast<unsigned long long>(world->sm.queries - queries));
    SIM_CHECK(world->sm.joins == joins, "%llu joins a minute in quiet",
              static_cast<unsigned long long>(world->sm.joins - joins));
    // A receiver without buffers breaks a connection, which is requested again once, perhaps without success for a
    // while.
    SIM_CHECK(world->cm.requests - requests <= 8 * (world->cm.starved - starved),
              "%llu REQs a minute in quiet, and %llu connections broke",
              static_cast<unsigned long long>(world->cm.requests - requests),
              static_cast<unsigned long long>(world->cm.starved - starved));
    SIM_NOTE("quiet: %llu queries, %llu joins, %llu REQs, %llu starved",
             static_cast<unsigned long long>(world->sm.queries - queries),
             static_cast<unsigned long long>(world->sm.joins - joins),
             static_cast<unsigned long long>(world->cm.requests - requests),
             static_cast<unsigned long long>(world->cm.starved - starved));
}

// Connections may change if an HCA broke one since its receiver had no buffers: until the next packet for the peer. One
// of several to a peer may end at any time, as traffic need not use it.
void check_nothing_moves()
{
    const std::uint64_t broken_off = world->broken_off;
    // Further connections to a peer end when they are not used.
    run_for((ipoib::FlowTable::max_unused_s + 2 * ipoib::FlowBalancer::check_interval_s) * second);
    const Machines& machines = world->machines;
    const Machines before = machines;
    const std::size_t connected = world->stack.connected_pairs();
    const std::uint64_t requests = world->cm.requests + world->cm.further_requests;
    run_for(calm);
    const bool one_of_several_ended =
        world->cm.requests + world->cm.further_requests == requests && world->stack.connected_pairs() == connected;
    for (const unsigned int machine : {Machines::path, Machines::active, Machines::interface}) {
        const std::uint64_t moves = machines.moves(machine) - before.moves(machine);
        SIM_CHECK(moves == 0 || (machine == Machines::active &&
                                 (one_of_several_ended || moves <= moves_each * (world->broken_off - broken_off))),
                  "%llu transitions while nothing happens, the last %s", static_cast<unsigned long long>(moves),
                  machines.last_move(machine).c_str());
    }
}

void check_reconnection()
{
    for (const auto& ca : world->devices)
        for (const auto& [_, qp] : ca->qps) {
            ib_qp* const passive = qp->connected ? qp->peer() : nullptr;
            if (!passive || qp->state != ib_qp::State::rts || qp->context)
                continue;
            // One of several connections to a peer is not replaced.
            const auto to_the_same = [&](const auto& other) {
                const ib_qp* const peer = other.second->connected ? other.second->peer() : nullptr;
                return peer && peer->ca == passive->ca && !other.second->context;
            };
            if (std::ranges::count_if(ca->qps, to_the_same) > 1)
                continue;
            // The sender finds the connection gone with the next packet.
            world->cm.stale_next = ca->node;
            passive->state = ib_qp::State::error;
            passive->kick();
            run_for(round_of_traffic);
            SIM_CHECK(world->cm.stale_next == Cm::nobody, "%s requests no connection in place of a broken one",
                      ca->name.c_str());
            return;
        }
}

} // namespace sim
