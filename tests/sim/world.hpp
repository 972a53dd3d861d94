// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// One run: the parts of the simulator, created anew for each seed, and shared state.
#pragma once
#include <array>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include <generated/layout.h>
#include <shim/ah.h>
#include <shim/client.h>
#include <shim/cm.h>
#include <shim/cq.h>
#include <shim/debugfs.h>
#include <shim/device.h>
#include <shim/dim.h>
#include <shim/dma.h>
#include <shim/ethtool.h>
#include <shim/hash.h>
#include <shim/header_ops.h>
#include <shim/lib.h>
#include <shim/memory.h>
#include <shim/module.h>
#include <shim/napi.h>
#include <shim/ndo.h>
#include <shim/netdevice.h>
#include <shim/netlink.h>
#include <shim/page_pool.h>
#include <shim/qp.h>
#include <shim/rc_qp.h>
#include <shim/rdma_netdev.h>
#include <shim/sa.h>
#include <shim/skbuff.h>
#include <shim/srq.h>
#include <shim/sync.h>
#include <shim/sysfs.h>
#include <shim/trace.h>
#include <shim/tso.h>
#include <shim/tx_queue.h>
#include <shim/work.h>
#include <shim/wr.h>

#include "base.hpp"
#include "cm.hpp"
#include "fabric.hpp"
#include "locks.hpp"
#include "machines.hpp"
#include "memory.hpp"
#include "netdevice.hpp"
#include "scheduler.hpp"
#include "sm.hpp"
#include "stack.hpp"
#include "verbs.hpp"

struct dentry {
    net_device* dev;
    ipoib_debug_file which;
    unsigned int readers = 0;
    bool gone = false;
};

namespace sim {

std::shared_ptr<Neighbours> make_neighbours();

struct World {
    static constexpr unsigned long jiffies_per_second = 250;
    static constexpr Time jiffy = second / jiffies_per_second;
    static constexpr unsigned int usual_nodes = 8;

    World(std::uint64_t seed, std::uint64_t salt, unsigned int node_count = usual_nodes);
    ~World();

    // As Linux on 64 bits: jiffies begin five minutes before 2^32.
    unsigned long jiffies() const { return 4294967296UL - 300 * jiffies_per_second + scheduler.now() / jiffy; }
    // Port with this GID; nullptr: none.
    ib_device* port_of(const shim_gid& gid) const;
    // Checks the invariants, each second until the run is over.
    void watch();
    // Unloads the driver, and checks that nothing of it is left.
    void unload();
    void add_device(ib_device& ca);
    void remove_device(ib_device& ca);

    const std::uint64_t seed;
    const unsigned int node_count;
    Scheduler scheduler;
    Lockdep lockdep;
    Machines machines;
    Memory memory;
    Stack stack;
    Fabric fabric;
    Sm sm;
    Cm cm;
    Rtnl rtnl;
    // Object that waits for grace periods block on.
    int rcu = 0;
    std::uint64_t sections = 0;
    std::set<shim_work*> works;
    std::vector<std::unique_ptr<ib_device>> devices;
    std::map<std::uint64_t, ib_qp*> qps;
    std::map<std::uint64_t, ib_cq*> cqs;
    std::uint64_t serials = 0;
    // Connections that an HCA broke: the far end had no buffers, or is gone.
    std::uint64_t broken_off = 0;
    std::uint8_t mtu_code = 4;
    // The client of ib_core, and the kind of rtnetlink, are registered.
    bool driver_loaded = false, link_kind = false;
    // No fault is active: failures from here on have no excuse.
    bool quiet = false;
    // No traffic is sent.
    bool silent = false;
    // Endless contexts end.
    bool over = false;
    std::vector<dentry*> debug_files;
    Pairs<std::uint64_t> group_packets;

    std::vector<std::unique_ptr<net_device>> all_devs;
    std::array<std::vector<std::uint8_t*>, 8> spare_pages;
    // Pages in use, by the address of their memory.
    std::map<const std::uint8_t*, page*> pages;
    std::deque<page*> dead_pages;
    std::deque<sk_buff*> dead_skbs;
    std::deque<std::unique_ptr<ib_qp>> dead_qps;
    sk_buff *oldest_skb = nullptr, *newest_skb = nullptr;
};

extern World* world;

} // namespace sim
