// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Calls to an interface's rdma_netdev, and calls from one that filters the interface's queues.
#include <ipoib/interface.hpp>
#include <ipoib/rdma_netdev.hpp>
#include <kernel/log.hpp>

namespace ipoib {

RdmaNetdev::~RdmaNetdev()
{
    if (present_)
        shim_helper_rdma_netdev_end(state_.get(), interface_.dev());
}

kernel::Status RdmaNetdev::start()
{
    const int error =
        shim_helper_rdma_netdev_start(state_.get(), interface_.dev(), interface_.ca(), interface_.identity.port());
    present_ = error == 0;
    tx_queues_ = shim_netdev_real_num_tx_queues(interface_.dev());
    return error == kernel::not_supported ? 0 : error;
}

kernel::Status RdmaNetdev::init() { return shim_helper_rdma_netdev_init(state_.get(), interface_.dev()); }
void RdmaNetdev::uninit() { shim_helper_rdma_netdev_uninit(state_.get(), interface_.dev()); }

kernel::Status RdmaNetdev::open()
{
    const int error = shim_helper_rdma_netdev_open(state_.get(), interface_.dev(), interface_.identity.pkey_index());
    if (error)
        log_warning(interface_.dev(), "the HCA's rdma_netdev did not open, error %d", error);
    return error;
}

void RdmaNetdev::stop() { shim_helper_rdma_netdev_stop(state_.get(), interface_.dev()); }

kernel::Status RdmaNetdev::change_mtu(unsigned int mtu)
{
    return shim_helper_rdma_netdev_change_mtu(state_.get(), interface_.dev(), mtu);
}

void RdmaNetdev::tx_timed_out(unsigned int queue) { shim_helper_rdma_netdev_tx_timeout(interface_.dev(), queue); }
void RdmaNetdev::add_statistics(shim_stats& stats) const
{
    shim_helper_rdma_netdev_get_stats(state_.get(), interface_.dev(), &stats);
}
void RdmaNetdev::set_mtu(unsigned int mtu) { shim_rdma_netdev_set_mtu(interface_.dev(), mtu); }

void RdmaNetdev::send(sk_buff* skb, ib_ah* ah, std::uint32_t qpn)
{
    shim_rdma_netdev_send(interface_.dev(), skb, ah, qpn);
}

kernel::Status RdmaNetdev::attach_group(const Gid& mgid, std::uint16_t mlid, bool broadcast)
{
    const shim_gid native = mgid.native();
    return shim_rdma_netdev_attach(interface_.dev(), interface_.ca(), &native, mlid, broadcast, interface_.link.qkey());
}

void RdmaNetdev::detach_group(const Gid& mgid, std::uint16_t mlid)
{
    const shim_gid native = mgid.native();
    shim_rdma_netdev_detach(interface_.dev(), interface_.ca(), &native, mlid);
}

kernel::Status RdmaNetdev::init_queues()
{
    filters_ = true;
    const kernel::Status status = interface_.queues.init();
    filters_ = status.ok();
    if (filters_)
        interface_.add_features(features_of(interface_.ca()) & SHIM_FEATURE_SG);
    return status;
}

void RdmaNetdev::uninit_queues() { interface_.queues.uninit(); }
kernel::Status RdmaNetdev::open_queues() { return interface_.queues.open(); }
void RdmaNetdev::stop_queues() { interface_.queues.close(); }

} // namespace ipoib

using ipoib::Interface;

TA_REQUIRES(kernel::rtnl) int ipoib_queues_init(net_device* dev)
{
    return Interface::of(dev).rdma_netdev.init_queues().code();
}
TA_REQUIRES(kernel::rtnl) void ipoib_queues_uninit(net_device* dev) { Interface::of(dev).rdma_netdev.uninit_queues(); }
TA_REQUIRES(kernel::rtnl) int ipoib_queues_open(net_device* dev)
{
    return Interface::of(dev).rdma_netdev.open_queues().code();
}
TA_REQUIRES(kernel::rtnl) int ipoib_queues_stop(net_device* dev)
{
    Interface::of(dev).rdma_netdev.stop_queues();
    return 0;
}

const shim_rdma_netdev* ipoib_rdma_netdev(const net_device* dev) { return Interface::of(dev).rdma_netdev.native(); }
