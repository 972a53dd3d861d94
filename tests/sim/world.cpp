// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "world.hpp"

#include <cstdlib>
#include <cstring>

namespace sim {

World* world = nullptr;
static char no_names[] = "";

namespace {

// The node is in the last two bytes.
shim_gid gid_of(unsigned int node)
{
    return {{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 2, 0xc9, 3, 0, 0, static_cast<std::uint8_t>((node + 1) >> 8),
             static_cast<std::uint8_t>(node + 1)}};
}

} // namespace

World::World(std::uint64_t seed, std::uint64_t salt, unsigned int node_count)
    : seed(seed), node_count(node_count), scheduler(seed + salt * 1000003)
{
    world = this;
    Random random(seed ^ 0xfab);
    shim_parameters = {128, static_cast<int>(2U << random.below(6)), 16, 0, 0, 0, 0, 1, no_names};
    // Properties that differ between fabrics: the MTU, and the HCAs' features.
    mtu_code = random.one_in(4) ? 5 : 4;
    const bool shared_queues = !random.one_in(4);
    const unsigned int srq_sges = random.one_in(4) ? 2 : 16;
    for (unsigned int node = 0; node < node_count; ++node) {
        auto ca = std::make_unique<ib_device>();
        ca->node = node;
        ca->name = "hca" + std::to_string(node);
        ca->lid = fabric.fresh_lid(*ca);
        ca->gid = gid_of(node);
        ca->mtu = 128U << mtu_code;
        ca->max_srq_sges = shared_queues ? srq_sges : 0;
        ca->max_sges = random.one_in(4) ? 3 : 18;
        constexpr unsigned int features[] = {SHIM_FEATURE_SG, SHIM_FEATURE_SG | SHIM_FEATURE_IP_CSUM,
                                             SHIM_FEATURE_SG | SHIM_FEATURE_IP_CSUM | SHIM_FEATURE_TSO};
        ca->features = features[random.one_in(8) ? 0 : 1 + random.below(2)];
        ca->moderates = !random.one_in(4);
        ca->cleans_queues = !random.one_in(4);
        ca->next_qpn = static_cast<std::uint32_t>(0x40 + random.below(60));
        devices.push_back(std::move(ca));
    }
    sm.begin();
}

ib_device* World::port_of(const shim_gid& gid) const
{
    const unsigned int node = (gid.raw[14] << 8 | gid.raw[15]) - 1U;
    if (node >= devices.size() || std::memcmp(devices[node]->gid.raw, gid.raw, sizeof(gid.raw)) != 0)
        return nullptr;
    return devices[node].get();
}

void World::watch()
{
    stack.watch();
    cm.watch();
    machines.check();
    check_no_old_skbs();
    scheduler.check_nobody_stuck();
    if (!over)
        scheduler.after(second, [this] { watch(); });
}

void World::unload()
{
    over = true;
    scheduler.run_process("rmmod", [] { ipoib_stop(); });
    scheduler.run(~Time(0), [this] { return scheduler.fibers().empty(); });
    memory.check_nothing_left();
    for (const auto& ca : devices)
        sim::check_nothing_left(*ca);
}

World::~World()
{
    for (auto& pages : spare_pages)
        for (std::uint8_t* memory : pages)
            std::free(memory);
    for (page* one : dead_pages)
        delete one;
    for (sk_buff* skb : dead_skbs)
        delete skb;
    world = nullptr;
}

} // namespace sim
