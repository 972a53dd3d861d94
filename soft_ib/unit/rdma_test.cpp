// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// RDMA READ and WRITE by the rules of reliable connections: a requester with responses, a responder with requests, and
// both together over a link that loses frames.
#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <random>
#include <vector>

#include <connections.h>

namespace {

constexpr std::uint32_t mtu = 2048;
constexpr std::uint32_t good = 0x1f, rnr = 0x20, sequence_nak = 0x60, invalid_nak = 0x61;

fabric_headers read_request(std::uint32_t psn, std::uint32_t bytes)
{
    fabric_headers h{};
    h.opcode = FABRIC_RC_READ_REQUEST;
    h.psn = psn;
    h.remote_bytes = bytes;
    h.ack_request = true;
    return h;
}

fabric_headers packet(std::uint8_t opcode, std::uint32_t psn, std::uint32_t bytes = mtu, std::uint32_t announced = 0)
{
    fabric_headers h{};
    h.opcode = opcode;
    h.psn = psn;
    h.payload_bytes = bytes;
    h.remote_bytes = announced;
    h.ack_request = fabric_ends(opcode);
    return h;
}

// A message of one packet has PSN 100, then a read has 101 to 104, then another message 105.
class ReadRequester : public testing::Test {
protected:
    void SetUp() override
    {
        fabric_requester_start(&r, 100, 2, 7);
        r.read_limit = 2;
        fabric_requester_sent(&r);
        fabric_requester_sent_read(&r, 4);
        fabric_requester_sent(&r);
    }
    bool takes(std::uint32_t psn)
    {
        bool take = false;
        step = fabric_requester_response(&r, psn, &take);
        EXPECT_EQ(step.failure, FABRIC_NO_FAILURE);
        return take;
    }
    fabric_failure answer(std::uint32_t psn, std::uint32_t syndrome)
    {
        return fabric_requester_answered(&r, psn, syndrome << 24).failure;
    }
    fabric_requester r{};
    fabric_step step{};
};

TEST_F(ReadRequester, read_uses_the_psns_of_its_response)
{
    EXPECT_EQ(r.next, 106U);
    EXPECT_EQ(r.end, 106U);
    EXPECT_EQ(r.read_count, 1);
}

TEST_F(ReadRequester, response_acknowledges_itself_and_earlier_packets)
{
    EXPECT_TRUE(takes(101));
    EXPECT_EQ(r.unacknowledged, 102U);
    for (std::uint32_t psn : {102U, 103U, 104U})
        EXPECT_TRUE(takes(psn));
    EXPECT_EQ(r.unacknowledged, 105U);
    EXPECT_EQ(r.read_count, 0);
    answer(105, good);
    EXPECT_EQ(r.unacknowledged, r.end);
}

TEST_F(ReadRequester, duplicate_and_unrequested_responses_are_discarded)
{
    takes(101);
    for (std::uint32_t psn : {101U, 100U, 99U, 106U, 200U})
        EXPECT_FALSE(takes(psn)) << psn;
    EXPECT_EQ(r.unacknowledged, 102U);
    EXPECT_EQ(r.next, 106U);
}

TEST_F(ReadRequester, gap_in_a_response_is_requested_again_once)
{
    takes(101);
    EXPECT_FALSE(takes(103));
    EXPECT_EQ(r.next, 102U);
    EXPECT_EQ(r.retries, 1);
    EXPECT_FALSE(takes(104));
    answer(105, good);
    EXPECT_EQ(r.retries, 1) << "what came after it says nothing new";
    EXPECT_EQ(r.unacknowledged, 102U);
    // One request for the rest of the read.
    fabric_requester_sent_read(&r, 3);
    EXPECT_EQ(r.next, 105U);
    EXPECT_EQ(r.read_count, 1);
    EXPECT_TRUE(takes(102));
    EXPECT_FALSE(takes(104));
    EXPECT_EQ(r.next, 103U) << "another gap, another word";
}

TEST_F(ReadRequester, answers_to_later_packets_do_not_acknowledge_a_read)
{
    answer(105, good);
    EXPECT_EQ(r.unacknowledged, 101U);
    EXPECT_EQ(r.next, 101U) << "the response was lost";
    fabric_requester_sent_read(&r, 4);
    answer(105, sequence_nak);
    EXPECT_EQ(r.unacknowledged, 101U);
    answer(105, rnr | 1);
    EXPECT_EQ(r.unacknowledged, 101U);
    EXPECT_EQ(answer(101, 0x62), FABRIC_REMOTE_ACCESS_ERROR);
}

TEST_F(ReadRequester, nak_of_a_read_acknowledges_earlier_packets)
{
    answer(101, sequence_nak);
    EXPECT_EQ(r.unacknowledged, 101U);
    EXPECT_EQ(r.next, 101U);
}

TEST_F(ReadRequester, missing_responses_exhaust_the_retries)
{
    EXPECT_EQ(fabric_requester_timed_out(&r).failure, FABRIC_NO_FAILURE);
    EXPECT_EQ(fabric_requester_timed_out(&r).failure, FABRIC_NO_FAILURE);
    EXPECT_EQ(fabric_requester_timed_out(&r).failure, FABRIC_RETRY_EXCEEDED);
}

TEST_F(ReadRequester, outstanding_reads_are_limited)
{
    EXPECT_TRUE(fabric_requester_may_send(&r, 1, true));
    fabric_requester_sent_read(&r, 1);
    EXPECT_FALSE(fabric_requester_may_send(&r, 1, true));
    EXPECT_TRUE(fabric_requester_may_send(&r, 1, false));
    r.next = r.unacknowledged;
    EXPECT_TRUE(fabric_requester_may_send(&r, 1, true)) << "again";
}

TEST_F(ReadRequester, at_most_half_of_the_psns_are_in_flight)
{
    EXPECT_TRUE(fabric_requester_may_send(&r, FABRIC_PSN_MASK / 2 - 6, false));
    EXPECT_FALSE(fabric_requester_may_send(&r, FABRIC_PSN_MASK / 2 - 5, false));
}

class RdmaResponder : public testing::Test {
protected:
    void SetUp() override { fabric_responder_start(&r, 10); }
    fabric_verdict look(const fabric_headers& h) { return fabric_responder_look(&r, &h, mtu, &answer); }
    void take(const fabric_headers& h)
    {
        ASSERT_EQ(look(h), FABRIC_TAKE);
        answer = fabric_responder_take(&r, &h);
    }
    void take_read(const fabric_headers& h)
    {
        ASSERT_EQ(look(h), FABRIC_TAKE);
        answer = fabric_responder_take_read(&r, &h, mtu);
    }
    std::uint32_t syndrome() const { return answer.aeth >> 24; }
    fabric_responder r{};
    fabric_answer answer{};
};

TEST_F(RdmaResponder, write_must_have_its_announced_length)
{
    take(packet(FABRIC_RC_WRITE_FIRST, 10, mtu, 2 * mtu + 5));
    take(packet(FABRIC_RC_WRITE_MIDDLE, 11));
    EXPECT_EQ(look(packet(FABRIC_RC_WRITE_LAST, 12, 4)), FABRIC_REFUSE);
    EXPECT_EQ(syndrome(), invalid_nak);
    EXPECT_EQ(look(packet(FABRIC_RC_WRITE_LAST, 12, 6)), FABRIC_REFUSE);
    take(packet(FABRIC_RC_WRITE_LAST, 12, 5));
    EXPECT_EQ(answer.aeth, good << 24 | 1U);
    EXPECT_EQ(look(packet(FABRIC_RC_WRITE_ONLY, 13, 7, 8)), FABRIC_REFUSE);
    EXPECT_EQ(look(packet(FABRIC_RC_WRITE_FIRST, 13, mtu, mtu)), FABRIC_REFUSE);
    EXPECT_EQ(look(packet(FABRIC_RC_WRITE_FIRST, 13, mtu, FABRIC_MAX_MESSAGE_BYTES + 1)), FABRIC_REFUSE);
    take(packet(FABRIC_RC_WRITE_ONLY_IMMEDIATE, 13, 0, 0));
}

TEST_F(RdmaResponder, writes_and_sends_do_not_interleave)
{
    take(packet(FABRIC_RC_WRITE_FIRST, 10, mtu, 2 * mtu));
    EXPECT_EQ(look(packet(FABRIC_RC_SEND_LAST, 11)), FABRIC_REFUSE);
    EXPECT_EQ(look(read_request(11, 1)), FABRIC_REFUSE);
    take(packet(FABRIC_RC_WRITE_LAST_IMMEDIATE, 11));
    take(packet(FABRIC_RC_SEND_FIRST, 12));
    EXPECT_EQ(look(packet(FABRIC_RC_WRITE_LAST, 13)), FABRIC_REFUSE);
    take(packet(FABRIC_RC_SEND_LAST_IMMEDIATE, 13, 1));
}

TEST_F(RdmaResponder, read_consumes_the_psns_of_its_response)
{
    take_read(read_request(10, 2 * mtu + 1));
    EXPECT_EQ(answer.psn, 10U);
    EXPECT_EQ(answer.aeth, good << 24 | 1U);
    take_read(read_request(13, 0));
    EXPECT_EQ(r.expected, 14U);
    EXPECT_EQ(r.messages, 2U);
}

TEST_F(RdmaResponder, read_can_be_repeated_in_whole_or_part)
{
    take_read(read_request(10, 3 * mtu));
    EXPECT_EQ(look(read_request(10, 3 * mtu)), FABRIC_READ_AGAIN);
    EXPECT_EQ(look(read_request(12, mtu)), FABRIC_READ_AGAIN);
    EXPECT_EQ(look(read_request(12, 2 * mtu)), FABRIC_ANSWER) << "more than was asked for";
    EXPECT_EQ(look(read_request(8, 0xffffffff)), FABRIC_ANSWER);
}

TEST_F(RdmaResponder, unknown_requests_are_refused)
{
    for (std::uint8_t opcode : {FABRIC_RC_READ_RESPONSE_ONLY, FABRIC_RC_ACKNOWLEDGE})
        EXPECT_EQ(look(packet(opcode, 10, 4)), FABRIC_REFUSE) << unsigned(opcode);
    EXPECT_EQ(look(packet(0x13, 10, 4)), FABRIC_REFUSE);
    auto h = read_request(10, 5);
    h.payload_bytes = 4;
    EXPECT_EQ(look(h), FABRIC_REFUSE) << "a read with a payload";
}

// Half of a peer as its owner keeps it: responses wait for their turn, and answers wait for earlier responses.
struct Peer {
    struct Reading {
        std::uint32_t psn, left;
        std::uint32_t aeth;
    };
    fabric_responder responder{};
    std::deque<Reading> readings;
    std::optional<fabric_answer> late;
    // Completed messages, by their first PSN.
    std::vector<std::uint32_t> done;

