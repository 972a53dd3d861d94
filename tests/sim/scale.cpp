// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "scale.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include <ipoib/mgid.hpp>

#include "world.hpp"

namespace sim {

namespace {

// Everything in flight has ended by then, or never will.
constexpr Time max_part = 600 * second;
// Hosts are switched on, and programs started, within this time.
constexpr Time start_spread = second;
// Groups of each host: all hosts, as 224.0.0.1; and one of its own, as IPv6's solicited node.
constexpr unsigned int all_hosts = 1, own_groups = 0x100;

class ScaleRun {
public:
    explicit ScaleRun(const Scale& scale) : scale_(scale), world_(1, 0, scale.nodes)
    {
        world_.scheduler.be_calm();
        world_.sm.service = scale.service;
        world_.quiet = true;
        // Rings of one size for all scales, whatever the driver's defaults are.
        shim_parameters.send_queue_size = 512;
        shim_parameters.recv_queue_size = 256;
    }

    void go()
    {
        world_.watch();
        world_.scheduler.run_process("insmod", [] { SIM_CHECK(ipoib_start() == 0, "the module does not start"); });
        part(
            "start", [this] { switch_on(); },
            [this] { return carriers() == scale_.nodes && memberships() == 3 * scale_.nodes; });
        part(
            "first packets", [this] { speak(); }, [this] { return everybody_was_heard(); });
        part(
            "SM restart", [this] { restart_sm(); },
            [this] {
                return carriers() == scale_.nodes && members_of_broadcast() == scale_.nodes &&
                       memberships() == 3 * scale_.nodes;
            });
        world_.unload();
    }

private:
    // Starts an action on each host; returns the time from the last start until all are done.
    template <class Do, class Done>
    void part(const char* name, Do begin, Done done)
    {
        Scheduler& scheduler = world_.scheduler;
        const std::uint64_t requests = world_.sm.requests, unanswered = world_.sm.unanswered;
        const std::uint64_t carried = world_.fabric.carried, lost = world_.fabric.lost;
        scheduler.run_process(name, begin);
        const Time began = scheduler.now();
        scheduler.run_process(name, [&] {
            while (!done()) {
                SIM_CHECK(scheduler.now() - began < max_part, "%s: does not end", name);
                scheduler.sleep(10 * millisecond);
            }
        });
        const auto counted = [](std::uint64_t count) { return static_cast<unsigned long long>(count); };
        std::printf("%-13s of %5u: %7.2f s; SA: %7llu requests, %5llu unanswered; datagrams: %9llu came, %llu lost\n",
                    name, scale_.nodes, static_cast<double>(scheduler.now() - began) / second,
                    counted(world_.sm.requests - requests), counted(world_.sm.unanswered - unanswered),
                    counted(world_.fabric.carried - carried), counted(world_.fabric.lost - lost));
        std::fflush(stdout);
    }

    net_device* dev(unsigned int node) const { return world_.stack.find({node, 0}); }
    Time sometime() { return world_.scheduler.random().below(start_spread); }

    void switch_on()
    {
        for (unsigned int node = 0; node < scale_.nodes; ++node)
            world_.scheduler.after(sometime(), [this, node] {
                world_.scheduler.spawn("host", Fiber::Kind::process, [this, node] {
                    const RtnlGuard rtnl;
                    dev(node)->multicast = {Stack::group_address(dev(node), all_hosts),
                                            Stack::group_address(dev(node), own_groups + node)};
                    SIM_CHECK(world_.stack.open(dev(node)) == 0, "%s can't be opened", dev(node)->name.c_str());
                });
            });
        world_.scheduler.sleep(start_spread);
    }

    void speak()
    {
        Random& random = world_.scheduler.random();
        for (unsigned int node = 0; node < scale_.nodes; ++node)
            for (unsigned int i = 1; i <= std::min(scale_.peers, scale_.nodes - 1); ++i) {
                // All peers, or this many at random.
                const bool all = scale_.peers >= scale_.nodes - 1;
                const auto step = all ? i : static_cast<unsigned int>(random.between(1, scale_.nodes - 1));
                const unsigned int peer = (node + step) % scale_.nodes;
                unheard_.emplace_back(node, peer);
                world_.scheduler.after(sometime(), [this, node, peer] {
                    world_.scheduler.spawn("program", Fiber::Kind::process, [this, node, peer] {
                        world_.stack.send_data(dev(node), {peer, 0}, 100);
                    });
                });
            }
        world_.scheduler.sleep(start_spread);
        again();
    }

    bool everybody_was_heard()
    {
        std::erase_if(unheard_, [this](const auto& pair) {
            return world_.stack.received({pair.first, 0}, {pair.second, 0}) > 0;
        });
        return unheard_.empty();
    }

    // Repeats unanswered packets, as TCP does.
    void again()
    {
        if (everybody_was_heard())
            return;
        for (const auto& [from, to] : unheard_)
            world_.stack.send_data(dev(from), {to, 0}, 100);
        for (unsigned int node = 0; node < scale_.nodes; ++node)
            world_.stack.look_at_neighbours(dev(node));
        world_.scheduler.after(second,
                               [this] { world_.scheduler.spawn("again", Fiber::Kind::process, [this] { again(); }); });
    }

    void restart_sm()
    {
        world_.sm.forget(nullptr);
        for (const auto& ca : world_.devices)
            dispatch(*ca, SHIM_IB_EVENT_CLIENT_REREGISTER);
    }

    unsigned int carriers() const
    {
        const auto& devs = world_.stack.devs;
        return static_cast<unsigned int>(
            std::count_if(devs.begin(), devs.end(), [](const net_device* one) { return one->active; }));
    }
    std::size_t memberships() const { return world_.sm.joined(); }
    std::size_t members_of_broadcast() const
    {
        return world_.sm.members(ipoib::broadcast_gid(ipoib::PKey(0xffff)).native());
    }

    const Scale scale_;
    World world_;
    std::vector<std::pair<unsigned int, unsigned int>> unheard_;
};

} // namespace

void run_scale(const Scale& scale)
{
    ScaleRun run(scale);
    run.go();
}

} // namespace sim
