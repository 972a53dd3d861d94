// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// An interface's files in debugfs, which have the interface's name.
#pragma once
#include <kernel/handle.hpp>
#include <kernel/lock.hpp>
#include <shim/debugfs.h>

namespace ipoib {

class DebugFiles {
public:
    explicit DebugFiles(net_device* dev) : dev_(dev) {}
    void create() TA_REQUIRES(kernel::rtnl);
    void remove() TA_REQUIRES(kernel::rtnl);
    // Creates the files anew under the interface's current name.
    void rename() TA_REQUIRES(kernel::rtnl);

private:
    net_device* const dev_;
    bool created_ TA_GUARDED(kernel::rtnl) = false;
    kernel::Handle<dentry, shim_debugfs_remove> files_[IPOIB_DEBUG_FILES] TA_GUARDED(kernel::rtnl);
};

} // namespace ipoib
