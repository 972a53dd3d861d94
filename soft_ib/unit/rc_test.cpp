// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The rules of reliable connections: a requester with every kind of answer, a responder with every kind of packet, and
// both together over a link that loses frames.
#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <vector>

#include <connections.h>

namespace {

constexpr std::uint32_t mtu = 2048;
constexpr std::uint32_t good = 0x1f, rnr = 0x20, sequence_nak = 0x60;

fabric_headers request(std::uint8_t opcode, std::uint32_t psn, std::uint32_t bytes = mtu)
{
    fabric_headers h{};
    h.opcode = opcode;
    h.psn = psn;
    h.payload_bytes = bytes;
    h.ack_request = fabric_ends(opcode);
    return h;
}

TEST(Connection, packets_come_from_the_port_of_the_peer)
{
    fabric_headers path{}, h{};
    path.dlid = 0x24;
    h.slid = 0x24;
    EXPECT_TRUE(fabric_is_from_peer(&h, &path, 0));
    h.slid = 0x25;
    EXPECT_FALSE(fabric_is_from_peer(&h, &path, 0));
    EXPECT_TRUE(fabric_is_from_peer(&h, &path, 1)) << "another LID of the port";
    h.slid = 0x26;
    EXPECT_FALSE(fabric_is_from_peer(&h, &path, 1));
}

TEST(Connection, packets_with_a_grh_have_the_guid_of_the_peer)
{
    fabric_headers path{}, h{};
    path.grh = h.grh = true;
    path.dgid[0] = 0xfe;
    path.dgid[15] = h.sgid[15] = 7;
    EXPECT_TRUE(fabric_is_from_peer(&h, &path, 0)) << "with another prefix";
    h.sgid[8] = 1;
    EXPECT_FALSE(fabric_is_from_peer(&h, &path, 0));
    h.grh = false;
    EXPECT_TRUE(fabric_is_from_peer(&h, &path, 0)) << "without a GRH the SLID alone tells";
}

class Requester : public testing::Test {
protected:
    void start(std::uint32_t psn, std::uint8_t retries, std::uint8_t rnr_retries, unsigned int sent)
    {
        fabric_requester_start(&r, psn, retries, rnr_retries);
        for (unsigned int i = 0; i < sent; ++i)
            fabric_requester_sent(&r);
    }
    fabric_step answer(std::uint32_t psn, std::uint32_t syndrome)
    {
        return fabric_requester_answered(&r, psn, syndrome << 24);
    }
    fabric_requester r{};
};

TEST_F(Requester, ack_covers_all_earlier_packets)
{
    start(0xfffffe, 0, 0, 4); // to 0x000001
    EXPECT_EQ(answer(0x000000, good).failure, FABRIC_NO_FAILURE);
    EXPECT_EQ(r.unacknowledged, 1U);
    EXPECT_EQ(r.next, 2U);
    EXPECT_EQ(r.end, 2U);
}

TEST_F(Requester, answers_outside_the_window_are_ignored)
{
    start(100, 0, 0, 4);
    answer(101, good);
    for (const std::uint32_t psn : {100U, 101U, 104U, 105U, 50U}) {
        for (const std::uint32_t syndrome : {good, rnr, sequence_nak, 0x61U}) {
            EXPECT_EQ(answer(psn, syndrome).failure, FABRIC_NO_FAILURE) << psn << ' ' << syndrome;
            EXPECT_EQ(r.unacknowledged, 102U);
            EXPECT_EQ(r.next, 104U);
        }
    }
}

TEST_F(Requester, sequence_nak_goes_back_and_counts_as_a_retry)
{
    start(0, 2, 0, 5);
    EXPECT_EQ(answer(2, sequence_nak).failure, FABRIC_NO_FAILURE);
    EXPECT_EQ(r.next, 2U);
    EXPECT_EQ(r.unacknowledged, 2U);
    EXPECT_EQ(r.retries, 1);
    EXPECT_EQ(answer(2, sequence_nak).failure, FABRIC_NO_FAILURE);
    EXPECT_EQ(answer(2, sequence_nak).failure, FABRIC_RETRY_EXCEEDED);
}

TEST_F(Requester, progress_resets_the_retries)
{
    start(0, 1, 1, 5);
    answer(1, sequence_nak);
    answer(2, good);
    EXPECT_EQ(r.retries, 0);
    EXPECT_EQ(r.next, 3U) << "what was acknowledged is not sent again";
    EXPECT_EQ(answer(3, sequence_nak).failure, FABRIC_NO_FAILURE);
}

TEST_F(Requester, rnr_nak_sets_the_delay)
{
    start(0, 0, 2, 3);
    auto step = answer(1, rnr | 12);
    EXPECT_EQ(step.failure, FABRIC_NO_FAILURE);
    EXPECT_EQ(step.wait_us, 640U);
    EXPECT_EQ(r.next, 1U);
    EXPECT_EQ(answer(1, rnr | 0).wait_us, 655360U);
    EXPECT_EQ(answer(1, rnr | 1).failure, FABRIC_RNR_RETRY_EXCEEDED);
}

TEST_F(Requester, rnr_retry_count_7_is_unlimited)
{
    start(0, 0, 7, 1);
    for (int i = 0; i < 100; ++i)
        ASSERT_EQ(answer(0, rnr | 31).failure, FABRIC_NO_FAILURE);
}

TEST_F(Requester, other_naks_end_the_connection)
{
    start(0, 7, 7, 1);
    EXPECT_EQ(answer(0, 0x61).failure, FABRIC_REMOTE_INVALID_REQUEST);
    EXPECT_EQ(answer(0, 0x62).failure, FABRIC_REMOTE_ACCESS_ERROR);
    EXPECT_EQ(answer(0, 0x63).failure, FABRIC_REMOTE_OPERATION_ERROR);
}

TEST_F(Requester, timeouts_are_retried_up_to_the_limit)
{
    start(0, 1, 0, 3);
    EXPECT_EQ(fabric_requester_timed_out(&r).failure, FABRIC_NO_FAILURE);
    EXPECT_EQ(r.next, 0U);
    EXPECT_EQ(fabric_requester_timed_out(&r).failure, FABRIC_RETRY_EXCEEDED);
    start(0, 0, 0, 0);
    EXPECT_EQ(fabric_requester_timed_out(&r).failure, FABRIC_NO_FAILURE) << "nothing was sent";
}

class Responder : public testing::Test {
protected:
    void SetUp() override { fabric_responder_start(&r, 10); }
    fabric_verdict look(const fabric_headers& h) { return fabric_responder_look(&r, &h, mtu, &answer); }
    std::uint32_t syndrome() const { return answer.aeth >> 24; }
    fabric_responder r{};
    fabric_answer answer{};
};

TEST_F(Responder, packets_in_order_are_accepted_and_messages_counted)
{
    auto first = request(FABRIC_RC_SEND_FIRST, 10), middle = request(FABRIC_RC_SEND_MIDDLE, 11);
    auto last = request(FABRIC_RC_SEND_LAST, 12, 1);
    ASSERT_EQ(look(first), FABRIC_TAKE);
    fabric_responder_take(&r, &first);
    EXPECT_EQ(r.received, mtu);
    ASSERT_EQ(look(middle), FABRIC_TAKE);
    fabric_responder_take(&r, &middle);
    ASSERT_EQ(look(last), FABRIC_TAKE);
    answer = fabric_responder_take(&r, &last);
    EXPECT_EQ(answer.psn, 12U);
    EXPECT_EQ(answer.aeth, good << 24 | 1U);
    EXPECT_EQ(r.received, 0U);
    EXPECT_FALSE(r.in_message);
}

TEST_F(Responder, sends_may_end_with_a_key_to_invalidate)
{
    auto only = request(FABRIC_RC_SEND_ONLY_INVALIDATE, 10, 4), first = request(FABRIC_RC_SEND_FIRST, 11);
    auto last = request(FABRIC_RC_SEND_LAST_INVALIDATE, 12, 4);
    ASSERT_EQ(look(only), FABRIC_TAKE);
    fabric_responder_take(&r, &only);
    EXPECT_EQ(look(request(FABRIC_RC_SEND_LAST_INVALIDATE, 11, 4)), FABRIC_REFUSE) << "nothing to end";
    ASSERT_EQ(look(first), FABRIC_TAKE);
    fabric_responder_take(&r, &first);
    EXPECT_EQ(look(request(FABRIC_RC_SEND_ONLY_INVALIDATE, 12, 4)), FABRIC_REFUSE) << "in a message";
    ASSERT_EQ(look(last), FABRIC_TAKE);
    answer = fabric_responder_take(&r, &last);
    EXPECT_EQ(answer.aeth, good << 24 | 2U);
    EXPECT_FALSE(r.in_message);
}

TEST_F(Responder, each_gap_gets_one_sequence_nak)
{
    EXPECT_EQ(look(request(FABRIC_RC_SEND_ONLY, 12)), FABRIC_ANSWER);
    EXPECT_EQ(answer.psn, 10U);
    EXPECT_EQ(syndrome(), sequence_nak);
    EXPECT_EQ(look(request(FABRIC_RC_SEND_ONLY, 13)), FABRIC_DISCARD);
    auto missing = request(FABRIC_RC_SEND_ONLY, 10);
    ASSERT_EQ(look(missing), FABRIC_TAKE);
    fabric_responder_take(&r, &missing);
    EXPECT_EQ(look(request(FABRIC_RC_SEND_ONLY, 13)), FABRIC_ANSWER) << "another gap, another word";
}

TEST_F(Responder, duplicates_are_acknowledged_again_on_request)
{
    EXPECT_EQ(look(request(FABRIC_RC_SEND_ONLY, 9)), FABRIC_ANSWER);
    EXPECT_EQ(answer.psn, 9U);
    EXPECT_EQ(syndrome(), good);
    EXPECT_EQ(look(request(FABRIC_RC_SEND_FIRST, 9)), FABRIC_DISCARD);
}

TEST_F(Responder, misplaced_opcodes_and_wrong_lengths_are_refused)
{
    for (const auto& h : {request(FABRIC_RC_SEND_MIDDLE, 10), request(FABRIC_RC_SEND_LAST, 10, 5),
                          request(FABRIC_RC_SEND_FIRST, 10, mtu - 1), request(FABRIC_RC_SEND_ONLY, 10, mtu + 1)}) {
        EXPECT_EQ(look(h), FABRIC_REFUSE) << unsigned(h.opcode);
        EXPECT_EQ(syndrome(), 0x61U);
    }
    auto first = request(FABRIC_RC_SEND_FIRST, 10);
    fabric_responder_take(&r, &first);
    for (const auto& h : {request(FABRIC_RC_SEND_FIRST, 11), request(FABRIC_RC_SEND_ONLY, 11, 5),
                          request(FABRIC_RC_SEND_MIDDLE, 11, 5), request(FABRIC_RC_SEND_LAST, 11, 0)})
        EXPECT_EQ(look(h), FABRIC_REFUSE) << unsigned(h.opcode);
}

TEST_F(Responder, missing_receive_gets_an_rnr_nak)
{
    answer = fabric_responder_not_ready(&r, 14);
    EXPECT_EQ(answer.psn, 10U);
    EXPECT_EQ(syndrome(), rnr | 14);
}

TEST_F(Responder, packets_behind_an_rnr_nak_get_no_sequence_nak)
{
    auto message = request(FABRIC_RC_SEND_ONLY, 10);
    ASSERT_EQ(look(message), FABRIC_TAKE);
    fabric_responder_not_ready(&r, 14);
    EXPECT_EQ(look(request(FABRIC_RC_SEND_ONLY, 11)), FABRIC_DISCARD);
    ASSERT_EQ(look(message), FABRIC_TAKE) << "repeated";
    fabric_responder_take(&r, &message);
    EXPECT_EQ(look(request(FABRIC_RC_SEND_ONLY, 12)), FABRIC_ANSWER) << "a gap after it";
    EXPECT_EQ(syndrome(), sequence_nak);
}

TEST_F(Responder, answer_to_a_duplicate_is_for_an_earlier_packet_than_a_nak)
{
    fabric_responder_start(&r, 0);
    const fabric_answer nak = fabric_responder_not_ready(&r, 14);
    ASSERT_EQ(look(request(FABRIC_RC_SEND_ONLY, FABRIC_PSN_MASK)), FABRIC_ANSWER);
    EXPECT_TRUE(fabric_psn_before(answer.psn, nak.psn));
    EXPECT_FALSE(fabric_psn_before(nak.psn, answer.psn));
    EXPECT_FALSE(fabric_psn_before(nak.psn, nak.psn));
}

// Messages of all sizes over a link with losses and a receiver that is not always ready: each arrives once, in order.
TEST(Connection, every_message_is_delivered_once_in_order_despite_loss)
{
    for (unsigned int seed = 1; seed <= 50; ++seed) {
        std::mt19937 random(seed);
        const auto one_in = [&random](unsigned int n) { return random() % n == 0; };
        constexpr std::uint32_t first_psn = 0xffffe0;
        fabric_requester requester{};
        fabric_responder responder{};
        fabric_requester_start(&requester, first_psn, 255, 7);
        fabric_responder_start(&responder, first_psn);

        std::vector<std::uint32_t> packets(40); // in each message
        for (std::uint32_t& count : packets)
            count = 1 + random() % 6;
        std::vector<fabric_headers> wire; // by PSN, counted from the first
        for (std::uint32_t count : packets)
            for (std::uint32_t i = 0; i < count; ++i) {
                const std::uint8_t opcode = count == 1       ? FABRIC_RC_SEND_ONLY
                                            : i == 0         ? FABRIC_RC_SEND_FIRST
                                            : i == count - 1 ? FABRIC_RC_SEND_LAST
                                                             : FABRIC_RC_SEND_MIDDLE;
                wire.push_back(request(opcode, (first_psn + wire.size()) & FABRIC_PSN_MASK));
            }

        std::size_t delivered = 0;
        for (int turn = 0; turn < 100000 && delivered < wire.size(); ++turn) {
            const std::uint32_t at = fabric_psn_distance(first_psn, requester.next);
            if (at == wire.size() || fabric_psn_distance(requester.unacknowledged, requester.next) > 20) {
                ASSERT_EQ(fabric_requester_timed_out(&requester).failure, FABRIC_NO_FAILURE) << seed;
                continue;
            }
            const fabric_headers& h = wire[at];
            fabric_requester_sent(&requester);
            if (one_in(8))
                continue;
            fabric_answer answer{};
            const auto verdict = fabric_responder_look(&responder, &h, mtu, &answer);
            bool reply = verdict == FABRIC_ANSWER;
            ASSERT_NE(verdict, FABRIC_REFUSE) << seed;
            if (verdict == FABRIC_TAKE && fabric_begins(h.opcode) && one_in(5)) {
                answer = fabric_responder_not_ready(&responder, 1);
                reply = true;
            } else if (verdict == FABRIC_TAKE) {
                ASSERT_EQ(at, delivered) << seed;
                ++delivered;
                answer = fabric_responder_take(&responder, &h);
                reply = h.ack_request;
            }
            if (reply && !one_in(8)) {
                const auto step = fabric_requester_answered(&requester, answer.psn, answer.aeth);
                ASSERT_EQ(step.failure, FABRIC_NO_FAILURE) << seed;
            }
        }
        EXPECT_EQ(delivered, wire.size()) << seed;
        EXPECT_EQ(responder.messages, packets.size()) << seed;
    }
}

} // namespace
