// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// P_Key children of an interface: created through sysfs or rtnetlink, removed, and up and down with their parent.
#include <ipoib/children.hpp>
#include <ipoib/interface.hpp>
#include <kernel/handle.hpp>
#include <kernel/log.hpp>

namespace ipoib {

namespace {

constexpr unsigned int name_bytes = 16;

// True for two P_Keys of one partition, whatever their membership bits are.
bool same_partition(PKey a, PKey b) { return a.as_full_member() == b.as_full_member(); }

} // namespace

Children::Children(Interface& parent) : parent_(parent), follow_(*this, flush_queue) {}

Interface* Children::find(PKey pkey)
{
    for (Interface& child : list_)
        if (same_partition(child.identity.pkey(), pkey) && child.created_by_sysfs)
            return &child;
    return nullptr;
}

kernel::Status Children::create(int number)
{
    net_device* const dev = parent_.dev();
    if (parent_.parent())
        return kernel::invalid;
    const PKey pkey(static_cast<std::uint16_t>(number));
    if (number < 0 || number > 0xffff || !pkey.valid()) {
        log_warning(dev, "P_Key %d is invalid for a child, which can have 0x0001 to 0xffff, but not 0x8000", number);
        return kernel::invalid;
    }
    if (same_partition(pkey, parent_.identity.pkey()) || find(pkey)) {
        log_warning(dev, "P_Key 0x%04x has an interface already", pkey.value());
        return kernel::not_unique;
    }
    char name[name_bytes];
    // The P_Key as it was written, which scripts expect.
    shim_scnprintf(name, sizeof(name), "%.10s.%04x", shim_netdev_name(dev), pkey.value());
    kernel::Handle<net_device, shim_free_netdev> made(
        shim_helper_alloc_child_netdev(parent_.ca(), parent_.identity.port(), dev, name));
    if (!made)
        return kernel::no_memory;
    kernel::Status status = kernel::no_memory;
    if (auto child = kernel::make_owned<Interface>(made.get(), parent_, pkey)) {
        child->created_by_sysfs = true;
        status = adopt(std::move(child));
    }
    if (status.ok())
        // Unregistration frees the netdev.
        (void)made.release();
    else
        log_warning(dev, "failed to create child %s, error %d", name, status.code());
    return status;
}

kernel::Status Children::remove(int number)
{
    if (parent_.parent() || number < 0 || number > 0xffff)
        return kernel::invalid;
    Interface* child = find(PKey(static_cast<std::uint16_t>(number)));
    if (!child) {
        log_warning(parent_.dev(), "no child was created with P_Key 0x%04x", number);
        return kernel::no_device;
    }
    child->detach(nullptr);
    return {};
}

kernel::Status Children::adopt(kernel::Owned<Interface> child)
{
    TRY(child->attach());
    list_.push_back(*child.release());
    return {};
}

void Children::detach_all(void* batch)
{
    while (Interface* child = list_.front())
        child->detach(batch);
}

void Children::follow_guid()
{
    for (Interface& child : list_) {
        child.identity.follow_guid(parent_.identity);
        child.events.flush_light();
    }
}

void Children::follow_state(bool up)
{
    // With the parent's ops lock held, no child's may be taken: opening and closing notifies other drivers, which may
    // take the parent's.
    if (shim_netdev_need_ops_lock(parent_.dev()))
        follow_.queue();
    else
        set_up(up);
}

void Children::run_follow() { set_up(shim_netdev_iff_up(parent_.dev())); }

void Children::set_up(bool up)
{
    for (Interface& child : list_)
        if (shim_netdev_iff_up(child.dev()) != up)
            shim_dev_change_flags(child.dev(), up);
}

} // namespace ipoib
