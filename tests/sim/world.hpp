// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// One run: the rooms of the simulator, made anew for every seed, and what they share.
#pragma once
#include <array>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include <generated/layout.h>
#include <shim/cm.h>
#include <shim/debugfs.h>
#include <shim/dim.h>
#include <shim/ethtool.h>
#include <shim/hash.h>
#include <shim/memory.h>
#include <shim/module.h>
#include <shim/netdevice.h>
#include <shim/netlink.h>
#include <shim/rdma_netdev.h>
#include <shim/sa.h>
#include <shim/skbuff.h>
#include <shim/sync.h>
#include <shim/trace.h>
#include <shim/tso.h>
#include <shim/verbs.h>
#include <shim/work.h>

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

    // As Linux on 64 bits: it begins five minutes before 2^32.
    unsigned long jiffies() const { return 4294967296UL - 300 * jiffies_per_second + scheduler.now() / jiffy; }
    // Whose GID it is; nullptr: nobody's.
    ib_device* port_of(const shim_gid& gid) const;
    // Checks what must be so at any time, each second until it is over.
    void watch();
    // Takes the driver away; nothing of it may be left.
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
    // Where those who wait for grace periods wait.
    int rcu = 0;
    std::uint64_t sections = 0;
    std::set<shim_work*> works;
    std::vector<std::unique_ptr<ib_device>> devices;
    std::map<std::uint64_t, ib_qp*> qps;
    std::map<std::uint64_t, ib_cq*> cqs;
    std::uint64_t serials = 0;
    // Connections that an HCA broke off: the far one had no buffers, or is not there.
    std::uint64_t broken_off = 0;
    std::uint8_t mtu_code = 4;
    // The client of ib_core, and the kind of rtnetlink, are registered.
    bool driver_loaded = false, link_kind = false;
    // No faults any more: what fails now is no fault's doing.
    bool quiet = false;
    // Nobody sends anything.
    bool silent = false;
    // Who goes on by himself ends.
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
