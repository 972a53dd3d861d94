// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Where packets enter from the stack: ndo_select_queue, ndo_start_xmit, and the hard header that precedes each packet.

#include <ipoib/encapsulation.hpp>
#include <ipoib/interface.hpp>
#include <shim/header_ops.h>
#include <shim/ndo.h>

namespace ipoib {

namespace {

enum class Destination { neighbour, group, port, none };

// port: the packet is address resolution's, for which no neighbour is made.
Destination destination_of(const HardHeader& header)
{
    const std::uint16_t type = header.encapsulation.type.value();
    if (header.destination.multicast() && carried(type))
        return Destination::group;
    if (carried_to_neighbours(type)) [[likely]]
        return Destination::neighbour;
    return address_resolution(type) ? Destination::port : Destination::none;
}

// SAFETY: the header consists of bytes, and is in the linear part.
const HardHeader& header_of(const sk_buff* skb) { return *reinterpret_cast<const HardHeader*>(shim_skb_data(skb)); }

} // namespace

void Interface::transmit(sk_buff* skb)
{
    TxQueue& queue = tx[rdma_netdev.present() ? 0 : shim_skb_get_queue_mapping(skb)];
    if (shim_skb_headlen(skb) < sizeof(HardHeader)) [[unlikely]] {
        drop(skb, SHIM_DROP_HDR_TRUNC);
    } else {
        // The tables below read it before they pull it.
        const HardHeader& header = header_of(skb);
        const Destination destination = destination_of(header);
        if (destination == Destination::neighbour) [[likely]] {
            paths.send(skb, header.destination, queue);
        } else if (destination == Destination::none) {
            drop(skb, SHIM_DROP_UNHANDLED_PROTO);
        } else if (queue.index() != 0) {
            requeuer.push(skb);
        } else if (destination == Destination::group) {
            groups.send(skb, header.destination);
        } else {
            paths.send_address_resolution(skb, header.destination);
        }
    }
    // Packets that were built before this one must not wait for a further one, whether or not this one was sent.
    if (!shim_netdev_xmit_more() || shim_netif_tx_queue_stopped(dev_, queue.index()))
        queue.ring_doorbells();
}

int Interface::select_queue(sk_buff* skb)
{
    if (rdma_netdev.present())
        return -1;
    if (shim_skb_headlen(skb) < sizeof(HardHeader)) [[unlikely]]
        return 0;
    const HardHeader& header = header_of(skb);
    if (destination_of(header) != Destination::neighbour)
        return 0;
    return paths.select_queue(header.destination, skb);
}

void Interface::resubmit(kernel::PacketQueue& packets)
{
    while (sk_buff* skb = packets.pop())
        shim_dev_queue_xmit(skb, dev_);
}

} // namespace ipoib

TA_REQUIRES(kernel::transmit_lock) void ipoib_ndo_start_xmit(sk_buff* skb, net_device* dev)
{
    ipoib::Interface::of(dev).transmit(skb);
}

int ipoib_ndo_select_queue(sk_buff* skb, net_device* dev) { return ipoib::Interface::of(dev).select_queue(skb); }

int ipoib_header_create(sk_buff* skb, std::uint16_t ethertype, const void* destination)
{
    using namespace ipoib;
    if (!destination)
        return -static_cast<int>(sizeof(HardHeader));
    ipoib_header_write(shim_skb_push(skb, sizeof(HardHeader)), ethertype, destination);
    return sizeof(HardHeader);
}

void ipoib_header_write(void* to, std::uint16_t ethertype, const void* destination)
{
    using namespace ipoib;
    const HardHeader header{HwAddr::from(destination), {kernel::Be16(ethertype), kernel::Be16(0)}};
    std::memcpy(to, &header, sizeof(header));
}

void ipoib_header_set_destination(void* header, const void* destination)
{
    using namespace ipoib;
    const HwAddr address = HwAddr::from(destination);
    std::memcpy(static_cast<std::byte*>(header) + offsetof(HardHeader, destination), &address, sizeof(address));
}
