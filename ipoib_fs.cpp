// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The files of an interface: mode and pkey in sysfs, what it knows of its connections in debugfs.
#include <cstring>

#include <ipoib/interface.hpp>
#include <kernel/log.hpp>

namespace ipoib {

namespace {

// With or without the newline that echo adds.
bool is_word(const char* text, std::size_t bytes, const char* word)
{
    const std::size_t length = __builtin_strlen(word);
    return (bytes == length || (bytes == length + 1 && text[length] == '\n')) &&
           __builtin_memcmp(text, word, length) == 0;
}

long store_mode(Interface& interface, const char* text, std::size_t bytes)
{
    const bool connected = is_word(text, bytes, "connected");
    if (!connected && !is_word(text, bytes, "datagram"))
        return kernel::invalid;
    // Removing the file waits for us, and may hold the lock meanwhile.
    if (!shim_rtnl_trylock())
        return shim_restart_syscall();
    const kernel::Status status = interface.set_connected(connected);
    shim_rtnl_unlock();
    return status.ok() ? static_cast<long>(bytes) : status.code();
}

} // namespace

void Interface::create_debug_files()
{
    kernel::Guard guard(kernel::rtnl);
    has_debug_files_ = true;
    renamed();
}

void Interface::renamed()
{
    if (!has_debug_files_)
        return;
    for (int which = 0; which < IPOIB_DEBUG_FILES; ++which) {
        shim_debug_file_remove(debug_files_[which]);
        debug_files_[which] = shim_debug_file_create(dev_, static_cast<ipoib_debug_file>(which));
    }
}

void Interface::remove_debug_files()
{
    kernel::Guard guard(kernel::rtnl);
    has_debug_files_ = false;
    for (dentry*& file : debug_files_)
        shim_debug_file_remove(std::exchange(file, nullptr));
}

} // namespace ipoib

long ipoib_attribute_show(net_device* dev, ipoib_attribute attribute, char* buffer)
{
    const auto& interface = ipoib::Interface::of(dev);
    switch (attribute) {
    case IPOIB_ATTRIBUTE_MODE:
        return shim_format(buffer, shim_page_size(), "%s\n", interface.connected() ? "connected" : "datagram");
    case IPOIB_ATTRIBUTE_PKEY:
        return shim_format(buffer, shim_page_size(), "0x%04x\n", interface.pkey().value());
    }
    return kernel::invalid;
}

long ipoib_attribute_store(net_device* dev, ipoib_attribute attribute, const char* text, std::size_t bytes)
{
    if (attribute == IPOIB_ATTRIBUTE_MODE)
        return ipoib::store_mode(ipoib::Interface::of(dev), text, bytes);
    return kernel::invalid;
}

void ipoib_debug_show(net_device* dev, ipoib_debug_file which, seq_file* file)
{
    if (which == IPOIB_DEBUG_CM)
        ipoib::Interface::of(dev).connections.show(file);
}

void ipoib_netdev_renamed(net_device* dev) { ipoib::Interface::of(dev).renamed(); }
