// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The send ring of a UD queue pair: filled under the transmit lock, emptied by the transmit queue's poll. Its sends
// complete in order.
#pragma once
#include <cstdint>

#include <ipoib/mapped_packet.hpp>
#include <ipoib/segmenter.hpp>
#include <kernel/counter.hpp>
#include <kernel/lock.hpp>
#include <kernel/memory.hpp>
#include <kernel/published.hpp>
#include <kernel/result.hpp>
#include <kernel/ring.hpp>

namespace ipoib {

class Interface;
class TxQueue;

class UdSendRing {
public:
    UdSendRing(Interface& interface, TxQueue& queue) : interface_(interface), queue_(queue) {}

    // Allocates size slots of up to sges elements.
    kernel::Status create(unsigned int size, unsigned int sges) TA_REQUIRES(kernel::rtnl);
    void destroy();
    // Frees sends that never completed. CONTEXT: process; the queue pair is in RESET and the poll stopped.
    void empty();

    // Sends the packet, which begins with its encapsulation, to qpn over ah; consumes it. It is posted by
    // ring_doorbell(). CONTEXT: under an RcuGuard that covers ah.
    void send(sk_buff* skb, ib_ah* ah, std::uint32_t qpn) TA_REQUIRES(kernel::transmit_lock);
    // Posts what was built.
    void ring_doorbell() TA_REQUIRES(kernel::transmit_lock);
    // A send completed.
    void complete(const shim_wc* wc, int budget) TA_REQUIRES(kernel::transmit_poll);

    const kernel::RingIndex& index() const { return index_; }
    // True if the stack's largest packet finds enough free slots, or none are needed.
    bool has_space() const { return index_.free() >= min_free_; }
    bool created() const { return min_free_ != 0; }
    bool half_free() const { return index_.free() >= index_.size() / 2; }
    // Sends that the HCA has. CONTEXT: closed.
    unsigned int posted() const { return index_.used() - refused_.load(); }

    // Written under the transmit lock; segmented: datagrams made of larger packets, by the driver or the HCA.
    kernel::Counter doorbells, segmented;

private:
    // Every 16th slot's send is signaled, and the last of a doorbell.
    static constexpr std::uint32_t signal_interval = 16;
    // Segments of one packet, at most, that the driver makes.
    static constexpr std::uint32_t max_segments = 64;

    // Limits the segments of the stack's packets, below the user's own limit.
    void limit_segments(unsigned int limit) TA_REQUIRES(kernel::rtnl);
    void drop(sk_buff* skb) TA_REQUIRES(kernel::transmit_lock);
    // Writes the work request of a mapped packet or segment, and links it to the previous one.
    void write_request(MappedPacket& slot, std::uint32_t here, ib_ah* ah, std::uint32_t qpn, bool checksum)
        TA_REQUIRES(kernel::transmit_lock);
    // Drops a packet that is longer than a datagram; its sender gets an ICMP error with the MTU.
    void reject(sk_buff* skb, unsigned int frame_bytes, std::uint32_t qpn) TA_REQUIRES(kernel::transmit_lock);
    void send_segments(sk_buff* skb, unsigned int header_bytes, unsigned int segment_bytes, ib_ah* ah,
                       std::uint32_t qpn) TA_REQUIRES(kernel::transmit_lock);
    // Maps count segments into the slots from head on. Returns false if one could not be mapped; none is.
    bool map_segments(Segmenter& segmenter, std::uint32_t count) TA_REQUIRES(kernel::transmit_lock);
    // Frees all sends before end.
    void finish_to(std::uint32_t end, int budget) TA_REQUIRES(kernel::transmit_poll);

    Interface& interface_;
    TxQueue& queue_;
    unsigned int sges_ = 1;
    kernel::Array<MappedPacket> slots_;
    // Headers of segments that the driver makes.
    SegmentHeaders headers_;
    kernel::RingIndex index_;
    // Slots that the stack's largest packet takes; 0: the ring does not exist.
    std::uint32_t min_free_ = 0;
    // The limit that the stack was last given, and the one that it has without the driver's.
    unsigned int max_segments_ TA_GUARDED(kernel::rtnl) = 0, wanted_segments_ TA_GUARDED(kernel::rtnl) = 0;
    // Built and not posted: from this index to head.
    std::uint32_t unposted_ TA_GUARDED(kernel::transmit_lock) = 0;
    // Sends at the end of the ring that a failed post did not give to the HCA.
    kernel::Published<std::uint32_t> refused_;
};

} // namespace ipoib
