// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Engine of an HCA: executes posted work requests, datagrams and messages, flushes the queues of a queue pair in its
// error state; and the verbs of connections.
#include <algorithm>
#include <cstring>

#include <ipoib/encapsulation.hpp>

#include "world.hpp"

using namespace sim;

namespace {

constexpr std::uint8_t max_rnr_retries = 6;
constexpr Time rnr_delay = 640 * microsecond;
constexpr unsigned int grh_bytes = 40;

} // namespace

namespace sim {

ib_qp* find_qp(std::uint64_t serial)
{
    const auto it = world->qps.find(serial);
    return it == world->qps.end() ? nullptr : it->second;
}

} // namespace sim

std::vector<std::uint8_t> ib_qp::gather(const Send& send) const
{
    std::size_t count = 0;
    for (const shim_sge& sge : send.sges)
        count += sge.length;
    std::vector<std::uint8_t> bytes;
    bytes.reserve(count);
    for (const shim_sge& sge : send.sges) {
        const auto* from = world->memory.reach(sge.address, sge.length, Memory::Way::to_device, ca);
        bytes.insert(bytes.end(), from, from + sge.length);
    }
    return bytes;
}

void ib_qp::complete(const Send& send, Status status)
{
    if (!send.signaled && status == Status::success)
        return;
    Completion completion{send.id, status, 0, 0, 0, false, this, serial, true, send.number};
    completion.drain = connected && send.sges.empty();
    send_cq->push(completion);
}

void ib_qp::kick()
{
    if (std::exchange(engine, true))
        return;
    Random& random = world->scheduler.random();
    const Time late =
        random.one_in(32) ? random.log_between(microsecond, 2 * millisecond) : random.below(3 * microsecond);
    world->scheduler.after(late, [number = serial] {
        if (ib_qp* qp = find_qp(number)) {
            qp->engine = false;
            qp->run();
        }
    });
}

void ib_qp::run()
{
    if (ca->stalled_until > world->scheduler.now()) {
        engine = true;
        world->scheduler.at(ca->stalled_until, [number = serial] {
            if (ib_qp* qp = find_qp(number)) {
                qp->engine = false;
                qp->run();
            }
        });
        return;
    }
    if (state == State::error)
        flush();
    else if (connected)
        run_messages();
    else
        run_datagrams();
}

void ib_qp::flush()
{
    if (ca->mute_until > world->scheduler.now())
        return;
    for (; !sends.empty(); sends.pop_front()) {
        excuse(sends.front());
        complete(sends.front(), Status::flushed);
    }
    for (; !receives.empty(); receives.pop_front())
        recv_cq->push({receives.front().id, Status::flushed, 0, 0, 0, false, this, serial});
    if (!srq || std::exchange(last_wqe, true))
        return;
    Random& random = world->scheduler.random();
    world->scheduler.after(random.log_between(microsecond, 10 * millisecond), [number = serial] {
        if (ib_qp* qp = find_qp(number))
            ipoib_last_wqe_reached(qp->context);
    });
}

bool ib_qp::take(const std::vector<std::uint8_t>& bytes, Completion completion)
{
    auto& from = srq ? srq->receives : receives;
    if (from.empty())
        return false;
    const Receive receive = std::move(from.front());
    from.pop_front();
    std::size_t done = 0;
    for (const shim_sge& sge : receive.sges) {
        // Each element must be mapped, used or not.
        std::uint8_t* to = world->memory.reach(sge.address, sge.length, Memory::Way::from_device, ca);
        const std::size_t part = std::min<std::size_t>(sge.length, bytes.size() - done);
        std::memcpy(to, bytes.data() + done, part);
        done += part;
    }
    SIM_CHECK(done == bytes.size(), "a message of %zu bytes meets a receive buffer of %zu", bytes.size(), done);
    completion.id = receive.id;
    completion.bytes = static_cast<unsigned int>(bytes.size());
    completion.qp = this;
    completion.qp_serial = serial;
    recv_cq->push(completion);
    return true;
}

bool ib_qp::fail_to_take()
{
    auto& from = srq ? srq->receives : receives;
    if (from.empty() || !world->scheduler.random().one_in(ca->receive_error_one_in))
        return false;
    recv_cq->push({from.front().id, Status::local_protection, 0, 0, 0, false, this, serial});
    from.pop_front();
    if (connected) {
        state = State::error;
        kick();
    }
    return true;
}

// Datagrams

