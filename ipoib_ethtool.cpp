// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// ethtool: statistics, link speed, interrupt moderation, ring sizes, channels, private flags.
#include <algorithm>
#include <array>

#include <ipoib/interface.hpp>
#include <shim/ethtool.h>

namespace ipoib {

namespace {

struct Statistic {
    const char* name;
    std::uint64_t (*value)(const Interface& interface, const shim_stats& sums);
};

#define SUM(field)                                                                                                     \
    {                                                                                                                  \
#field, [](const Interface&, const shim_stats& sums) { return sums.field; }                                    \
    }
#define COUNTER(name, counter)                                                                                         \
    {                                                                                                                  \
        name, [](const Interface& interface, const shim_stats&) { return interface.counter.value(); }                  \
    }
#define QUEUES_COUNTER(name, queues, counter)                                                                          \
    {                                                                                                                  \
        name, [](const Interface& interface, const shim_stats&) {                                                      \
            return interface.queues.sum([](const auto& queue) { return queue.counter.value(); });                      \
        }                                                                                                              \
    }

// The first eight are the in-tree driver's, in its order; some programs use their index.
constexpr Statistic statistics[] = {
    SUM(rx_packets),
    SUM(tx_packets),
    SUM(rx_bytes),
    SUM(tx_bytes),
    SUM(tx_errors),
    SUM(rx_dropped),
    SUM(tx_dropped),
    SUM(multicast),
    QUEUES_COUNTER("rx_errors", rx, errors),
    QUEUES_COUNTER("tx_doorbells", tx, ring.doorbells),
    QUEUES_COUNTER("tx_cm_doorbells", tx, pool.doorbells),
    QUEUES_COUNTER("tx_queue_stopped", tx, stops),
    QUEUES_COUNTER("tx_tso_segments", tx, ring.segmented),
    QUEUES_COUNTER("rx_doorbells", rx, doorbells),
    QUEUES_COUNTER("rx_cq_events", rx, events),
    QUEUES_COUNTER("rx_gro_hw_merged", rx, merged),
    QUEUES_COUNTER("rx_copybreak", rx, copied),
    COUNTER("tx_dropped_no_path", paths.dropped),
    COUNTER("tx_dropped_no_group", groups.dropped),
    COUNTER("tx_too_long", pmtu.too_long),
    COUNTER("path_queries", paths.queries),
    COUNTER("path_query_failures", paths.failures),
    COUNTER("path_limit_reached", paths.limits_reached),
    COUNTER("group_joins", groups.joins),
    COUNTER("group_join_failures", groups.failures),
    COUNTER("cm_req_sent", connections.active.requests_sent),
    COUNTER("cm_established", connections.active.established),
    COUNTER("cm_req_failed", connections.active.requests_failed),
    COUNTER("cm_disconnected", connections.active.disconnected),
    COUNTER("cm_passive_accepted", connections.passive.accepted),
    COUNTER("cm_passive_rejected", connections.passive.rejected),
    COUNTER("cm_malformed", connections.malformed),
};

#undef SUM
#undef COUNTER
#undef QUEUES_COUNTER

// Mb/s of one lane, by the kernel's enum ib_port_speed.
unsigned int lane_speed(unsigned int code)
{
    switch (code) {
    case 1:
        return 2500;
    case 2:
        return 5000;
    case 4:
    case 8: // FDR10
        return 10000;
    case 16:
        return 14000;
    case 32:
        return 25000;
    case 64:
        return 50000;
    case 128:
        return 100000;
    case 256:
        return 200000;
    default:
        return 0;
    }
}

unsigned int lanes(unsigned int code)
{
    switch (code) {
    case 1:
        return 1;
    case 2:
        return 4;
    case 4:
        return 8;
    case 8:
        return 12;
    case 16:
        return 2;
    default:
        return 0;
    }
}

} // namespace

} // namespace ipoib

using ipoib::Interface;

unsigned int ipoib_ethtool_speed(const net_device* dev)
{
    const Interface& interface = Interface::of(dev);
    shim_port port;
    if (shim_helper_ib_query_port(interface.ca(), interface.identity.port(), &port) != 0)
        return 0;
    return ipoib::lane_speed(port.speed) * ipoib::lanes(port.width);
}

// The number does not depend on how many queues are in use: programs read it, the names and the values one after the
// other.
unsigned int ipoib_ethtool_statistics_count(const net_device*)
{
    constexpr unsigned int of_a_queue = 2;
    return static_cast<unsigned int>(std::size(ipoib::statistics)) +
           of_a_queue * (SHIM_MAX_RX_QUEUES + SHIM_MAX_TX_QUEUES);
}

