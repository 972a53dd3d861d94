// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// One IPoIB interface: an "ib%d" netdev on one port of an HCA, its UD queue pair and all that belongs to them.
// It is the netdev's, and ends with it.
//
// Lock order: RTNL, the netdev's ops lock if its lower half has one, GroupSet's or Connections' mutex, the netdev's
// address list lock or transmit lock, GroupSet's or PathTable's lock (which is the connections' too), Reaper's lock or
// that of rejections. Work items that take RTNL are on the flush queue, and cancelled where it is not held.
#pragma once
#include <algorithm>
#include <cstdint>

#include <ipoib/address.hpp>
#include <ipoib/connected.hpp>
#include <ipoib/datagram.hpp>
#include <ipoib/encapsulation.hpp>
#include <ipoib/hca.hpp>
#include <ipoib/interface_life.hpp>
#include <ipoib/lower.hpp>
#include <ipoib/multicast.hpp>
#include <ipoib/path.hpp>
#include <ipoib/reaper.hpp>
#include <kernel/list.hpp>
#include <kernel/lock.hpp>
#include <kernel/memory.hpp>
#include <kernel/result.hpp>
#include <kernel/work.hpp>
#include <shim/module.h>
#include <shim/netdevice.h>
#include <shim/sa.h>
#include <shim/verbs.h>

namespace ipoib {

// What the broadcast group says about the link; groups and paths are asked for in its terms.
struct LinkParameters {
    std::uint32_t qkey = 0;
    std::uint32_t flow_label = 0;
    std::uint8_t mtu = 0;
    std::uint8_t rate = 0;
    std::uint8_t sl = 0;
    std::uint8_t hop_limit = 0;
    std::uint8_t traffic_class = 0;
};

// The module's queue for what needs RTNL, one item at a time over all interfaces.
extern kernel::WorkQueue flush_queue, reap_queue;

class Interface : public kernel::ListNode<Interface>, public kernel::ListNode<OfHca> {
public:
    // Of a port; its P_Key is the first of the port's table.
    Interface(net_device* dev, Hca& hca, std::uint32_t port)
        : dev_(dev), hca_(hca), ca_(hca.ca()), port_(port), vector_(hca.take_vector())
    {
    }
    // Of a P_Key, beside parent.
    Interface(net_device* dev, Interface& parent, PKey pkey)
        : dev_(dev), hca_(parent.hca_), ca_(parent.ca_), port_(parent.port_), vector_(parent.hca_.take_vector()),
          parent_(&parent), pkey_(pkey.as_full_member().value())
    {
    }
    static Interface& of(const net_device* dev) { return *static_cast<Interface*>(shim_netdev_owner(dev)); }

    // From set-up to use: registered, listening to the fabric. On failure it is as before. CONTEXT: RTNL.
    kernel::Status attach();
    // The end, with its children's: unregistered, at once or with batch's. CONTEXT: RTNL.
    void detach(void* batch);
    // What may be queued still is cancelled; afterwards nothing refers to the interface. CONTEXT: process, no RTNL.
    void forget();

    // Children. CONTEXT: RTNL.
    kernel::Status create_child(int pkey);
    kernel::Status delete_child(int pkey);
    // One that was constructed with this as its parent.
    kernel::Status adopt_child(kernel::Owned<Interface> child);
    Interface* parent() const { return parent_; }