    void arrive(const fabric_headers& h)
    {
        fabric_answer answer{};
        switch (fabric_responder_look(&responder, &h, mtu, &answer)) {
        case FABRIC_DISCARD:
            return;
        case FABRIC_REFUSE:
        case FABRIC_ATOMIC_AGAIN:
            FAIL() << unsigned(h.opcode) << ' ' << h.psn;
        case FABRIC_ANSWER:
            late = answer;
            return;
        case FABRIC_READ_AGAIN:
            while (!readings.empty() && fabric_psn_distance(h.psn, readings.back().psn) < FABRIC_PSN_MASK / 2)
                readings.pop_back();
            answer = fabric_responder_read_again(&responder, &h);
            readings.push_back({h.psn, fabric_packets(h.remote_bytes, mtu), answer.aeth});
            return;
        case FABRIC_TAKE:
            if (fabric_begins(h.opcode))
                done.push_back(h.psn);
            if (h.opcode == FABRIC_RC_READ_REQUEST) {
                answer = fabric_responder_take_read(&responder, &h, mtu);
                readings.push_back({h.psn, fabric_packets(h.remote_bytes, mtu), answer.aeth});
            } else {
                answer = fabric_responder_take(&responder, &h);
                if (h.ack_request)
                    late = answer;
            }
        }
    }
};

// Messages and reads of all sizes over a link with losses: each is done once, in order, and every packet of every
// response is accepted once, in order.
TEST(RdmaConnection, every_operation_is_done_once_in_order_despite_loss)
{
    for (unsigned int seed = 1; seed <= 50; ++seed) {
        std::mt19937 random(seed);
        const auto one_in = [&random](unsigned int n) { return random() % n == 0; };
        constexpr std::uint32_t first_psn = 0xffffe0;
        struct Message {
            std::uint32_t psn, packets;
            bool read;
        };
        std::vector<Message> messages(40);
        std::uint32_t psns = 0;
        for (Message& message : messages) {
            message = {(first_psn + psns) & FABRIC_PSN_MASK, 1 + static_cast<std::uint32_t>(random() % 6), one_in(2)};
            psns += message.packets;
        }
        fabric_requester requester{};
        fabric_requester_start(&requester, first_psn, 255, 7);
        requester.read_limit = 3;
        Peer peer;
        fabric_responder_start(&peer.responder, first_psn);
        std::vector<std::uint32_t> taken, expected_done, expected_taken;
        for (const Message& message : messages) {
            expected_done.push_back(message.psn);
            for (std::uint32_t i = 0; message.read && i < message.packets; ++i)
                expected_taken.push_back((message.psn + i) & FABRIC_PSN_MASK);
        }

        const auto send = [&]() {
            const std::uint32_t at = fabric_psn_distance(first_psn, requester.next);
            std::uint32_t begin = 0;
            for (const Message& m : messages) {
                if (at >= begin + m.packets) {
                    begin += m.packets;
                    continue;
                }
                const std::uint32_t index = at - begin, left = m.packets - index;
                if (!fabric_requester_may_send(&requester, left, m.read))
                    return false;
                const std::uint32_t psn = requester.next;
                fabric_headers h = read_request(psn, left * mtu);
                if (m.read) {
                    fabric_requester_sent_read(&requester, left);
                } else {
                    const std::uint8_t opcode = m.packets == 1 ? FABRIC_RC_SEND_ONLY
                                                : index == 0   ? FABRIC_RC_SEND_FIRST
                                                : left == 1    ? FABRIC_RC_SEND_LAST
                                                               : FABRIC_RC_SEND_MIDDLE;
                    h = packet(opcode, psn);
                    fabric_requester_sent(&requester);
                }
                if (!one_in(8))
                    peer.arrive(h);
                return true;
            }
            return false;
        };
        const auto answer = [&]() {
            fabric_step step{};
            if (!peer.readings.empty()) {
                Peer::Reading& reading = peer.readings.front();
                bool take = false;
                if (!one_in(8))
                    step = fabric_requester_response(&requester, reading.psn, &take);
                if (take)
                    taken.push_back(reading.psn);
                reading.psn = (reading.psn + 1) & FABRIC_PSN_MASK;
                if (--reading.left == 0)
                    peer.readings.pop_front();
            } else if (peer.late) {
                if (!one_in(8))
                    step = fabric_requester_answered(&requester, peer.late->psn, peer.late->aeth);
                peer.late.reset();
            } else {
                return false;
            }
            EXPECT_EQ(step.failure, FABRIC_NO_FAILURE) << seed;
            return true;
        };
        for (int turn = 0; turn < 100000 && fabric_psn_distance(first_psn, requester.unacknowledged) < psns; ++turn) {
            const bool sent = one_in(2) && send(), answered = answer();
            if (!sent && !answered && !send()) {
                ASSERT_EQ(fabric_requester_timed_out(&requester).failure, FABRIC_NO_FAILURE) << seed;
            }
        }
        EXPECT_EQ(fabric_psn_distance(first_psn, requester.unacknowledged), psns) << seed;
        EXPECT_EQ(peer.done, expected_done) << seed;
        EXPECT_EQ(taken, expected_taken) << seed;
        EXPECT_EQ(requester.read_count, 0) << seed;
    }
}

} // namespace
