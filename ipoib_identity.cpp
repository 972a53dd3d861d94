// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// An interface's identity on the fabric: what is read from the port, and the hardware address.
#include <algorithm>
#include <cstring>
#include <utility>

#include <ipoib/mgid.hpp>
#include <ipoib/port_identity.hpp>
#include <kernel/log.hpp>
#include <shim/sync.h>

namespace ipoib {

void PortIdentity::begin()
{
    const Gid given = HwAddr::from(shim_netdev_dev_addr(dev_)).gid();
    // A failed reading is repeated once the interface receives fabric events.
    (void)read_gid().ok();
    if (parent_ && parent_->guid_chosen_)
        (void)choose_guid(parent_->gid()).ok();
    // A GUID may come with the request for the interface. One that is not in the port's GID table, as programs invent
    // them, is ignored.
    if (shim_netdev_addr_set_by_user(dev_)) {
        const Gid port_gid = gid();
        (void)choose_guid(given).ok();
        if (gid_index() < 0) {
            log_warning(dev_, "GID %pI6 is not in the port's table: the requested address is ignored", given.bytes);
            (void)choose_guid(port_gid).ok();
        }
    }
    // Without a P_Key the interface waits for one when it is opened.
    (void)read_pkey().ok();
}

kernel::Status PortIdentity::read(unsigned int& longest)
{
    shim_port attributes;
    TRY(read_gid());
    // The P_Key may change before the groups are left: each membership keeps the P_Key that it was joined with.
    TRY(read_pkey());
    if (const int error = shim_helper_ib_query_port(ca_, port_, &attributes))
        return unanswered("the attributes", error);
    set_lid(attributes.lid);
    longest = receive_mtu(attributes);
    TRY(compare_gid());
    retry_s_ = first_retry_s;
    return {};
}

unsigned int PortIdentity::next_retry_s() { return std::exchange(retry_s_, std::min(2 * retry_s_, max_retry_s)); }

int PortIdentity::unanswered(const char* what, int error) const
{
    if (retry_s_ == first_retry_s)
        log_warning(dev_, "failed to read %s of port %u, error %d", what, port_, error);
    return error;
}

kernel::Status PortIdentity::read_pkey()
{
    std::uint16_t value = pkey().value(), index = 0;
    const int error =
        parent_ ? shim_ib_find_pkey(ca_, port_, value, &index) : shim_ib_query_pkey(ca_, port_, 0, &value);
    // The table was read, and does not have it.
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
    has_pkey_.store(found);
    const HwAddr address = HwAddr::of(0, HwAddr::multicast_qpn, broadcast_gid(pkey()));
    if (!(broadcast() == address)) {
        std::memcpy(shim_netdev_broadcast(dev_), address.bytes, HwAddr::size);
        shim_helper_notify_changeaddr(dev_);
    }
    return {};
}

kernel::Status PortIdentity::query_gid(shim_gid& gid) const
{
    for (unsigned int attempt = 1;; ++attempt) {
        const int error = shim_rdma_query_gid(ca_, port_, 0, &gid);
        if (!error)
            return {};
        // Before 6.5 an absent entry is invalid.
        if ((error != kernel::no_entry && error != kernel::invalid) || attempt == gid_attempts)
            return unanswered("the GID table", error);
        shim_msleep(gid_interval_ms);
    }
}

kernel::Status PortIdentity::read_gid()
{
    shim_gid native;
    TRY(query_gid(native));
    Gid gid = Gid::from(native);
    // The subnet prefix is the port's in any case.
    if (guid_chosen_)
        gid.set_interface_id(this->gid());
    if (!(gid == this->gid())) {
        hca_.change_gid(gid_, gid);
        shim_dev_addr_mod(dev_, HwAddr::size - Gid::size, gid.bytes, Gid::size);
    }
    return {};
}

kernel::Status PortIdentity::compare_gid()
{
    shim_gid known, own;
    TRY(query_gid(known));
    if (const int error = shim_ib_ops_query_gid(ca_, port_, 0, &own))
        return unanswered("the GID", error);
    if (Gid::from(known) == Gid::from(own))
        return {};
    // Some HCAs (ConnectX-4) do not report a new subnet prefix, and ib_core keeps the former one. It reads the table
    // when the change is reported for the HCA, but passes no event to its clients: the caller reads again.
    if (!parent_)
        shim_ib_dispatch_gid_change(ca_, port_);
    return kernel::try_again;
}

int PortIdentity::gid_index() const
{
    const shim_gid native = gid().native();
    std::uint16_t index = 0;
    return shim_helper_rdma_find_gid(ca_, port_, &native, &index) == 0 ? index : -1;
}

bool PortIdentity::port_down() const
{
    shim_port attributes;
    return shim_helper_ib_query_port(ca_, port_, &attributes) == 0 && !attributes.active;
}

kernel::Status PortIdentity::choose_guid(const Gid& like)
{
    shim_gid native;
    TRY(query_gid(native));
    Gid chosen = gid();
    chosen.set_interface_id(like);
    hca_.change_gid(gid_, chosen);
    guid_chosen_ = !Gid::from(native).same_interface_id(chosen);
    return {};
}

kernel::Status PortIdentity::set_guid(const HwAddr& address)
{
    if (!this->address().same_but_guid(address) || address.gid().same_interface_id(Gid())) {
        log_warning(dev_, "address %20phC: only the last 8 bytes, the GUID, can be set, and not to 0", address.bytes);
        return kernel::invalid;
    }
    TRY(choose_guid(address.gid()));
    show_address();
    return {};
}

void PortIdentity::follow_guid(const PortIdentity& parent)
{
    (void)choose_guid(parent.gid()).ok();
    show_address();
    shim_helper_notify_changeaddr(dev_);
}

void PortIdentity::set_queue_pair(std::uint32_t qpn, std::uint8_t flags)
{
    qpn_ = qpn;
    flags_ = flags;
    show_address();
}

void PortIdentity::show_address()
{
    const HwAddr address = this->address();
    shim_dev_addr_mod(dev_, 0, address.bytes, HwAddr::size);
}

} // namespace ipoib