void ib_qp::run_datagrams()
{
    while (!sends.empty() && state != State::rtr) {
        const Send send = std::move(sends.front());
        sends.pop_front();
        if (state != State::rts) {
            complete(send, Status::flushed);
            continue;
        }
        if (world->scheduler.random().one_in(ca->send_error_one_in)) {
            state = State::send_error;
            complete(send, Status::local_protection);
            continue;
        }
        auto bytes = gather(send);
        const std::size_t longest = send.segment_bytes ? send.headers.size() + send.segment_bytes : bytes.size();
        if (longest > ca->mtu) {
            SIM_CHECK(world->sm.lied(), "a datagram of %zu bytes, and the MTU is %u", longest, ca->mtu);
            state = State::send_error;
            complete(send, Status::local_length);
            continue;
        }
        if (send.segment_bytes)
            send_segments(send, bytes);
        else
            send_datagram(send, std::move(bytes));
        complete(send, Status::success);
    }
}

void ib_qp::send_datagram(const Send& send, std::vector<std::uint8_t> bytes) const
{
    constexpr std::size_t before = sizeof(ipoib::Encapsulation);
    if (send.checksum)
        fill_checksum(bytes.data() + before, bytes.size() - before);
    world->fabric.send({ca, ca->lid, send.ah->dlid, send.ah->multicast, send.ah->dgid, number, send.qpn, send.qkey,
                        ca->pkeys.at(pkey_index), std::move(bytes)});
}

// Large send offload: each segment gets these headers, adjusted.
void ib_qp::send_segments(const Send& send, const std::vector<std::uint8_t>& data) const
{
    constexpr std::size_t before = sizeof(ipoib::Encapsulation);
    const Ip ip(send.headers.data() + before);
    SIM_CHECK(send.headers.size() >= before + 40 && ip.is_tcp() && send.headers.size() == before + ip.header_bytes(),
              "the headers of a packet that the HCA cuts are %zu bytes", send.headers.size());
    SIM_CHECK(send.checksum, "segments are to be sent without checksums");
    unsigned int number = 0;
    for (std::size_t done = 0; done < data.size(); done += send.segment_bytes, ++number) {
        const std::size_t part = std::min<std::size_t>(send.segment_bytes, data.size() - done);
        std::vector<std::uint8_t> bytes = send.headers;
        bytes.insert(bytes.end(), data.begin() + static_cast<long>(done),
                     data.begin() + static_cast<long>(done + part));
        std::uint8_t* const packet = bytes.data() + before;
        make_segment_headers(packet, number, send.segment_bytes, static_cast<unsigned int>(part),
                             done + part == data.size());
        const Ip segment(packet);
        segment.transport_checksum() = kernel::Be16(pseudo_header_sum(segment, bytes.size() - before));
        send_datagram(send, std::move(bytes));
    }
}

// Messages on a connection

void ib_qp::run_messages()
{
    if (sends.empty() || engine)
        return;
    if (sends.front().sges.empty()) {
        // A drain, which is dropped if the queue pair is in another state than ERROR.
        const Send send = std::move(sends.front());
        sends.pop_front();
        complete(send, Status::success);
        return;
    }
    engine = true;
    rnr_left = max_rnr_retries;
    const Time flight = world->fabric.flight_time();
    world->scheduler.after(flight, [number = serial, which = sends.front().number] {
        if (ib_qp* qp = find_qp(number))
            qp->attempt(which);
    });
}

void ib_qp::attempt(std::uint64_t which)
{
    if (state == State::error || sends.empty() || sends.front().number != which) {
        engine = false;
        run();
        return;
    }
    const auto bytes = gather(sends.front());
    Random& random = world->scheduler.random();
    ib_device& far = *world->devices[remote_node];
    ib_qp* const peer = this->peer();
    const bool reaches =
        ca->active && far.active && far.present && peer && (peer->state == State::rtr || peer->state == State::rts) &&
        same_partition(ca->pkeys.at(pkey_index), far.pkeys.at(peer->pkey_index)) && !random.one_in(ca->loss_one_in) &&
        !random.one_in(far.loss_one_in) && far.stalled_until <= world->scheduler.now();
    if (!reaches) {
        world->scheduler.after(random.log_between(10 * millisecond, second), [number = serial, which] {
            ib_qp* qp = find_qp(number);
            if (qp && !qp->sends.empty() && qp->sends.front().number == which)
                qp->break_off(Status::retry_exceeded);
        });
        return;
    }
    if (peer->fail_to_take())
        return break_off(Status::retry_exceeded);
    constexpr std::size_t before = sizeof(ipoib::Encapsulation);
    world->stack.went_by_connection(bytes.data() + before, bytes.size() - before);
    if (!peer->take(bytes, {})) {
        if (rnr_left-- == 0) {
            starved = true;
            ++world->cm.starved;
            return break_off(Status::rnr_exceeded);
        }
        world->scheduler.after(rnr_delay, [number = serial, which] {
            if (ib_qp* qp = find_qp(number))
                qp->attempt(which);
        });
        return;
    }
    // The acknowledgement may be lost.
    if (random.one_in(ca->loss_one_in))
        return break_off(Status::retry_exceeded);
    engine = false;
    const Send send = std::move(sends.front());
    sends.pop_front();
    complete(send, Status::success);
    run_messages();
}

