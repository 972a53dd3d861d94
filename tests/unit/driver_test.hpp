// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Fixture of the driver's tests on fakes: a World with one interface, and names for its peers.
#pragma once
#include <algorithm>

#include <gtest/gtest.h>

#include <ipoib/interface.hpp>
#include <ipoib/mgid.hpp>

#include "fakes.hpp"

namespace ipoib {

class DriverTest : public testing::Test {
protected:
    void SetUp() override { world.start(); }
    void TearDown() override { world.stop(); }

    Interface& interface() { return Interface::of(&world.dev()); }
    void open() { world.bring_up(); }
    static Gid gid(std::uint8_t n) { return Gid{{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, n}}; }
    // A neighbour: its port and its queue pair.
    static HwAddr peer(std::uint8_t port, std::uint32_t qpn = 0x100) { return HwAddr::of(0, qpn, gid(port)); }
    static Gid group(std::uint16_t n)
    {
        Gid mgid = broadcast_gid(PKey(0xffff));
        mgid.bytes[12] = mgid.bytes[13] = 0;
        mgid.bytes[14] = static_cast<std::uint8_t>(n >> 8);
        mgid.bytes[15] = static_cast<std::uint8_t>(n);
        return mgid;
    }
    static HwAddr to_group(std::uint16_t n) { return HwAddr::of(0, HwAddr::multicast_qpn, group(n)); }
    // Sends to a peer whose path is known afterwards.
    void meet(const HwAddr& address, std::uint16_t dlid = 5)
    {
        world.transmit(world.packet(address));
        world.answer_path(0, dlid);
        world.complete_sends(world.qp().outstanding.size());
    }
    void set_groups(std::initializer_list<std::uint8_t> groups)
    {
        world.dev().multicast.clear();
        for (const std::uint8_t n : groups)
            world.dev().multicast.push_back(to_group(n));
        ipoib_ndo_set_rx_mode(&world.dev());
        world.run_work();
    }
    shim_stats statistics()
    {
        shim_stats stats{};
        ipoib_ndo_get_stats(&world.dev(), &stats);
        return stats;
    }
    // Returns whether the log has a line of this format.
    bool logged(const char* format) const
    {
        return std::find(world.log.begin(), world.log.end(), format) != world.log.end();
    }
    // Raises CLIENT_REREGISTER, and runs the work.
    void reregister()
    {
        world.event(SHIM_IB_EVENT_CLIENT_REREGISTER);
        world.run_work();
    }
    void close()
    {
        world.rtnl = true;
        ipoib_ndo_stop(&world.dev());
        world.rtnl = false;
    }
    // Closes the interface while an item of its work queue takes long. Returns whether items are queued afterwards.
    bool close_leaves_work()
    {
        workqueue_struct* const queue = interface().work_queue.native();
        world.busy_queues.push_back(queue);
        close();
        world.busy_queues.clear();
        return std::any_of(world.queued.begin(), world.queued.end(),
                           [queue](const auto& item) { return item.queue == queue; });
    }

    World world;
};

} // namespace ipoib
