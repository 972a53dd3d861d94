// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Communication managers of all nodes (IBA 12): identifiers with their states, messages that are lost and repeated,
// stale connections, time wait. Messages are delivered to the driver in process context, one at a time for each
// identifier, and an identifier's destruction waits for that.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include <shim/cm.h>
#include <shim/device.h>

#include "fiber.hpp"
#include "verbs.hpp"

struct ib_cm_id {
    enum class State {
        idle,
        listens,
        req_sent,
        req_received,
        rep_sent,
        rep_received,
        established,
        dreq_sent,
        dreq_received,
        time_wait
    };
    std::uint64_t serial = 0;
    ib_device* ca = nullptr;
    shim_cm_endpoint* endpoint = nullptr;
    State state = State::idle;
    std::uint64_t service = 0, wanted_service = 0;
    unsigned int remote_node = 0;
    std::uint64_t remote_id = 0;
    std::uint32_t local_qpn = 0, remote_qpn = 0;
    bool passive = false, remembered = false;
    // Counts state changes: which state the identifier is in.
    std::uint64_t epoch = 0;
    std::deque<std::pair<shim_cm_message, std::vector<std::uint8_t>>> messages;
    sim::Fiber* handler = nullptr;
    bool scheduled = false, destroyed = false;
    // REQs of this identifier that are being handled.
    unsigned int requests = 0;
    ib_cm_id* listener = nullptr;
};

namespace sim {

class Cm {
public:
    static constexpr unsigned int nobody = ~0U;
    unsigned int loss_one_in = 0;
    // REQs that were sent, those of a node with a connection to the same interface apart; and connections that broke
    // since the receiver had no buffers.
    std::uint64_t requests = 0, further_requests = 0, starved = 0;
    // The next REQ of this node is rejected as stale, as if it were for an existing connection.
    unsigned int stale_next = nobody;
    // Once a second: checks that nodes retry after a stale rejection.
    void watch() const;
    // Until then messages are duplicated, delayed, and changed on their way.
    Time hostile_until = 0;
    // Sends a forged message to an identifier of this node; or a REQ to one of its interfaces, of a port that exists or
    // not, behind which no interface waits for the response.
    void forge(unsigned int node);
    void forge_request(unsigned int node);

    ib_cm_id* create(ib_device* ca, shim_cm_endpoint* endpoint);
    void destroy(ib_cm_id* id);
    int listen(ib_cm_id* id, std::uint64_t service);
    int send_req(ib_cm_id* id, const shim_cm_request& request);
    int send_rep(ib_cm_id* id, const shim_cm_reply& reply);
    int send_rtu(ib_cm_id* id);
    int send_drep(ib_cm_id* id);
    void send_rej(ib_cm_id* id, unsigned int reason);
    bool may_get_ready(const ib_cm_id* id) const;
    void remote_of(const ib_cm_id* id, unsigned int& node, std::uint32_t& qpn) const;

private:
    // Destination of LIDs without an owner.
    static constexpr unsigned int nowhere = nobody;
    static constexpr Time time_wait = 2 * second;
    enum class Kind { req, rep, rtu, rej, dreq, drep };
    struct Mad {
        Kind kind;
        unsigned int from, to;
        std::uint64_t from_id, to_id;
        std::uint64_t service = 0;
        std::uint32_t qpn = 0;
        unsigned int reason = 0;
        std::vector<std::uint8_t> data{};
        // Claimed source port, if it differs from the sender's.
        bool stranger = false;
        shim_gid seems{};
    };
    bool hostile() const;
    void change(Mad& mad) const;
    // REQs that an interface answered with a REP: how many more it may accept, and since when.
    struct Allowance {
        double left = 0;
        Time when = 0;
    };
    std::map<std::pair<unsigned int, std::uint64_t>, Allowance> allowances_;
    void check_allowance(unsigned int node, std::uint64_t service);

    ib_cm_id* find(std::uint64_t serial) const;
    void send(const Mad& mad);
    void arrive(const Mad& mad);
    void arrive_req(const Mad& mad);
    void arrive_rep(ib_cm_id* id, const Mad& mad);
    void arrive_rej(ib_cm_id* id, const Mad& mad);
    void arrive_dreq(ib_cm_id* id, const Mad& mad);
    // Repeats the message until the identifier has left this state, or the retries are used up.
    void keep_sending(ib_cm_id* id, const Mad& mad, unsigned int given_up);
    void tell(ib_cm_id* id, unsigned int event, const Mad* mad);
    void run(std::uint64_t serial);
    static void enter(ib_cm_id* id, ib_cm_id::State state)
    {
        id->state = state;
        ++id->epoch;
    }
    void enter_time_wait(ib_cm_id* id);
    void disconnect(ib_cm_id* id, bool again);
    void end(ib_cm_id* id);

    std::map<std::uint64_t, ib_cm_id*> ids_;
    // By node and peer: time of a stale rejection in quiet without a retry.
    std::map<std::pair<unsigned int, unsigned int>, Time> stale_since_;
    // By node: queue pairs (node, number) that it has connections with.
    std::map<std::pair<unsigned int, std::pair<unsigned int, std::uint32_t>>, std::uint64_t> remote_qps_;
};

} // namespace sim
