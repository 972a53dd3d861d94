// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Fixture of connection tests: an interface in connected mode.
#pragma once

#include "driver_test.hpp"

#include <shim/ethtool.h>

namespace ipoib {

class ConnectedTest : public DriverTest {
protected:
    void SetUp() override
    {
        DriverTest::SetUp();
        open();
        set_mode("connected");
    }
    void set_mode(const char* mode)
    {
        ASSERT_EQ(world.store(&world.dev(), IPOIB_ATTRIBUTE_MODE, mode, std::strlen(mode)),
                  static_cast<long>(std::strlen(mode)));
        world.run_work();
    }
    static HwAddr capable(std::uint8_t port, std::uint32_t qpn = 0x100)
    {
        return HwAddr::of(HwAddr::flag_rc, qpn, gid(port));
    }
    // Sends the first packet, and answers the path query; returns the REQ.
    ib_cm_id* ask(const HwAddr& to, std::size_t payload = 60)
    {
        world.transmit(world.packet(to, 0x0800, payload));
        if (world.open_paths())
            world.answer_path();
        world.run_work();
        return world.take_request();
    }
    // Returns the queue pair of the established connection.
    ib_qp* connect(const HwAddr& to)
    {
        world.reply(ask(to));
        ib_qp* qp = world.qps.back();
        world.complete_messages(*qp, qp->outstanding.size());
        return qp;
    }
    void run_for(unsigned long ticks)
    {
        for (unsigned long i = 0; i < ticks; ++i) {
            world.advance(1);
            world.run_polls();
        }
    }
    std::string table()
    {
        world.seq_text.clear();
        ipoib_debug_show(&world.dev(), IPOIB_DEBUG_CM, nullptr);
        return world.seq_text;
    }
    bool shows(const char* text) { return table().find(text) != std::string::npos; }
    // One queue pair is the UD queue pair.
    std::size_t connections() const { return world.qps.size() - 1; }
};

// A fixture with several queues for connections: 4 processors, 8 completion vectors.
template <class Base>
class WithQueues : public Base {
protected:
    void SetUp() override
    {
        this->world.processors = 4;
        this->world.ca.comp_vectors = 8;
        Base::SetUp();
    }
    int set_channels(unsigned int transmits, unsigned int receives)
    {
        this->world.rtnl = true;
        const int error = ipoib_ethtool_set_channels(&this->world.dev(), transmits, receives);
        this->world.rtnl = false;
        this->world.run_work();
        return error;
    }
    int set_transmit_queues(unsigned int count) { return set_channels(count, this->interface().rx.count()); }
    shim_channels channels()
    {
        shim_channels channels;
        ipoib_ethtool_get_channels(&this->world.dev(), &channels);
        return channels;
    }
};

} // namespace ipoib
