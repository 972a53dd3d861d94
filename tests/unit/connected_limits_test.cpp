// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Active side of connections, on scripted fakes: the limits, which a hostile neighbour reaches by ARP answers.
#include "flow_balancer_test.hpp"

#include <shim/cm.h>

namespace ipoib {
namespace {

constexpr unsigned int at_once = ActiveConnections::max_opening;

// A port with many queue pairs.
class ConnectionLimitTest : public ConnectedTest {
protected:
    static HwAddr of_port(unsigned int n) { return capable(1, 0x100 + n); }
    // Asks for connections to this many queue pairs of the port; returns the REQs.
    std::vector<ib_cm_id*> ask_for(unsigned int count)
    {
        std::vector<ib_cm_id*> requests;
        for (unsigned int n = 0; n < count; ++n)
            if (ib_cm_id* const id = ask(of_port(n)))
                requests.push_back(id);
        return requests;
    }
    std::uint64_t limits_reached() { return interface().paths.limits_reached.value(); }
};

TEST_F(ConnectionLimitTest, attempts_to_one_port_are_limited)
{
    EXPECT_EQ(ask_for(at_once + 20).size(), at_once);
    EXPECT_EQ(connections(), at_once);
    EXPECT_EQ(world.qp().outstanding.size(), 20U) << "the others' packets went as datagrams";
    EXPECT_EQ(limits_reached(), 20U);
    EXPECT_TRUE(logged("limit of %u %s reached"));
    world.transmit(world.packet(of_port(at_once), 0x0800, 3000));
    world.run_work();
    EXPECT_EQ(world.rejected_mtus, std::vector<unsigned int>{2044});
    // Other ports have their own.
    EXPECT_NE(ask(capable(2)), nullptr);
}

TEST_F(ConnectionLimitTest, established_connections_leave_the_limit_of_their_port)
{
    for (unsigned int n = 0; n < 2 * at_once; ++n)
        connect(of_port(n));
    EXPECT_EQ(connections(), 2 * at_once);
    EXPECT_EQ(limits_reached(), 0U);
}

TEST_F(ConnectionLimitTest, neighbour_beyond_the_limit_connects_when_another_is_established)
{
    const auto requests = ask_for(at_once + 1);
    ASSERT_EQ(ask(of_port(at_once)), nullptr);
    world.reply(requests[0]);
    EXPECT_NE(ask(of_port(at_once)), nullptr);
    EXPECT_EQ(ask(of_port(at_once + 1)), nullptr);
}

TEST_F(ConnectionLimitTest, back_offs_count_and_retries_need_space)
{
    for (ib_cm_id* const id : ask_for(at_once))
        world.message(id, SHIM_IB_CM_REJ_RECEIVED, 8);
    world.run_work();
    EXPECT_EQ(connections(), 0U);
    EXPECT_EQ(ask(of_port(at_once)), nullptr);
    world.complete_sends(world.qp().outstanding.size());
    run_for(150);
    // The back-offs are over: whichever comes first is served.
    EXPECT_NE(ask(of_port(at_once)), nullptr);
    EXPECT_EQ(ask_for(at_once).size(), at_once - 1);
}

TEST_F(ConnectionLimitTest, removed_neighbours_leave_the_limit)
{
    EXPECT_EQ(ask_for(at_once).size(), at_once);
    // Unused for two intervals of garbage collection.
    run_for(3 * 3000);
    EXPECT_EQ(connections(), 0U);
    EXPECT_EQ(ask_for(at_once + 1).size(), at_once);
}

// One connection, with its flows, to port 1.
class ConnectionsLimitTest : public FlowBalancerTest {
protected:
    static HwAddr stranger(unsigned int n)
    {
        Gid address = gid(2);
        address.bytes[9] = static_cast<std::uint8_t>(n >> 8);
        address.bytes[10] = static_cast<std::uint8_t>(n);
        return HwAddr::of(HwAddr::flag_rc, 0x100, address);
    }
    // Requests connections until there are this many. All at once, since each run of the work walks the list.
    void fill(unsigned int count)
    {
        for (std::size_t n = connections(); n < count; ++n) {
            world.transmit(world.packet(stranger(static_cast<unsigned int>(n))));
            world.answer_path();
        }
        world.run_work();
        ASSERT_EQ(connections(), count);
    }
    // Ends one of these, as if its neighbour was removed.
    void end_one()
    {
        {
            PathTable::Guard guard(interface().paths);
            kernel::PacketQueue none;
            ActiveConnections& active = interface().connections.active;
            for (ActiveConnection& connection : active.list())
                if (connection.life.state() == ActiveLife::State::requested) {
                    active.abandon(connection, none);
                    break;
                }
        }
        run_for(3);
        EXPECT_EQ(connections(), Connections::max_connections - 1);
    }
    // Like further_request(2), which would take the time of 8192 completions.
    ib_cm_id* further_request()
    {
        for (unsigned int i = 0; i <= FlowTable::min_crowded_intervals; ++i) {
            world.transmit(packet(0, large));
            world.transmit(packet(1, large));
            world.complete_messages(*first_, 2);
            run_for(21);
        }
        return world.take_request();
    }
};

TEST_F(ConnectionsLimitTest, connections_are_limited)
{
    fill(Connections::max_connections);
    world.asked.clear();
    const HwAddr late = stranger(Connections::max_connections);
    EXPECT_EQ(ask(late), nullptr);
    EXPECT_EQ(connections(), Connections::max_connections);
    EXPECT_EQ(world.qp().outstanding.size(), 1U) << "its packet went as a datagram";
    EXPECT_TRUE(logged("limit of %u %s reached"));
    end_one();
    EXPECT_NE(ask(late), nullptr);
}

TEST_F(ConnectionsLimitTest, further_connections_are_limited_with_the_others)
{
    fill(Connections::max_connections);
    world.asked.clear();
    EXPECT_EQ(further_request(), nullptr);
    end_one();
    EXPECT_NE(further_request(), nullptr);
}

TEST_F(ConnectionsLimitTest, further_connections_are_no_attempts_of_their_port)
{
    for (unsigned int n = 0; n < at_once; ++n)
        EXPECT_NE(ask(capable(1, 0x200 + n)), nullptr);
    ib_cm_id* const id = further_request();
    ASSERT_NE(id, nullptr) << "the limit of the port does not matter";
    world.reply(id);
    // Nor does it count when it ends.
    world.message(id, SHIM_IB_CM_DREQ_RECEIVED);
    run_for(3);
    EXPECT_EQ(ask(capable(1, 0x300)), nullptr);
    EXPECT_EQ(connections(), 1 + at_once);
}

} // namespace
} // namespace ipoib
