// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Changes of mode, connection checksums, umcast, interrupt moderation, ring sizes and numbers of queues.
#include <ipoib/interface.hpp>
#include <ipoib/settings.hpp>
#include <kernel/log.hpp>
#include <kernel/ring.hpp>

namespace ipoib {

kernel::Status Settings::set_connected(bool wanted)
{
    if (wanted == connected())
        return {};
    if (!interface_.has_queues()) {
        log_warning(interface_.dev(), "the HCA's rdma_netdev has no connected mode: load with ipoib_enhanced=0");
        return kernel::invalid;
    }
    // Queues that send datagrams exist in datagram mode only.
    if (datagram_queues() != 1)
        return while_closed([&]() TA_REQUIRES(kernel::rtnl) { return change_mode(wanted); });
    return change_mode(wanted);
}

template <class Change>
kernel::Status Settings::while_closed(Change change)
{
    const bool was_open = interface_.state.close();
    const kernel::Status status = change();
    const kernel::Status opened = was_open ? interface_.state.reopen() : kernel::Status();
    return status.ok() ? opened : status;
}

kernel::Status Settings::change_mode(bool wanted)
{
    if (wanted) {
        log_warning(interface_.dev(), "enabling connected mode will cause multicast packet drops");
        TRY(shim_netif_set_real_num_tx_queues(interface_.dev(), transmit_queues_of(true)));
    }
    connected_.store(wanted);
    limit_gso_packets();
    // Neighbours are looked up anew, and decide anew between datagrams and a connection.
    if (interface_.state.started()) {
        interface_.paths.flush();
        interface_.paths.start();
    }
    if (!wanted)
        use_datagram_tx_queues();
    shim_netdev_update_features(interface_.dev());
    if (wanted)
        interface_.mtu.enter_connected_mode();
    else
        interface_.mtu.enter_datagram_mode();
    return {};
}

void Settings::limit_gso_packets()
{
    net_device* const dev = interface_.dev();
    if (!connected()) {
        shim_netif_set_tso_max_size(dev, datagram_gso_bytes_);
        return;
    }
    // The stack segments for connections.
    datagram_gso_bytes_ = shim_netdev_tso_max_size(dev);
    shim_netif_set_tso_max_size(dev, SHIM_GSO_MAX_SIZE);
}

unsigned int Settings::transmit_queues_of(bool connected) const
{
    // Connections use the first queue of an rdma_netdev only, which may have several for datagrams.
    if (interface_.rdma_netdev.present())
        return connected ? 1 : interface_.rdma_netdev.tx_queues();
    return connected ? interface_.tx.count() : datagram_queues();
}

void Settings::use_datagram_tx_queues()
{
    // Packets may still be on their way to connections that were dropped.
    shim_synchronize_net();
    if (const int error = shim_netif_set_real_num_tx_queues(interface_.dev(), transmit_queues_of(false)))
        log_warning(interface_.dev(), "failed to use the transmit queues of datagram mode, error %d", error);
}

kernel::Status Settings::set_icrc_as_checksum(bool wanted)
{
    if (wanted == icrc_as_checksum())
        return {};
    if (!interface_.has_queues())
        return kernel::not_supported;
    return while_closed([&]() TA_REQUIRES(kernel::rtnl) -> kernel::Status {
        icrc_as_checksum_.store(wanted);
        shim_netdev_update_features(interface_.dev());
        return {};
    });
}

kernel::Status Settings::set_queues(unsigned int transmits, unsigned int receives)
{
    if (transmits == transmit_queues() && receives == interface_.rx.count())
        return {};
    if (interface_.rdma_netdev.present() || transmits > interface_.further_queues.max_transmit() ||
        receives > interface_.further_queues.max_receive())
        return kernel::not_supported;
    return while_closed([&]() TA_REQUIRES(kernel::rtnl) -> kernel::Status {
        const unsigned int former = interface_.rx.count();
        TRY(interface_.set_receive_queues(receives));
        if (const int error = shim_netif_set_real_num_tx_queues(interface_.dev(), transmits)) {
            (void)interface_.set_receive_queues(former);
            return kernel::Status(error);
        }
        if (connected())
            interface_.tx.set_count(transmits);
        else
            datagram_queues_.store(transmits);
        return {};
    });
}

void Settings::set_umcast(bool umcast)
{
    if (umcast)
        log_warning(interface_.dev(), "ignoring multicast groups joined directly by userspace");
    umcast_.store(umcast);
}

kernel::Status Settings::set_moderation(Moderation wanted, bool adaptive)
{
    return moderate(0, interface_.rx.max, wanted, adaptive);
}

kernel::Status Settings::set_queue_moderation(unsigned int queue, Moderation wanted, bool adaptive)
{
    if (queue >= interface_.rx.count()) {
        log_warning(interface_.dev(), "receive queue %u, of %u, cannot be moderated", queue, interface_.rx.count());
        return kernel::invalid;
    }
    return moderate(queue, queue + 1, wanted, adaptive);
}

kernel::Status Settings::moderate(unsigned int first, unsigned int end, Moderation wanted, bool adaptive)
{
    if (wanted.usecs > 0xffff || wanted.frames > 0xffff) {
        log_warning(interface_.dev(), "moderation of %u us or %u frames is more than 65535", wanted.usecs,
                    wanted.frames);
        return kernel::invalid;
    }
    if (!interface_.has_queues())
        return kernel::not_supported;
    return interface_.further_queues.set_moderation(first, end, wanted, adaptive);
}

kernel::Status Settings::set_ring_sizes(RingSizes wanted)
{
    // An rdma_netdev knows the queue pair by its number.
    if (interface_.rdma_netdev.present())
        return kernel::not_supported;
    // The core has compared the sizes with the maxima.
    if (std::cmp_less(wanted.sends, RingSizes::min_sends) || std::cmp_less(wanted.receives, RingSizes::min_receives))
        return kernel::invalid;
    const RingSizes before = interface_.queues.sizes();
    const auto clamp = [](unsigned int size, int min) {
        return static_cast<unsigned int>(kernel::clamp_ring_size(size, min, RingSizes::max_slots));
    };
    wanted = {clamp(wanted.sends, RingSizes::min_sends), clamp(wanted.receives, RingSizes::min_receives)};
    if (wanted == before)
        return {};
    // With other rings the address changes, and a bond copies its slave's at a failover only: it would advertise the
    // old one.
    if (shim_netif_is_bond_slave(interface_.dev())) {
        log_warning(interface_.dev(), "rings of %u sends and %u receives cannot be set for a bond's slave",
                    wanted.sends, wanted.receives);
        return kernel::busy;
    }
    return while_closed([&]() TA_REQUIRES(kernel::rtnl) {
        const kernel::Status status = interface_.queues.replace(wanted);
        if (!status.ok()) {
            log_warning(interface_.dev(), "failed to create rings of %u sends and %u receives, error %d", wanted.sends,
                        wanted.receives, status.code());
            // If these fail, too, the interface has no queues until it is next opened.
            (void)interface_.queues.replace(before).ok();
        }
        return status;
    });
}

} // namespace ipoib
