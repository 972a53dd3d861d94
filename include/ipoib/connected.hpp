// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Connected mode (RFC 4755): reliable connections, each of one direction, from the active side that sends to the
// passive side that receives. The interface accepts connections in both modes; it makes them in connected mode only,
// one for each neighbour whose address has the RC flag.
#pragma once
#include <cstdint>

#include <ipoib/active_life.hpp>
#include <ipoib/address.hpp>
#include <ipoib/encapsulation.hpp>
#include <ipoib/mapped_packet.hpp>
#include <ipoib/passive_life.hpp>
#include <ipoib/pieces.hpp>
#include <ipoib/receive_chain.hpp>
#include <kernel/endian.hpp>
#include <kernel/list.hpp>
#include <kernel/lock.hpp>
#include <kernel/memory.hpp>
#include <kernel/packet_queue.hpp>
#include <kernel/rcu.hpp>
#include <kernel/result.hpp>
#include <kernel/ring.hpp>
#include <kernel/work.hpp>
#include <shim/cm.h>
#include <shim/debugfs.h>
#include <shim/netdevice.h>

namespace ipoib {

class Connections;
class Interface;
class Neighbour;
class PassiveConnection;
class Path;

// What a REQ and a REP say of their sender: its UD queue pair, and the longest message that it takes, encapsulation
// included: the private data (RFC 4755 section 6).
struct Introduction {
    kernel::Be32 qpn;
    kernel::Be32 receive_mtu;
};
static_assert(sizeof(Introduction) == 8 && alignof(Introduction) == 1);

// What may follow it, as Oracle's kernels have it: that the sender takes messages without the checksums of TCP and UDP,
// for the invariant CRC of each InfiniBand packet (IBA 7.8.1) covers them.
struct IcrcOffer {
    kernel::Be16 signature;
    kernel::Be16 capabilities;

    static constexpr std::uint16_t signed_as = 0x2211, version = 0x1000, version_bits = 0xf000, icrc = 0x0001;
    static IcrcOffer make() { return {kernel::Be16(signed_as), kernel::Be16(version | icrc)}; }
    bool valid() const
    {
        return signature.value() == signed_as && (capabilities.value() & (version_bits | icrc)) == (version | icrc);
    }
};
static_assert(sizeof(IcrcOffer) == 4 && alignof(IcrcOffer) == 1);

// All of it, as it goes into a message; without an offer, only the first part does.
struct PrivateData {
    Introduction introduction;
    IcrcOffer offer;
};
static_assert(sizeof(PrivateData) == 12);

// The service that an interface listens on is named after its UD queue pair (RFC 4755 section 3.5).
constexpr std::uint64_t service_id(std::uint32_t qpn) { return 0x1000000000000000 | qpn; }

// Whoever the communication manager's messages are for.
class Endpoint {
public:
    using Handler = int (*)(Endpoint& endpoint, ib_cm_id* id, const shim_cm_message& message);
    explicit Endpoint(Handler handler) : handler_(handler) {}
    // Not 0: the identifier is to be destroyed.
    int handle(ib_cm_id* id, const shim_cm_message& message) { return handler_(*this, id, message); }

private:
    Handler handler_;
};

class ActiveConnection : public Endpoint, public kernel::ListNode<ActiveConnection> {
public:
    ActiveConnection(Connections& owner, Handler handler, Neighbour& neighbour, const HwAddr& peer)
        : Endpoint(handler), owner(owner), neighbour(&neighbour), peer(peer)
    {
    }
    Connections& owner;

    // Under the path table's lock.
    ActiveLife life;
    // nullptr once it is abandoned.
    Neighbour* neighbour;
    const HwAddr peer;
    kernel::PacketQueue waiting;
    // Of the last change of state.
    unsigned long since = 0;
    // Asked for in vain, one time after the other.
    unsigned int refusals = 0;
    // Consecutive REJs whose reason is a stale connection.
    unsigned int stales = 0;
    // No REQ is owed before this; each moves it on by an interval. It may be max_requests_at_once - 1 intervals ahead.
    unsigned long spaced_until = 0;
    bool release_wanted = false;
    bool broken = false;

