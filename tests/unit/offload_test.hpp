// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Fixture of offload tests: a known peer, TCP segments from it, and the packets that they become.
#pragma once

#include <optional>

#include "datagram_test.hpp"

// The checksum (fakes_skbuff.cpp) of a TCP segment over IPv4 (RFC 9293 section 3.1), of `bytes` bytes from its IP
// header without options on; 0 for one that holds the right one.
std::uint16_t tcp_checksum(const void* packet, unsigned int bytes);

namespace ipoib {

class OffloadTest : public DatagramTest {
protected:
    void SetUp() override
    {
        DatagramTest::SetUp();
        world.verified = true;
    }

    struct Tcp {
        std::uint32_t sequence = 1000, acknowledgement = 5;
        std::uint8_t flags = tcp_ack;
        std::size_t data = 300;
        std::uint16_t port = 7;
        bool times = false;
        std::uint32_t time = 0;
        std::uint8_t time_to_live = 64;
        std::uint16_t fragment = 0x4000;
        // TCP's reserved bits, of which the lowest is accurate ECN's AE.
        std::uint8_t reserved = 0;
        // The HCA did not verify the checksum; TCP's is right; the packet has 4 bytes of IP options.
        bool unverified = false, summed = false, ip_options = false;
        std::uint8_t service = 0, protocol = 6;
        // The default counts up with the segments of 300 bytes.
        std::optional<std::uint16_t> identification = std::nullopt;
        std::uint16_t window = 1000, urgent = 0;
        // Bits of the IP header's checksum that are wrong.
        std::uint16_t wrong_header = 0;
    };
    static std::vector<std::uint8_t> frame(const Tcp& tcp)
    {
        const std::size_t tcp_bytes = sizeof(TcpHeader) + (tcp.times ? sizeof(TcpTimestamps) : 0);
        std::vector<std::uint8_t> bytes(sizeof(Encapsulation) + sizeof(Ipv4Header) + tcp_bytes + tcp.data);
        bytes[0] = 0x08;
        auto& ip = *reinterpret_cast<Ipv4Header*>(&bytes[4]);
        ip.version_and_length = 0x45;
        ip.service = tcp.service;
        ip.total_bytes = kernel::Be16(static_cast<std::uint16_t>(bytes.size() - 4));
        ip.identification = kernel::Be16(tcp.identification.value_or(static_cast<std::uint16_t>(tcp.sequence / 300)));
        ip.fragment = kernel::Be16(tcp.fragment);
        ip.time_to_live = tcp.time_to_live;
        ip.protocol = tcp.protocol;
        ip.source = kernel::Be32(0x0a000001);
        ip.destination = kernel::Be32(0x0a000002);
        ip.checksum = kernel::Be16(static_cast<std::uint16_t>(internet_checksum(&ip, sizeof(ip)) ^ tcp.wrong_header));
        auto& header = *reinterpret_cast<TcpHeader*>(&ip + 1);
        header.source = kernel::Be16(tcp.port);
        header.sequence = kernel::Be32(tcp.sequence);
        header.acknowledgement = kernel::Be32(tcp.acknowledgement);
        header.length = static_cast<std::uint8_t>(tcp_bytes / 4 << 4 | tcp.reserved);
        header.flags = tcp.flags;
        header.window = kernel::Be16(tcp.window);
        header.urgent = kernel::Be16(tcp.urgent);
        if (tcp.times)
            *reinterpret_cast<TcpTimestamps*>(&header + 1) = {kernel::Be32(TcpTimestamps::usual_preamble),
                                                              kernel::Be32(tcp.time), kernel::Be32(0)};
        for (std::size_t i = 0; i < tcp.data; ++i)
            bytes[bytes.size() - tcp.data + i] = static_cast<std::uint8_t>(tcp.sequence + i);
        if (tcp.summed)
            header.checksum = kernel::Be16(tcp_checksum(&ip, ip.total_bytes.value()));
        if (tcp.ip_options) {
            ip.version_and_length = 0x46;
            ip.total_bytes = kernel::Be16(static_cast<std::uint16_t>(bytes.size()));
            bytes.insert(bytes.begin() + sizeof(Encapsulation) + sizeof(Ipv4Header), 4, 1);
        }
        return bytes;
    }
    void arrive(std::initializer_list<Tcp> segments)
    {
        world.polls_later = true;
        for (const Tcp& segment : segments) {
            world.verified = !segment.unverified;
            ASSERT_TRUE(world.receive(frame(segment)));
        }
        world.verified = true;
        world.polls_later = false;
        world.run_polls();
    }
    // Sizes of the data in the packets that reached the stack.
    std::vector<std::size_t> received()
    {
        std::vector<std::size_t> sizes;
        for (const sk_buff* skb : world.received)
            sizes.push_back(skb->bytes.size() - skb->start - sizeof(Ipv4Header) - sizeof(TcpHeader));
        return sizes;
    }
    const Ipv4Header& ip_of(std::size_t n)
    {
        return *reinterpret_cast<const Ipv4Header*>(&world.received.at(n)->bytes[world.received.at(n)->start]);
    }
    const TcpHeader& tcp_of(std::size_t n) { return *reinterpret_cast<const TcpHeader*>(&ip_of(n) + 1); }
    using Sizes = std::vector<std::size_t>;
};

} // namespace ipoib
