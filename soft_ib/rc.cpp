// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Connections: the requester's and the responder's rules (IBA 9.7, 9.8.2), on packet numbers alone.
#include <algorithm>
#include <cstring>

#include <connections.h>

namespace {

constexpr std::uint32_t half_of_psns = 1U << 23;
constexpr std::uint8_t no_rnr_limit = 7;

// AETH syndromes (IBA 9.7.5.1.2): the two top bits are the kind. ACKs give no credits here.
constexpr std::uint32_t ack = 0x1f, rnr_nak = 0x20, nak = 0x60, kind_mask = 0x60, code_mask = 0x1f;
constexpr std::uint32_t nak_psn_sequence = 0;

// Timer codes of RNR NAKs in microseconds (IBA 9.7.5.2.8, table 45).
constexpr std::uint32_t rnr_us[] = {
    655360, 10,   20,   30,   40,    60,    80,    120,   160,   240,   320,   480,    640,    960,    1280,   1920,
    2560,   3840, 5120, 7680, 10240, 15360, 20480, 30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520,
};

std::uint32_t psn(std::uint32_t value) { return value & FABRIC_PSN_MASK; }

fabric_answer answer(const fabric_responder& r, std::uint32_t of_psn, std::uint32_t syndrome)
{
    return {psn(of_psn), syndrome << 24 | psn(r.messages)};
}

// All packets before first are acknowledged.
void acknowledge(fabric_requester& r, std::uint32_t first)
{
    if (first == r.unacknowledged)
        return;
    r.asked_again = false;
    // Acknowledged packets need not be sent again.
    if (fabric_psn_distance(r.unacknowledged, r.next) < fabric_psn_distance(r.unacknowledged, first))
        r.next = first;
    r.unacknowledged = first;
    r.retries = r.rnr_retries = 0;
}

fabric_step send_again(fabric_requester& r)
{
    if (r.retries >= r.retry_limit)
        return {0, FABRIC_RETRY_EXCEEDED};
    ++r.retries;
    r.next = r.unacknowledged;
    return {};
}

// The peer has answered a later packet than a missing one of a response. The response is requested again once: its
// other packets in flight arrive too early as well.
fabric_step ask_again(fabric_requester& r)
{
    // The peer has executed all earlier requests.
    acknowledge(r, r.reads[0].next);
    if (r.asked_again)
        return {};
    r.asked_again = true;
    return send_again(r);
}

fabric_step send_again_later(fabric_requester& r, std::uint32_t timer_code)
{
    if (r.rnr_limit != no_rnr_limit) {
        if (r.rnr_retries >= r.rnr_limit)
            return {0, FABRIC_RNR_RETRY_EXCEEDED};
        ++r.rnr_retries;
    }
    r.next = r.unacknowledged;
    return {rnr_us[timer_code], FABRIC_NO_FAILURE};
}

fabric_failure failure_of(std::uint32_t code)
{
    switch (code) {
    case FABRIC_NAK_INVALID_REQUEST:
        return FABRIC_REMOTE_INVALID_REQUEST;
    case FABRIC_NAK_REMOTE_OPERATION:
        return FABRIC_REMOTE_OPERATION_ERROR;
    default:
        return FABRIC_REMOTE_ACCESS_ERROR;
    }
}

// An RDMA WRITE must have its announced length, and a READ at most the maximum message.
bool as_announced(const fabric_responder& r, const fabric_headers& h)
{
    const std::uint32_t announced = fabric_begins(h.opcode) ? h.remote_bytes : r.announced;
    if (announced > FABRIC_MAX_MESSAGE_BYTES)
        return false;
    if (h.opcode == FABRIC_RC_READ_REQUEST)
        return h.payload_bytes == 0;
    const std::uint32_t have = r.received + h.payload_bytes;
    return fabric_ends(h.opcode) ? have == announced : have < announced;
}

// The packet's opcode must continue the message: first before middle and last, full packets except the last.
bool in_place(const fabric_responder& r, const fabric_headers& h, std::uint32_t path_mtu)
{
    const bool begins = fabric_begins(h.opcode), writes = fabric_in(h.opcode, FABRIC_WRITES);
    if (!fabric_in(h.opcode, FABRIC_REQUESTS) || begins == r.in_message || (!begins && writes != r.writing))
        return false;
    if (writes || h.opcode == FABRIC_RC_READ_REQUEST)
        if (!as_announced(r, h))
            return false;
    if (fabric_in(h.opcode, FABRIC_ATOMICS))
        return h.payload_bytes == 0 && h.remote_address % sizeof(std::uint64_t) == 0;
    if (!fabric_ends(h.opcode))
        return h.payload_bytes == path_mtu;
    return h.payload_bytes <= path_mtu && (begins || h.payload_bytes > 0);
}

// A repeated request to read. Only its PSNs are known.
bool was_read(const fabric_responder& r, const fabric_headers& h, std::uint32_t path_mtu)
{
    return h.opcode == FABRIC_RC_READ_REQUEST && h.payload_bytes == 0 && h.remote_bytes <= FABRIC_MAX_MESSAGE_BYTES &&
           fabric_packets(h.remote_bytes, path_mtu) <= fabric_psn_distance(h.psn, r.expected);
}

// The executed atomic operation of that PSN, or null: none of the last ones has it.
const fabric_atomic* executed(const fabric_responder& r, std::uint32_t of_psn)
{
    for (std::uint32_t i = 0; i < std::min<std::uint32_t>(r.atomic_count, FABRIC_MAX_READS); ++i) {
        const fabric_atomic& atomic = r.atomics[(r.atomic_count - 1 - i) % FABRIC_MAX_READS];
        if (atomic.psn == of_psn)
            return &atomic;
    }
    return nullptr;
}

} // namespace

