// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The whole World: beginning and end, time, work and polls, packets that the stack sends.
#include "fakes_inside.hpp"

#include <algorithm>

#include <ipoib/encapsulation.hpp>
#include <ipoib/interface.hpp>

struct shim_parameters shim_parameters;
static char no_names[] = "";

World& World::get() { return *world; }

World::World()
{
    // The driver's static rate limits outlive a World: the time of each World is far from that of earlier ones.
    static unsigned long begun = 0;
    now = begun += 1000000;
    world = this;
    shim_parameters = {128, 256, 128, 0, 0, 0, 0, 1, no_names};
}

World::~World()
{
    for (sk_buff* skb : std::vector<sk_buff*>(received))
        free_skb(skb);
    EXPECT_TRUE(skbs.empty()) << skbs.size() << " skbs are left";
    EXPECT_TRUE(ahs.empty()) << ahs.size() << " address handles are left";
    EXPECT_TRUE(memory.empty()) << memory.size() << " allocations are left";
    EXPECT_TRUE(mappings.empty()) << mappings.size() << " DMA mappings are left";
    EXPECT_TRUE(memberships.empty()) << memberships.size() << " memberships are left";
    EXPECT_TRUE(queued.empty()) << "work is left";
    EXPECT_TRUE(netdevs.empty() && qps.empty());
    EXPECT_TRUE(registered.empty() && work_queues == 0);
    EXPECT_TRUE(cm_ids.empty()) << cm_ids.size() << " connection identifiers are left";
    EXPECT_TRUE(srqs.empty() && loose_pages.empty());
    EXPECT_TRUE(ca.handlers.empty()) << "event handlers are left";
    EXPECT_EQ(names_of_debug_files(), std::set<std::string>{});
    EXPECT_EQ(reading, 0) << "an RCU read section is not left";
    for (page_pool* pool : pools) {
        EXPECT_TRUE(pool->destroyed && pool->pages.empty()) << "a page pool is left, or pages of it";
        delete pool;
    }
    world = nullptr;
}

void World::start() { ASSERT_EQ(ipoib_start(), 0); }

void World::stop()
{
    if (!netdevs.empty() && netdevs.front()->registered && !netdevs.front()->stopped)
        run_polls();
    ipoib_stop();
}

const workqueue_struct* running_queue;

void World::run_work()
{
    for (int guard = 0; guard < 10000; ++guard) {
        const auto it = std::find_if(queued.begin(), queued.end(), [&](const Queued& q) {
            // While RTNL is held, items of the driver's flush queue wait for RTNL.
            return kernel::reached(q.due, now) && !std::count(busy_queues.begin(), busy_queues.end(), q.queue) &&
                   !(rtnl && q.queue == ipoib::flush_queue.native());
        });
        if (it == queued.end()) {
            answer_cancelled_paths();
            return;
        }
        shim_work* work = it->work;
        busy_queues.push_back(it->queue);
        queued.erase(it);
        const workqueue_struct* interrupted = std::exchange(running_queue, busy_queues.back());
        work->run(work->context);
        running_queue = interrupted;
        busy_queues.pop_back();
    }
    ADD_FAILURE() << "work never ends";
}

void World::advance(unsigned long ticks)
{
    if (ca.gid_reports)
        ca.known_gid = ca.gid;
    // Work that sleeps lets time pass too.
    for (const unsigned long end = now + ticks; !kernel::reached(end, now); ++now)
        run_work();
    run_work();
}

void World::run_polls()
{
    for (int guard = 0; guard < 10000 && !scheduled.empty(); ++guard) {
        shim_napi* napi = scheduled.front();
        scheduled.erase(scheduled.begin());
        if (!napi->enabled)
            continue;
        const bool within = std::exchange(polling, true);
        if (napi->poll(napi->context, poll_budget) == poll_budget)
            scheduled.push_back(napi);
        polling = within;
    }
    EXPECT_TRUE(scheduled.empty()) << "polling never ends";
}

void World::sleep()
{
    run_polls();
    ++now;
    run_work();
}

bool World::refuses(const char* call)
{
    if (refused != call)
        return false;
    if (!granted)
        return true;
    --granted;
    return false;
}

void World::let_others_run()
{
    if (!meanwhile)
        return;
    const int here = std::exchange(spinning, 0), reading_here = std::exchange(reading, 0);
    std::exchange(meanwhile, nullptr)();
    spinning = here;
    reading = reading_here;
}

void World::run_softirqs()
{
    // A softirq does not start within another.
    if (auto pending = std::exchange(softirqs, nullptr)) {
        pending();
        softirqs = std::move(pending);
    }
}

void World::event(unsigned int event, std::uint32_t port)
{
    for (const auto& [_, handler] : ca.handlers)
        handler.on_event(handler.context, event, port);
}

long World::store(net_device* dev, ipoib_attribute attribute, const char* text, std::size_t bytes)
{
    shim_rtnl_lock();
    const long stored = ipoib_attribute_store(dev, attribute, text, bytes);
    shim_rtnl_unlock();
    return stored;
}

std::set<std::string> World::names_of_debug_files() const
{
    std::set<std::string> names;
    for (const dentry* file : debug_files)
        names.insert(file->name);
    return names;
}

sk_buff* World::packet(const ipoib::HwAddr& to, std::uint16_t type, std::size_t payload)
{
    auto* skb = new sk_buff;
    skb->bytes.resize(64 + payload);
    skb->start = 64;
    skb->dev = &dev();
    skbs.insert(skb);
    EXPECT_EQ(ipoib_header_create(skb, type, to.bytes), IPOIB_HEADER_BYTES);
    return skb;
}

void World::transmit(sk_buff* skb, bool more_follow)
{
    const unsigned int queues = skb->dev->tx_queues;
    const int queue = queues > 1 ? ipoib_ndo_select_queue(skb, skb->dev) : 0;
    // The core chooses by the packet's flow.
    transmit_on(queue < 0 ? static_cast<unsigned int>(std::uint64_t{skb->hash} * queues >> 32)
                          : static_cast<unsigned int>(queue),
                skb, more_follow);
}

void World::transmit_on(unsigned int queue, sk_buff* skb, bool more_follow)
{
    skb->tx_queue = queue;
    more = more_follow;
    ++spinning;
    ipoib_ndo_start_xmit(skb, skb->dev);
    --spinning;
    more = false;
}

void World::bring_up()
{
    rtnl = true;
    ASSERT_EQ(ipoib_ndo_open(&dev()), 0);
    rtnl = false;
    run_polls();
    run_work();
    answer_broadcast();
    run_work();
    ASSERT_TRUE(dev().carrier);
}
