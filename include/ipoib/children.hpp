// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// P_Key children of an interface: interfaces on the same port, each with a P_Key and queues of its own. Those created
// through sysfs and those created by rtnetlink behave the same.
#pragma once
#include <ipoib/address.hpp>
#include <kernel/list.hpp>
#include <kernel/memory.hpp>
#include <kernel/result.hpp>
#include <kernel/work.hpp>

namespace ipoib {

class Interface;

// All functions: CONTEXT: RTNL.
class Children {
public:
    explicit Children(Interface& parent);

    // create_child and delete_child. create(): -EINVAL: not a P_Key, or the parent is a child; -ENOTUNIQ: another child
    // created through sysfs, or the parent, has the P_Key; -ENOMEM. remove(): -EINVAL, or -ENODEV: no such child.
    kernel::Status create(int pkey);
    kernel::Status remove(int pkey);
    // Attaches an interface that was constructed as a child of this parent.
    kernel::Status adopt(kernel::Owned<Interface> child);
    // Detaches all; see Interface::detach().
    void detach_all(void* batch);
    // The parent's GUID was set.
    void follow_guid();
    // The parent went up or down. CONTEXT: in ndo_open or ndo_stop.
    void follow_state(bool up);
    // Cancels the work item. CONTEXT: process, no RTNL.
    void cancel() { follow_.cancel(); }

private:
    Interface* find(PKey pkey);
    void run_follow();
    void set_up(bool up);

    Interface& parent_;
    kernel::List<Interface> list_;
    kernel::RtnlWork<&Children::run_follow> follow_;
};

} // namespace ipoib
