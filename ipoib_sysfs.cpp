// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The attributes of an interface in sysfs: mode, pkey, create_child and others.

#include <ipoib/interface.hpp>
#include <shim/sysfs.h>

namespace ipoib {

namespace {

// True if text is word, with or without a newline.
bool is_word(const char* text, std::size_t bytes, const char* word)
{
    const std::size_t length = __builtin_strlen(word);
    return (bytes == length || (bytes == length + 1 && text[length] == '\n')) &&
           __builtin_memcmp(text, word, length) == 0;
}

TA_REQUIRES(kernel::rtnl) kernel::Status store_mode(Interface& interface, const char* text, std::size_t bytes)
{
    const bool connected = is_word(text, bytes, "connected");
    if (!connected && !is_word(text, bytes, "datagram"))
        return kernel::invalid;
    return interface.settings.set_connected(connected);
}

TA_REQUIRES(kernel::rtnl) kernel::Status store_child(Interface& interface, ipoib_attribute attribute, const char* text)
{
    int pkey = 0;
    if (!shim_sscanf_int(text, &pkey))
        return kernel::invalid;
    return attribute == IPOIB_ATTRIBUTE_CREATE_CHILD ? interface.children.create(pkey)
                                                     : interface.children.remove(pkey);
}

TA_REQUIRES(kernel::rtnl)
kernel::Status store(Interface& interface, ipoib_attribute attribute, const char* text, std::size_t bytes)
{
    int number = 0;
    // As for the stack's own files: root of another user namespace may own the file.
    if (!shim_ns_capable(interface.dev()))
        return kernel::not_permitted;
    switch (attribute) {
    case IPOIB_ATTRIBUTE_MODE:
        return store_mode(interface, text, bytes);
    case IPOIB_ATTRIBUTE_CREATE_CHILD:
    case IPOIB_ATTRIBUTE_DELETE_CHILD:
        return store_child(interface, attribute, text);
    case IPOIB_ATTRIBUTE_UMCAST:
        // Text that is not a number switches it off.
        interface.settings.set_umcast(shim_sscanf_int(text, &number) && number > 0);
        return {};
    case IPOIB_ATTRIBUTE_PKEY:
    case IPOIB_ATTRIBUTE_PARENT:
        break;
    }
    return kernel::invalid;
}

} // namespace

} // namespace ipoib

long ipoib_attribute_show(net_device* dev, ipoib_attribute attribute, char* buffer)
{
    const auto& interface = ipoib::Interface::of(dev);
    switch (attribute) {
    case IPOIB_ATTRIBUTE_MODE:
        return shim_scnprintf(buffer, shim_page_size(), "%s\n",
                              interface.settings.connected() ? "connected" : "datagram");
    case IPOIB_ATTRIBUTE_PKEY:
        return shim_scnprintf(buffer, shim_page_size(), "0x%04x\n", interface.identity.pkey().value());
    case IPOIB_ATTRIBUTE_UMCAST:
        return shim_scnprintf(buffer, shim_page_size(), "%d\n", interface.settings.umcast());
    case IPOIB_ATTRIBUTE_PARENT:
        return shim_scnprintf(buffer, shim_page_size(), "%s\n", shim_netdev_name(interface.parent()->dev()));
    case IPOIB_ATTRIBUTE_CREATE_CHILD:
    case IPOIB_ATTRIBUTE_DELETE_CHILD:
        break;
    }
    return kernel::invalid;
}

TA_REQUIRES(kernel::rtnl)
long ipoib_attribute_store(net_device* dev, ipoib_attribute attribute, const char* text, std::size_t bytes)
{
    const kernel::Status status = ipoib::store(ipoib::Interface::of(dev), attribute, text, bytes);
    return status.ok() ? static_cast<long>(bytes) : status.code();
}
