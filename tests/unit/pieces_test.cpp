// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Receive buffers with pages of 4, 16 and 64 KiB: the memory they take, and the bytes that sockets are charged for.
#include "connected_test.hpp"

namespace ipoib {
namespace {

constexpr unsigned int around = 64 + 40 + 320;

struct ForPage {
    unsigned int page_bytes, bytes, expected;
};
void expect(unsigned int (*result)(unsigned int page_bytes, unsigned int bytes), std::initializer_list<ForPage> rows)
{
    for (const ForPage& row : rows)
        EXPECT_EQ(result(row.page_bytes, row.bytes), row.expected) << row.page_bytes << " " << row.bytes;
}

TEST(PiecesTest, datagram_buffer_is_a_page_or_a_piece)
{
    expect(datagram_buffer, {{4096, around + 256, 768},
                             {4096, around + 1024, 1536},
                             {4096, around + 2048, 4096},
                             {4096, around + 4096, 8192},
                             {16384, around + 2048, 2560},
                             {16384, around + 4096, 4608},
                             {65536, around + 2048, 2560},
                             {65536, around + 4096, 4608}});
}

TEST(PiecesTest, pools_of_large_pages_do_not_allocate_them_by_64)
{
    expect(
        pool_order,
        {{4096, 4096, 0}, {4096, 16384, 2}, {16384, 2560, 0}, {16384, 16384, 0}, {65536, 2560, 1}, {65536, 16384, 1}});
}

TEST(PiecesTest, message_buffer_size_is_independent_of_the_page_size)
{
    for (const unsigned int page : {4096U, 16384U, 65536U}) {
        for (unsigned int elements = 1; elements <= 32; ++elements) {
            SCOPED_TRACE(std::to_string(page) + " " + std::to_string(elements));
            const MessageBuffer is = MessageBuffer::of(page, elements);
            EXPECT_LE(is.pieces, std::min(elements, 5U));
            EXPECT_LE(is.other_bytes, std::max(page, 16384U));
            // At most twice the longest message; and space for that, or for as much as this many of the largest pieces
            // hold.
            EXPECT_LE(is.bytes(), 2 * 65536U);
            EXPECT_GE(is.bytes(), std::min(elements * std::max(page, 16384U), MessageBuffer::max_message));
            if (elements > 4) {
                EXPECT_EQ(is.first_bytes, 4096U);
                EXPECT_EQ(is.bytes(), 17 * 4096U);
            }
        }
    }
}

class PageSizeTest : public ConnectedTest, public testing::WithParamInterface<unsigned int> {
protected:
    void SetUp() override
    {
        world.page_size = GetParam();
        ConnectedTest::SetUp();
    }
    static std::vector<std::uint8_t> datagram(std::size_t bytes)
    {
        std::vector<std::uint8_t> all(bytes);
        all[0] = 0x08;
        for (std::size_t i = 4; i < bytes; ++i)
            all[i] = static_cast<std::uint8_t>(i * 5);
        return all;
    }
    std::size_t page_bytes() const
    {
        std::size_t sum = 0;
        for (const auto& [address, one] : world.pages)
            sum += one->bytes.size();
        return sum;
    }
};

TEST_P(PageSizeTest, datagrams_are_charged_for_their_piece_of_a_page)
{
    // Ring of 256, and the page that the next buffer is cut from.
    EXPECT_LE(page_bytes(), 256 * 4096U + GetParam());
    // Nor are more kept for reuse.
    for (const page_pool* pool : world.pools)
        EXPECT_LE(std::size_t{pool->size} << pool->order, 256 * 4096U / GetParam());
    for (std::size_t bytes = 300; bytes < 2044; bytes += 3) {
        const auto sent = datagram(bytes);
        ASSERT_TRUE(world.receive(sent));
        const sk_buff& skb = *world.received.back();
        EXPECT_LE(skb.charged, 4096U);
        ASSERT_TRUE(std::equal(sent.begin() + 4, sent.end(), shim_skb_data(&skb)));
    }
    // Later datagrams did not overwrite packets that the stack holds.
    std::size_t bytes = 300;
    for (const sk_buff* skb : world.received) {
        const auto sent = datagram(bytes);
        ASSERT_TRUE(std::equal(sent.begin() + 4, sent.end(), shim_skb_data(skb))) << bytes;
        bytes += 3;
    }
}

TEST_P(PageSizeTest, connection_memory_is_independent_of_the_page_size)
{
    const std::size_t before = page_bytes();
    const ib_cm_id* id = world.request(gid(1), 0x100);
    ASSERT_NE(id, nullptr);
    // With pages of 64 KiB some are not used to their end.
    EXPECT_LE(page_bytes() - before, 256 * 17 * 4096U + GetParam());
    ib_qp& qp = *world.qps.back();
    for (const std::size_t bytes : {300U, 3000U, 5000U, 20000U, 65524U}) {
        const auto sent = datagram(bytes);
        ASSERT_TRUE(world.receive_message(qp, sent));
        const sk_buff& skb = *world.received.back();
        EXPECT_TRUE(std::equal(sent.begin() + 4, sent.end(), shim_skb_data(&skb))) << bytes;
        EXPECT_LE(skb.charged, bytes + 4096 + 16384);
    }
}

// Messages that are received while `large` says whether there are large pages.
class LargePagesTest : public PageSizeTest {
protected:
    // Returns false if it was dropped.
    bool arrives(ib_qp& qp, std::size_t bytes, bool large)
    {
        world.fail_large_pages = !large;
        const auto sent = datagram(bytes);
        const std::size_t before = world.received.size();
        EXPECT_TRUE(world.receive_message(qp, sent));
        if (world.received.size() == before)
            return false;
        const sk_buff& skb = *world.received.back();
        EXPECT_TRUE(std::equal(sent.begin() + 4, sent.end(), shim_skb_data(&skb))) << bytes;
        return true;
    }
    // Fragments of the last packet: how its buffer was divided.
    std::size_t fragments() const { return world.received.back()->pages.size(); }
    // Uses each buffer of the ring once, as they are posted again in order.
    void all_arrive(ib_qp& qp, std::size_t bytes, bool large, std::size_t expected)
    {
        for (unsigned int i = 0; i < 256; ++i) {
            ASSERT_TRUE(arrives(qp, bytes, large));
            EXPECT_EQ(fragments(), expected) << bytes;
        }
    }
};

TEST_P(LargePagesTest, small_pieces_serve_without_memory_for_large_ones)
{
    ASSERT_NE(world.request(gid(1), 0x100), nullptr);
    ib_qp& qp = *world.qps.back();
    all_arrive(qp, 65524, false, 4);
    all_arrive(qp, 30000, false, 7);
    // Eight of 17 small pieces become three small ones and a large one beside the first; nine remain.
    all_arrive(qp, 30000, true, 7);
    all_arrive(qp, 65524, true, 13);
    all_arrive(qp, 65524, true, 4);
    // Each piece goes back to its pool.
    close();
}

TEST_P(LargePagesTest, pieces_that_stay_in_a_buffer_go_back_to_their_pool)
{
    ASSERT_NE(world.request(gid(1), 0x100), nullptr);
    ib_qp& qp = *world.qps.back();
    all_arrive(qp, 65524, false, 4);
    // Other numbers of pieces leave a buffer and come into it.
    all_arrive(qp, 30000, true, 7);
    close();
}

// A receive has 16 elements, and small pieces can replace three of the four large ones.
class LargePagesWithoutSrqTest : public LargePagesTest {
protected:
    void SetUp() override
    {
        world.have_srq = false;
        LargePagesTest::SetUp();
    }
};

TEST_P(LargePagesWithoutSrqTest, message_without_memory_for_its_pieces_is_dropped)
{
    ASSERT_NE(world.request(gid(1), 0x100), nullptr);
    ib_qp& qp = *world.qps.back();
    const std::size_t posted = qp.receives.size();
    EXPECT_FALSE(arrives(qp, 65524, false));
    EXPECT_EQ(statistics().rx_dropped, 1U);
    ASSERT_TRUE(arrives(qp, 30000, false));
    EXPECT_EQ(fragments(), 2U);
    world.run_work();
    // Reposted in batches.
    EXPECT_GE(qp.receives.size() + 16, posted);
    for (std::size_t i = 0; i < 2 * posted; ++i)
        ASSERT_TRUE(arrives(qp, 40000, false));
}

INSTANTIATE_TEST_SUITE_P(SmallPages, LargePagesTest, testing::Values(4096U));
INSTANTIATE_TEST_SUITE_P(SmallPages, LargePagesWithoutSrqTest, testing::Values(4096U));

TEST_P(PageSizeTest, messages_longer_than_announced_are_counted_as_errors)
{
    ASSERT_NE(world.request(gid(1), 0x100), nullptr);
    const std::uint64_t errors = statistics().rx_errors;
    const std::size_t received = world.received.size();
    ASSERT_TRUE(world.receive_message(*world.qps.back(), datagram(65525)));
    EXPECT_EQ(statistics().rx_errors, errors + 1);
    EXPECT_EQ(world.received.size(), received);
}

INSTANTIATE_TEST_SUITE_P(Pages, PageSizeTest, testing::Values(4096U, 16384U, 65536U));

} // namespace
} // namespace ipoib
