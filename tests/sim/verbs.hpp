// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// HCAs: a port each, completion queues, queue pairs with their states, and faults of them. Sends of a queue pair go to
// the fabric; every effect comes later, or before the call returns.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <ipoib/address.hpp>
#include <shim/device.h>
#include <shim/wr.h>

#include "base.hpp"
#include "locks.hpp"

struct ib_device {
    unsigned int node = 0;
    std::string name;
    // In its slot; and added to the driver, which keeps state for it.
    bool present = true, added = false;
    void* state = nullptr;
    // The port.
    bool active = true;
    std::uint16_t lid = 0;
    shim_gid gid{};
    std::vector<std::uint16_t> pkeys{0xffff, 0x8001, 0, 0};
    unsigned int mtu = 2048;
    unsigned int max_srq_sges = 16, max_sges = 18;
    // Bits of shim_feature; and whether it moderates events.
    unsigned int features = 0;
    bool moderates = true;
    sim::Time lid_changed = 0;
    // Removes the completions of a queue pair that is reset or destroyed.
    bool cleans_queues = true;

    struct Handler {
        shim_event_handler* handler;
        void (*on_event)(void*, unsigned int, std::uint32_t);
        void* context;
    };
    std::vector<Handler> handlers;
    unsigned int dispatches = 0;
    // Lookups of rdma_cm in the driver's state; and whether the HCA is being added or removed.
    unsigned int users = 0;
    bool changing = false;

    // Objects that the driver has created.
    std::map<std::uint32_t, ib_qp*> qps;
    long pds = 0, cqs = 0, ahs = 0, srqs = 0, cm_ids = 0, memberships = 0, queries = 0;
    std::uint32_t next_qpn = 0x40;

    // Until then faults excuse failures of checks.
    sim::Time excused_until = 0;
    // Faults, until a time or for a number of events.
    sim::Time stalled_until = 0, mute_until = 0;
    unsigned int send_error_one_in = 0, receive_error_one_in = 0, post_error_one_in = 0, loss_one_in = 0;
    unsigned int no_queue_pairs_one_in = 0;
};

struct ib_pd {
    ib_device* ca;
    long users = 0;
};

struct ib_ah {
    std::uint32_t magic;
    ib_pd* pd;
    std::uint16_t dlid;
    bool multicast;
    shim_gid dgid;
};

struct net_device;

namespace sim {

enum class Status {
    success = 0,
    local_length = 1,
    local_protection = 4,
    flushed = 5,
    retry_exceeded = 12,
    rnr_exceeded = 13
};

struct Completion {
    std::uint64_t id = 0;
    Status status = Status::success;
    unsigned int bytes = 0;
    std::uint32_t source_qpn = 0;
    std::uint16_t slid = 0;
    bool grh = false;
    ib_qp* qp = nullptr;
    std::uint64_t qp_serial = 0;
    // Index of the queue pair's send, for completions of sends.
    bool send = false;
    std::uint64_t number = 0;
    // Time when it was added to its queue.
    Time since = 0;
    bool checksum_ok = false;
    // A multicast datagram that returns to its sending queue pair.
    bool echo = false;
    // The send that drains a connection.
    bool drain = false;
};

struct Send {
    std::uint64_t id;
    std::uint64_t number;
    ib_ah* ah;
    std::uint32_t qpn, qkey;
    bool signaled, checksum;
    std::vector<shim_sge> sges;
    // Headers of a packet that the HCA segments, and bytes of data of each segment.
    std::vector<std::uint8_t> headers{};
    unsigned int segment_bytes = 0;
};

struct Receive {
    std::uint64_t id;
    std::vector<shim_sge> sges;
};

// Fields of a datagram on the wire.
struct Datagram {
    ib_device* from;
    std::uint16_t slid, dlid;
    bool multicast;
    shim_gid dgid;
    std::uint32_t source_qpn, qpn, qkey;
    std::uint16_t pkey;
    std::vector<std::uint8_t> bytes;
};

} // namespace sim

struct ib_cq {
    ib_device* ca;
    unsigned int size;
    void (*completed)(ib_cq*, void*);
    void* context;
    std::uint64_t serial;
    std::deque<sim::Completion> entries;
    bool armed = false;
    long users = 0;
    // The owning interface, and the moderation of the queue's events.
    net_device* dev = nullptr;
    unsigned int moderated_frames = 0, moderated_usecs = 0;

    void push(const sim::Completion& entry);
};

struct ib_srq {
    ib_pd* pd;
    unsigned int size, sges;
    std::deque<sim::Receive> receives;
    long users = 0;
};

struct ib_qp {
    enum class State { reset, init, rtr, rts, send_error, error, destroyed };
    ib_device* ca;
    ib_pd* pd;
    std::uint64_t serial;
    std::uint32_t number;
    bool connected = false;
    State state = State::reset;
    ib_cq *send_cq, *recv_cq;
    ib_srq* srq = nullptr;
    void* context = nullptr;
    unsigned int send_wrs, recv_wrs, send_sges, recv_sges;
    std::uint32_t qkey = 0;
    std::uint16_t pkey_index = 0;
    // Posted and not executed sends; numbers of posted sends, and of those whose completion was polled.
    std::deque<sim::Send> sends;
    std::uint64_t posted = 0, seen = 0;
    std::deque<sim::Receive> receives;
    std::set<std::pair<std::string, std::uint16_t>> groups;
    // Fields of a connection.
    unsigned int remote_node = 0;
    std::uint32_t remote_qpn = 0;
    unsigned int rnr_left = 0;
    bool last_wqe = false, engine = false;
    // The peer had no buffers, so that the connection broke.
    bool starved = false;
    // Calls that are looking at it or changing it.
    unsigned int verbs = 0;

    std::vector<std::uint8_t> gather(const sim::Send& send) const;
    void complete(const sim::Send& send, sim::Status status);
    // Schedules the engine: soon, or now.
    void kick();
    void run();
    void run_datagrams();
    void send_datagram(const sim::Send& send, std::vector<std::uint8_t> bytes) const;
    void send_segments(const sim::Send& send, const std::vector<std::uint8_t>& data) const;
    void run_messages();
    void attempt(std::uint64_t which);
    void break_off(sim::Status status);
    // Queue pair at the other end of a connection.
    ib_qp* peer() const;
    // A send lost since the peer had no buffers counts as excused.
    void excuse(const sim::Send& send) const;
    void flush();
    // Writes a message or a datagram into the first receive buffer; returns false if there is none.
    bool take(const std::vector<std::uint8_t>& bytes, sim::Completion completion);
    // Completes the first receive with an error, as the HCA cannot write to it.
    bool fail_to_take();
    // Removes completions if the HCA does so.
    void forget_completions();
};

namespace sim {

// Runs the driver's event handlers, in a context of its own.
void dispatch(ib_device& ca, unsigned int event);
// Checks that the driver keeps no object of the HCA.
void check_nothing_left(const ib_device& ca);
// nullptr: it was destroyed.
ib_qp* find_qp(std::uint64_t serial);
void check_exists(const ib_qp* qp, const char* verb);

// A call that may sleep, on a queue pair that exists and is not destroyed meanwhile.
class Verb {
public:
    Verb(ib_qp* qp, const char* name) : qp_(qp)
    {
        check_exists(qp, name);
        ++qp->verbs;
        may_sleep(name);
    }
    ~Verb() { --qp_->verbs; }
    Verb(const Verb&) = delete;

private:
    ib_qp* const qp_;
};

} // namespace sim
