// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Lock-free parts of the driver, run by several threads at once. ThreadSanitizer fails a test with a data race.
#include <gtest/gtest.h>

#include <ipoib/interface.hpp>

#include "kernel.hpp"

namespace {

std::atomic<unsigned int> races{0};

} // namespace

extern "C" void __tsan_on_report(void*) { races.fetch_add(1); }

namespace ipoib {

class ThreadTest : public testing::Test {
protected:
    void SetUp() override
    {
        races.store(0);
        machine.open();
    }
    void TearDown() override
    {
        machine.close();
        EXPECT_EQ(races.load(), 0U) << "ThreadSanitizer reported races";
        EXPECT_EQ(machine.stalls.load(), 0U) << "sends were not completed for seconds";
    }
    Interface& interface() { return Interface::of(&machine.dev()); }
    // The interface itself, under as many addresses as there are GIDs.
    HwAddr peer(std::uint8_t n, std::uint8_t flags = 0)
    {
        return HwAddr::of(flags, interface().identity.qpn(),
                          Gid{{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, n}});
    }
    template <class Done>
    static bool comes(Done done)
    {
        const unsigned long deadline = shim_jiffies() + patience_ms;
        while (!done()) {
            if (kernel::reached(deadline, shim_jiffies()))
                return false;
            shim_msleep(1);
        }
        return true;
    }
    // Runs the action this many times on each of count threads.
    template <class Action>
    static void on_threads(unsigned int count, unsigned int times, Action action)
    {
        std::vector<std::thread> threads;
        for (unsigned int i = 0; i < count; ++i)
            threads.emplace_back([=] {
                for (unsigned int n = 0; n < times; ++n)
                    action(i, n);
            });
        for (std::thread& thread : threads)
            thread.join();
    }

    void set_transmit_queues(unsigned int count)
    {
        shim_rtnl_lock();
        EXPECT_TRUE(interface().settings.set_queues(count, interface().rx.count()).ok());
        shim_rtnl_unlock();
    }
    // Makes changes, each after a few packets of sixteen flows. All packets go to the address from before the first
    // change; some changes give the queue pair another number.
    template <class Change>
    void change_under_traffic(Change change)
    {
        const HwAddr to = peer(1, HwAddr::flag_rc);
        std::atomic<bool> over{false};
        std::atomic<unsigned int> sent{0};
        std::thread user([&, this] {
            for (unsigned int n = 0; n < 20; ++n) {
                const unsigned int before = sent.load();
                EXPECT_TRUE(comes([&] { return sent.load() - before >= 10; })) << n;
                shim_rtnl_lock();
                EXPECT_TRUE(change(n).ok()) << n;
                shim_rtnl_unlock();
            }
            over.store(true);
        });
        on_threads(2, 1, [&, this](unsigned int, unsigned int) {
            for (unsigned int n = 0; n % 8 || !over.load(); ++n) {
                sk_buff* const skb = make_packet(machine.dev(), to, 60 + n / 8 % 16);
                if (transmit(skb, n % 8 != 7)) {
                    sent.fetch_add(1);
                } else {
                    free_packet(skb);
                    std::this_thread::yield();
                }
            }
        });
        user.join();
    }

