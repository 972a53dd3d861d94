// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The IPoIB link of an interface: the parameters of its broadcast group (RFC 4391 section 4), and whether the group is
// joined. Defined in ipoib_join.cpp, behind the join that it follows.
#pragma once
#include <cstdint>

#include <ipoib/fabric_events.hpp>
#include <kernel/published.hpp>
#include <kernel/result.hpp>
#include <kernel/work.hpp>
#include <shim/sa.h>

namespace ipoib {

class Interface;

class Link {
public:
    explicit Link(Interface& interface) : interface_(interface) {}

    // Applies the parameters of the broadcast group's record. -EINVAL: the MTU is invalid. Other errors: the HCA's,
    // from setting the Q_Key. CONTEXT: process.
    kernel::Status apply(const shim_mcmember& broadcast);
    // The broadcast group is joined and attached: there may be carrier. CONTEXT: process.
    void broadcast_joined();
    // The groups are left. Afterwards a pending broadcast_joined() has no effect.
    void broadcast_left() TA_REQUIRES(kernel::rtnl) { joined_.store(false); }
    // CONTEXT: process, no RTNL.
    void cancel() { bring_carrier_.cancel(); }

    // The broadcast group's record: groups and paths are requested with its parameters. CONTEXT: under GroupSet's
    // mutex.
    const shim_mcmember& parameters() const { return parameters_; }
    // Host byte order. CONTEXT: any.
    std::uint32_t qkey() const { return qkey_.load_relaxed(); }
    std::uint8_t traffic_class() const { return traffic_class_.load_relaxed(); }

private:
    void run_bring_carrier() TA_REQUIRES(kernel::rtnl);

    Interface& interface_;
    shim_mcmember parameters_{};
    kernel::Published<std::uint32_t> qkey_;
    kernel::Published<std::uint8_t> traffic_class_;
    // The broadcast group was joined since the interface last went up.
    kernel::Published<bool> joined_;
    kernel::RtnlWork<&Link::run_bring_carrier> bring_carrier_{*this, flush_queue};
};

} // namespace ipoib