bool fabric_is_from_peer(const fabric_headers* h, const fabric_headers* path, std::uint8_t lmc)
{
    constexpr std::size_t prefix_bytes = 8;
    if ((h->slid ^ path->dlid) >> lmc)
        return false;
    // The prefix may be the default one or the subnet's.
    return !h->grh || !path->grh ||
           !std::memcmp(h->sgid + prefix_bytes, path->dgid + prefix_bytes, sizeof h->sgid - prefix_bytes);
}

void fabric_requester_start(fabric_requester* r, std::uint32_t first, std::uint8_t retry_limit, std::uint8_t rnr_limit)
{
    *r = {};
    r->unacknowledged = r->next = r->end = psn(first);
    r->retry_limit = retry_limit;
    r->rnr_limit = rnr_limit;
}

void fabric_requester_sent(fabric_requester* r)
{
    if (r->next == r->end)
        r->end = psn(r->end + 1);
    r->next = psn(r->next + 1);
}

void fabric_requester_sent_read(fabric_requester* r, std::uint32_t packets)
{
    const std::uint32_t past = psn(r->next + packets);
    // A repeated read is in the list already.
    if (r->next == r->end) {
        r->reads[r->read_count++] = {r->next, past};
        r->end = past;
    }
    r->next = past;
}

fabric_step fabric_requester_answered(fabric_requester* r, std::uint32_t of_psn, std::uint32_t aeth)
{
    const std::uint32_t syndrome = aeth >> 24;
    const bool positive = (syndrome & kind_mask) == 0;
    const std::uint32_t outstanding = fabric_psn_distance(r->unacknowledged, r->end);
    // An ACK is for a sent packet; a NAK may request the next one.
    if (fabric_psn_distance(r->unacknowledged, of_psn) >= outstanding)
        return {};
    // A read is acknowledged by its response alone, which precedes answers to later packets.
    if (r->read_count && fabric_psn_distance(r->reads[0].next, of_psn + positive - 1) < half_of_psns) {
        if (positive)
            return ask_again(*r);
        acknowledge(*r, r->reads[0].next);
    } else {
        acknowledge(*r, psn(of_psn + positive));
    }
    if (positive)
        return {};
    const std::uint32_t code = syndrome & code_mask;
    if ((syndrome & kind_mask) == rnr_nak)
        return send_again_later(*r, code);
    if (code == nak_psn_sequence)
        return send_again(*r);
    return {0, failure_of(code)};
}

fabric_step fabric_requester_response(fabric_requester* r, std::uint32_t of_psn, bool* take)
{
    *take = false;
    if (!r->read_count ||
        fabric_psn_distance(r->unacknowledged, of_psn) >= fabric_psn_distance(r->unacknowledged, r->end))
        return {};
    fabric_reading& oldest = r->reads[0];
    const std::uint32_t ahead = fabric_psn_distance(oldest.next, of_psn);
    if (ahead >= half_of_psns)
        return {};
    if (ahead != 0)
        return ask_again(*r);
    *take = true;
    oldest.next = psn(of_psn + 1);
    acknowledge(*r, oldest.next);
    if (oldest.next == oldest.past)
        std::copy(r->reads + 1, r->reads + r->read_count--, r->reads);
    return {};
}

