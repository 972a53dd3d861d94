// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The files of an interface in sysfs: mode and pkey.
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

long store_mode(const Interface& interface, const char* text, std::size_t bytes)
{
    if (is_word(text, bytes, "datagram"))
        return static_cast<long>(bytes);
    if (is_word(text, bytes, "connected"))
        log_warning(interface.dev(), "connected mode is not available: this interface has a datagram-only address");
    return kernel::invalid;
}

} // namespace

} // namespace ipoib

long ipoib_attribute_show(net_device* dev, ipoib_attribute attribute, char* buffer)
{
    const auto& interface = ipoib::Interface::of(dev);
    switch (attribute) {
    case IPOIB_ATTRIBUTE_MODE:
        return shim_format(buffer, shim_page_size(), "datagram\n");
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
