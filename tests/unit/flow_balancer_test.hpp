// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Fixture for the tests of several connections to one peer, and of moves of flows between them.
#pragma once
#include "connected_test.hpp"

#include <bit>

#include <shim/cm.h>

namespace ipoib {

class FlowBalancerTest : public WithQueues<ConnectedTest> {
protected:
    static constexpr std::size_t large = 65000;
    void SetUp() override
    {
        WithQueues::SetUp();
        first_ = connect(capable(1));
    }
    sk_buff* packet(unsigned int flow, std::size_t payload = 60)
    {
        sk_buff* skb = world.packet(capable(1), 0x0800, payload);
        skb->hash = flow;
        return skb;
    }
    void complete_all()
    {
        // Time passes at each, and queue pairs end.
        for (std::size_t i = 1; i < world.qps.size(); ++i)
            world.complete_messages(*world.qps[i], world.qps[i]->outstanding.size());
    }
    void backlog(unsigned int bytes)
    {
        for (auto& queue : world.dev().transmit_queues)
            queue.backlog = bytes;
    }
    // An interval in which flows up to count are busy.
    void interval(unsigned int count)
    {
        for (unsigned int flow = 0; flow < count; ++flow)
            world.transmit(packet(flow, large));
        complete_all();
        run_for(21);
        complete_all();
    }
    void intervals(unsigned int number, unsigned int count)
    {
        for (unsigned int i = 0; i < number; ++i)
            interval(count);
    }
    // Returns the REQ for a further connection.
    ib_cm_id* further_request(unsigned int flows)
    {
        intervals(FlowTable::min_crowded_intervals + 1, flows);
        return world.take_request();
    }
    // Makes a second connection for two flows, and begins to move one to it; returns that flow.
    unsigned int begin_move()
    {
        id_ = further_request(2);
        EXPECT_NE(id_, nullptr);
        world.reply(id_);
        second_ = world.qps.back();
        world.moves.clear();
        for (int i = 0; i < 30 && world.moves.empty(); ++i) {
            complete_all();
            world.transmit(packet(0, large));
            world.transmit(packet(1, large));
            world.advance(1);
        }
        EXPECT_EQ(world.moves.size(), 1U);
        world.complete_messages(*first_, first_->outstanding.size());
        return static_cast<unsigned int>(std::countr_zero(world.moves.at(0).flows));
    }
    std::size_t last_size() { return world.sent.back().bytes.size() - 4; }

    ib_qp *first_ = nullptr, *second_ = nullptr;
    ib_cm_id* id_ = nullptr;
};

} // namespace ipoib
