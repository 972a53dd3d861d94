// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Course of a run: start, traffic under faults, quiet, end.
#include "scenario.hpp"

#include <algorithm>
#include <iterator>

#include "faults.hpp"
#include "quiet.hpp"
#include "watched.hpp"
#include "world.hpp"

namespace sim {

namespace {

// Time after the end of all faults within which all parties reach each other.
constexpr Time time_to_recover = 200 * second;
constexpr Time outage = 600 * second;

constexpr const char* fault_names[] = {
    "link_down",
    "link_flaps",
    "lid_change",
    "sm_restart",
    "reregister_storm",
    "sa_silence",
    "sa_refusal",
    "sa_slowness",
    "pkey_lost",
    "pkey_moved",
    "gid_event",
    "unplug",
    "down_up",
    "down_up_storm",
    "mode_change",
    "mode_storm",
    "child_by_file",
    "child_by_netlink",
    "child_gone",
    "rings",
    "memory_pressure",
    "loss",
    "send_errors",
    "receive_errors",
    "no_queue_pairs",
    "post_errors",
    "stall",
    "mute",
    "cm_loss",
    "memberships",
    "mtu",
    "umcast",
    "icrc_as_checksum",
    "burst",
    "busy_flows",
    "groups_burst",
    "reads",
    "reload",
    "all_down_up",
    "offloads",
    "moderation",
    "link_mtu",
    "hostile_sa",
    "hostile_cm",
};
static_assert(std::size(fault_names) == static_cast<std::size_t>(Fault::count));

class Run {
public:
    Run(std::uint64_t seed, const Options& options) : options_(options), world_(seed, options.salt) {}

    void go(std::uint64_t seed)
    {
        const auto end = static_cast<Time>(options_.hours * 3600 * static_cast<double>(second));
        world_.watch();
        world_.scheduler.run_process("insmod", [this] { start(); });
        for (unsigned int node = 0; node < world_.node_count; ++node)
            world_.scheduler.spawn("traffic of " + std::to_string(node), Fiber::Kind::process,
                                   [this, node] { traffic(node); });
        for (const Planned& planned : plan(seed, options_))
            faults_.schedule(planned);
        world_.scheduler.run(end);
        world_.quiet = true;
        faults_.all_over();
        world_.scheduler.run_process("recovery", [this] { faults_.recover(); });
        world_.scheduler.run(world_.scheduler.now() + time_to_recover);
        judge_quiet();
        check_nothing_moves();
        check_reconnection();
        // The SA is silent for as long as there is no subnet manager: hosts keep their records of each other.
        world_.sm.silent_until = world_.scheduler.now() + 2 * outage;
        world_.silent = true;
        world_.scheduler.run(world_.scheduler.now() + outage);
        world_.silent = false;
        check_pairs();
        world_.over = true;
        world_.scheduler.run(world_.scheduler.now() + 5 * second);
        world_.unload();
    }

private:
    void start()
    {
        SIM_CHECK(ipoib_start() == 0, "the module does not start");
        for (unsigned int node = 0; node < world_.node_count; ++node) {
            const RtnlGuard rtnl;
            net_device* dev = world_.stack.find({node, 0});
            SIM_CHECK(dev, "node %u has no interface", node);
            SIM_CHECK(world_.stack.open(dev) == 0, "%s can't be opened", dev->name.c_str());
            if (world_.scheduler.random().one_in(2))
                SIM_CHECK(ipoib_attribute_store_locked(dev, true) == 0, "%s has no connected mode", dev->name.c_str());
            else if (world_.scheduler.random().one_in(2))
                send_by_several_queues(dev);
        }
    }

    static int ipoib_attribute_store_locked(net_device* dev, bool connected)
    {
        shim_link_request request{};
        request.has_mode = true;
        request.mode = connected;
        return ipoib_changelink(dev, &request, nullptr);
    }

    static void send_by_several_queues(net_device* dev)
    {
        shim_channels channels;
        ipoib_ethtool_get_channels(dev, &channels);
        if (channels.max_transmits > 1)
            SIM_CHECK(ipoib_ethtool_set_channels(dev, 3, channels.receives) == 0, "%s has one transmit queue",
                      dev->name.c_str());
    }

    void traffic(unsigned int node)
    {
        Random& random = world_.scheduler.random();
        const Time gap = random.log_between(300 * millisecond, 6 * second);
        while (!world_.over) {
            world_.scheduler.sleep(random.between(1, 2 * (world_.quiet ? 2 * second : gap)));
            for (unsigned int part = 0; part < 2 && !world_.silent; ++part) {
                net_device* dev = world_.stack.find({node, part});
                if (!dev || !dev->up)
                    continue;
                world_.stack.look_at_neighbours(dev);
                if (world_.quiet)
                    send_to_all(dev);
                else
                    faults_.chat(dev);
            }
        }
    }

    void send_to_all(net_device* dev)
    {
        for (unsigned int peer = 0; peer < world_.node_count; ++peer)
            if (peer != dev->party.node && world_.stack.find({peer, dev->party.part}))
                world_.stack.send_data(dev, {peer, dev->party.part},
                                       static_cast<unsigned int>(world_.scheduler.random().between(60, 3000)));
    }

    const Options& options_;
    World world_;
    Faults faults_;
};

} // namespace

const char* name_of(Fault fault) { return fault_names[static_cast<std::size_t>(fault)]; }

std::vector<Planned> plan(std::uint64_t seed, const Options& options)
{
    Random random(seed ^ 0x91a5);
    const auto end = static_cast<Time>(options.hours * 3600 * static_cast<double>(second));
    // Some seeds have single faults, some a dozen at a time; some have only a few kinds.
    const Time gap = random.log_between(4 * second, 120 * second);
    std::vector<Fault> kinds;
    for (std::size_t i = 0; i < static_cast<std::size_t>(Fault::count); ++i)
        kinds.push_back(static_cast<Fault>(i));
    if (random.one_in(3)) {
        for (std::size_t i = kinds.size() - 1; i > 0; --i)
            std::swap(kinds[i], kinds[random.below(i + 1)]);
        kinds.resize(random.between(2, 8));
    }
    std::vector<Planned> planned;
    std::size_t index = 0;
    bool together = false;
    auto node = static_cast<unsigned int>(random.below(World::usual_nodes));
    for (Time when = 5 * second; when < 3600 * 24 * second;) {
        if (!together || random.one_in(2))
            node = static_cast<unsigned int>(random.below(World::usual_nodes));
        const Planned one{when, kinds[random.below(kinds.size())], node,
                          random.log_between(10 * millisecond, 30 * second), random.next()};
        if (when >= end)
            break;
        if (!options.some_only || options.only.contains(index))
            planned.push_back(one);
        ++index;
        // Some faults start together, half of those on one node.
        together = random.one_in(3);
        if (together)
            when += random.log_between(microsecond, 2 * second);
        else
            when += random.between(1, 2 * gap);
    }
    return planned;
}

void run_seed(std::uint64_t seed, const Options& options)
{
    Run run(seed, options);
    run.go(seed);
    watched->total_steps += world->scheduler.steps();
    watched->nanoseconds += world->scheduler.now();
    watched->delivered += world->stack.delivered;
    watched->sent += world->stack.sent;
    watched->merged += world->stack.merged;
}

} // namespace sim
