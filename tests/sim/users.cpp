// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Actions of users and administrators: up and down, modes, children, memberships, traffic, reading.
#include <algorithm>

#include "faults.hpp"
#include "world.hpp"

namespace sim {

void Faults::bring_up(Party party)
{
    const RtnlGuard rtnl;
    if (net_device* dev = world->stack.find(party))
        (void)world->stack.open(dev);
}

void Faults::down_up(Party party, Time lasts)
{
    {
        const RtnlGuard rtnl;
        net_device* dev = world->stack.find(party);
        if (!dev)
            return;
        world->stack.close(dev);
    }
    wait_for(lasts);
    bring_up(party);
}

long Faults::store(Party party, ipoib_attribute attribute, const std::string& text)
{
    net_device* dev = world->stack.find(party);
    if (!dev)
        return -19;
    long result = -19;
    ++dev->holds;
    {
        const RtnlGuard rtnl;
        if (dev->registered)
            result = ipoib_attribute_store(dev, attribute, text.c_str(), text.size());
    }
    --dev->holds;
    world->scheduler.wake(&dev->holds);
    return result;
}

void Faults::change_mtu(Party party, unsigned int mtu)
{
    const RtnlGuard rtnl;
    net_device* dev = world->stack.find(party);
    if (!dev)
        return;
    dev->mtu_set = true;
    (void)shim_dev_set_mtu(dev, mtu);
}

void Faults::change_mode(Party party, bool connected, bool by_file)
{
    if (by_file) {
        (void)store(party, IPOIB_ATTRIBUTE_MODE, connected ? "connected\n" : "datagram");
        return;
    }
    const RtnlGuard rtnl;
    shim_link_request request{};
    request.has_mode = true;
    request.mode = connected;
    if (net_device* dev = world->stack.find(party))
        (void)ipoib_changelink(dev, &request, nullptr);
}

void Faults::set_rings(Party party)
{
    const RtnlGuard rtnl;
    net_device* dev = world->stack.find(party);
    if (!dev)
        return;
    if (dice().one_in(2)) {
        (void)ipoib_ethtool_set_rings(dev, 128U << dice().below(2), 2U << dice().below(6));
        return;
    }
    shim_channels channels;
    ipoib_ethtool_get_channels(dev, &channels);
    (void)ipoib_ethtool_set_channels(dev, static_cast<unsigned int>(dice().between(1, channels.max_transmits)),
                                     static_cast<unsigned int>(dice().between(1, channels.max_receives)));
}

void Faults::create_child(unsigned int node, bool by_file)
{
    if (world->stack.find({node, 1}))
        return;
    if (by_file) {
        (void)store({node, 0}, IPOIB_ATTRIBUTE_CREATE_CHILD, "0x8001");
    } else {
        const RtnlGuard rtnl;
        net_device* parent = world->stack.find({node, 0});
        if (!parent || !world->link_kind)
            return;
        net_device* dev = world->stack.create(parent->ca, parent, "child");
        if (!dev)
            return;
        // Some requests are invalid.
        const bool odd = dice().one_in(4);
        shim_link_request request{
            odd ? nullptr : parent, true, true, true, false, 0x8001, static_cast<std::uint16_t>(dice().below(2)), 0};
        dev->by_netlink = true;
        if (ipoib_newlink(dev, &request, nullptr) != 0 &&
            !std::count(world->stack.going.begin(), world->stack.going.end(), dev))
            world->stack.free_dev(dev);
    }
    bring_up({node, 1});
}

void Faults::delete_child(unsigned int node)
{
    const net_device* child = world->stack.find({node, 1});
    if (!child)
        return;
    if (!child->by_netlink && dice().one_in(2)) {
        (void)store({node, 0}, IPOIB_ATTRIBUTE_DELETE_CHILD, "0x8001");
        return;
    }
    const RtnlGuard rtnl;
    if (net_device* dev = world->stack.find({node, 1}))
        ipoib_dellink(dev, nullptr);
}

void Faults::change_memberships(Party party)
{
    net_device* dev = world->stack.find(party);
    if (!dev)
        return;
    const Bh bh;
    world->lockdep.acquire(Lockdep::addresses, &dev->multicast);
    ipoib::HwAddr address = Stack::group_address(dev, static_cast<unsigned int>(dice().between(2, 20)));
    // Programs may put any address on the list.
    if (dice().one_in(8))
        address.bytes[dice().below(20)] ^= 0x55;
    const auto it = std::find(dev->multicast.begin(), dev->multicast.end(), address);
    if (it == dev->multicast.end())
        dev->multicast.push_back(address);
    else
        dev->multicast.erase(it);
    if (dev->running)
        ipoib_ndo_set_rx_mode(dev);
    world->lockdep.release(&dev->multicast);
}

void Faults::switch_offloads(Party party, std::uint64_t number)
{
    const RtnlGuard rtnl;
    net_device* dev = world->stack.find(party);
    if (!dev)
        return;
    // The stack turns GRO by hardware off without receive checksums (netdev_fix_features).
    dev->rx_checksum = number % 4 != 0;
    dev->gro_hw = dev->rx_checksum && number / 4 % 4 != 0;
    dev->offloads_changed = world->scheduler.now();
}

void Faults::moderate(Party party, std::uint64_t number)
{
    const RtnlGuard rtnl;
    net_device* dev = world->stack.find(party);
    if (!dev)
        return;
    // Values above 16 bits are refused.
    const shim_moderation wanted{static_cast<unsigned int>(number % 70000),
                                 static_cast<unsigned int>(number / 70000 % 70000), number / 3 % 4 == 0};
    const int error = ipoib_ethtool_set_moderation(dev, &wanted);
    SIM_CHECK((error == -22) == (wanted.usecs > 0xffff || wanted.frames > 0xffff), "moderation of %u us, %u frames: %d",
              wanted.usecs, wanted.frames, error);
    if (!error) {
        dev->usecs = wanted.usecs;
        dev->frames = wanted.frames;
        dev->adaptive = wanted.adaptive;
    }
    shim_moderation shown;
    ipoib_ethtool_get_moderation(dev, &shown);
    SIM_CHECK(shown.adaptive == dev->adaptive &&
                  (dev->adaptive || (shown.usecs == dev->usecs && shown.frames == dev->frames)),
              "%s: moderation of %u us and %u frames is shown as %u and %u", dev->name.c_str(), dev->usecs, dev->frames,
              shown.usecs, shown.frames);
}

void Faults::burst(const Planned& planned)
{
    const Party from{planned.node, 0};
    for (std::uint64_t left = planned.number % 1500; left > 0; --left) {
        net_device* dev = world->stack.find(from);
        if (!dev)
            return;
        if (planned.fault == Fault::groups_burst) {
            world->stack.send_group(dev, static_cast<unsigned int>(dice().between(2, 40)), 60);
            left -= std::min<std::uint64_t>(left - 1, 9);
        } else {
            const auto peer = static_cast<unsigned int>((planned.number + dice().below(2)) % world->node_count);
            if (peer != planned.node)
                world->stack.send_data(dev, {peer, 0}, static_cast<unsigned int>(dice().between(60, 400)));
        }
    }
}

void Faults::send_busy_flows(const Planned& planned)
{
    const auto peer = static_cast<unsigned int>((planned.node + 1 + planned.number % 3) % world->node_count);
    change_mode({planned.node, 0}, true, planned.number & 1);
    for (std::uint64_t left = 400 + planned.number % 1600; left > 0 && !world->quiet; --left) {
        if (net_device* dev = world->stack.find({planned.node, 0}))
            world->stack.send_data(dev, {peer, 0}, static_cast<unsigned int>(dice().between(8000, 12000)));
        wait_for(dice().between(2, 6) * millisecond);
    }
}

void Faults::pester(unsigned int node)
{
    world->scheduler.spawn("pester", Fiber::Kind::process, [node] {
        const Time pause = dice().log_between(microsecond, 20 * millisecond);
        for (auto left = dice().below(400); left > 0; --left) {
            const auto other = static_cast<unsigned int>(dice().below(world->node_count));
            net_device* dev = world->stack.find({node, dice().one_in(4) ? 1U : 0U});
            if (dev && other != node && !world->quiet)
                world->stack.send_data(dev, {other, dev->party.part},
                                       static_cast<unsigned int>(dice().between(60, 1500)));
            if (dice().one_in(3))
                wait_for(dice().log_between(100, pause));
        }
    });
}

void Faults::read_everything(unsigned int node)
{
    ib_device& ca = *world->devices[node];
    for (const std::size_t which : {dice().next(), dice().next(), dice().next(), dice().next()}) {
        if (world->debug_files.empty())
            break;
        dentry* file = world->debug_files[which % world->debug_files.size()];
        ++file->readers;
        ipoib_debug_show(file->dev, file->which, nullptr);
        --file->readers;
        world->scheduler.wake(file);
    }
    {
        const RtnlGuard rtnl;
        if (net_device* dev = world->stack.find({node, 0})) {
            std::vector<std::uint64_t> values(ipoib_ethtool_statistics_count(dev));
            ipoib_ethtool_statistics(dev, values.data());
            (void)ipoib_ethtool_speed(dev);
            // The netdev and its files are renamed.
            if (dice().one_in(4))
                ipoib_netdev_renamed(dev);
        }
    }
    if (!ca.added || ca.changing || !ca.state)
        return;
    ++ca.users;
    world->lockdep.acquire(Lockdep::client_data, &ca);
    net_device* held = ipoib_find_netdev(ca.state, 1, dice().one_in(2) ? 0xffff : 0x8001, &ca.gid, nullptr);
    world->lockdep.release(&ca);
    --ca.users;
    world->scheduler.wake(&ca.users);
    if (!held)
        return;
    wait_for(dice().log_between(microsecond, 50 * millisecond));
    --held->holds;
    world->scheduler.wake(&held->holds);
}

void Faults::chat(net_device* dev)
{
    const auto peer = static_cast<unsigned int>(dice().below(world->node_count));
    if (dice().one_in(12))
        world->stack.send_group(dev, static_cast<unsigned int>(dice().between(1, 6)),
                                static_cast<unsigned int>(dice().one_in(8) ? dice().between(1000, 9000) : 60));
    if (peer == dev->party.node)
        return;
    for (auto left = dice().between(1, 5); left > 0; --left) {
        const std::uint64_t longest = dice().one_in(4) ? dice().one_in(4) ? 65520 : 8000 : 1500;
        world->stack.send_data(dev, {peer, dev->party.part},
                               static_cast<unsigned int>(dice().log_between(60, longest)));
    }
}

} // namespace sim
