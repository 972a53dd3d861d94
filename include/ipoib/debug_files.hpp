// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// An interface's files in debugfs, which have the interface's name.
#pragma once
#include <kernel/handle.hpp>
#include <shim/debugfs.h>

namespace ipoib {

// All functions: CONTEXT: RTNL.
class DebugFiles {
public:
    explicit DebugFiles(net_device* dev) : dev_(dev) {}
    void create();
    void remove();
    // Creates the files anew under the interface's present name.
    void rename();

private:
    net_device* const dev_;
    bool created_ = false;
    kernel::Handle<dentry, shim_debug_file_remove> files_[IPOIB_DEBUG_FILES];
};

} // namespace ipoib