    // Of the interface's work queue, and written before the connection is published.
    ib_cm_id* id = nullptr;
    ib_qp* qp = nullptr;
    // The longest message that the peer takes, encapsulation included.
    unsigned int mtu = 0;
    // The peer takes messages without checksums.
    bool without_checksums = false;
    // Of the release: when to look again, when to lose patience.
    unsigned long look_at = 0, patience_ends = 0;
    enum class Release { none, unpublished, in_error } release = Release::none;

    // Of the send pool: sends handed out under the transmit lock, and completed ones.
    kernel::Published<std::uint32_t> sent, completed;
    std::uint32_t last_slot = 0;
    // Whoever posts may hold the lock that ending the connection takes: look() does that.
    kernel::Published<bool> post_failed;

    sa_path_rec* path() { return reinterpret_cast<sa_path_rec*>(path_); }

private:
    alignas(SHIM_ALIGNOF_PATH_RECORD) std::byte path_[SHIM_SIZEOF_PATH_RECORD] = {};
};

// The sends of all connections of an interface: as many slots as its send ring has, whoever needs them. Filled under
// the transmit lock, emptied by the transmit ring's NAPI poll.
class SendPool {
public:
    // In a work request's id: this is a connection's.
    static constexpr std::uint64_t tag = std::uint64_t(1) << 32;

    explicit SendPool(Interface& interface) : interface_(interface) {}

    // CONTEXT: process.
    kernel::Status create(unsigned int size, unsigned int sges);
    void destroy();

    unsigned int size() const { return available_.size(); }
    unsigned int free() const { return available_.used(); }
    // Sends the packet, which begins with its encapsulation; takes it in every case. CONTEXT: under the transmit lock
    // and an RcuGuard that covers the connection.
    void send(ActiveConnection& to, sk_buff* skb);
    // Hands what is built to the HCA, if anything is. CONTEXT: under the transmit lock.
    void ring_doorbell();
    // CONTEXT: the poll.
    void handle(const shim_wc* wc, int budget);
    // Written under the transmit lock.
    kernel::Counter doorbells;
    // Frees the sends of a connection whose queue pair is no more. CONTEXT: process.
    void reclaim(ActiveConnection& connection);

private:
    struct Slot : MappedPacket {
        ActiveConnection* connection;
        // Which of the connection's sends it is, and where the one before is.
        std::uint32_t number, previous;
    };
    static constexpr std::uint32_t signal_every = 16;

    void finish(ActiveConnection& connection, std::uint32_t slot, int budget);

    Interface& interface_;
    unsigned int sges_ = 1;
    kernel::Array<Slot> slots_;
    // Slots that are free, as a ring: completions produce, sends consume.
    kernel::Array<std::uint32_t> free_slots_;
    kernel::RingIndex available_;
    // Built and not posted: sends of one connection, from first to last.
    ActiveConnection* open_ = nullptr;
    Slot* first_ = nullptr;
    Slot* last_ = nullptr;
};

// Receive buffers for messages of up to 64 KiB; posted to a shared receive queue or to one queue pair. Each consists of
// pieces: whole pages, or equal parts of larger pages (MessageBuffer). Where the pieces hold an skb's headroom and
// tailroom beside the longest message, the packet is built in the first piece.
class PageRing {
public:
    // In a work request's id: this is a connection's.
    static constexpr std::uint64_t tag = std::uint64_t(1) << 32;
    // The elements that a receive has on a queue pair without SRQ; enough of them for the longest message.
    static constexpr unsigned int own_elements = 16;
    static_assert(own_elements * MessageBuffer::smallest_piece >= MessageBuffer::largest_message);
    static_assert(MessageBuffer::largest_message == IPOIB_MAX_MTU + sizeof(Encapsulation));

