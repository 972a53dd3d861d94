// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The communication managers of all nodes (IBA 12): identifiers with their states, messages that are lost and sent
// again, stale connections, time wait. A message is told to the driver in process context, one at a time for each
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
    void* context = nullptr;
    State state = State::idle;
    std::uint64_t service = 0;
    unsigned int remote_node = 0;
    std::uint64_t remote_id = 0;
    std::uint32_t local_qpn = 0, remote_qpn = 0;
    bool passive = false, remembered = false;
    // Which state of its life it is in.
    std::uint64_t epoch = 0;
    std::deque<std::pair<shim_cm_message, std::vector<std::uint8_t>>> messages;
    sim::Fiber* handler = nullptr;
    bool scheduled = false, destroyed = false;
    // REQs that are being handled in its name.
    unsigned int requests = 0;
    ib_cm_id* listener = nullptr;
};

namespace sim {

class Cm {
public:
    static constexpr unsigned int nobody = ~0U;
    unsigned int loss_one_in = 0;
    // REQs that were sent, and connections that broke for want of buffers at the receiver.
    std::uint64_t requests = 0, starved = 0;
    // The next REQ of this node is taken for one of a connection that is there.
    unsigned int stale_next = nobody;
    // Once a second: a node that was told that its connection is stale asks once more.
    void watch() const;
    // Until then messages are doubled, late, and changed on their way.
    Time hostile_until = 0;
    // A message that nobody has sent, to an identifier of this node; or a REQ to one of its interfaces, of a port that
    // there is or not, behind which nobody waits for the answer.
    void forge(unsigned int node);
    void forge_request(unsigned int node);

    ib_cm_id* create(ib_device* ca, void* context);
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
    enum class Kind { req, rep, rtu, rej, dreq, drep };
    struct Mad {
        Kind kind;
        unsigned int from, to;
        std::uint64_t from_id, to_id;
        std::uint64_t service = 0;
        std::uint32_t qpn = 0;
        unsigned int reason = 0;
        bool answers_req = false;
        std::vector<std::uint8_t> data{};
        // The port that it seems to come from, if that is another than its sender's.
        bool stranger = false;
        shim_gid seems{};
    };
    bool hostile() const;
    void change(Mad& mad) const;
    // REQs that were answered by a REP, of an interface: how many it may still take, and when that was so.
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
    // Sends it again until the identifier has left this state, or patience.
    void keep_sending(ib_cm_id* id, const Mad& mad, shim_cm_event given_up);
    void tell(ib_cm_id* id, shim_cm_event event, const Mad* mad);
    void run(std::uint64_t serial);
    void enter_time_wait(ib_cm_id* id);
    void disconnect(ib_cm_id* id, bool again);
    void end(ib_cm_id* id);

    std::map<std::uint64_t, ib_cm_id*> ids_;
    // By node and peer: when it was told so in quiet, and did not ask again.
    std::map<std::pair<unsigned int, unsigned int>, Time> stale_since_;
    // Of a node: whose queue pairs (node, number) it has connections with.
    std::map<std::pair<unsigned int, std::pair<unsigned int, std::uint32_t>>, std::uint64_t> remote_qps_;
};

} // namespace sim
