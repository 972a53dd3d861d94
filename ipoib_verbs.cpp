// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Creation, destruction, open and close of the UD queue pairs and their queues, under RTNL; their Q_Key, recovery and
// selection, without.
#include <algorithm>

#include <ipoib/flush_limit.hpp>
#include <ipoib/interface.hpp>
#include <ipoib/ud_queues.hpp>
#include <kernel/error_pointer.hpp>
#include <kernel/log.hpp>
#include <kernel/time.hpp>

namespace ipoib {

// Creation and destruction

unsigned int UdQueues::send_sges() const
{
    return std::min(shim_ib_max_send_sge(interface_.ca()), MappedPacket::max_sges_per_send);
}

std::uint32_t UdQueues::create_flags() const
{
    const std::uint64_t device = shim_ib_device_cap_flags(interface_.ca());
    const std::uint64_t other = shim_ib_kernel_cap_flags(interface_.ca());
    std::uint32_t flags = 0;
    if (other & SHIM_IBK_UD_TSO)
        flags |= SHIM_IB_QP_CREATE_IPOIB_UD_LSO;
    if (other & SHIM_IBK_BLOCK_MULTICAST_LOOPBACK)
        flags |= SHIM_IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK;
    if (device & SHIM_IB_DEVICE_MANAGED_FLOW_STEERING)
        flags |= SHIM_IB_QP_CREATE_NETIF_QP;
    if (other & SHIM_IBK_RDMA_NETDEV_OPA)
        flags |= SHIM_IB_QP_CREATE_NETDEV_USE;
    return flags;
}

kernel::Status UdQueues::create_pd()
{
    pd_.reset(TRY(kernel::check(shim_ib_alloc_pd(interface_.ca()))));
    lkey_ = shim_ib_pd_lkey(pd());
    return {};
}

kernel::Status UdQueues::init()
{
    if (kernel::Status status = create(); !status.ok()) {
        destroy();
        return status;
    }
    // Once: the user may change it, and queues are created again and again.
    for (unsigned int i = 0; i < interface_.further_queues.max_transmit(); ++i)
        shim_netdev_queue_set_dql_min_limit(interface_.dev(), i, TxQueue::prompt_bytes);
    interface_.tx[0].napi().add(interface_.dev(), interface_.tx[0], kernel::Direction::transmit);
    interface_.rx[0].napi().add(interface_.dev(), interface_.rx[0], kernel::Direction::receive);
    return {};
}

void UdQueues::uninit()
{
    recover_.cancel();
    interface_.rx[0].napi().remove();
    interface_.tx[0].napi().remove();
    destroy();
}

unsigned int UdQueues::create_senders()
{
    if (interface_.settings.connected())
        return 1;
    const unsigned int wanted =
        std::min(interface_.settings.datagram_queues(), interface_.further_queues.max_transmit());
    for (unsigned int i = 1; i < wanted; ++i) {
        TxQueue& queue = interface_.tx[i];
        if (const kernel::Status status = create_sender(queue); !status.ok()) {
            log_warning(interface_.dev(), "failed to create transmit queue %u, error %d", i, status.code());
            qps_[i].reset();
            queue.destroy();
            return i;
        }
        queue.napi().add(interface_.dev(), queue, kernel::Direction::transmit);
    }
    return wanted;
}

kernel::Status UdQueues::create_sender(TxQueue& queue)
{
    const unsigned int sends = sizes_.sends, sges = send_sges();
    TRY(queue.create(sends, 0, sges, interface_.further_queues.transmit_vector(queue.index())));
    TRY(queue.ring.create(sends, sges));
    auto& qp = qps_[queue.index()];
    qp.reset(TRY(kernel::check(shim_ib_create_ud_qp(pd(), queue.cq(), interface_.rx[0].cq(), sends, 0, sges,
                                                    create_flags() & std::uint32_t{SHIM_IB_QP_CREATE_IPOIB_UD_LSO}))));
    TRY(move_to_init(qp.get()));
    TRY(shim_qp_to_rtr(qp.get()));
    return shim_qp_to_rts(qp.get());
}

int UdQueues::select_sender(sk_buff* skb) const
{
    const unsigned int count = senders();
    if (count == shim_netdev_real_num_tx_queues(interface_.dev()))
        return -1;
    return static_cast<int>(std::uint64_t{shim_skb_get_hash(skb)} * count >> 32);
}

kernel::Status UdQueues::set_qkey(std::uint32_t qkey)
{
    for (unsigned int i = 1; i < SHIM_MAX_TX_QUEUES; ++i)
        if (const int error = qps_[i] ? shim_qp_set_qkey(qps_[i].get(), qkey) : 0)
            log_warning(interface_.dev(), "failed to set the Q_Key of transmit queue %u, error %d", i, error);
    return shim_qp_set_qkey(qp(), qkey);
}

kernel::Status UdQueues::create()
{
    const auto [sends, receives] = sizes_;
    const unsigned int sges = send_sges();
    TRY(interface_.rx[0].create(receives, receives, interface_.further_queues.receive_vector(0)));
    TRY(interface_.tx[0].create(sends, sends, sges, interface_.further_queues.transmit_vector(0)));
    TRY(interface_.tx[0].ring.create(sends, sges));
    qps_[0].reset(TRY(kernel::check(shim_ib_create_ud_qp(pd(), interface_.tx[0].cq(), interface_.rx[0].cq(), sends,
                                                         receives, sges, create_flags()))));
    // An rdma_netdev that filters the queues finds the queue pair by the address.
    interface_.identity.set_queue_pair(shim_ib_qp_num(qp()), HwAddr::flag_rc);
    return {};
}

void UdQueues::destroy()
{
    qps_[0].reset();
    interface_.tx[0].destroy();
    interface_.rx[0].destroy();
}

kernel::Status UdQueues::replace(RingSizes sizes)
{
    destroy();
    sizes_ = sizes;
    if (kernel::Status status = create(); !status.ok()) {
        destroy();
        return status;
    }
    interface_.announcer.address_changed();
    if (const kernel::Status status = interface_.rx[0].moderate(interface_.rx[0].moderation()); !status.ok())
        log_warning(interface_.dev(), "failed to set the moderation, error %d", status.code());
    return {};
}

// In and out of service

kernel::Status UdQueues::move_to_init(ib_qp* qp)
{
    const PortIdentity& identity = interface_.identity;
    return shim_qp_to_init(qp, identity.port(), identity.pkey_index(), interface_.link.qkey());
}

kernel::Status UdQueues::move_to_rts()
{
    PortIdentity& identity = interface_.identity;
    shim_port attributes;
    TRY(shim_helper_ib_query_port(interface_.ca(), identity.port(), &attributes));
    identity.set_lid(attributes.lid);
    TRY(move_to_init(qp()));
    // If the port's active MTU grows, a restart allocates longer buffers.
    TRY(interface_.rx[0].ring.fill(receive_mtu(attributes)));
    TRY(shim_qp_to_rtr(qp()));
    return shim_qp_to_rts(qp());
}

kernel::Status UdQueues::open()
{
    if (!qp() && interface_.rdma_netdev.present()) {
        log_warning(interface_.dev(),
                    "the queue pair could not be reset and was destroyed; the HCA's rdma_netdev cannot use another "
                    "one: reload the driver");
        return kernel::no_device;
    }
    if (!qp())
        TRY(replace(sizes_));
    if (kernel::Status status = move_to_rts(); !status.ok()) {
        log_warning(interface_.dev(), "failed to put the queue pair into service, error %d", status.code());
        const RxQueue::PollPause pause(interface_.rx[0].napi());
        empty();
        return status;
    }
    const unsigned int senders = create_senders();
    // Takes the transmit locks, so that later senders see the new rings: the polls may wake the queues at once.
    shim_netif_tx_disable(interface_.dev());
    senders_.store(senders);
    for (unsigned int i = 0; i < senders; ++i)
        interface_.tx[i].start();
    interface_.rx[0].start();
    if (kernel::Status status = interface_.connections.start(); !status.ok()) {
        close();
        return status;
    }
    interface_.further_queues.associate_napis();
    return {};
}

void UdQueues::close()
{
    for (TxQueue& queue : interface_.tx)
        queue.close();
    shim_netif_tx_disable(interface_.dev());
    senders_.store(1);
    interface_.connections.stop();
    for (const auto& qp : qps_)
        if (const int error = qp ? shim_qp_to_error(qp.get()) : 0)
            log_warning(interface_.dev(), "failed to move the queue pair to ERROR, error %d", error);
    drain();
    for (RxQueue& queue : interface_.rx)
        if (queue.cq())
            queue.stop();
    for (TxQueue& queue : interface_.tx)
        if (queue.cq())
            queue.stop();
    // The poll has ended: nothing queues the item any more, or wakes the queue.
    recover_.cancel();
    shim_netif_tx_disable(interface_.dev());
    {
        const RxQueue::PollPause pause(interface_.rx[0].napi());
        empty();
        interface_.rx[0].srq.stop();
    }
    for (unsigned int i = 1; i < SHIM_MAX_TX_QUEUES; ++i)
        qps_[i].reset();
    interface_.further_queues.destroy();
}

void UdQueues::empty()
{
    // The HCA may access the buffers until the queue pair is in RESET, or destroyed. open() creates another.
    for (auto& qp : qps_) {
        if (const int error = qp ? shim_qp_to_reset(qp.get()) : 0) {
            log_warning(interface_.dev(), "failed to move the queue pair to RESET, error %d", error);
            qp.reset();
        }
    }
    for (TxQueue& queue : interface_.tx)
        if (queue.cq())
            queue.empty();
    interface_.rx[0].ring.empty();
}

void UdQueues::drain()
{
    const auto posted = [this] { return interface_.tx.sum([](const TxQueue& queue) { return queue.ring.posted(); }); };
    const UdReceiveRing& receives = interface_.rx[0].ring;
    const unsigned long deadline = shim_jiffies() + kernel::seconds(flush_limit_s);
    while (!kernel::reached(deadline, shim_jiffies())) {
        if (posted() == 0 && receives.outstanding() == 0)
            return;
        shim_msleep(1);
    }
    log_warning(interface_.dev(), "timing out; %u sends %u receives not completed", static_cast<unsigned int>(posted()),
                receives.outstanding());
}

void UdQueues::recover() { recover_.queue(interface_.work_queue); }

void UdQueues::run_recovery()
{
    for (const auto& qp : qps_)
        if (qp && shim_helper_qp_recover_send(qp.get()) == 0)
            log_info(interface_.dev(), "send queue back in service");
}

} // namespace ipoib
