// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// P_Key children: interfaces on the port of another one, their parent, each with a P_Key and queues of its own. However
// one was made, by writing to the parent's create_child or by rtnetlink, it is the same afterwards. All under RTNL.
#include <ipoib/interface.hpp>
#include <kernel/log.hpp>

namespace ipoib {

namespace {

constexpr unsigned int name_bytes = 16;

// Two P_Keys of one partition, whatever their membership bits say.
bool same_partition(PKey a, PKey b) { return a.as_full_member() == b.as_full_member(); }

} // namespace

Interface* Interface::child_of(PKey pkey)
{
    for (Interface& child : children_)
        if (same_partition(child.pkey(), pkey) && child.made_by_file_)
            return &child;
    return nullptr;
}

kernel::Status Interface::attach()
{
    if (hca_.accelerates())
        TRY(lower.start());
    shim_netdev_set_owner(dev_, this);
    TRY(prepare());
    if (parent_)
        shim_netdev_set_child(dev_);
    TRY(shim_netdev_register(dev_));
    hca_.add(*this);
    create_debug_files();
    listen();
    return {};
}

kernel::Status Interface::create_child(int number)
{
    if (parent_)
        return kernel::invalid;
    const PKey pkey(static_cast<std::uint16_t>(number));
    if (number < 0 || number > 0xffff || !pkey.valid()) {
        log_warning(dev_, "P_Key %d is none that a child can have: 0x0001 to 0xffff, but not 0x8000", number);
        return kernel::invalid;
    }
    if (same_partition(pkey, this->pkey()) || child_of(pkey)) {
        log_warning(dev_, "P_Key 0x%04x has an interface already", pkey.value());
        return kernel::not_unique;
    }
    char name[name_bytes];
    // The P_Key as it was written, as scripts expect.
    shim_format(name, sizeof(name), "%.10s.%04x", shim_netdev_name(dev_), pkey.value());
    net_device* dev = shim_netdev_create_child(ca_, port_, dev_, name);
    if (!dev)
        return kernel::no_memory;
    kernel::Status status = kernel::no_memory;
    if (auto child = kernel::make_owned<Interface>(dev, *this, pkey)) {
        child->made_by_file_ = true;
        status = adopt_child(std::move(child));
    }
    if (!status.ok()) {
        log_warning(dev_, "failed to create child %s, error %d", name, status.code());
        shim_netdev_free(dev);
    }
    return status;
}

kernel::Status Interface::delete_child(int number)
{
    if (parent_ || number < 0 || number > 0xffff)
        return kernel::invalid;
    Interface* child = child_of(PKey(static_cast<std::uint16_t>(number)));
    if (!child) {
        log_warning(dev_, "no child was created with P_Key 0x%04x", number);
        return kernel::no_device;
    }
    child->detach(nullptr);
    return {};
}

kernel::Status Interface::adopt_child(kernel::Owned<Interface> child)
{
    TRY(child->attach());
    children_.push_back(*child.release());
    return {};
}

void Interface::detach(void* batch)
{
    while (Interface* child = children_.front())
        child->detach(batch);
    static_cast<kernel::ListNode<Interface>&>(*this).unlink();
    hca_.remove(*this);
    shim_events_stop(event_handler());
    remove_debug_files();
    shim_netdev_unregister(dev_, batch);
}

void Interface::take_children_along(bool up)
{
    // Under this one's ops lock nobody may take theirs: what opens and closes tells other drivers, who may take this
    // one.
    if (shim_netdev_has_ops_lock(dev_))
        children_follow_.queue();
    else
        bring_children(up);
}

void Interface::children_follow() { bring_children(shim_netdev_up(dev_)); }

void Interface::bring_children(bool up)
{
    for (Interface& child : children_)
        if (shim_netdev_up(child.dev_) != up)
            shim_netdev_bring(child.dev_, up);
}

} // namespace ipoib