ib_qp* ib_qp::peer() const
{
    const ib_device& far = *world->devices[remote_node];
    const auto it = far.qps.find(remote_qpn);
    ib_qp* const qp = it == far.qps.end() ? nullptr : it->second;
    return qp && qp->connected && qp->remote_node == ca->node && qp->remote_qpn == number ? qp : nullptr;
}

void ib_qp::excuse(const Send& send) const
{
    if (!starved || send.sges.empty())
        return;
    const auto bytes = gather(send);
    world->stack.excuse(bytes.data(), bytes.size());
}

void ib_qp::break_off(Status status)
{
    engine = false;
    if (state != State::error) {
        ++world->broken_off;
        state = State::error;
        const Send send = std::move(sends.front());
        sends.pop_front();
        excuse(send);
        complete(send, status);
    }
    run();
}

// Verbs

ib_qp* shim_ib_create_rc_qp(ib_pd* pd, const shim_rc_qp* wanted)
{
    ib_qp* qp = shim_ib_create_ud_qp(pd, wanted->send_cq, wanted->recv_cq, wanted->send_wrs, wanted->recv_wrs,
                                     wanted->send_sges, 0);
    if (shim_ptr_err_or_zero(qp))
        return qp;
    qp->connected = true;
    qp->recv_sges = wanted->recv_sges;
    qp->context = wanted->context;
    qp->srq = wanted->srq;
    if (qp->srq)
        ++qp->srq->users;
    return qp;
}
int shim_rc_qp_to_init(ib_qp* qp, std::uint32_t port, std::uint16_t pkey_index)
{
    return shim_qp_to_init(qp, port, pkey_index, 0);
}
int shim_helper_rc_qp_to_rtr(ib_qp* qp, ib_cm_id* id, std::uint32_t, std::uint8_t)
{
    const Verb verb(qp, "ib_modify_qp");
    if (!world->cm.may_get_ready(id))
        return -SHIM_ECONNRESET;
    if (qp->state != ib_qp::State::init || world->memory.fails())
        return -22;
    world->cm.remote_of(id, qp->remote_node, qp->remote_qpn);
    qp->state = ib_qp::State::rtr;
    return 0;
}
int shim_helper_rc_qp_to_rts(ib_qp* qp, ib_cm_id* id, std::uint8_t, std::uint8_t)
{
    const Verb verb(qp, "ib_modify_qp");
    if (!world->cm.may_get_ready(id))
        return -SHIM_ECONNRESET;
    if (qp->state != ib_qp::State::rtr || world->memory.fails())
        return -22;
    qp->state = ib_qp::State::rts;
    return 0;
}

ib_srq* shim_ib_create_srq(ib_pd* pd, unsigned int wrs, unsigned int sges)
{
    may_sleep("ib_create_srq");
    if (!pd->ca->max_srq_sges)
        return error_pointer<ib_srq>(-95);
    if (world->memory.fails())
        return error_pointer<ib_srq>(-12);
    ++pd->ca->srqs;
    ++pd->users;
    return new ib_srq{pd, wrs, sges, {}};
}
void shim_ib_destroy_srq(ib_srq* srq)
{
    may_sleep("ib_destroy_srq");
    SIM_CHECK(srq->users == 0, "a shared receive queue is destroyed that %ld queue pairs use", srq->users);
    --srq->pd->ca->srqs;
    --srq->pd->users;
    delete srq;
}
unsigned int shim_ib_max_srq_sge(const ib_device* ca) { return ca->max_srq_sges; }