fabric_step fabric_requester_timed_out(fabric_requester* r)
{
    if (r->unacknowledged == r->end)
        return {};
    return send_again(*r);
}

void fabric_responder_start(fabric_responder* r, std::uint32_t first)
{
    *r = {};
    r->expected = psn(first);
}

fabric_verdict fabric_responder_look(fabric_responder* r, const fabric_headers* h, std::uint32_t path_mtu,
                                     fabric_answer* reply)
{
    const std::uint32_t ahead = fabric_psn_distance(r->expected, h->psn);
    if (ahead >= half_of_psns) {
        // A duplicate: the sender missed the answer.
        if (was_read(*r, *h, path_mtu))
            return FABRIC_READ_AGAIN;
        if (fabric_in(h->opcode, FABRIC_ATOMICS))
            return executed(*r, h->psn) ? FABRIC_ATOMIC_AGAIN : FABRIC_DISCARD;
        // Answers with the last accepted PSN.
        *reply = answer(*r, r->expected - 1, ack);
        return h->ack_request ? FABRIC_ANSWER : FABRIC_DISCARD;
    }
    if (ahead != 0) {
        // A packet is missing. One NAK for each gap; later packets are dropped until the missing one arrives.
        if (r->nak_sent)
            return FABRIC_DISCARD;
        r->nak_sent = true;
        *reply = answer(*r, r->expected, nak | nak_psn_sequence);
        return FABRIC_ANSWER;
    }
    if (!in_place(*r, *h, path_mtu)) {
        *reply = fabric_responder_nak(r, FABRIC_NAK_INVALID_REQUEST);
        return FABRIC_REFUSE;
    }
    return FABRIC_TAKE;
}

void fabric_responder_drop(fabric_responder* r)
{
    r->in_message = false;
    r->received = 0;
}

fabric_verdict fabric_responder_look_unreliable(fabric_responder* r, const fabric_headers* h, std::uint32_t path_mtu)
{
    // A message may begin with any PSN: others are lost then.
    if (fabric_begins(h->opcode)) {
        fabric_responder_drop(r);
        r->expected = h->psn;
    }
    const bool possible = h->opcode <= (FABRIC_UC | FABRIC_RC_WRITE_ONLY_IMMEDIATE);
    if (possible && h->psn == r->expected && in_place(*r, *h, path_mtu))
        return FABRIC_TAKE;
    fabric_responder_drop(r);
    return FABRIC_DISCARD;
}

fabric_answer fabric_responder_take(fabric_responder* r, const fabric_headers* h)
{
    r->nak_sent = false;
    r->expected = psn(r->expected + 1);
    if (fabric_begins(h->opcode)) {
        r->writing = fabric_in(h->opcode, FABRIC_WRITES);
        r->announced = h->remote_bytes;
    }
    r->in_message = !fabric_ends(h->opcode);
    r->received = r->in_message ? r->received + h->payload_bytes : 0;
    if (!r->in_message)
        ++r->messages;
    return answer(*r, h->psn, ack);
}

fabric_answer fabric_responder_take_read(fabric_responder* r, const fabric_headers* h, std::uint32_t path_mtu)
{
    r->nak_sent = false;
    r->expected = psn(r->expected + fabric_packets(h->remote_bytes, path_mtu));
    ++r->messages;
    return answer(*r, h->psn, ack);
}

fabric_answer fabric_responder_take_atomic(fabric_responder* r, const fabric_headers* h, std::uint64_t original)
{
    r->atomics[r->atomic_count++ % FABRIC_MAX_READS] = {original, h->psn};
    return fabric_responder_take(r, h);
}

std::uint64_t fabric_responder_original(const fabric_responder* r, const fabric_headers* h)
{
    const fabric_atomic* atomic = executed(*r, h->psn);
    return atomic ? atomic->original : 0;
}

fabric_answer fabric_responder_read_again(const fabric_responder* r, const fabric_headers* h)
{
    return answer(*r, h->psn, ack);
}

fabric_answer fabric_responder_not_ready(fabric_responder* r, std::uint8_t rnr_timer)
{
    // Packets behind this one are in flight, and are dropped: the sender repeats them after its wait.
    r->nak_sent = true;
    return answer(*r, r->expected, rnr_nak | (rnr_timer & code_mask));
}

fabric_answer fabric_responder_nak(const fabric_responder* r, fabric_nak reason)
{
    return answer(*r, r->expected, nak | static_cast<std::uint32_t>(reason));
}
