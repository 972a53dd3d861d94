// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Operations of users and the kernel: rtnetlink, sysfs, ethtool, time, and lack of memory.
#include "session.hpp"

#include <algorithm>
#include <string_view>

#include <ipoib/mgid.hpp>
#include <shim/ethtool.h>
#include <shim/netlink.h>

namespace ipoib::fuzz {

namespace {

// Attributes of the kind "ipoib", as nested netlink attributes: length and type in host order, data, padding.
enum Attribute : std::uint16_t { pkey = 1, mode = 2, umcast = 3 };

// Parses as the kernel does with the policy NLA_U16: too short attributes are refused, too long ones cut, unknown ones
// skipped; the last of a kind counts.
bool parse(const std::vector<std::uint8_t>& bytes, shim_link_request& request)
{
    constexpr std::size_t header_bytes = 4;
    for (std::size_t at = 0; at + header_bytes <= bytes.size();) {
        const std::size_t length = bytes[at] | bytes[at + 1] << 8;
        const unsigned int type = (bytes[at + 2] | bytes[at + 3] << 8) & 0x3fff;
        if (length < header_bytes || at + length > bytes.size())
            return true;
        if (type >= pkey && type <= umcast && length < header_bytes + sizeof(std::uint16_t))
            return false;
        const auto value = [&] { return static_cast<std::uint16_t>(bytes[at + 4] | bytes[at + 5] << 8); };
        if (type == pkey) {
            request.has_pkey = true;
            request.pkey = value();
        } else if (type == mode) {
            request.has_mode = true;
            request.mode = value();
        } else if (type == umcast) {
            request.has_umcast = true;
            request.umcast = value();
        }
        at += (length + 3) & ~std::size_t(3);
    }
    return true;
}

// Buffer of one page, as sysfs has.
constexpr std::size_t file_bytes = 4096;

} // namespace

// An interface's life

void Session::open()
{
    net_device* const dev = device();
    if (!dev || dev->up)
        return;
    Rtnl rtnl;
    dev->up = ipoib_ndo_open(dev) == 0;
}

void Session::close()
{
    if (net_device* dev = device())
        bring_down(dev);
}

// rtnetlink

void Session::create_link()
{
    constexpr std::size_t max_netdevs = 6;
    shim_link_request request{};
    const std::uint8_t kind = input_.byte();
    request.has_link = !(kind & 1);
    if (request.has_link && !(kind & 2))
        request.link = device();
    const std::uint16_t mtu = kind & 4 ? input_.u16() : 0;
    const auto address = kind & 8 ? input_.bytes(HwAddr::size) : std::vector<std::uint8_t>();
    if (!parse(input_.some_bytes(), request) || world_.netdevs.size() >= max_netdevs)
        return;
    net_device foreign;
    foreign.ours = false;
    if (kind & 16)
        request.link = &foreign;
    Rtnl rtnl;
    auto* const dev = shim_helper_alloc_child_netdev(&world_.ca, 1, request.link, "child");
    dev->mtu = mtu;
    std::copy(address.begin(), address.end(), dev->address.begin());
    dev->address_given = !address.empty();
    const int error = ipoib_newlink(dev, &request, nullptr);
    const bool there = std::count(world_.netdevs.begin(), world_.netdevs.end(), dev);
    require(error || (dev->registered && there), "a child was made that is not registered");
    require(!error || !dev->registered, "a child that was refused is registered");
    // Unregistered after an error, the netdev ends with RTNL.
    if (error && there)
        shim_free_netdev(dev);
}

void Session::change_link()
{
    net_device* const dev = device();
    shim_link_request request{};
    if (!dev || !parse(input_.some_bytes(), request))
        return;
    Rtnl rtnl;
    const int error = ipoib_changelink(dev, &request, nullptr);
    shim_link_info info{};
    ipoib_link_info(dev, &info);
    require(error || !request.has_mode || info.mode == request.mode, "a mode was accepted and is not in force");
    require(error || !request.has_umcast || info.umcast == (request.umcast != 0),
            "umcast was accepted and is not in force");
    require(info.mode <= 1 && info.umcast <= 1, "there is no such mode");
}

void Session::delete_link()
{
    net_device* const dev = device();
    if (!dev)
        return;
    const bool child = ipoib_link_parent(dev) != dev;
    Rtnl rtnl;
    ipoib_dellink(dev, nullptr);
    require(dev->registered == !child, "a child stays, or a parent went");
}

// Files

// Any text; the kernel appends a zero.
void Session::store()
{
    net_device* const dev = device();
    const auto attribute = static_cast<ipoib_attribute>(input_.below(IPOIB_ATTRIBUTE_PARENT + 1));
    const auto text = input_.some_bytes();
    if (!dev)
        return;
    // Exact size, so that AddressSanitizer sees an access beyond.
    std::vector<char> exact(text.begin(), text.end());
    exact.push_back('\0');
    exact.shrink_to_fit();
    const long stored = world_.store(dev, attribute, exact.data(), text.size());
    require(stored < 0 || static_cast<std::size_t>(stored) == text.size(), "a file took more or less than was written");
}

void Session::store_word()
{
    static constexpr struct {
        ipoib_attribute attribute;
        std::string_view text;
    } words[] = {
        {IPOIB_ATTRIBUTE_MODE, "connected\n"},
        {IPOIB_ATTRIBUTE_MODE, "datagram\n"},
        {IPOIB_ATTRIBUTE_CREATE_CHILD, "0x8001\n"},
        {IPOIB_ATTRIBUTE_DELETE_CHILD, "0x8001\n"},
        {IPOIB_ATTRIBUTE_CREATE_CHILD, "2"},
        {IPOIB_ATTRIBUTE_DELETE_CHILD, "0x8002"},
        {IPOIB_ATTRIBUTE_UMCAST, "1\n"},
        {IPOIB_ATTRIBUTE_UMCAST, "0\n"},
    };
    net_device* const dev = device();
    const auto& word = words[input_.below(std::size(words))];
    if (dev)
        (void)world_.store(dev, word.attribute, word.text.data(), word.text.size());
}

void Session::show()
{
    net_device* const dev = device();
    if (!dev)
        return;
    for (int which = 0; which <= IPOIB_ATTRIBUTE_PARENT; ++which) {
        const auto attribute = static_cast<ipoib_attribute>(which);
        std::vector<char> page(file_bytes);
        if (attribute == IPOIB_ATTRIBUTE_PARENT && !dev->child)
            continue;
        const long shown = ipoib_attribute_show(dev, attribute, page.data());
        require(shown < static_cast<long>(file_bytes), "a file is longer than a page");
    }
    for (int which = 0; which < IPOIB_DEBUG_FILES; ++which)
        ipoib_debug_show(dev, static_cast<ipoib_debug_file>(which), nullptr);
    world_.seq_text.clear();
    std::vector<char> names(ipoib_ethtool_statistics_count(dev) * SHIM_ETHTOOL_NAME_BYTES);
    std::vector<std::uint64_t> values(ipoib_ethtool_statistics_count(dev));
    ipoib_ethtool_statistic_names(dev, names.data());
    ipoib_ethtool_statistics(dev, values.data());
    (void)ipoib_ethtool_speed(dev);
    shim_rings rings{};
    ipoib_ethtool_get_rings(dev, &rings);
    require(rings.sends <= rings.max_sends && rings.receives <= rings.max_receives,
            "rings are larger than they may be");
    shim_moderation moderation{};
    ipoib_ethtool_get_moderation(dev, &moderation);
    Rtnl rtnl;
    ipoib_netdev_renamed(dev);
}

// ethtool and ip link

void Session::change_mtu()
{
    net_device* const dev = device();
    const std::uint16_t mtu = input_.u16();
    if (!dev)
        return;
    Rtnl rtnl;
    const int error = shim_dev_set_mtu(dev, mtu);
    require(error || dev->mtu <= mtu, "the MTU is larger than was asked for");
}

void Session::change_rings()
{
    net_device* const dev = device();
    const unsigned int sends = input_.byte() * 2U, receives = input_.byte() % 33U;
    if (!dev)
        return;
    Rtnl rtnl;
    (void)ipoib_ethtool_set_rings(dev, sends, receives);
}

void Session::change_moderation()
{
    net_device* const dev = device();
    const std::uint8_t kind = input_.byte();
    const shim_moderation wanted{input_.u32() >> (kind & 16), input_.u16(), (kind & 1) != 0};
    world_.ca.moderation_error = kind & 2 ? -95 : kind & 4 ? -22 : 0;
    if (!dev)
        return;
    // Work item of the DIM library with a profile chosen by the traffic.
    if (kind & 8 && world_.dim)
        world_.dim->apply(world_.dim->context, wanted.usecs & 0xff, wanted.frames);
    Rtnl rtnl;
    if (kind & 32)
        (void)ipoib_ethtool_set_queue_moderation(dev, kind >> 6, &wanted);
    else
        (void)ipoib_ethtool_set_moderation(dev, &wanted);
}

void Session::change_flags()
{
    net_device* const dev = device();
    const std::uint32_t flags = input_.byte();
    if (!dev)
        return;
    Rtnl rtnl;
    const int error = ipoib_ethtool_set_flags(dev, flags);
    require(error || ipoib_ethtool_get_flags(dev) == (flags & IPOIB_FLAG_ICRC_AS_CHECKSUM), "flags are not as set");
}

void Session::change_address()
{
    net_device* const dev = device();
    if (!dev)
        return;
    HwAddr address = HwAddr::from(dev->address.data());
    const std::uint8_t at = input_.byte();
    address.bytes[at % HwAddr::size] = input_.byte();
    Rtnl rtnl;
    (void)ipoib_ndo_set_address(dev, address.bytes);
}

void Session::change_groups()
{
    net_device* const dev = device();
    const std::uint8_t kind = input_.byte();
    if (!dev)
        return;
    dev->multicast.clear();
    for (unsigned int i = 0; i < (kind & 3U); ++i)
        dev->multicast.push_back(destination());
    if (kind & 4 && !dev->multicast.empty()) {
        const Gid mgid = dev->multicast.front().gid();
        world_.known_groups.insert(std::string(reinterpret_cast<const char*>(mgid.bytes), Gid::size));
    }
    ipoib_ndo_set_rx_mode(dev);
}

void Session::change_offloads()
{
    net_device* const dev = device();
    const std::uint8_t kind = input_.byte();
    if (!dev)
        return;
    poll();
    dev->rx_checksum = kind & 2;
    dev->gro_hw = dev->rx_checksum && kind & 1;
    world_.gro_holds_packets = kind & 4;
    (void)ipoib_offloads_sends(dev);
    counts_[dev].arrived.clear();
}

void Session::find()
{
    const std::uint8_t kind = input_.byte();
    const shim_gid gid = world_.ca.gid;
    net_device* const dev = device();
    if (!world_.state || !dev)
        return;
    const auto* address = reinterpret_cast<const sockaddr*>(&world_);
    dev->ip = kind & 1 ? address : nullptr;
    (void)ipoib_find_netdev(world_.state, kind >> 4 & 1U, kind & 2 ? input_.u16() : world_.ca.pkey,
                            kind & 4 ? &gid : nullptr, kind & 8 ? address : nullptr);
}

void Session::time_out()
{
    net_device* const dev = device();
    if (dev && dev->up)
        ipoib_ndo_tx_timeout(dev, 0);
}

// Time

void Session::work()
{
    world_.run_work();
    poll();
}

// Moves time to the next due work, so that idle hours cost nothing.
void Session::pass(unsigned long ticks)
{
    const unsigned long end = world_.now + ticks;
    for (int rounds = 0; rounds < 200; ++rounds) {
        work();
        unsigned long next = end;
        for (const World::Queued& queued : world_.queued)
            if (queued.due > world_.now)
                next = std::min(next, queued.due);
        if (world_.now >= end)
            break;
        world_.now = next;
    }
}

void Session::pass_time()
{
    const std::uint8_t kind = input_.byte();
    if (world_.now < ends_at_)
        pass(kind < 128 ? kind : kind < 250 ? (kind - 127) * 100U : 52000U);
}

void Session::lack_memory()
{
    const std::uint8_t kind = input_.byte();
    const int nth = kind >> 3;
    switch (kind & 7) {
    case 0:
        world_.fail_allocation = nth;
        break;
    case 1:
        world_.fail_pages = nth & 1;
        break;
    case 2:
        world_.fail_mapping = static_cast<unsigned int>(nth);
        break;
    case 3:
        world_.sends_until_failure = nth - 1;
        break;
    case 4:
        world_.receives_until_failure = nth - 1;
        break;
    case 5:
        world_.fail_qps = static_cast<unsigned int>(nth & 3);
        break;
    case 6:
        world_.administrator = nth & 1;
        break;
    default:
        have_everything();
        break;
    }
}

void Session::unplug()
{
    take_received();
    if (world_.state) {
        ipoib_remove_device(&world_.ca, std::exchange(world_.state, nullptr));
        require(world_.netdevs.empty(), "an HCA went and left an interface");
    } else {
        (void)ipoib_add_device(&world_.ca, &world_.state);
    }
}

} // namespace ipoib::fuzz