    // The netdev's operations. CONTEXT: RTNL, transmit and set_rx_mode apart.
    kernel::Status init();
    void uninit();
    kernel::Status open();
    void stop();
    kernel::Status change_mtu(unsigned int mtu);
    void transmit(sk_buff* skb);
    void tx_timed_out();
    // Another GUID, for it and its children; everything else in the address must stay.
    kernel::Status set_address(const HwAddr& address);
    void sum_statistics(shim_stats& stats) const;
    // Connected or datagram mode. CONTEXT: RTNL.
    kernel::Status set_connected(bool connected);
    // Whether connections to peers that want the same carry no checksums of TCP and UDP. It holds for connections that
    // are made from then on; those that are there end. CONTEXT: RTNL.
    kernel::Status set_icrc_as_checksum(bool wanted);
    bool icrc_as_checksum() const { return icrc_as_checksum_.load_relaxed(); }
    // Of the receive completion queue: an event after so much time, or so many packets.
    struct Moderation {
        unsigned int usecs, frames;
    };
    Moderation moderation() const { return {moderation_usecs_.load_relaxed(), moderation_frames_.load_relaxed()}; }
    // What the user wants; adaptive: what the traffic wants, from this on. CONTEXT: RTNL.
    kernel::Status set_moderation(Moderation wanted, bool adaptive);
    // CONTEXT: process.
    kernel::Status moderate(Moderation wanted);
    // Slots of the send ring and the receive ring.
    struct RingSizes {
        unsigned int sends, receives;
    };
    static constexpr int least_sends = 128, least_receives = 2, most_slots = 8192;
    const RingSizes& ring_sizes() const { return ring_sizes_; }
    // Also of a running interface, which gets another queue pair, and so another address: neighbours are told.
    // Rounded up to powers of two. On failure the sizes are as before. CONTEXT: RTNL.
    kernel::Status set_ring_sizes(RingSizes wanted);
    // The files in debugfs get the interface's present name. CONTEXT: RTNL.
    void renamed();
    // Groups that user space joined directly are not joined for the stack. CONTEXT: RTNL.
    void set_umcast(bool umcast);
    bool umcast() const { return umcast_.load_relaxed(); }
    // A packet, which begins with its encapsulation, is longer than mtu bytes of IP: its sender is told, and it is
    // dropped. CONTEXT: any.
    void reject_too_long(sk_buff* skb, unsigned int mtu);

    // A group answered: the broadcast group's terms become the link's. CONTEXT: process.
    kernel::Status adopt(const shim_mcmember& broadcast);
    // The broadcast group is joined and attached: the carrier can come. CONTEXT: process.
    void broadcast_joined();
    // The transmit queue needs SQE -> RTS, or a restart. CONTEXT: any.
    void recover_send_queue() { recover_.queue(work_queue); }
    void restart_queues();
    // True unless a lower half has taken the place of the UD queue pair, the rings and the connections.
    bool has_queues() const { return !lower.replaces_queues(); }
    // The parts of ndo_init, ndo_uninit, ndo_open and ndo_stop that concern these; called by a lower half that filters
    // them, or directly without one. On failure nothing has changed. CONTEXT: RTNL.
    kernel::Status init_queues();
    void uninit_queues();
    kernel::Status open_queues();
    void close_queues();
    // Packets larger than the link are cut here, for the HCA can't; checksums that the stack left open are filled in
    // there.
    bool cuts_segments() const { return abilities_ & SHIM_CUT_BY_DRIVER; }
    bool leaves_checksums() const { return abilities_ & SHIM_CAN_CHECKSUM; }
    // The queue pair, whosever it is, gets what is sent to the group. CONTEXT: process.
    kernel::Status attach_group(const Gid& mgid, std::uint16_t mlid, bool broadcast);
    void detach_group(const Gid& mgid, std::uint16_t mlid);

    net_device* dev() const { return dev_; }
    ib_device* ca() const { return ca_; }
    std::uint32_t port() const { return port_; }
    ib_pd* pd() const { return pd_; }
    ib_qp* qp() const { return qp_; }
    ib_cq* send_cq() const { return send_cq_; }
    ib_cq* recv_cq() const { return recv_cq_; }
    std::uint32_t qpn() const { return qpn_; }
    std::uint32_t lkey() const { return lkey_; }
    // Of the link; every datagram carries it.
    std::uint32_t qkey() const { return qkey_.load_relaxed(); }
    std::uint16_t lid() const { return lid_.load_relaxed(); }
    PKey pkey() const { return PKey(pkey_.load_relaxed()); }
    Gid gid() const { return gid_.load(); }
    HwAddr broadcast() const { return HwAddr::from(shim_netdev_broadcast(dev_)); }
    // CONTEXT: under GroupSet's mutex.
    const LinkParameters& link() const { return link_; }
    // The link's, for questions about paths. CONTEXT: any.
    std::uint8_t traffic_class() const { return traffic_class_.load_relaxed(); }
    // The largest packet of the broadcast group, encapsulation included.
    unsigned int longest_frame() const { return longest_frame_.load_relaxed(); }
    // The port says that it is not active; a port that does not answer says nothing. CONTEXT: process.
    bool port_down() const;
    std::uint16_t pkey_index() const { return pkey_index_.load_relaxed(); }
    // CONTEXT: any.
    bool uses_pkey_index(std::uint16_t index) const { return pkey_found_.load_relaxed() && pkey_index() == index; }
    // Where the port's table has our GID; -1: it has not, so that nobody can reach us. CONTEXT: any.
    int gid_index() const;
    // Unicast goes by connections where the peer takes them.
    bool connected() const { return connected_.load_relaxed(); }

