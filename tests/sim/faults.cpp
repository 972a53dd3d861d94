// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "faults.hpp"

#include <algorithm>
#include <iterator>

#include <ipoib/encapsulation.hpp>

#include "world.hpp"

namespace sim {

namespace {

// A transmit timeout comes after 10 s, an unresponsive queue pair is abandoned after 5 s.
constexpr Time time_to_get_well = 60 * second;

// A fault that occurs at times occurs once in this number.
unsigned int chance(const Planned& planned) { return static_cast<unsigned int>(2 + planned.number % 60); }

} // namespace

void Faults::schedule(const Planned& planned)
{
    ++in_progress_;
    world->scheduler.at(planned.when, [this, planned] {
        world->scheduler.spawn(name_of(planned.fault), Fiber::Kind::process, [this, planned] {
            SIM_NOTE("fault %s, node %u, %llu ms", name_of(planned.fault), planned.node,
                     static_cast<unsigned long long>(planned.lasts / millisecond));
            if (dice().one_in(3))
                pester(planned.node);
            perform(planned);
            SIM_NOTE("fault %s ends", name_of(planned.fault));
            --in_progress_;
        });
    });
}

void Faults::set_for(unsigned int& setting, unsigned int value, Time lasts)
{
    setting = value;
    wait_for(lasts);
    setting = 0;
}

void Faults::excuse(ib_device& ca, Time until)
{
    ca.excused_until = std::max(ca.excused_until, until + time_to_get_well);
}

void Faults::excuse_all(Time until)
{
    for (const auto& ca : world->devices)
        excuse(*ca, until);
}

void Faults::perform(const Planned& planned)
{
    ib_device& ca = *world->devices[planned.node];
    switch (planned.fault) {
    case Fault::link_mtu:
    case Fault::sm_restart:
    case Fault::sa_silence:
    case Fault::sa_refusal:
    case Fault::hostile_sa:
    case Fault::sa_slowness:
        return perform_on_sm(planned);
    case Fault::hostile_cm:
        return attack(planned);
    case Fault::memory_pressure:
        excuse_all(world->scheduler.now() + planned.lasts);
        return set_for(world->memory.fail_one_in, chance(planned), planned.lasts);
    case Fault::cm_loss:
        return set_for(world->cm.loss_one_in, 2 + chance(planned) % 4, planned.lasts);
    case Fault::reload:
        return reload(planned.lasts);
    case Fault::all_down_up:
        for (unsigned int node = 0; node < world->node_count; ++node)
            down_up({node, 0}, planned.lasts / 16);
        break;
    case Fault::loss:
    case Fault::send_errors:
    case Fault::receive_errors:
    case Fault::no_queue_pairs:
    case Fault::post_errors:
    case Fault::stall:
    case Fault::mute:
        return perform_on_hca(planned, ca);
    case Fault::link_down:
    case Fault::link_flaps:
    case Fault::lid_change:
    case Fault::reregister_storm:
    case Fault::pkey_lost:
    case Fault::pkey_moved:
    case Fault::gid_event:
    case Fault::unplug:
        return perform_on_port(planned, ca);
    case Fault::child_by_file:
    case Fault::child_by_netlink:
    case Fault::child_gone:
        return perform_on_children(planned);
    default:
        return perform_on_interface(planned);
    }
}

void Faults::perform_on_sm(const Planned& planned)
{
    const Time until = world->scheduler.now() + planned.lasts;
    switch (planned.fault) {
    case Fault::link_mtu:
        world->sm.change_mtu(static_cast<std::uint8_t>(world->mtu_code - planned.number % 2));
        return restart_sm(planned.lasts);
    case Fault::sm_restart:
        return restart_sm(planned.lasts);
    case Fault::sa_silence:
        world->sm.silent_until = until;
        break;
    case Fault::sa_refusal:
        world->sm.refuses_until = until;
        break;
    case Fault::hostile_sa:
        world->sm.lies_until = until;
        excuse_all(until);
        wait_for(planned.lasts);
        // A restart of the subnet manager makes each node repeat its joins and queries.
        return restart_sm(millisecond);
    case Fault::sa_slowness:
        world->sm.slow_until = until;
        break;
    default:
        break;
    }
}

void Faults::perform_on_hca(const Planned& planned, ib_device& ca)
{
    const Time until = world->scheduler.now() + planned.lasts;
    if (planned.fault != Fault::loss && planned.fault != Fault::no_queue_pairs)
        excuse(ca, until);
    switch (planned.fault) {
    case Fault::loss:
        return set_for(ca.loss_one_in, chance(planned), planned.lasts);
    case Fault::send_errors:
        return set_for(ca.send_error_one_in, chance(planned), planned.lasts);
    case Fault::receive_errors:
        return set_for(ca.receive_error_one_in, chance(planned), planned.lasts);
    case Fault::no_queue_pairs:
        return set_for(ca.no_queue_pairs_one_in, 1 + chance(planned) % 3, planned.lasts);
    case Fault::post_errors:
        return set_for(ca.post_error_one_in, chance(planned), planned.lasts);
    case Fault::stall:
        ca.stalled_until = world->scheduler.now() + planned.number % (20 * second);
        excuse(ca, ca.stalled_until);
        break;
    case Fault::mute:
        ca.mute_until = until;
        break;
    default:
        break;
    }
}

void Faults::perform_on_port(const Planned& planned, ib_device& ca)
{
    switch (planned.fault) {
    case Fault::link_down:
        link(ca, false);
        wait_for(planned.lasts);
        return link(ca, true);
    case Fault::link_flaps:
        return flap(planned, ca);
    case Fault::lid_change:
        return change_lid(ca);
    case Fault::reregister_storm:
        for (std::uint64_t i = planned.number % 40; i > 0; --i) {
            if (dice().one_in(4))
                world->sm.forget(&ca);
            dispatch(ca, SHIM_IB_EVENT_CLIENT_REREGISTER);
            wait_for(dice().log_between(100 * microsecond, 200 * millisecond));
        }
        // The last event reports the end.
        return dispatch(ca, SHIM_IB_EVENT_CLIENT_REREGISTER);
    case Fault::pkey_lost:
    case Fault::pkey_moved:
        return change_pkeys(planned, ca);
    case Fault::gid_event:
        return dispatch(ca, SHIM_IB_EVENT_GID_CHANGE);
    case Fault::unplug:
        return unplug(ca, planned.lasts);
    default:
        return;
    }
}

void Faults::perform_on_children(const Planned& planned)
{
    if (std::exchange(child_busy_[planned.node], true))
        return;
    if (planned.fault == Fault::child_gone)
        delete_child(planned.node);
    else
        create_child(planned.node, planned.fault == Fault::child_by_file);
    child_busy_[planned.node] = false;
}

void Faults::perform_on_interface(const Planned& planned)
{
    const Party party{planned.node, dice().one_in(3) ? 1U : 0U};
    switch (planned.fault) {
    case Fault::down_up:
        return down_up(party, planned.lasts);
    case Fault::mode_change:
        return change_mode(party, planned.number & 1, planned.number & 2);
    case Fault::down_up_storm:
    case Fault::mode_storm:
    case Fault::rings:
    case Fault::memberships:
        return perform_repeatedly(planned, party);
    case Fault::mtu:
        return change_mtu(party, static_cast<unsigned int>(dice().between(60, 5000)));
    case Fault::umcast:
        (void)store(party, IPOIB_ATTRIBUTE_UMCAST, planned.number & 1 ? "1" : "0");
        break;
    case Fault::icrc_as_checksum: {
        const RtnlGuard rtnl;
        if (net_device* dev = world->stack.find(party))
            (void)ipoib_ethtool_set_flags(dev, planned.number & 1 ? IPOIB_FLAG_ICRC_AS_CHECKSUM : 0);
        break;
    }
    case Fault::offloads:
        return switch_offloads(party, planned.number);
    case Fault::moderation:
        return moderate(party, planned.number);
    case Fault::burst:
    case Fault::groups_burst:
        return burst(planned);
    case Fault::busy_flows:
        return send_busy_flows(planned);
    case Fault::reads:
        return read_everything(planned.node);
    default:
        break;
    }
}

void Faults::perform_repeatedly(const Planned& planned, Party party)
{
    switch (planned.fault) {
    case Fault::down_up_storm:
        for (std::uint64_t i = planned.number % 12; i > 0; --i)
            down_up(party, dice().log_between(microsecond, 300 * millisecond));
        break;
    case Fault::mode_storm:
        for (std::uint64_t i = planned.number % 12; i > 0; --i) {
            change_mode(party, i & 1, dice().one_in(2));
            wait_for(dice().log_between(microsecond, 500 * millisecond));
        }
        break;
    case Fault::rings:
        for (std::uint64_t i = 1 + planned.number % 8; i > 0; --i) {
            set_rings(party);
            wait_for(dice().log_between(microsecond, second));
        }
        break;
    case Fault::memberships:
        for (std::uint64_t i = planned.number % 30; i > 0; --i) {
            change_memberships(party);
            wait_for(dice().log_between(10 * microsecond, second));
        }
        break;
    default:
        break;
    }
}

// Ports

void Faults::link(ib_device& ca, bool up)
{
    const bool was = ca.active;
    links_down_[ca.node] += up ? -1 : 1;
    ca.active = links_down_[ca.node] == 0;
    if (ca.active == was)
        return;
    if (!ca.active)
        return dispatch(ca, SHIM_IB_EVENT_PORT_ERR);
    // The cable may lead to another switch, with another MTU.
    if (world->mtu_code == 4 && dice().one_in(4))
        ca.mtu = ca.mtu == 2048 ? 4096 : 2048;
    // The subnet manager may have lost its state meanwhile, and then requests reregistration.
    if (dice().one_in(2))
        world->sm.forget(&ca);
    dispatch(ca, SHIM_IB_EVENT_PORT_ACTIVE);
    if (dice().one_in(2))
        wait_for(dice().log_between(microsecond, second));
    dispatch(ca, SHIM_IB_EVENT_CLIENT_REREGISTER);
}

void Faults::flap(const Planned& planned, ib_device& ca)
{
    for (std::uint64_t i = planned.number % 10; i > 0; --i) {
        link(ca, false);
        wait_for(dice().log_between(10 * microsecond, 500 * millisecond));
        link(ca, true);
        wait_for(dice().log_between(10 * microsecond, 500 * millisecond));
    }
}

void Faults::change_lid(ib_device& ca)
{
    ca.lid = world->fabric.fresh_lid(ca);
    ca.lid_changed = world->scheduler.now();
    dispatch(ca, SHIM_IB_EVENT_LID_CHANGE);
    // A subnet manager that reassigns LIDs tells all nodes that their records may be wrong.
    wait_for(dice().log_between(10 * microsecond, second));
    for (const auto& other : world->devices)
        dispatch(*other, SHIM_IB_EVENT_CLIENT_REREGISTER);
}

void Faults::restart_sm(Time lasts)
{
    world->sm.silent_until = world->scheduler.now() + lasts;
    world->sm.forget(nullptr);
    wait_for(lasts);
    for (const auto& ca : world->devices) {
        if (dice().one_in(2))
            dispatch(*ca, SHIM_IB_EVENT_SM_CHANGE);
        dispatch(*ca, SHIM_IB_EVENT_CLIENT_REREGISTER);
        wait_for(dice().log_between(microsecond, 100 * millisecond));
    }
}

void Faults::change_pkeys(const Planned& planned, ib_device& ca)
{
    std::vector<std::uint16_t> table{0xffff, 0x8001, 0, 0};
    const std::size_t which = planned.number % 2;
    if (planned.fault == Fault::pkey_lost)
        table[which] = 0;
    else
        std::swap(table[which], table[which + 1]);
    ca.pkeys = table;
    dispatch(ca, SHIM_IB_EVENT_PKEY_CHANGE);
    wait_for(planned.lasts);
    ca.pkeys = {0xffff, 0x8001, 0, 0};
    dispatch(ca, SHIM_IB_EVENT_PKEY_CHANGE);
}

void Faults::attack(const Planned& planned)
{
    const bool flood = planned.number % 16 == 0;
    world->cm.hostile_until = std::max(world->cm.hostile_until, world->scheduler.now() + planned.lasts);
    const auto count = flood ? 1500 : planned.number / 16 % 60;
    for (std::uint64_t i = 0; i < count && !world->quiet; ++i) {
        if (flood || dice().one_in(3))
            world->cm.forge_request(planned.node);
        else
            world->cm.forge(planned.node);
        wait_for(flood ? dice().below(millisecond) : dice().below(planned.lasts / 20 + 1));
    }
}

void Faults::unplug(ib_device& ca, Time lasts)
{
    ca.present = false;
    world->remove_device(ca);
    wait_for(lasts);
    ca.present = true;
    world->add_device(ca);
    bring_up({ca.node, 0});
}

void Faults::reload(Time lasts)
{
    if (std::exchange(reloading_, true))
        return;
    ipoib_stop();
    wait_for(lasts);
    const bool started = ipoib_start() == 0;
    for (unsigned int node = 0; started && node < world->node_count; ++node)
        bring_up({node, 0});
    reloading_ = !started;
}

// End of all faults

void Faults::all_over()
{
    world->sm.silent_until = world->sm.refuses_until = world->sm.slow_until = world->sm.lies_until = 0;
    world->cm.hostile_until = 0;
    world->cm.loss_one_in = world->memory.fail_one_in = 0;
    for (const auto& ca : world->devices) {
        ca->stalled_until = ca->mute_until = 0;
        ca->loss_one_in = ca->send_error_one_in = ca->receive_error_one_in = ca->post_error_one_in = 0;
        ca->no_queue_pairs_one_in = 0;
    }
}

void Faults::recover()
{
    while (in_progress_ > 0) {
        wait_for(100 * millisecond);
        all_over();
    }
    if (reloading_)
        SIM_CHECK(ipoib_start() == 0, "the module does not start again");
    for (const auto& ca : world->devices) {
        if (!world->stack.find({ca->node, 0})) {
            world->remove_device(*ca);
            world->add_device(*ca);
        }
        const RtnlGuard rtnl;
        net_device* dev = world->stack.find({ca->node, 0});
        SIM_CHECK(dev, "node %u gets no interface any more", ca->node);
        SIM_CHECK(world->stack.open(dev) == 0, "%s can't be opened any more", dev->name.c_str());
        net_device* child = world->stack.find({ca->node, 1});
        SIM_CHECK(!child || world->stack.open(child) == 0, "a child of %s can't be opened any more", dev->name.c_str());
        const Bh bh;
        for (net_device* one : {dev, child}) {
            if (!one)
                continue;
            world->lockdep.acquire(Lockdep::addresses, &one->multicast);
            one->multicast.push_back(Stack::group_address(one, 1));
            ipoib_ndo_set_rx_mode(one);
            world->lockdep.release(&one->multicast);
        }
    }
}

} // namespace sim
