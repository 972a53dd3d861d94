// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Received and sent packets: frames with any content as the HCA writes and reports them; packets to any destination,
// with all requests that the stack may make of a driver.
#include "session.hpp"

#include <algorithm>

#include <ipoib/encapsulation.hpp>
#include <ipoib/mgid.hpp>
#include <ipoib/tcp.hpp>
#include <ipoib/wr_id.hpp>

namespace ipoib::fuzz {

namespace {

// Status of a completion (IBA 11.4.2.1).
constexpr int local_protection_error = 4;

enum Frame : std::uint8_t {
    with_grh = 1,
    from_own_qpn = 2,
    from_own_lid = 4,
    verified = 8,
    failed = 16,
    another_length = 32,
    to_group = 64,
    stay = 128,
};

// limited: byte queue limits stop the queue with this packet.
enum Packet : std::uint8_t {
    packet_burst = 1,
    packet_fragments = 2,
    packet_checksum = 4,
    packet_short_head = 8,
    packet_limited = 16,
    packet_long = 128,
};

constexpr unsigned int tcp_headers = sizeof(Encapsulation) + sizeof(Ipv4Header) + sizeof(TcpHeader);

} // namespace

// Receiving

bool Session::arrive(net_device* dev, std::deque<shim_recv_wr>& receives, const std::vector<std::uint8_t>& bytes,
                     Completion done, std::size_t before_payload)
{
    if (receives.empty())
        return false;
    const shim_recv_wr wr = receives.front();
    receives.pop_front();
    std::size_t room = 0, written = 0;
    for (unsigned int i = 0; i < wr.count; ++i) {
        const std::size_t part = std::min<std::size_t>(wr.sges[i].length, bytes.size() - written);
        require(world_.mappings.contains(wr.sges[i].address), "a receive is posted whose memory is not mapped");
        std::copy_n(bytes.begin() + static_cast<long>(written), part,
                    reinterpret_cast<std::uint8_t*>(wr.sges[i].address));
        written += part;
        room += wr.sges[i].length;
    }
    done.id = wr.id;
    if (!done.status && done.bytes >= before_payload && done.bytes <= room) {
        const std::size_t shown = std::min<std::size_t>(written, done.bytes);
        counts_[dev].arrived.push_back({done.bytes - before_payload,
                                        {bytes.begin() + static_cast<long>(std::min(before_payload, shown)),
                                         bytes.begin() + static_cast<long>(shown)}});
    }
    of(dev).rx[0].cq()->push(done);
    return true;
}

void Session::datagram(net_device* dev, const std::vector<std::uint8_t>& payload, std::size_t reported)
{
    Interface& interface = of(dev);
    if (!in_service(interface.queues.qp()))
        return;
    const std::uint8_t kind = input_.byte();
    std::vector<std::uint8_t> bytes(sizeof(Grh));
    auto& grh = *reinterpret_cast<Grh*>(bytes.data());
    grh.sgid = kind & from_own_lid ? interface.identity.gid() : Gid::from(input_.bytes(Gid::size).data());
    grh.dgid = kind & to_group ? interface.identity.broadcast().gid() : interface.identity.gid();
    // One of the link's groups, or another one.
    if (const std::uint8_t last = kind & to_group ? input_.byte() : 0)
        grh.dgid.bytes[last % Gid::size] = last;
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    Completion done{};
    done.bytes = static_cast<unsigned int>(kind & another_length ? reported : bytes.size());
    done.status = kind & failed ? local_protection_error : 0;
    done.source_qpn = kind & from_own_qpn ? interface.identity.qpn() : input_.u16();
    done.slid = kind & from_own_lid ? interface.identity.lid() : 9;
    done.grh = kind & with_grh;
    done.verified = kind & verified;
    arrive(dev, interface.queues.qp()->receives, bytes, done, sizeof(Grh) + sizeof(Encapsulation));
    if (!(kind & stay))
        poll();
}

void Session::receive_datagram()
{
    if (net_device* dev = device()) {
        const std::size_t reported = input_.u16();
        datagram(dev, input_.some_bytes(), reported);
    }
}

// Well-formed TCP over IPv4, except for some bytes.
void Session::receive_segment()
{
    net_device* const dev = device();
    if (!dev)
        return;
    const std::uint8_t kind = input_.byte();
    const std::size_t options = kind & 1 ? sizeof(TcpTimestamps) : 0;
    const std::size_t data = kind & 2 ? input_.byte() : input_.u16() % 2000;
    std::vector<std::uint8_t> payload(tcp_headers + options + data, 0x5a);
    reinterpret_cast<Encapsulation*>(payload.data())->type = kernel::Be16(static_cast<std::uint16_t>(EtherType::ipv4));
    auto& ip = *reinterpret_cast<Ipv4Header*>(payload.data() + sizeof(Encapsulation));
    ip = Ipv4Header{};
    ip.version_and_length = 0x45;
    ip.total_bytes = kernel::Be16(static_cast<std::uint16_t>(payload.size() - sizeof(Encapsulation)));
    ip.time_to_live = 64;
    ip.protocol = 6;
    ip.source = kernel::Be32(0x0a000001U + (kind >> 4 & 7));
    auto& tcp = *reinterpret_cast<TcpHeader*>(&ip + 1);
    tcp = TcpHeader{};
    // One of few flows.
    tcp.sequence = kernel::Be32(input_.u32());
    tcp.length = static_cast<std::uint8_t>((sizeof(TcpHeader) + options) << 2);
    tcp.flags = static_cast<std::uint8_t>(tcp_ack | (kind & 4 ? tcp_psh : 0));
    if (options) {
        auto& times = *reinterpret_cast<TcpTimestamps*>(&tcp + 1);
        times = TcpTimestamps{kernel::Be32(TcpTimestamps::usual_preamble), kernel::Be32(input_.byte()), {}};
    }
    if (kind & 8) {
        for (std::size_t changes = input_.below(4) + 1; changes > 0; --changes) {
            const std::size_t at = input_.below(tcp_headers + options);
            payload[at] = input_.byte();
        }
    }
    datagram(dev, payload, payload.size());
}

// Queue pairs that receive have a context: the driver's connection.
ib_qp* Session::connection(bool receives)
{
    std::vector<ib_qp*> there;
    std::copy_if(world_.qps.begin(), world_.qps.end(), std::back_inserter(there),
                 [=](ib_qp* qp) { return qp->connected && (qp->context != nullptr) == receives && in_service(qp); });
    return there.empty() ? nullptr : there[input_.below(there.size())];
}

void Session::receive_message() { message_on(connection(true)); }
// A peer that breaks the protocol.
void Session::receive_message_on_ours() { message_on(connection(false)); }

void Session::message_on(ib_qp* qp)
{
    if (!qp)
        return;
    const std::uint8_t kind = input_.byte();
    const std::size_t reported = input_.u16() << (kind & 1);
    std::vector<std::uint8_t> bytes = input_.some_bytes();
    if (kind & 2)
        bytes.resize(std::min<std::size_t>(reported, 65536), 0x77);
    Completion done{};
    done.bytes = static_cast<unsigned int>(kind & another_length ? reported : bytes.size());
    done.status = kind & failed ? local_protection_error : 0;
    done.qp = qp;
    for (net_device* dev : world_.netdevs)
        if (of(dev).has_queues() && of(dev).rx[0].cq() == qp->recv_cq)
            require(!arrive(dev, qp->srq ? qp->srq->receives : qp->receives, bytes, done, sizeof(Encapsulation)) ||
                        qp->context,
                    "a message on a connection that is there to send found a buffer");
    // An error ends a connection's service.
    if (done.status)
        shim_qp_to_error(qp);
    if (!(kind & stay))
        poll();
}

// Completion of a receive, or a send, that was not posted.
void Session::receive_bogus_completion()
{
    net_device* const dev = device();
    if (!dev || !of(dev).has_queues() || !in_service(of(dev).queues.qp()))
        return;
    Interface& interface = of(dev);
    const std::uint64_t beyond = interface.queues.sizes().sends + interface.queues.sizes().receives + input_.u32() / 2;
    Completion done{};
    done.id = beyond;
    done.status = input_.byte() & 1 ? local_protection_error : 0;
    switch (input_.below(3)) {
    case 0:
        interface.rx[0].cq()->push(done);
        break;
    case 1:
        interface.tx[0].cq()->push(done);
        break;
    default:
        done.id |= WrId::of(WrId::Kind::rc, 0);
        interface.tx[0].cq()->push(done);
        break;
    }
    poll();
}

// Sending

HwAddr Session::destination()
{
    const std::uint8_t which = input_.byte();
    Gid gid{{0xfe, 0x80}};
    gid.bytes[15] = which & 3;
    switch (which >> 5) {
    case 0:
    case 1:
    case 2:
        return HwAddr::of(HwAddr::flag_rc, 0x100U + (which >> 2 & 3), gid);
    case 3:
    case 4:
        return HwAddr::of(0, 0x100U + (which >> 2 & 3), gid);
    case 5:
        return HwAddr::of(0, HwAddr::multicast_qpn, broadcast_gid(PKey(world_.ca.pkey)));
    case 6:
        gid = broadcast_gid(PKey(world_.ca.pkey));
        gid.bytes[12] = gid.bytes[13] = gid.bytes[14] = 0;
        gid.bytes[15] = which & 7;
        return HwAddr::of(0, HwAddr::multicast_qpn, gid);
    default:
        return HwAddr::from(input_.bytes(HwAddr::size).data());
    }
}

sk_buff* Session::packet(net_device* dev, std::size_t payload)
{
    static constexpr EtherType types[] = {EtherType::ipv4, EtherType::ipv6, EtherType::arp, EtherType::rarp,
                                          EtherType::tipc};
    const HwAddr to = destination();
    const std::size_t type = input_.byte();
    sk_buff* const skb = world_.packet(
        to, type < std::size(types) ? static_cast<std::uint16_t>(types[type]) : static_cast<std::uint16_t>(type * 257),
        payload);
    skb->dev = dev;
    return skb;
}

void Session::transmit(sk_buff* skb, bool more)
{
    ++counts_[skb->dev].handed;
    world_.transmit(skb, more);
}

// Sends one packet, or a burst, whose last packet the stack marks as such unless the queue stops before.
void Session::send()
{
    net_device* const dev = device();
    if (!dev)
        return;
    const std::uint8_t kind = input_.byte();
    for (std::size_t left = kind & packet_burst ? 2 + input_.below(8) : 1; left > 0 && dev->up && !dev->stopped; --left)
        send_one(dev, kind, left > 1);
}

void Session::send_one(net_device* dev, std::uint8_t kind, bool more)
{
    // The stack sends no packet longer than the MTU, but raw sockets do.
    const std::size_t payload = kind & packet_long ? input_.u16() : input_.byte();
    sk_buff* const skb = packet(dev, payload);
    if (kind & packet_short_head)
        skb->bytes.resize(skb->start + input_.below(IPOIB_HEADER_BYTES));
    if (kind & packet_fragments)
        for (std::size_t frags = input_.below(20); frags > 0; --frags)
            skb->frags.emplace_back(1 + input_.byte());
    skb->wants_checksum = kind & packet_checksum;
    dev->limited = kind & packet_limited && !more;
    transmit(skb, more);
    dev->limited = false;
}

// Packet to be segmented by the HCA or the driver.
void Session::send_segments()
{
    net_device* const dev = device();
    if (!dev || !dev->up || dev->stopped || !of(dev).has_queues())
        return;
    const std::uint8_t kind = input_.byte();
    const unsigned int segment_bytes = 1 + input_.u16() % 4096;
    const std::size_t data = 1 + input_.u16() % 60000;
    // The stack respects the limit of segments.
    if ((data + segment_bytes - 1) / segment_bytes > dev->max_segments)
        return;
    const std::size_t linear = kind & packet_fragments ? data / 3 : data;
    sk_buff* const skb = packet(dev, tcp_headers - sizeof(Encapsulation) + linear);
    skb->header_bytes = tcp_headers;
    skb->segment_bytes = segment_bytes;
    skb->wants_checksum = true;
    for (std::size_t left = data - linear; left > 0;) {
        const std::size_t part = std::min<std::size_t>(left, 8192);
        skb->frags.emplace_back(part);
        left -= part;
    }
    transmit(skb, false);
}

// The HCA completes a send, or fails it and flushes the rest of the queue.
void Session::complete()
{
    if (world_.qps.empty())
        return;
    ib_qp* const qp = world_.qps[input_.below(world_.qps.size())];
    const std::uint8_t kind = input_.byte();
    if (qp->state != "rts")
        return;
    const int error = kind & 128 ? local_protection_error : 0;
    for (std::size_t count = 1 + (kind & 63); count > 0 && !qp->outstanding.empty(); --count) {
        const Sent done = qp->outstanding.front();
        qp->outstanding.pop_front();
        const int own = count == 1 || qp->outstanding.empty() ? error : 0;
        if (done.signaled || own)
            qp->send_cq->push({done.id, own, 0, 0, 0, false, qp});
        if (!own)
            continue;
        if (qp->connected) {
            shim_qp_to_error(qp);
            break;
        }
        qp->state = "sqe";
        for (; !qp->outstanding.empty(); qp->outstanding.pop_front())
            qp->send_cq->push({qp->outstanding.front().id, 5, 0, 0, 0, false, qp});
    }
    if (!(kind & 64))
        poll();
}

void Session::poll()
{
    world_.run_polls();
    take_received();
}

} // namespace ipoib::fuzz
