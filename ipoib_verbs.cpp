// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The interface's queue pair and completion queues, from creation to destruction; the fabric's events and the three
// flush levels that they cause. All under RTNL but for the event upcall itself.
#include <algorithm>

#include <ipoib/interface.hpp>
#include <ipoib/mgid.hpp>
#include <kernel/error_pointer.hpp>
#include <kernel/log.hpp>
#include <kernel/ring.hpp>
#include <kernel/time.hpp>
#include <shim/trace.h>

namespace ipoib {

constinit kernel::WorkQueue flush_queue, reap_queue;

namespace {

constexpr unsigned int drain_timeout_seconds = 5;

void send_completed(ib_cq*, void* context) { static_cast<Interface*>(context)->tx.notified(); }
void receive_completed(ib_cq*, void* context) { static_cast<Interface*>(context)->rx.notified(); }

} // namespace

// What the port says

kernel::Status Interface::read_pkey()
{
    std::uint16_t value = pkey().value(), index = 0;
    const int error =
        parent_ ? shim_ib_find_pkey(ca_, port_, value, &index) : shim_ib_query_pkey(ca_, port_, 0, &value);
    // The table was read, and has it not.
    const bool missing = parent_ && error == kernel::no_entry;
    if (error && !missing)
        return unanswered("the P_Key table", error);
    const bool found = !missing && PKey(value).valid();
    if (!parent_) {
        pkey_.store(found ? PKey(value).as_full_member().value() : 0);
        if (!found)
            log_warning(dev_, "P_Key 0x%04x is Invalid", value);
    }
    pkey_index_.store(index);
    pkey_found_.store(found);
    const HwAddr address = HwAddr::of(0, HwAddr::multicast_qpn, broadcast_gid(pkey()));
    if (!(broadcast() == address)) {
        std::memcpy(shim_netdev_broadcast(dev_), address.bytes, HwAddr::size);
        shim_netdev_address_changed(dev_);
    }
    return {};
}

int Interface::unanswered(const char* what, int error)
{
    if (port_retry_s_ == first_port_retry_s)
        log_warning(dev_, "failed to read %s of port %u, error %d", what, port_, error);
    return error;
}

kernel::Status Interface::read_gid()
{
    shim_gid native;
    if (const int error = shim_ib_query_gid(ca_, port_, 0, &native))
        return unanswered("the GID table", error);
    Gid gid = Gid::from(native);
    // The subnet's prefix is the port's in any case.
    if (guid_chosen_)
        gid.set_interface_id(this->gid());
    if (!(gid == this->gid())) {
        hca_.change_gid(gid_, gid);
        shim_netdev_set_address(dev_, HwAddr::size - Gid::size, gid.bytes, Gid::size);
    }
    return {};
}

kernel::Status Interface::compare_gid()
{
    shim_gid known, own;
    int error = shim_ib_query_gid(ca_, port_, 0, &known);
    if (!error)
        error = shim_ib_ask_gid(ca_, port_, 0, &own);
    if (error)
        return unanswered("the GID", error);
    if (Gid::from(known) == Gid::from(own))
        return {};
    // Some HCAs (ConnectX-4) do not report a new subnet prefix, and ib_core keeps the former one. It reads the table
    // when the change is reported for the HCA, but passes no event to its clients: the caller reads again.
    if (!parent_)
        shim_ib_report_gid_change(ca_, port_);
    return kernel::try_again;
}

int Interface::gid_index() const
{
    const shim_gid native = gid().native();
    std::uint16_t index = 0;
    return shim_ib_find_gid(ca_, port_, &native, &index) == 0 ? index : -1;
}

kernel::Status Interface::choose_guid(const Gid& like)
{
    shim_gid native;
    if (const int error = shim_ib_query_gid(ca_, port_, 0, &native))
        return unanswered("the GID table", error);
    Gid chosen = gid();
    chosen.set_interface_id(like);
    hca_.change_gid(gid_, chosen);
    guid_chosen_ = !Gid::from(native).same_interface_id(chosen);
    return {};
}

kernel::Status Interface::set_address(const HwAddr& address)
{
    const HwAddr now = HwAddr::of(flags(), qpn_, gid());
    if (shim_netdev_up(dev_))
        return kernel::busy;
    if (!now.same_but_guid(address) || address.gid().same_interface_id(Gid())) {
        log_warning(dev_, "address %20phC: only the last 8 bytes, the GUID, can be set, and not to 0", address.bytes);
        return kernel::invalid;
    }
    TRY(choose_guid(address.gid()));
    show_address();
    for (Interface& child : children_) {
        (void)child.choose_guid(gid()).ok();
        child.show_address();
        shim_netdev_address_changed(child.dev_);
        child.flush_light_.queue();
    }
    return {};
}

bool Interface::port_down() const
{
    shim_port attributes;
    return shim_ib_query_port(ca_, port_, &attributes) == 0 && !attributes.active;
}

kernel::Status Interface::prepare()
{
    shim_port attributes;
    TRY(shim_ib_query_port(ca_, port_, &attributes));
    max_ib_mtu_ = attributes.max_mtu;
    admin_mtu_ = ip_mtu(max_ib_mtu_);
    // One that came with the request for the interface.
    if (const unsigned int wanted = shim_netdev_mtu(dev_))
        admin_mtu_ = std::clamp(wanted, lowest_mtu, admin_mtu_);
    if (!lower.present())
        shim_netdev_use_one_queue(dev_);
    abilities_ = shim_ib_abilities(ca_);
    if (lower.present()) // It says itself what it can do.
        abilities_ &= SHIM_IS_FUNCTION;
    else if (abilities_ & SHIM_CAN_GATHER && !(abilities_ & SHIM_CAN_SEGMENT))
        abilities_ |= SHIM_CUT_BY_DRIVER;
    shim_netdev_add_abilities(dev_, abilities_);
    shim_netdev_set_initial_mtu(dev_, admin_mtu_);
    shim_netdev_carrier_off(dev_);
    longest_frame_.store(max_ib_mtu_);
    if (lower.present())
        lower.set_mtu(ip_mtu(max_ib_mtu_));
    const Gid given = HwAddr::from(shim_netdev_address(dev_)).gid();
    // A failed reading is repeated once fabric events are listened to.
    (void)read_gid().ok();
    if (parent_ && parent_->guid_chosen_)
        (void)choose_guid(parent_->gid()).ok();
    // A GUID may come with the request for the interface; programs that make addresses up know of no port's.
    if (shim_netdev_address_given(dev_)) {
        const Gid port_gid = gid();
        (void)choose_guid(given).ok();
        if (gid_index() < 0) {
            log_warning(dev_, "GID %pI6 is none of the port's: the address that was asked for is ignored", given.bytes);
            (void)choose_guid(port_gid).ok();
        }
    }
    // Without a P_Key yet the interface waits for one when it is opened.
    (void)read_pkey().ok();
    return {};
}

kernel::Status Interface::attach_group(const Gid& mgid, std::uint16_t mlid, bool broadcast)
{
    if (lower.present())
        return lower.attach_group(mgid, mlid, broadcast);
    const shim_gid native = mgid.native();
    return shim_qp_attach(qp_, &native, mlid);
}

void Interface::detach_group(const Gid& mgid, std::uint16_t mlid)
{
    if (lower.present())
        return lower.detach_group(mgid, mlid);
    const shim_gid native = mgid.native();
    shim_qp_detach(qp_, &native, mlid);
}

// Creation and destruction

kernel::Status Interface::init()
{
    kernel::Status status = [&]() -> kernel::Status {
        if (!work_queue.create("ipoib_wq", true))
            return kernel::no_memory;
        TRY(paths.create());
        paths_created_ = true;
        TRY(groups.create());
        groups_created_ = true;
        pd_ = shim_pd_create(ca_);
        TRY(kernel::check(pd_));
        lkey_ = shim_pd_lkey(pd_);
        return lower.present() ? lower.init() : init_queues();
    }();
    if (!status.ok()) {
        log_warning(dev_, "%s: failed to create the queues of port %u, error %d", shim_ib_device_name(ca_), port_,
                    status.code());
        destroy();
        return status;
    }
    // The address may have the queue pair of a lower half.
    qpn_ = HwAddr::from(shim_netdev_address(dev_)).qpn();
    show_address();
    alive_ = true;
    return {};
}

void Interface::uninit()
{
    alive_ = false;
    recover_.cancel();
    send_rejections_.cancel();
    reaper.drain();
    if (lower.present())
        lower.uninit();
    else
        uninit_queues();
    destroy();
}

void Interface::destroy()
{
    if (auto* pd = std::exchange(pd_, nullptr))
        shim_pd_destroy(pd);
    if (std::exchange(groups_created_, false))
        groups.destroy();
    if (std::exchange(paths_created_, false))
        paths.destroy();
    work_queue.destroy();
}

void Interface::show_address()
{
    const HwAddr address = HwAddr::of(flags(), qpn_, gid());
    shim_netdev_set_address(dev_, 0, address.bytes, HwAddr::size);
}

// Queues

kernel::Status Interface::init_queues()
{
    if (kernel::Status status = create_queues(); !status.ok()) {
        destroy_queues();
        return status;
    }
    tx.napi().add(dev_, tx, kernel::Direction::transmit);
    rx.napi().add(dev_, rx, kernel::Direction::receive);
    shim_tx_queue_always_allow(dev_, TxRing::many_bytes);
    if (lower.present()) {
        abilities_ |= shim_ib_abilities(ca_) & SHIM_CAN_GATHER;
        shim_netdev_add_abilities(dev_, abilities_);
    }
    // A lower half finds the queue pair by it.
    show_address();
    return {};
}

void Interface::uninit_queues()
{
    rx.napi().remove();
    tx.napi().remove();
    destroy_queues();
}

kernel::Status Interface::create_queues()
{
    const unsigned int sends = ring_sizes_.sends, receives = ring_sizes_.receives;
    const unsigned int sges = std::min(shim_ib_max_send_sge(ca_), MappedPacket::most_sges);
    const unsigned int vectors = std::max(shim_ib_comp_vectors(ca_), 1U);

    TRY(connections.create(sends, receives, sges));
    recv_cq_ = shim_cq_create(ca_, receives + connections.receive_completions(receives), vector_ % vectors,
                              receive_completed, this);
    TRY(kernel::check(recv_cq_));
    // Half of the vectors away: receives, which raise most of the events, are on all vectors before two share one.
    send_cq_ = shim_cq_create(ca_, 2 * sends, (vector_ + vectors / 2) % vectors, send_completed, this);
    TRY(kernel::check(send_cq_));
    qp_ = shim_qp_create(pd_, send_cq_, recv_cq_, sends, receives, sges);
    TRY(kernel::check(qp_));
    qpn_ = shim_qp_number(qp_);
    TRY(tx.create(sends, sges));
    return rx.create(receives);
}

void Interface::destroy_queues()
{
    rx.destroy();
    tx.destroy();
    connections.destroy();
    if (auto* qp = std::exchange(qp_, nullptr))
        shim_qp_destroy(qp);
    if (auto* cq = std::exchange(send_cq_, nullptr))
        shim_cq_destroy(cq);
    if (auto* cq = std::exchange(recv_cq_, nullptr))
        shim_cq_destroy(cq);
}

kernel::Status Interface::replace_queues(RingSizes sizes)
{
    destroy_queues();
    ring_sizes_ = sizes;
    if (kernel::Status status = create_queues(); !status.ok()) {
        destroy_queues();
        return status;
    }
    show_address();
    announcements_left_ = most_announcements;
    shim_netdev_address_changed(dev_);
    return moderate(moderation());
}

kernel::Status Interface::set_ring_sizes(RingSizes wanted)
{
    // A lower half knows the queue pair by its number.
    if (lower.present())
        return kernel::not_supported;
    const RingSizes before = ring_sizes_;
    wanted = {static_cast<unsigned int>(kernel::clamp_ring_size(wanted.sends, least_sends, most_slots)),
              static_cast<unsigned int>(kernel::clamp_ring_size(wanted.receives, least_receives, most_slots))};
    if (wanted.sends == before.sends && wanted.receives == before.receives)
        return {};
    // Other rings are another address, and a bond copies its port's at a failover only: it would advertise the old one.
    if (shim_netdev_bonded(dev_)) {
        log_warning(dev_, "rings of %u sends and %u receives: not as a bond's port", wanted.sends, wanted.receives);
        return kernel::busy;
    }
    const bool ran = pause();
    kernel::Status status = replace_queues(wanted);
    if (!status.ok()) {
        log_warning(dev_, "no rings of %u sends and %u receives, error %d", wanted.sends, wanted.receives,
                    status.code());
        // Without these either, it has none until it is next opened.
        (void)replace_queues(before).ok();
    }
    const kernel::Status opened = ran ? run_again() : kernel::Status();
    return status.ok() ? opened : status;
}

bool Interface::pause()
{
    const bool runs = life_.state() != InterfaceLife::State::closed;
    if (runs)
        (void)perform(InterfaceLife::Event::closed).ok();
    return runs;
}

kernel::Status Interface::run_again()
{
    const kernel::Status opened =
        perform(pkey_found_.load_relaxed() ? InterfaceLife::Event::opened : InterfaceLife::Event::opened_without_pkey);
    if (!opened.ok())
        start_later();
    return opened;
}

kernel::Status Interface::set_icrc_as_checksum(bool wanted)
{
    if (wanted == icrc_as_checksum())
        return {};
    if (!has_queues())
        return kernel::not_supported;
    const bool ran = pause();
    icrc_as_checksum_.store(wanted);
    shim_netdev_update_features(dev_);
    return ran ? run_again() : kernel::Status();
}

// In and out of service

kernel::Status Interface::queue_pair_to_service()
{
    shim_port attributes;
    TRY(shim_ib_query_port(ca_, port_, &attributes));
    lid_.store(attributes.lid);
    TRY(shim_qp_to_init(qp_, port_, pkey_index(), qkey()));
    // A datagram is never longer than the link's MTU, so neither are the buffers; a larger MTU brings new ones.
    TRY(rx.fill(attributes.active_mtu));
    TRY(shim_qp_to_rtr(qp_));
    return shim_qp_to_rts(qp_);
}

kernel::Status Interface::start_queues()
{
    if (lower.present())
        return lower.open();
    TRY(open_queues());
    // Packets that the stack has kept since the queue was stopped go now: nobody else would tell it.
    shim_tx_queues_wake(dev_);
    return {};
}

kernel::Status Interface::open_queues()
{
    if (!qp_ && lower.present()) {
        log_warning(dev_, "its queue pair is lost, and the HCA's own datapath knows no other: reload the driver");
        return kernel::no_device;
    }
    if (!qp_)
        TRY(replace_queues(ring_sizes_));
    if (kernel::Status status = queue_pair_to_service(); !status.ok()) {
        log_warning(dev_, "failed to put the queue pair into service, error %d", status.code());
        empty_queues();
        return status;
    }
    // Taking the transmit lock here shows later senders the new rings: the poll may wake the queue at once.
    shim_tx_queue_disable(dev_);
    tx.start();
    rx.start();
    if (kernel::Status status = connections.start(); !status.ok()) {
        close_queues();
        return status;
    }
    return {};
}

void Interface::stop_queues()
{
    if (lower.present())
        lower.stop();
    else
        close_queues();
    reaper.drain();
}

void Interface::close_queues()
{
    tx.close();
    shim_tx_queue_disable(dev_);
    connections.stop();
    if (const int error = shim_qp_to_error(qp_))
        log_warning(dev_, "failed to move the queue pair to ERROR, error %d", error);
    drain();
    rx.stop();
    tx.stop();
    // The poll is over: nothing queues this any more, or wakes the queue as it would on what it saw before close().
    recover_.cancel();
    shim_tx_queue_disable(dev_);
    empty_queues();
    connections.drop_broken_shared_queue();
}

void Interface::empty_queues()
{
    // Until then the HCA may read and write what is freed here. Without a queue pair, start_queues() makes another.
    if (const int error = shim_qp_to_reset(qp_)) {
        log_warning(dev_, "failed to move the queue pair to RESET, error %d", error);
        shim_qp_destroy(std::exchange(qp_, nullptr));
    }
    tx.empty();
    rx.empty();
}

void Interface::drain()
{
    const unsigned long deadline = shim_jiffies() + kernel::seconds(drain_timeout_seconds);
    while (!kernel::reached(deadline, shim_jiffies())) {
        if (tx.posted() == 0 && rx.outstanding() == 0)
            return;
        shim_sleep_ms(1);
    }
    log_warning(dev_, "timing out; %u sends %u receives not completed", tx.posted(), rx.outstanding());
}

// Events and flushes

void Interface::listen()
{
    shim_events_start(ca_, event_handler(), on_event, this);
    // Whatever happened before we listened.
    flush_heavy_.queue();
}

void Interface::forget()
{
    flush_light_.cancel();
    flush_normal_.cancel();
    flush_heavy_.cancel();
    // A transmit timeout may have asked for it until the very end.
    restart_.cancel();
    joined_.cancel();
    announce_.cancel();
    children_follow_.cancel();
}

void Interface::on_event(void* context, shim_event event, std::uint32_t port)
{
    auto& interface = *static_cast<Interface*>(context);
    if (port != interface.port_)
        return;
    switch (event) {
    case SHIM_EVENT_CLIENT_REREGISTER:
    case SHIM_EVENT_GID_CHANGE:
        interface.flush_light_.queue();
        break;
    case SHIM_EVENT_PORT_ERROR:
    case SHIM_EVENT_PORT_ACTIVE:
    case SHIM_EVENT_LID_CHANGE:
        interface.flush_normal_.queue();
        break;
    case SHIM_EVENT_PKEY_CHANGE:
        // A repeated reading may be pending with a delay.
        interface.flush_heavy_.queue_now();
        break;
    case SHIM_EVENT_OTHER:
        break;
    }
}

void Interface::flush_light() { flush("light", InterfaceLife::Event::reregister); }
void Interface::flush_normal() { flush("normal", InterfaceLife::Event::port_changed); }
void Interface::flush_heavy() { flush("heavy", InterfaceLife::Event::unchanged); }

void Interface::flush(const char* level, InterfaceLife::Event event)
{
    if (!alive_)
        return;
    kernel::Guard guard(ops_lock_);
    shim_trace_flush(dev_, level);
    (void)perform(read_port(event)).ok();
}

kernel::Status Interface::query_port(unsigned int& active_mtu)
{
    shim_port attributes;
    // An HCA that does not answer may take its time, and RTNL is held: it is asked nothing more.
    TRY(read_gid());
    // Groups that are left on its account carry the P_Key that they were joined with.
    TRY(read_pkey());
    if (const int error = shim_ib_query_port(ca_, port_, &attributes))
        return unanswered("the attributes", error);
    lid_.store(attributes.lid);
    active_mtu = attributes.active_mtu;
    return compare_gid();
}

InterfaceLife::Event Interface::read_port(InterfaceLife::Event event)
{
    using Event = InterfaceLife::Event;
    const bool found_before = pkey_found_.load_relaxed();
    const PKey pkey_before = pkey();
    const std::uint16_t index_before = pkey_index();
    const Gid gid_before = gid();
    unsigned int active_mtu = 0;
    const kernel::Status status = query_port(active_mtu);
    // The former values stand until the port answers.
    if (status.ok()) {
        port_retry_s_ = first_port_retry_s;
    } else {
        flush_heavy_.queue(kernel::seconds(port_retry_s_));
        port_retry_s_ = std::min(2 * port_retry_s_, max_port_retry_s);
    }

    if (!pkey_found_.load_relaxed())
        return Event::pkey_gone;
    if (!found_before)
        return Event::pkey_found;
    const bool outgrown = has_queues() && active_mtu > rx.ib_mtu();
    if (!(pkey_before == pkey()) || index_before != pkey_index() || outgrown)
        return Event::restart;
    return event == Event::unchanged && !(gid_before == gid()) ? Event::reregister : event;
}

void Interface::restart_queues() { restart_.queue(); }

void Interface::restart()
{
    kernel::Guard guard(ops_lock_);
    // Without its P_Key it waits for that.
    if (!alive_ || !pkey_found_.load_relaxed())
        return;
    (void)perform(InterfaceLife::Event::restart).ok();
}

void Interface::recover()
{
    if (shim_qp_recover_send(qp_) == 0)
        log_info(dev_, "send queue back in service");
}

} // namespace ipoib
