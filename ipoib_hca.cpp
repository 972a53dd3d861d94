// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// HCAs, and the interfaces on their ports.
#include <cstring>

#include <ipoib/hca.hpp>
#include <ipoib/interface.hpp>
#include <kernel/handle.hpp>
#include <kernel/log.hpp>
#include <kernel/memory.hpp>
#include <shim/client.h>

namespace ipoib {

constinit kernel::LockClass Hca::lock_class_;

namespace {

// True if name is in the comma-separated list.
bool listed(const char* names, const char* name)
{
    const std::size_t bytes = __builtin_strlen(name);
    while (*names) {
        const std::size_t end = __builtin_strcspn(names, ",");
        if (end == bytes && std::memcmp(names, name, bytes) == 0)
            return true;
        names += end + (names[end] == ',');
    }
    return false;
}

} // namespace

unsigned int features_of(const ib_device* ca)
{
    const std::uint64_t kernel_flags = shim_ib_kernel_cap_flags(ca);
    unsigned int features = 0;
    if (shim_ib_max_send_sge(ca) > 1)
        features |= SHIM_FEATURE_SG;
    if (shim_ib_device_cap_flags(ca) & SHIM_IB_DEVICE_UD_IP_CSUM)
        features |= SHIM_FEATURE_IP_CSUM;
    if (kernel_flags & SHIM_IBK_UD_TSO)
        features |= SHIM_FEATURE_TSO;
    if (kernel_flags & SHIM_IBK_VIRTUAL_FUNCTION)
        features |= SHIM_FEATURE_VF;
    return features;
}

Hca::Hca(ib_device* ca)
    : ca_(ca), uses_rdma_netdev_((shim_parameters.ipoib_enhanced != 0) !=
                                 listed(shim_parameters.ipoib_enhanced_except, shim_ib_device_name(ca)))
{
}

void Hca::add(Interface& interface)
{
    kernel::Guard guard(lock_);
    interfaces_.push_back(interface);
}

void Hca::remove(Interface& interface)
{
    kernel::Guard guard(lock_);
    static_cast<kernel::ListNode<OfHca>&>(interface).unlink();
}

void Hca::change_gid(PublishedGid& gid, const Gid& to)
{
    kernel::Guard guard(lock_);
    gid.store(to);
}

net_device* Hca::find(std::uint32_t port, PKey pkey, const Gid* gid, const sockaddr* address)
{
    std::uint16_t index = 0;
    if (shim_ib_find_cached_pkey(ca_, port, pkey.value(), &index) != 0)
        return nullptr;
    kernel::Guard guard(lock_);
    Interface* only = nullptr;
    Interface* with_address = nullptr;
    unsigned int matches = 0, addressed = 0;
    for (Interface& interface : interfaces_) {
        if (interface.identity.port() != port || !interface.identity.uses_pkey_index(index) ||
            (gid && !(interface.identity.gid() == *gid)))
            continue;
        ++matches;
        only = &interface;
        if (address && shim_helper_netdev_has_address(interface.dev(), address) && ++addressed == 1)
            with_address = &interface;
    }
    if (matches == 0)
        return nullptr;
    if (matches == 1 || !address)
        return shim_helper_netdev_hold_master(only->dev());
    if (addressed > 1)
        log_warning(with_address->dev(), "duplicate IP address detected");
    return with_address ? shim_helper_netdev_hold_master(with_address->dev()) : nullptr;
}

namespace {

// Interfaces of ports that were created so far.
constinit unsigned int parents_made TA_GUARDED(kernel::rtnl);

kernel::Status add_port(Hca& hca, std::uint32_t port)
{
    kernel::Guard guard(kernel::rtnl);
    kernel::Handle<net_device, shim_free_netdev> dev(shim_helper_alloc_netdev(hca.ca(), port));
    if (!dev)
        return kernel::no_memory;
    // HCAs begin at different vectors: the same processor often serves the first vector of each.
    if (hca.parents.empty())
        hca.begin_vectors(parents_made);
    ++parents_made;
    auto interface = kernel::make_owned<Interface>(dev.get(), hca, port);
    if (!interface)
        return kernel::no_memory;
    TRY(interface->attach());
    hca.parents.push_back(*interface.release());
    // Unregistration frees the netdev.
    (void)dev.release();
    return {};
}

} // namespace

} // namespace ipoib

using ipoib::Hca;

int ipoib_add_device(ib_device* ca, void** state)
{
    auto hca = kernel::make_owned<Hca>(ca);
    if (!hca)
        return kernel::no_memory;
    bool any = false;
    for (std::uint32_t port = 1; port <= shim_rdma_end_port(ca); ++port) {
        if (!shim_rdma_protocol_ib(ca, port))
            continue;
        if (kernel::Status status = ipoib::add_port(*hca, port); status.ok())
            any = true;
        else
            log_warning(nullptr, "%s: couldn't register ipoib port %u; error %d", shim_ib_device_name(ca), port,
                        status.code());
    }
    if (!any)
        return kernel::not_supported;
    *state = hca.release();
    return 0;
}

void ipoib_remove_device(ib_device*, void* state)
{
    kernel::Owned<Hca> hca(static_cast<Hca*>(state));
    // The interfaces are freed when RTNL is released; also children that another task deletes, which hold their parent.
    kernel::Guard guard(kernel::rtnl);
    alignas(SHIM_ALIGNOF_NETDEV_BATCH) std::byte batch[SHIM_SIZEOF_NETDEV_BATCH];
    shim_init_list_head(batch);
    while (ipoib::Interface* interface = hca->parents.front())
        interface->detach(batch);
    shim_unregister_netdevice_many(batch);
}

net_device* ipoib_find_netdev(void* state, std::uint32_t port, std::uint16_t pkey, const shim_gid* gid,
                              const sockaddr* address)
{
    ipoib::Gid wanted;
    if (gid)
        wanted = ipoib::Gid::from(*gid);
    return static_cast<Hca*>(state)->find(port, ipoib::PKey(pkey), gid ? &wanted : nullptr, address);
}