void ipoib_ethtool_statistic_names(const net_device*, char* names)
{
    for (const auto& statistic : ipoib::statistics) {
        shim_scnprintf(names, SHIM_ETHTOOL_NAME_BYTES, "%s", statistic.name);
        names += SHIM_ETHTOOL_NAME_BYTES;
    }
    const auto name_queues = [&names](const char* direction, unsigned int count) {
        for (unsigned int i = 0; i < count; ++i) {
            for (const char* what : {"packets", "bytes"}) {
                shim_scnprintf(names, SHIM_ETHTOOL_NAME_BYTES, "%s%u_%s", direction, i, what);
                names += SHIM_ETHTOOL_NAME_BYTES;
            }
        }
    };
    name_queues("rx", SHIM_MAX_RX_QUEUES);
    name_queues("tx", SHIM_MAX_TX_QUEUES);
}

void ipoib_ethtool_statistics(const net_device* dev, std::uint64_t* values)
{
    const Interface& interface = Interface::of(dev);
    shim_stats sums{};
    interface.sum_statistics(sums);
    for (const auto& statistic : ipoib::statistics)
        *values++ = statistic.value(interface, sums);
    const auto write_queues = [&values](const auto& queues) {
        for (const auto& queue : queues) {
            *values++ = queue.packets.value();
            *values++ = queue.bytes.value();
        }
    };
    write_queues(interface.rx);
    write_queues(interface.tx);
}

void ipoib_ethtool_get_moderation(const net_device* dev, shim_moderation* moderation)
{
    (void)ipoib_ethtool_get_queue_moderation(dev, 0, moderation);
}

TA_REQUIRES(kernel::rtnl) int ipoib_ethtool_set_moderation(net_device* dev, const shim_moderation* moderation)
{
    return Interface::of(dev)
        .settings.set_moderation({moderation->usecs, moderation->frames}, moderation->adaptive)
        .code();
}

int ipoib_ethtool_get_queue_moderation(const net_device* dev, std::uint32_t queue, shim_moderation* moderation)
{
    const Interface& interface = Interface::of(dev);
    if (queue >= interface.rx.count())
        return kernel::invalid;
    const auto [usecs, frames] = interface.rx[queue].moderation();
    *moderation = {usecs, frames, interface.rx[queue].adaptive()};
    return 0;
}

TA_REQUIRES(kernel::rtnl)
int ipoib_ethtool_set_queue_moderation(net_device* dev, std::uint32_t queue, const shim_moderation* moderation)
{
    return Interface::of(dev)
        .settings.set_queue_moderation(queue, {moderation->usecs, moderation->frames}, moderation->adaptive)
        .code();
}

void ipoib_ethtool_get_rings(const net_device* dev, shim_rings* rings)
{
    const auto [sends, receives] = Interface::of(dev).queues.sizes();
    *rings = {sends, receives, ipoib::RingSizes::max_slots, ipoib::RingSizes::max_slots};
}

TA_REQUIRES(kernel::rtnl) int ipoib_ethtool_set_rings(net_device* dev, unsigned int sends, unsigned int receives)
{
    return Interface::of(dev).settings.set_ring_sizes({sends, receives}).code();
}

void ipoib_ethtool_get_channels(const net_device* dev, shim_channels* channels)
{
    const Interface& interface = Interface::of(dev);
    // An rdma_netdev has its own number, which the user cannot change.
    const unsigned int transmits = interface.settings.transmit_queues();
    *channels = {transmits, interface.rx.count(), std::max(transmits, interface.further_queues.max_transmit()),
                 interface.further_queues.max_receive()};
}

TA_REQUIRES(kernel::rtnl) int ipoib_ethtool_set_channels(net_device* dev, unsigned int transmits, unsigned int receives)
{
    return Interface::of(dev).settings.set_queues(transmits, receives).code();
}

void ipoib_ethtool_flag_names(char* names) { shim_scnprintf(names, SHIM_ETHTOOL_NAME_BYTES, "icrc-as-checksum"); }

std::uint32_t ipoib_ethtool_get_flags(const net_device* dev)
{
    return Interface::of(dev).settings.icrc_as_checksum() ? std::uint32_t{IPOIB_FLAG_ICRC_AS_CHECKSUM} : 0;
}

TA_REQUIRES(kernel::rtnl) int ipoib_ethtool_set_flags(net_device* dev, std::uint32_t flags)
{
    return Interface::of(dev).settings.set_icrc_as_checksum(flags & IPOIB_FLAG_ICRC_AS_CHECKSUM).code();
}