    explicit PageRing(Interface& interface) : interface_(interface) {}
    ~PageRing() { empty(); }

    // Memory for size buffers, whose receives have at most so many elements, and the buffers. CONTEXT: process.
    kernel::Status create(unsigned int size, unsigned int elements);
    // Posts all of them. CONTEXT: process; nothing was posted before.
    kernel::Status post_to(ib_srq* srq, ib_qp* qp);
    // CONTEXT: process; nothing is posted any more, and the poll does not know the ring.
    void empty();

    // CONTEXT: the poll.
    void handle(const shim_wc* wc, PassiveConnection& from);

    bool created() const { return static_cast<bool>(slots_); }
    unsigned int outstanding() const { return reposts_.outstanding(); }

private:
    struct Slot {
        std::byte* pieces[MessageBuffer::max_pieces];
        // Bit i: piece i is of the pool.
        std::uint32_t pooled;
        shim_sge sge[MessageBuffer::max_pieces];
        alignas(SHIM_ALIGNOF_RECV_WR) std::byte wr[SHIM_SIZEOF_RECV_WR];
        shim_recv_wr* native() { return reinterpret_cast<shim_recv_wr*>(wr); }
    };

    bool builds_in_page() const { return headroom_ != 0; }
    // Where in a piece its data begins.
    unsigned int offset(unsigned int index) const { return index == 0 ? headroom_ : 0; }
    // Maps a piece for the HCA; false: it failed.
    bool map(shim_sge& sge, unsigned int index, std::byte* piece) const;
    // Maps the piece and stores it in the slot. False: the piece is null, or mapping failed and it was freed.
    bool add_piece(Slot& slot, unsigned int index, std::byte* fresh);
    void remove_piece(Slot& slot, unsigned int index);
    kernel::Status post();
    void repost(Slot& slot);
    void deliver(Slot& slot, unsigned int bytes, bool without_checksum);
    sk_buff* copy(const Slot& slot, unsigned int bytes);
    sk_buff* take(Slot& slot, unsigned int bytes);
    // Pieces to take the place of a slot's first ones, mapped; false: not so many to be had, and none was taken.
    bool get_fresh(const Slot& slot, unsigned int count);
    void put_fresh(unsigned int count);

    Interface& interface_;
    unsigned int size_ = 0;
    MessageBuffer shape_{};
    // Bytes that the first piece has before its data, link header included; 0: packets are not built in it.
    unsigned int headroom_ = 0;
    // Bytes of data that it takes.
    unsigned int first_bytes_ = 0;
    // The longest message that peers are told of, encapsulation included. Buffers may hold a longer one.
    unsigned int max_bytes_ = 0;
    ib_srq* srq_ = nullptr;
    ib_qp* qp_ = nullptr;
    kernel::Array<Slot> slots_;
    ReceiveChain reposts_;
    // What get_fresh() got. Not on the stack, which kernels zero.
    std::byte* fresh_[MessageBuffer::max_pieces];
    shim_sge fresh_sge_[MessageBuffer::max_pieces];
};

class PassiveConnection : public Endpoint, public kernel::ListNode<PassiveConnection> {
public:
    PassiveConnection(Connections& owner, Handler handler, Interface& interface)
        : Endpoint(handler), owner(owner), ring(interface)
    {
    }
    Connections& owner;

    // The requester's port and UD queue pair, as its REQ names them.
    struct Peer {
        Gid gid;
        std::uint32_t lid = 0, qpn = 0;
        bool operator==(const Peer&) const = default;
    };
    // Written before any message can arrive.
    Peer peer;

    // Under the path table's lock.
    PassiveLife life;
    PassiveLife::Action due = PassiveLife::Action::none;
    unsigned long since = 0;
    // Among those that drain.
    bool counted = false;
    // The peer was told that its messages need no checksums.
    bool without_checksums = false;

