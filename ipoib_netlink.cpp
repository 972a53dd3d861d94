// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The rtnetlink kind "ipoib": children created, changed, shown and deleted by ip link. Errors have an extack message.
#include <ipoib/interface.hpp>
#include <kernel/log.hpp>
#include <shim/netlink.h>

namespace ipoib {

namespace {

// Values of IFLA_IPOIB_MODE.
enum Mode : std::uint16_t { datagram = 0, connected = 1 };

TA_REQUIRES(kernel::rtnl)
kernel::Status change(Interface& interface, const shim_link_request& request, netlink_ext_ack* extack)
{
    if (request.has_mode) {
        if (request.mode != datagram && request.mode != connected) {
            shim_helper_extack(extack, "mode %u is neither datagram (0) nor connected (1)", request.mode);
            return kernel::invalid;
        }
        if (const kernel::Status status = interface.settings.set_connected(request.mode == connected); !status.ok()) {
            shim_helper_extack(extack, "mode %u was not set, error %d", request.mode, status.code());
            return status;
        }
    }
    if (request.has_umcast)
        interface.settings.set_umcast(request.umcast != 0);
    return {};
}

TA_REQUIRES(kernel::rtnl)
kernel::Status create(net_device* dev, const shim_link_request& request, netlink_ext_ack* extack)
{
    if (!request.has_link) {
        shim_helper_extack(extack, "an ipoib child needs a parent: link DEVICE");
        return kernel::invalid;
    }
    if (!request.link) {
        shim_helper_extack(extack, "the parent does not exist");
        return kernel::no_device;
    }
    if (!shim_netdev_is_ours(request.link)) {
        shim_helper_extack(extack, "%s is not an ipoib interface", shim_netdev_name(request.link));
        return kernel::no_device;
    }
    Interface& parent = Interface::of(request.link);
    if (parent.parent()) {
        log_warning(parent.dev(), "child creation disallowed for child devices");
        shim_helper_extack(extack, "%s is a child itself", shim_netdev_name(request.link));
        return kernel::invalid;
    }
    const PKey pkey = request.has_pkey ? PKey(request.pkey) : parent.identity.pkey();
    if (!pkey.valid()) {
        shim_helper_extack(extack, "P_Key 0x%04x is invalid", pkey.value());
        return kernel::invalid;
    }
    auto made = kernel::make_owned<Interface>(dev, parent, pkey);
    if (!made)
        return kernel::no_memory;
    Interface* const child = made.get();
    if (const kernel::Status status = parent.children.adopt(std::move(made)); !status.ok()) {
        shim_helper_extack(extack, "setting the child up failed, error %d", status.code());
        return status;
    }
    if (const kernel::Status status = change(*child, request, extack); !status.ok()) {
        child->detach(nullptr);
        return status;
    }
    return {};
}

} // namespace

} // namespace ipoib

using ipoib::Interface;

TA_REQUIRES(kernel::rtnl) int ipoib_newlink(net_device* dev, const shim_link_request* request, netlink_ext_ack* extack)
{
    return ipoib::create(dev, *request, extack).code();
}

TA_REQUIRES(kernel::rtnl)
int ipoib_changelink(net_device* dev, const shim_link_request* request, netlink_ext_ack* extack)
{
    return ipoib::change(Interface::of(dev), *request, extack).code();
}

TA_REQUIRES(kernel::rtnl) void ipoib_dellink(net_device* dev, void* batch)
{
    // A parent is deleted with its HCA only.
    if (Interface& interface = Interface::of(dev); interface.parent())
        interface.detach(batch);
}

void ipoib_link_info(const net_device* dev, shim_link_info* info)
{
    const Interface& interface = Interface::of(dev);
    info->pkey = interface.identity.pkey().value();
    info->mode = interface.settings.connected() ? ipoib::connected : ipoib::datagram;
    info->umcast = interface.settings.umcast();
}

const net_device* ipoib_link_parent(const net_device* dev)
{
    const Interface* parent = Interface::of(dev).parent();
    return parent ? parent->dev() : dev;
}
