// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Beginning and end of a session, and the invariants in between.
#include "session.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <ipoib/encapsulation.hpp>
#include <ipoib/tcp.hpp>

namespace ipoib::fuzz {

namespace {

// Settings chosen by the first byte of an input.
enum Choice : std::uint8_t {
    without_srq = 1,
    no_merging = 2,
    rx_checksum_off = 4,
    connected_mode = 8,
    without_offloads = 16,
    gro_holds_packets = 32,
    own_datapath = 64,
    short_rings = 128,
};

// Maximum time in one input: more adds no new behaviour.
constexpr unsigned long max_ticks = 400000;

const bool told = std::getenv("FUZZ_TELL") != nullptr;

} // namespace

void require(bool condition, const char* what)
{
    if (condition)
        return;
    std::fprintf(stderr, "FAILED: %s\n", what);
    std::abort();
}

Session::Session(Input& input) : input_(input)
{
    const std::uint8_t choices = input.byte();
    world_.have_srq = !(choices & without_srq);
    world_.features = choices & without_offloads ? static_cast<unsigned int>(SHIM_FEATURE_SG) : world_.features;
    world_.gro_holds_packets = choices & gro_holds_packets;
    world_.have_rdma_netdev = choices & own_datapath;
    // Smallest rings: larger ones behave alike.
    shim_parameters.send_queue_size = 128;
    shim_parameters.recv_queue_size = choices & short_rings ? 2 : 8;
    shim_parameters.max_nonsrq_conn_qp = 4;
    world_.start();
    world_.dev().gro_hw = !(choices & (no_merging | rx_checksum_off));
    world_.dev().rx_checksum = !(choices & rx_checksum_off);
    ends_at_ = world_.now + max_ticks;
    if (choices & connected_mode && !(choices & own_datapath)) {
        constexpr char word[] = "connected";
        require(world_.store(&world_.dev(), IPOIB_ATTRIBUTE_MODE, word, sizeof(word) - 1) > 0,
                "connected mode was refused");
    }
}

Session::~Session()
{
    have_everything();
    // Children first, as the driver has them brought down with their parent.
    for (auto it = world_.netdevs.rbegin(); it != world_.netdevs.rend(); ++it)
        bring_down(*it);
    look_at_all();
    world_.stop();
    take_received();
}

void Session::bring_up()
{
    {
        Rtnl rtnl;
        require(ipoib_ndo_open(&world_.dev()) == 0, "the interface did not open");
        world_.dev().up = true;
    }
    poll();
    work();
    world_.answer_broadcast();
    work();
    require(world_.dev().carrier, "no carrier after the broadcast group was joined");
}

void Session::play(std::span<const Operation> operations)
{
    while (!input_.empty()) {
        const Operation& operation = operations[input_.below(operations.size())];
        if (told)
            std::fprintf(stderr, "%6lu %s\n", world_.now, operation.name);
        (this->*operation.perform)();
        take_received();
        look_at_all();
    }
}

void Session::have_everything()
{
    world_.fail_allocation = world_.fail_cm = 0;
    world_.fail_mapping = world_.fail_qps = 0;
    world_.sends_until_failure = world_.receives_until_failure = -1;
    world_.fail_pages = world_.refuse_srq = world_.mute = world_.answer_while_leaving = false;
    world_.status_of_cancelled = -4;
    world_.administrator = true;
    world_.ca.moderation_error = 0;
}

net_device* Session::device()
{
    return world_.netdevs.empty() ? nullptr : world_.netdevs[input_.below(world_.netdevs.size())];
}

// Delivered packets equal arrived ones, in order unless segments are merged; missing ones were dropped or merged.
void Session::take(sk_buff& skb)
{
    Count& count = counts_[skb.dev];
    count.received += std::max(skb.segments, 1U);
    require(skb.mac_header.size() == IPOIB_HEADER_BYTES, "a packet came up without its link header");
    require(skb.mac_header[HwAddr::size] << 8 == (skb.protocol & 0xff00) &&
                skb.mac_header[HwAddr::size + 1] == (skb.protocol & 0xff),
            "a packet came up with another protocol than it said");
    require(std::all_of(skb.mac_header.begin(), skb.mac_header.begin() + HwAddr::size, [](auto b) { return b == 0; }),
            "a packet came up with a destination in its link header");
    const std::uint8_t* const data = shim_skb_data(&skb);
    const std::size_t bytes = shim_skb_len(&skb);
    require(skb.segments || bytes <= IPOIB_MAX_MTU, "a packet came up that is longer than any MTU");
    if (skb.segments) {
        const auto& ip = *reinterpret_cast<const Ipv4Header*>(data);
        require(ip.total_bytes.value() == bytes, "a merged packet has another length than its header says");
        require(internet_checksum(&ip, sizeof(ip)) == 0, "a merged packet's header has a wrong sum");
        require(skb.verified, "what was merged was not verified");
    }
    if (skb.segments)
        return;
    const auto it = std::find_if(count.arrived.begin(), count.arrived.end(), [&](const Count::Frame& frame) {
        return frame.bytes == bytes && std::equal(frame.begins_with.begin(), frame.begins_with.end(), data);
    });
    require(it != count.arrived.end(), "what came up is not what arrived, or came twice");
    // The merger may deliver another flow before the first, and its segments are never looked for.
    count.arrived.erase(skb.dev->gro_hw ? it : count.arrived.begin(), it + 1);
}

void Session::take_received()
{
    for (sk_buff* skb : world_.received) {
        // The packet's netdev may be gone.
        if (std::count(world_.netdevs.begin(), world_.netdevs.end(), skb->dev))
            take(*skb);
        shim_napi_consume_skb(skb, 0);
    }
    world_.received.clear();
}

void Session::look(net_device* dev)
{
    const Interface& interface = of(dev);
    require(dev->queued_bytes >= 0, "byte queue limits were told of more than was sent");
    require(dev->mtu >= min_mtu && dev->mtu <= IPOIB_MAX_MTU, "an MTU that no link has is in force");
    shim_stats stats{};
    ipoib_ndo_get_stats(dev, &stats);
    require(stats.rx_packets >= counts_[dev].received, "more packets came up than were counted");
    if (!interface.has_queues())
        return;
    const ib_qp* const qp = interface.queues.qp();
    if (!qp || !interface.rx[0].cq() || !interface.tx[0].cq())
        return;
    require(interface.rx[0].cq()->entries.size() <= interface.rx[0].cq()->size, "the receive completion queue overran");
    require(interface.tx[0].cq()->entries.size() <= interface.tx[0].cq()->size, "the send completion queue overran");
    require(qp->outstanding.size() <= qp->send_wrs && qp->receives.size() <= qp->recv_wrs,
            "more was posted than fits into the queue pair");
    require(interface.rx[0].ring.outstanding() <= interface.queues.sizes().receives,
            "more receives are out than there are");
    if (in_service(qp))
        require(interface.rx[0].ring.outstanding() >= qp->receives.size(), "the HCA has receives that are not counted");
}

void Session::look_at_all()
{
    require(world_.spinning == 0, "a lock is held, or bottom halves are off");
    require(!world_.rtnl, "RTNL is held");
    for (const unsigned int mtu : world_.updated_pmtus)
        require(mtu != 0 && mtu <= IPOIB_MAX_MTU, "an ICMP error reports an MTU that no path has");
    world_.updated_pmtus.clear();
    std::erase_if(counts_, [this](const auto& entry) {
        return std::find(world_.netdevs.begin(), world_.netdevs.end(), entry.first) == world_.netdevs.end();
    });
    for (net_device* dev : world_.netdevs)
        look(dev);
}

// After close nothing waits: each packet handed over was sent or dropped, and each arrived one was counted.
void Session::bring_down(net_device* dev)
{
    if (!std::exchange(dev->up, false))
        return;
    world_.run_polls();
    {
        Rtnl rtnl;
        ipoib_ndo_stop(dev);
    }
    take_received();
    const Interface& interface = of(dev);
    if (!interface.has_queues())
        return;
    shim_stats stats{};
    ipoib_ndo_get_stats(dev, &stats);
    const Count& count = counts_[dev];
    const std::uint64_t ended = stats.tx_packets + stats.tx_dropped;
    require(ended >= count.handed && ended <= count.handed + interface.tx[0].ring.segmented.value(),
            "packets handed over are not those sent and dropped");
    require(stats.rx_packets == count.received, "packets that came up are not those counted");
    require(interface.rx[0].ring.outstanding() == 0 && interface.tx[0].outstanding() == 0,
            "a closed interface has its rings in use");
    require(dev->queued_bytes == 0, "byte queue limits know of packets that a closed interface has");
}

} // namespace ipoib::fuzz