    kernel::WorkQueue work_queue;
    Reaper reaper{*this};
    TxRing tx{*this};
    RxRing rx{*this};
    PathTable paths{*this};
    GroupSet groups{*this};
    Connections connections{*this};
    LowerHalf lower{*this};
    // Of packets that no table could take.
    kernel::SharedCounter tx_dropped;

private:
    // Does what a step of life_ says.
    kernel::Status perform(InterfaceLife::Event event);
    // It is up, and could not be started: there was no memory, or the HCA refused.
    void start_later();
    void bring_up();
    void bring_down();
    kernel::Status start_queues();
    void stop_queues();
    kernel::Status queue_pair_to_service();
    // Of what it held the HCA has nothing afterwards.
    void empty_queues();
    void drain();
    kernel::Status create_queues();
    void destroy_queues();
    kernel::Status replace_queues(RingSizes sizes);
    // For a change of what it runs with: whether it ran, and is to run again afterwards.
    bool pause();
    kernel::Status run_again();
    void show_address();
    // On failure, as the GID table cannot be read, the GUID is as before.
    kernel::Status choose_guid(const Gid& like);
    void destroy();

    // Read the port's table anew. On failure the former values stand.
    kernel::Status read_pkey();
    // The GID is ib_core's copy of the port's.
    kernel::Status read_gid();
    // With the HCA's own. -EAGAIN: it has another, and ib_core will have it in a moment. CONTEXT: process.
    kernel::Status compare_gid();
    // GID, P_Key, LID and the link's MTU, in bytes, up to the first that cannot be read. CONTEXT: RTNL.
    kernel::Status query_port(unsigned int& active_mtu);
    // Logs the failure, unless the port is being asked again. Returns error.
    int unanswered(const char* what, int error);
    // Reads all that the port may have changed, and again after 1, 2, 4, ... 64 s if it does not answer. Returns what
    // follows for the interface's life; event, if nothing more.
    InterfaceLife::Event read_port(InterfaceLife::Event event);

    static void on_event(void* context, shim_event event, std::uint32_t port);
    void flush(const char* level, InterfaceLife::Event event);
    void flush_light();
    void flush_normal();
    void flush_heavy();
    void restart();
    void recover();
    void joined();
    void collect_garbage();
    void announce();
    kernel::Status prepare();
    // Connections are sent to by the first of the transmit queues that a lower half may have.
    kernel::Status use_one_tx_queue();
    void use_all_tx_queues();
    std::uint8_t flags() const { return has_queues() ? HwAddr::flag_rc : 0; }
    // Fabric events reach the interface from here on.
    void listen();
    Interface* child_of(PKey pkey);
    // The interface goes up or down, and its children with it. CONTEXT: open() or stop().
    void take_children_along(bool up);
    void children_follow();
    void bring_children(bool up);
    void create_debug_files();
    void remove_debug_files();
    void apply_mtu();
    // In datagram mode: what the user asked for, if the group's link carries it.
    unsigned int datagram_mtu() const { return std::min(admin_mtu_, ip_mtu(longest_frame())); }
    // Sets the device's MTU without taking it for the user's choice. Returns 0 or a negative errno. CONTEXT: RTNL.
    int adopt_mtu(unsigned int mtu);
    void warn_of_multicast(unsigned int mtu) const;
    void send_rejections();

