// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The lower half of an interface: what the interface asks of it, and what one that filters the interface's own queues
// asks of the interface.
#include <ipoib/interface.hpp>
#include <ipoib/lower.hpp>
#include <kernel/log.hpp>

namespace ipoib {

LowerHalf::~LowerHalf()
{
    if (present_)
        shim_lower_end(lower(), interface_.dev());
}

kernel::Status LowerHalf::start()
{
    const int error = shim_lower_start(lower(), interface_.dev(), interface_.ca(), interface_.port());
    present_ = error == 0;
    return error == kernel::not_supported ? 0 : error;
}

kernel::Status LowerHalf::init() { return shim_lower_init(lower(), interface_.dev()); }
void LowerHalf::uninit() { shim_lower_uninit(lower(), interface_.dev()); }

kernel::Status LowerHalf::open()
{
    const int error = shim_lower_open(lower(), interface_.dev(), interface_.pkey_index());
    if (error)
        log_warning(interface_.dev(), "the HCA's own datapath did not open, error %d", error);
    return error;
}

void LowerHalf::stop() { shim_lower_stop(lower(), interface_.dev()); }

kernel::Status LowerHalf::change_mtu(unsigned int mtu) { return shim_lower_change_mtu(lower(), interface_.dev(), mtu); }

void LowerHalf::tx_timed_out() { shim_lower_tx_timeout(interface_.dev()); }
void LowerHalf::add_statistics(shim_stats& stats) const { shim_lower_get_stats(lower(), interface_.dev(), &stats); }
void LowerHalf::set_mtu(unsigned int mtu) { shim_lower_set_mtu(interface_.dev(), mtu); }

void LowerHalf::send(sk_buff* skb, ib_ah* ah, std::uint32_t qpn) { shim_lower_send(interface_.dev(), skb, ah, qpn); }

kernel::Status LowerHalf::attach_group(const Gid& mgid, std::uint16_t mlid, bool broadcast)
{
    const shim_gid native = mgid.native();
    return shim_lower_attach(interface_.dev(), interface_.ca(), &native, mlid, broadcast, interface_.qkey());
}

void LowerHalf::detach_group(const Gid& mgid, std::uint16_t mlid)
{
    const shim_gid native = mgid.native();
    shim_lower_detach(interface_.dev(), interface_.ca(), &native, mlid);
}

kernel::Status LowerHalf::init_queues()
{
    filters_ = true;
    const kernel::Status status = interface_.init_queues();
    filters_ = status.ok();
    return status;
}

void LowerHalf::uninit_queues() { interface_.uninit_queues(); }
kernel::Status LowerHalf::open_queues() { return interface_.open_queues(); }
void LowerHalf::stop_queues() { interface_.close_queues(); }

} // namespace ipoib

using ipoib::Interface;

int ipoib_queues_init(net_device* dev) { return Interface::of(dev).lower.init_queues().code(); }
void ipoib_queues_uninit(net_device* dev) { Interface::of(dev).lower.uninit_queues(); }
int ipoib_queues_open(net_device* dev) { return Interface::of(dev).lower.open_queues().code(); }
int ipoib_queues_stop(net_device* dev)
{
    Interface::of(dev).lower.stop_queues();
    return 0;
}

const shim_lower* ipoib_lower_half(const net_device* dev) { return Interface::of(dev).lower.native(); }