    ib_cm_id* id = nullptr;
    ib_qp* qp = nullptr;
    unsigned long patience_ends = 0;
    // Its own, when there is no shared receive queue.
    PageRing ring;
    alignas(SHIM_ALIGNOF_SEND_WR) std::byte drain_wr[SHIM_SIZEOF_SEND_WR] = {};

    // Set in any context; the interface's work queue looks.
    kernel::Published<bool> flushed, drained;
    // The peer had a connection when it asked for this one. Written before any message can arrive, then by the poll.
    bool renewed = false;
    // Set by the poll with the first message; the interface's work queue ends the peer's older ones.
    kernel::Published<bool> proven;
    // Written by the poll: the tick of the last message, or the one before the REQ's.
    kernel::Published<unsigned long> last_used;
};

class Connections {
public:
    // Packets that wait for one connection.
    static constexpr unsigned int most_waiting = 64;
    // In a work request's id: the send that drains a passive connection.
    static constexpr std::uint64_t drain_tag = std::uint64_t(1) << 33;
    // Drains under way at a time; the receive completion queue has room for so many.
    static constexpr unsigned int most_draining = 64;
    // With a shared receive queue; without, the parameter max_nonsrq_conn_qp says.
    static constexpr unsigned int most_passive = 8192;
    // REQs that are taken one after the other; then as many as time allows.
    static constexpr unsigned int requests_at_once = 1024;
    // Of a queue pair in its error state: how long its completions may take.
    static constexpr unsigned int patience_seconds = 5;
    static constexpr unsigned int look_again_ms = 10;
    // Sends of a connection that nobody needs any more may still arrive.
    static constexpr unsigned int grace_ms = 200;
    // Buffers of a connection without a shared receive queue.
    static constexpr unsigned int most_own_buffers = 64;
    // REQs to one peer, of connections that end as soon as they are made: so many at once, then one in this time.
    static constexpr unsigned int max_requests_at_once = 4, request_interval_ms = 100;

    explicit Connections(Interface& interface);

    // Before the completion queues, whose room for receives depends on what the HCA gives. CONTEXT: process.
    kernel::Status create(unsigned int sends, unsigned int receives, unsigned int sges);
    unsigned int receive_completions(unsigned int ring_size) const;
    void destroy();
    unsigned int max_mtu() const;
    // The elements that the HCA takes in a receive, and the buffer that is built for so many.
    unsigned int message_elements() const;
    MessageBuffer message_buffer() const;

    // Accepts connections between these. CONTEXT: RTNL; the polls run.
    kernel::Status start();
    void stop();

    // It did not take all receives: with the next restart, which it asks for, comes another. CONTEXT: any.
    void shared_queue_broke();
    // CONTEXT: RTNL; no polls, and no connections.
    void drop_broken_shared_queue();

    // A packet, with its hard header, for a neighbour that takes connections, whose path is known: sent, kept or
    // dropped. CONTEXT: under the transmit lock and the path table's lock.
    void send(sk_buff* skb, Neighbour& neighbour, Path& path);
    // The neighbour is forgotten. CONTEXT: under the path table's lock.
    void abandon(Neighbour& neighbour);
    // The connection's queue pair is out of service. CONTEXT: the poll.
    void send_failed(ActiveConnection& connection);

    // CONTEXT: the poll.
    void received(const shim_wc* wc);
    void collect_garbage();
    kernel::Status show(seq_file* file);

    ib_srq* srq() const { return srq_; }
    page_pool* pool() const { return pool_; }
    void look_soon() { work_soon(); }

    SendPool sends;
    kernel::SharedCounter requests, accepted, refusals, broken, taken, turned_away, malformed, too_long;

private:
    friend int ::ipoib_cm_event(ib_cm_id*, const shim_cm_message*, void*);
    friend void ::ipoib_last_wqe_reached(void*);

