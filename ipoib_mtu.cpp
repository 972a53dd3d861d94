// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The interface's MTU in datagram and connected mode, and ndo_change_mtu.
#include <ipoib/interface.hpp>
#include <ipoib/link_mtu.hpp>
#include <kernel/log.hpp>

namespace ipoib {

void LinkMtu::begin(unsigned int max_frame, unsigned int wanted)
{
    max_port_frame_ = max_frame;
    max_frame_.store(max_frame);
    link_mtu_ = admin_mtu_ = ip_mtu(max_frame);
    if (wanted)
        admin_mtu_ = std::clamp(wanted, min_mtu, admin_mtu_);
    shim_netdev_set_mtu(interface_.dev(), admin_mtu_);
    if (interface_.rdma_netdev.present())
        interface_.rdma_netdev.set_mtu(ip_mtu(max_frame));
}

void LinkMtu::set_link(unsigned int frame)
{
    max_frame_.store(std::min(frame, max_port_frame_));
    if (interface_.rdma_netdev.present())
        interface_.rdma_netdev.set_mtu(ip_mtu(max_frame()));
}

void LinkMtu::apply()
{
    // A choice of the link's MTU follows the link.
    if (admin_mtu_ == link_mtu_)
        admin_mtu_ = ip_mtu(max_frame());
    link_mtu_ = ip_mtu(max_frame());
    if (interface_.settings.connected())
        return;
    set_netdev_mtu(datagram_mtu());
}

void LinkMtu::enter_connected_mode() { set_netdev_mtu(interface_.rx[0].srq.max_mtu()); }

void LinkMtu::enter_datagram_mode()
{
    admin_mtu_ = std::min(shim_netdev_mtu(interface_.dev()), ip_mtu(max_port_frame_));
    set_netdev_mtu(datagram_mtu());
}

void LinkMtu::set_netdev_mtu(unsigned int mtu)
{
    setting_ = true;
    if (const int error = shim_dev_set_mtu(interface_.dev(), mtu))
        log_warning(interface_.dev(), "failed to change the MTU to %u, error %d", mtu, error);
    setting_ = false;
}

kernel::Status LinkMtu::change(unsigned int mtu)
{
    net_device* const dev = interface_.dev();
    const bool connected = interface_.settings.connected();
    const unsigned int max = connected ? interface_.rx[0].srq.max_mtu() : ip_mtu(max_port_frame_);
    if (mtu < min_mtu || mtu > max) {
        log_warning(dev, "MTU %u is not between %u and %u", mtu, min_mtu, max);
        return kernel::invalid;
    }
    if (connected) {
        if (mtu > ip_mtu(max_frame()))
            log_warning(dev, "mtu > %u will cause multicast packet drops.", ip_mtu(max_frame()));
        shim_netdev_set_mtu(dev, mtu);
        return {};
    }
    const unsigned int former = admin_mtu_;
    if (!setting_)
        admin_mtu_ = mtu;
    const unsigned int effective = datagram_mtu();
    if (!interface_.rdma_netdev.present()) {
        shim_netdev_set_mtu(dev, effective);
        return {};
    }
    const kernel::Status status = interface_.rdma_netdev.change_mtu(effective);
    if (!status.ok())
        admin_mtu_ = former;
    return status;
}

} // namespace ipoib
