// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Atomic operations by the rules of reliable connections: each is executed once, and answered as often as requested.
#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <random>
#include <vector>

#include <connections.h>

namespace {

constexpr std::uint32_t mtu = 2048;
constexpr std::uint32_t invalid_nak = 0x61;

fabric_headers atomic(std::uint32_t psn, std::uint64_t add, std::uint8_t opcode = FABRIC_RC_FETCH_ADD)
{
    fabric_headers h{};
    h.opcode = opcode;
    h.psn = psn;
    h.remote_address = 0x1000;
    h.operand = add;
    h.ack_request = true;
    return h;
}

class AtomicResponder : public testing::Test {
protected:
    void SetUp() override { fabric_responder_start(&r, 0xfffffe); }
    fabric_verdict look(const fabric_headers& h) { return fabric_responder_look(&r, &h, mtu, &answer); }
    void take(const fabric_headers& h, std::uint64_t original)
    {
        ASSERT_EQ(look(h), FABRIC_TAKE);
        answer = fabric_responder_take_atomic(&r, &h, original);
    }
    fabric_responder r{};
    fabric_answer answer{};
};

TEST_F(AtomicResponder, operation_is_one_message_of_one_packet)
{
    take(atomic(0xfffffe, 1, FABRIC_RC_COMPARE_SWAP), 7);
    EXPECT_EQ(answer.psn, 0xfffffeU);
    EXPECT_EQ(answer.aeth, 0x1fU << 24 | 1U);
    EXPECT_EQ(r.expected, 0xffffffU);
    EXPECT_FALSE(r.in_message);
}

TEST_F(AtomicResponder, repeated_operation_is_answered_and_not_executed)
{
    take(atomic(0xfffffe, 1), 7);
    take(atomic(0xffffff, 1), 8);
    take(atomic(0, 1), 9);
    const auto again = atomic(0xffffff, 1);
    EXPECT_EQ(look(again), FABRIC_ATOMIC_AGAIN);
    EXPECT_EQ(fabric_responder_original(&r, &again), 8U);
    EXPECT_EQ(r.messages, 3U);
}

TEST_F(AtomicResponder, result_is_kept_for_as_many_operations_as_may_be_in_flight)
{
    for (std::uint32_t i = 0; i < FABRIC_MAX_READS + 1; ++i)
        take(atomic((0xfffffe + i) & FABRIC_PSN_MASK, 1), 100 + i);
    EXPECT_EQ(look(atomic(0xfffffe, 1)), FABRIC_DISCARD) << "too old";
    const auto oldest = atomic(0xffffff, 1);
    EXPECT_EQ(look(oldest), FABRIC_ATOMIC_AGAIN);
    EXPECT_EQ(fabric_responder_original(&r, &oldest), 101U);
}

TEST_F(AtomicResponder, request_for_what_was_another_operation_is_discarded)
{
    fabric_headers send{};
    send.opcode = FABRIC_RC_SEND_ONLY;
    send.psn = 0xfffffe;
    ASSERT_EQ(look(send), FABRIC_TAKE);
    fabric_responder_take(&r, &send);
    EXPECT_EQ(look(atomic(0xfffffe, 1)), FABRIC_DISCARD);
}

TEST_F(AtomicResponder, unaligned_addresses_and_payloads_are_refused)
{
    auto h = atomic(0xfffffe, 1);
    h.remote_address = 0x1004;
    EXPECT_EQ(look(h), FABRIC_REFUSE);
    EXPECT_EQ(answer.aeth >> 24, invalid_nak);
    h = atomic(0xfffffe, 1);
    h.payload_bytes = 8;
    EXPECT_EQ(look(h), FABRIC_REFUSE);
}

TEST_F(AtomicResponder, operation_does_not_interrupt_a_message)
{
    fabric_headers first{};
    first.opcode = FABRIC_RC_SEND_FIRST;
    first.psn = 0xfffffe;
    first.payload_bytes = mtu;
    ASSERT_EQ(look(first), FABRIC_TAKE);
    fabric_responder_take(&r, &first);
    EXPECT_EQ(look(atomic(0xffffff, 1)), FABRIC_REFUSE);
}

// A counter behind a link that loses frames: every addition counts once, and every requester's answer is the sum
// before.
TEST(AtomicConnection, every_addition_is_done_once_despite_loss)
{
    for (unsigned int seed = 1; seed <= 50; ++seed) {
        std::mt19937 random(seed);
        const auto lost = [&random]() { return random() % 6 == 0; };
        constexpr std::uint32_t first_psn = 0xffffe0, count = 100;
        fabric_requester requester{};
        fabric_requester_start(&requester, first_psn, 255, 7);
        requester.read_limit = 4;
        fabric_responder responder{};
        fabric_responder_start(&responder, first_psn);
        std::uint64_t counter = 0;
        std::vector<std::uint64_t> results;
        std::deque<fabric_headers> responses;
        std::optional<fabric_answer> nak;

        const auto arrive = [&](const fabric_headers& h) {
            fabric_answer answer{};
            fabric_headers response{};
            response.psn = h.psn;
            switch (fabric_responder_look(&responder, &h, mtu, &answer)) {
            case FABRIC_TAKE:
                response.operand = counter;
                fabric_responder_take_atomic(&responder, &h, counter);
                counter += h.operand;
                responses.push_back(response);
                return;
            case FABRIC_ATOMIC_AGAIN:
                response.operand = fabric_responder_original(&responder, &h);
                while (!responses.empty() && fabric_psn_distance(h.psn, responses.back().psn) < FABRIC_PSN_MASK / 2)
                    responses.pop_back();
                responses.push_back(response);
                return;
            case FABRIC_ANSWER:
                nak = answer;
                return;
            case FABRIC_DISCARD:
                return;
            default:
                FAIL() << seed;
            }
        };
        const auto send = [&]() {
            const std::uint32_t at = fabric_psn_distance(first_psn, requester.next);
            if (at >= count || !fabric_requester_may_send(&requester, 1, true))
                return false;
            const auto h = atomic(requester.next, at + 1);
            fabric_requester_sent_read(&requester, 1);
            if (!lost())
                arrive(h);
            return true;
        };
        const auto answer = [&]() {
            fabric_step step{};
            bool take = false;
            if (!responses.empty()) {
                if (!lost())
                    step = fabric_requester_response(&requester, responses.front().psn, &take);
                if (take)
                    results.push_back(responses.front().operand);
                responses.pop_front();
            } else if (nak) {
                if (!lost())
                    step = fabric_requester_answered(&requester, nak->psn, nak->aeth);
                nak.reset();
            } else {
                return false;
            }
            EXPECT_EQ(step.failure, FABRIC_NO_FAILURE) << seed;
            return true;
        };
        for (int turn = 0; turn < 100000 && results.size() < count; ++turn) {
            const bool sent = random() % 2 && send(), answered = answer();
            if (!sent && !answered && !send()) {
                ASSERT_EQ(fabric_requester_timed_out(&requester).failure, FABRIC_NO_FAILURE) << seed;
            }
        }
        ASSERT_EQ(results.size(), count) << seed;
        EXPECT_EQ(counter, std::uint64_t(count) * (count + 1) / 2) << seed;
        for (std::uint64_t i = 0; i < count; ++i)
            ASSERT_EQ(results[i], i * (i + 1) / 2) << seed;
    }
}

} // namespace