    net_device* const dev_;
    Hca& hca_;
    ib_device* const ca_;
    const std::uint32_t port_;
    // Completion vector of its receives, to be taken modulo the number of vectors of the HCA.
    const unsigned int vector_;
    Interface* const parent_ = nullptr;
    ib_pd* pd_ = nullptr;
    ib_cq* send_cq_ = nullptr;
    ib_cq* recv_cq_ = nullptr;
    ib_qp* qp_ = nullptr;
    std::uint32_t qpn_ = 0;
    std::uint32_t lkey_ = 0;
    bool paths_created_ = false;
    bool groups_created_ = false;

    // Bits of shim_ability.
    unsigned int abilities_ = 0;

    // Under RTNL.
    InterfaceLife life_;
    kernel::List<Interface> children_;
    // By its parent's create_child, which asks for one of each P_Key.
    bool made_by_file_ = false;
    // Between init() and uninit().
    bool alive_ = false;
    kernel::Published<std::uint16_t> pkey_;
    // The port's table has it, there.
    kernel::Published<bool> pkey_found_;
    kernel::Published<std::uint16_t> pkey_index_;
    PublishedGid gid_;
    // Its GUID is the administrator's choice, not the port's first.
    bool guid_chosen_ = false;
    // The delay before a port that does not answer is read again.
    static constexpr unsigned int first_port_retry_s = 1, max_port_retry_s = 64;
    unsigned int port_retry_s_ = first_port_retry_s;
    unsigned int max_ib_mtu_ = 0;
    unsigned int admin_mtu_ = 0;
    bool adopting_mtu_ = false;
    RingSizes ring_sizes_{static_cast<unsigned int>(shim_parameters.send_queue_size),
                          static_cast<unsigned int>(shim_parameters.recv_queue_size)};
    // Neighbours know it by an address that it has no more, until they are told; more than once, as that may be lost.
    static constexpr unsigned int most_announcements = 3;
    unsigned int announcements_left_ = 0;
    kernel::Published<unsigned int> moderation_usecs_, moderation_frames_;

    kernel::Published<bool> connected_, umcast_, icrc_as_checksum_;
    bool has_debug_files_ = false;
    dentry* debug_files_[IPOIB_DEBUG_FILES] = {};
    // Packets that were too long, until their senders are told.
    static constexpr unsigned int most_rejections = 64;
    static kernel::LockClass rejections_class_;
    kernel::SpinLock rejections_lock_{rejections_class_, "ipoib_too_long"};
    kernel::PacketQueue rejections_ TA_GUARDED(rejections_lock_);

    LinkParameters link_;
    kernel::Published<std::uint32_t> qkey_;
    kernel::Published<std::uint8_t> traffic_class_;
    kernel::Published<std::uint16_t> lid_;
    kernel::Published<unsigned int> longest_frame_;
    // The broadcast group was joined since the interface was last brought up.
    kernel::Published<bool> adopted_;

    // Taken by work items that do what the netdev's operations do.
    kernel::OpsLock ops_lock_{dev_};
    alignas(SHIM_ALIGNOF_EVENT_HANDLER) std::byte event_handler_[SHIM_SIZEOF_EVENT_HANDLER] = {};
    shim_event_handler* event_handler() { return reinterpret_cast<shim_event_handler*>(event_handler_); }

    // On the flush queue; cancelled at the interface's end, when RTNL is released.
    kernel::RtnlWork<&Interface::flush_light> flush_light_{*this, flush_queue};
    kernel::RtnlWork<&Interface::flush_normal> flush_normal_{*this, flush_queue};
    kernel::RtnlWork<&Interface::flush_heavy> flush_heavy_{*this, flush_queue};
    kernel::RtnlWork<&Interface::restart> restart_{*this, flush_queue};
    kernel::RtnlWork<&Interface::joined> joined_{*this, flush_queue};
    kernel::RtnlWork<&Interface::announce> announce_{*this, flush_queue};
    kernel::RtnlWork<&Interface::children_follow> children_follow_{*this, flush_queue};
    // On the interface's own.
    kernel::Work<&Interface::recover> recover_{*this};
    kernel::Work<&Interface::collect_garbage> garbage_{*this};
    kernel::Work<&Interface::send_rejections> send_rejections_{*this};
};

} // namespace ipoib