    Machine machine;
};

TEST_F(ThreadTest, datagrams_are_sent_and_completed)
{
    std::atomic<unsigned int> stuck{0};
    std::atomic<bool> over{false};
    std::thread watcher([&, this] {
        shim_stats stats{};
        for (; !over.load(); rest(16))
            ipoib_ndo_get_stats(&machine.dev(), &stats);
    });
    on_threads(2, 4000, [&, this](unsigned int thread, unsigned int n) {
        if (!transmit_soon(make_packet(machine.dev(), peer(static_cast<std::uint8_t>(1 + thread))), n % 8 != 7))
            stuck.fetch_add(1);
    });
    over.store(true);
    watcher.join();
    EXPECT_EQ(stuck.load(), 0U);
    EXPECT_TRUE(comes([this] { return interface().tx[0].outstanding() == 0; }));
}

// Raises a port event each time that the flush of the previous one is done.
TEST_F(ThreadTest, address_changes_under_traffic)
{
    std::atomic<bool> over{false};
    std::thread port([&, this] {
        while (!over.load()) {
            {
                std::lock_guard guard(machine.ca.lock);
                machine.ca.gid.raw[7] ^= 1;
                machine.ca.on_event(machine.ca.event_context, SHIM_IB_EVENT_GID_CHANGE, 1);
            }
            shim_msleep(1);
        }
    });
    const HwAddr everybody = HwAddr::from(machine.dev().broadcast);
    on_threads(2, 3000, [&, this](unsigned int, unsigned int n) {
        const HwAddr to = n % 3 ? everybody : peer(static_cast<std::uint8_t>(n));
        EXPECT_TRUE(transmit_soon(make_packet(machine.dev(), to)));
    });
    over.store(true);
    port.join();
}

TEST_F(ThreadTest, full_ring_wakes_its_queue)
{
    on_threads(3, 8000, [this](unsigned int thread, unsigned int n) {
        EXPECT_TRUE(transmit_soon(make_packet(machine.dev(), peer(static_cast<std::uint8_t>(thread))), n % 80 != 79));
    });
    EXPECT_NE(interface().tx[0].stops.value(), 0U);
    EXPECT_TRUE(comes([this] { return !shim_netif_tx_queue_stopped(&machine.dev(), 0); }));
}

TEST_F(ThreadTest, neighbours_are_removed_under_traffic)
{
    std::thread forgetful([this] {
        for (int n = 0; n < 100; ++n) {
            interface().paths.collect_garbage(0);
            if (n % 10 == 0) {
                interface().paths.invalidate_all();
                shim_rtnl_lock();
                interface().paths.flush();
                interface().paths.start();
                shim_rtnl_unlock();
            }
            shim_msleep(1);
        }
    });
    on_threads(2, 8000, [this](unsigned int, unsigned int n) {
        EXPECT_TRUE(transmit_soon(make_packet(machine.dev(), peer(static_cast<std::uint8_t>(n % 50)))));
    });
    forgetful.join();
}

TEST_F(ThreadTest, flows_are_sent_by_several_queue_pairs)
{
    set_transmit_queues(4);
    on_threads(2, 8000, [this](unsigned int, unsigned int n) {
        const unsigned int flow = n / 8 % 16;
        EXPECT_TRUE(
            transmit_soon(make_packet(machine.dev(), peer(static_cast<std::uint8_t>(flow)), 60 + flow), n % 8 != 7));
    });
    for (unsigned int i = 0; i < 4; ++i) {
        EXPECT_TRUE(comes([&] { return interface().tx[i].outstanding() == 0; })) << i;
        EXPECT_NE(interface().tx[i].packets.value(), 0U) << i;
    }
}

TEST_F(ThreadTest, rings_change_under_traffic)
{
    change_under_traffic([this](unsigned int n) TA_REQUIRES(kernel::rtnl) {
        return interface().settings.set_ring_sizes({n % 2 ? 128U : 256U, 64});
    });
}

TEST_F(ThreadTest, number_of_queues_changes_under_traffic)
{
    change_under_traffic([this](unsigned int n) TA_REQUIRES(kernel::rtnl) {
        return interface().settings.set_queues(n % 2 ? 1 : 4, interface().rx.count());
    });
}

TEST_F(ThreadTest, mode_changes_under_traffic)
{
    set_transmit_queues(4);
    change_under_traffic([this](unsigned int n)
                             TA_REQUIRES(kernel::rtnl) { return interface().settings.set_connected(n % 2 == 0); });
}

// One side fills a ring and posts it; the other adds completed receives again before the post has returned.
TEST(ReceiveChainTest, ring_is_refilled_while_receives_complete)
{
    Fifo<shim_recv_wr*, 64> posted;
    ReceiveChain chain;
    chain.set_batch(64);
    std::vector<shim_recv_wr> requests(32);
    races.store(0);
    std::thread poll([&] {
        shim_recv_wr* back;
        for (std::size_t n = 0; n < requests.size();) {
            if (!posted.pop(back))
                continue;
            chain.completed();
            (void)chain.add(back);
            ++n;
        }
    });
    for (shim_recv_wr& request : requests)
        (void)chain.add(&request);
    EXPECT_EQ(chain.post([&](shim_recv_wr* first, shim_recv_wr**) {
        while (first) {
            shim_recv_wr* const one = first;
            first = shim_recv_wr_next(one);
            EXPECT_TRUE(posted.push(one));
        }
        return 0;
    }),
              0);
    poll.join();
    EXPECT_EQ(chain.outstanding(), 0U);
    EXPECT_EQ(races.load(), 0U) << "ThreadSanitizer reported races";
}

class ConnectedThreadTest : public ThreadTest {
protected:
    void SetUp() override
    {
        ThreadTest::SetUp();
        shim_rtnl_lock();
        EXPECT_TRUE(interface().settings.set_connected(true).ok());
        shim_rtnl_unlock();
    }
    bool send_message(unsigned int to, bool more = false)
    {
        return transmit_soon(make_packet(machine.dev(), peer(static_cast<std::uint8_t>(to), HwAddr::flag_rc), 1000),
                             more);
    }
    // Connects to this many peers, the first of which fills the shared receive ring.
    void connect(unsigned int peers)
    {
        // A later packet requests a rejected connection again.
        EXPECT_TRUE(comes([&] {
            for (unsigned int to = 0; to < peers; ++to)
                EXPECT_TRUE(send_message(to));
            return interface().connections.active.established.value() >= peers;
        }));
    }
};

TEST_F(ConnectedThreadTest, connections_share_the_send_pool)
{
    connect(2);
    on_threads(2, 8000, [this](unsigned int thread, unsigned int n) { EXPECT_TRUE(send_message(thread, n % 8 != 7)); });
    EXPECT_TRUE(comes([this] { return interface().tx[0].outstanding() == 0; }));
    EXPECT_NE(interface().tx[0].pool.doorbells.value(), 0U);
}

TEST_F(ConnectedThreadTest, connections_end_under_traffic)
{
    connect(1);
    std::atomic<bool> over{false};
    std::thread user([&, this] {
        for (int n = 0; n < 20; ++n) {
            shim_rtnl_lock();
            interface().paths.flush();
            interface().paths.start();
            shim_rtnl_unlock();
            shim_msleep(5);
        }
        over.store(true);
    });
    on_threads(2, 1, [&, this](unsigned int thread, unsigned int) {
        for (unsigned int n = 0; !over.load(); ++n)
            EXPECT_TRUE(send_message(thread, n % 8 != 7));
        EXPECT_TRUE(send_message(thread));
    });
    user.join();
}

// Flows of two threads are distributed over two connections to one peer, and moved between them.
TEST_F(ConnectedThreadTest, flows_move_under_traffic)
{
    connect(1);
    const auto both_used = [this] { return interface().tx[0].packets.value() && interface().tx[1].packets.value(); };
    std::atomic<bool> over{false};
    std::thread user([&] {
        EXPECT_TRUE(comes(both_used));
        shim_msleep(200);
        over.store(true);
    });
    on_threads(2, 1, [&, this](unsigned int thread, unsigned int) {
        for (unsigned int n = 0; !over.load(); ++n)
            EXPECT_TRUE(transmit_soon(make_packet(machine.dev(), peer(0, HwAddr::flag_rc), 1000 + thread), n % 8 != 7));
        EXPECT_TRUE(send_message(0));
    });
    user.join();
}

} // namespace ipoib