    static int on_request(Endpoint& endpoint, ib_cm_id* id, const shim_cm_message& message);
    static int on_active_message(Endpoint& endpoint, ib_cm_id* id, const shim_cm_message& message);
    static int on_passive_message(Endpoint& endpoint, ib_cm_id* id, const shim_cm_message& message);

    // Active
    ActiveConnection* connection_of(Neighbour& neighbour, Path& path);
    ActiveLife::Step step(ActiveConnection& connection, ActiveLife::Event event);
    void perform(ActiveConnection& connection, ActiveLife::Step step, kernel::PacketQueue& ready);
    void advance(ActiveConnection& connection, ActiveLife::Event event);
    void ask(ActiveConnection& connection);
    kernel::Status send_request(ActiveConnection& connection);
    void accept_reply(ActiveConnection& connection, ib_cm_id* id, const shim_cm_message& message);
    void refuse(ActiveConnection& connection, unsigned int reason);
    // When its next REQ may be sent, in jiffies.
    static unsigned long may_ask_at(const ActiveConnection& connection);
    ActiveConnection* next_wanted();
    ActiveConnection* next_to_release(unsigned long now);
    void release(ActiveConnection& connection, unsigned long now);
    void transmit(kernel::PacketQueue& ready);

    // Passive
    kernel::Status accept(ib_cm_id* id, const shim_cm_message& message, shim_cm_reason& reason);
    kernel::Status set_up(PassiveConnection& connection, ib_cm_id* id, std::uint32_t psn);
    void free(PassiveConnection& connection);
    bool admit(const PassiveConnection::Peer& peer, bool& renewed, shim_cm_reason& reason);
    void end_older(PassiveConnection& connection);
    // False: no connection has newly replaced older ones.
    bool end_replaced();
    void pause_polls();
    kernel::Status create_shared_queue();
    void drop_shared_queue();
    kernel::Status fill_shared_ring();
    void advance(PassiveConnection& connection, PassiveLife::Event event);
    PassiveConnection* next_due(PassiveLife::Action& action);
    void perform(PassiveConnection& connection, PassiveLife::Action action);

    // There are none.
    bool idle();
    void work_soon();
    void run();
    // What a REQ and a REP of ours say, how much of it, and what the peer's said.
    PrivateData private_data() const;
    static std::uint8_t private_bytes(bool offer) { return offer ? sizeof(PrivateData) : sizeof(Introduction); }
    static PrivateData read(const std::uint8_t* private_data);
    // One look at everything; returns when to look again, in jiffies, 0: when something happens.
    unsigned long look();

    struct Listener : Endpoint {
        Listener(Handler handler, Connections& owner) : Endpoint(handler), owner(owner) {}
        Connections& owner;
    };

    Interface& interface_;
    Listener listener_;
    ib_cm_id* listen_id_ = nullptr;
    ib_srq* srq_ = nullptr;
    // Since creation; there is none for a while when it broke.
    bool shares_receives_ = false;
    page_pool* pool_ = nullptr;
    PageRing shared_ring_;
    kernel::Published<bool> shared_queue_broken_;
    unsigned int receives_ = 0;
    unsigned int send_size_ = 0, send_sges_ = 1;

    static kernel::LockClass mutex_class_, look_class_;
    // One look() at a time: the work queue's, or stop()'s.
    kernel::Mutex look_mutex_{look_class_, "ipoib_connections"};
    // One REQ at a time. Taken before the path table's lock.
    kernel::Mutex mutex_{mutex_class_, "ipoib_accept"};

    // Under the path table's lock.
    kernel::List<ActiveConnection> active_;
    kernel::List<PassiveConnection> passive_;
    unsigned int passive_count_ = 0, draining_ = 0;
    bool accepting_ = false;
    // REQs that may be taken yet, and since when more were added.
    unsigned int requests_left_ = 0;
    unsigned long requests_since_ = 0;
    // Reasons of a REJ that the log has seen.
    std::uint64_t reasons_logged_ = 0;

    kernel::Work<&Connections::run> work_;
};

} // namespace ipoib
