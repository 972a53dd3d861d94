// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Connected mode (RFC 4755): reliable connections, each of one direction, from the active side that sends to the
// passive side that receives. The interface accepts connections in both modes; it makes them in connected mode only, to
// neighbours whose address has the RC flag: one for each, and further ones for busy flows (FlowBalancer).
//
// CM messages and packets move the state machines of connections under the path table's lock. What may sleep is done by
// a work item of each side, on the interface's work queue.
#pragma once
#include <cstdint>

#include <ipoib/cm_active.hpp>
#include <ipoib/cm_passive.hpp>
#include <ipoib/cm_private_data.hpp>
#include <ipoib/flow_balancer.hpp>
#include <ipoib/path_lock.hpp>
#include <kernel/counter.hpp>
#include <kernel/result.hpp>

namespace ipoib {

class Interface;

class Connections {
public:
    // Connections of each side. Without a shared receive queue the module parameter max_nonsrq_conn_qp limits passive
    // ones.
    static constexpr unsigned int max_connections = 8192;
    // Interval of checks for connections that end.
    static constexpr unsigned int check_interval_ms = 10;
    // Limits of what a peer's REP may ask for, so that sends that the peer does not acknowledge end: an ACK timeout of
    // 4.096 us * 2^21 = 8.6 s; seven RNR retries would be unlimited ones (IBA 9.7.5.2.8).
    static constexpr std::uint8_t max_timeout = 21, max_rnr_retries = 6;
    // Limit of the packet life time that a REQ asks for. ib_cm keeps its record of a connection that has ended for
    // twice as long (TIMEWAIT): 2 * 4.096 us * 2^23 = 69 s. OpenSM's default is 2^18.
    static constexpr std::uint8_t max_packet_life_time = 23;

    explicit Connections(Interface& interface);

    // Connections are accepted and made between start() and stop(). CONTEXT: the polls run.
    kernel::Status start() TA_REQUIRES(kernel::rtnl) TA_EXCLUDES(path_lock);
    void stop() TA_REQUIRES(kernel::rtnl) TA_EXCLUDES(path_lock);
    // The private data of our REQs and REPs.
    PrivateData private_data() const;

    ActiveConnections active;
    PassiveConnections passive;
    FlowBalancer flows;
    // REQs and REPs with invalid private data.
    kernel::SharedCounter malformed;

private:
    // True if no connection is left.
    bool idle() TA_EXCLUDES(path_lock);

    Interface& interface_;
};

} // namespace ipoib
