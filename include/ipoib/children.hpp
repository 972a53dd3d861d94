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

class Children {
public:
    explicit Children(Interface& parent);

    // create_child and delete_child. create(): -EINVAL: not a P_Key, or the parent is a child; -ENOTUNIQ: another child
    // created through sysfs, or the parent, has the P_Key; -EEXIST: the name is taken; -ENOMEM. remove(): -EINVAL, or
    // -ENODEV: no such child.
    kernel::Status create(int pkey) TA_REQUIRES(kernel::rtnl);
    kernel::Status remove(int pkey) TA_REQUIRES(kernel::rtnl);
    // Attaches an interface that was constructed as a child of this parent.
    kernel::Status adopt(kernel::Owned<Interface> child) TA_REQUIRES(kernel::rtnl);
    // Detaches all; see Interface::detach().
    void detach_all(void* batch) TA_REQUIRES(kernel::rtnl);
    // The parent's GUID was set.
    void follow_guid() TA_REQUIRES(kernel::rtnl);
    // The parent went up or down, in ndo_open or ndo_stop.
    void follow_state(bool up) TA_REQUIRES(kernel::rtnl);
    // Cancels the work item. CONTEXT: process.
    void cancel() TA_EXCLUDES(kernel::rtnl) { follow_.cancel(); }

private:
    Interface* find(PKey pkey) TA_REQUIRES(kernel::rtnl);
    void run_follow() TA_REQUIRES(kernel::rtnl);
    void set_up(bool up) TA_REQUIRES(kernel::rtnl);

    Interface& parent_;
    kernel::List<Interface> list_ TA_GUARDED(kernel::rtnl);
    kernel::RtnlWork<&Children::run_follow> follow_;
};

} // namespace ipoib
