// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Deferred destruction of objects that the transmit path may use. The transmit path takes no references: it reads these
// objects under RCU, and the HCA uses an AH until the send completes. Unlinked objects wait here for a grace period,
// and for every datagram that was built before its end.
#pragma once
#include <cstdint>

#include <ipoib/path_lock.hpp>
#include <kernel/handle.hpp>
#include <kernel/list.hpp>
#include <kernel/lock.hpp>
#include <kernel/memory.hpp>
#include <kernel/result.hpp>
#include <kernel/work.hpp>
#include <shim/ah.h>
#include <shim/netdevice.h>

namespace ipoib {

class Interface;

// Base of objects that can be retired. INVARIANT: allocated by make_owned, in no table when retired.
class Retirable : public kernel::ListNode<Retirable> {
public:
    using Free = void (*)(Retirable& object);
    explicit Retirable(Free free) : free_(free) {}

private:
    friend class Reaper;
    Free free_;
};

// The Free function of a T.
template <class T>
void free_retired(Retirable& object)
{
    kernel::Owned<T>(static_cast<T*>(&object)).reset();
}

// The owner of an AH.
class AddressHandle : public Retirable {
public:
    using Handle = kernel::Handle<ib_ah, shim_rdma_destroy_ah>;
    explicit AddressHandle(Handle ah) : Retirable(free_retired<AddressHandle>), ah_(std::move(ah)) {}
    // Takes what a shim returned: an AH, or the error in its pointer. CONTEXT: process.
    static kernel::Result<kernel::Owned<AddressHandle>> own(ib_ah* created);
    ib_ah* get() const { return ah_.get(); }

private:
    Handle ah_;
};

class Reaper {
public:
    explicit Reaper(Interface& interface) : interface_(interface), work_(*this) {}

    // Takes the object; nullptr is ignored. CONTEXT: any.
    template <class T>
    void retire(kernel::Owned<T> object)
    {
        if (object)
            take(*object.release());
    }
    // Frees all objects; no send may be outstanding. CONTEXT: process.
    void drain() TA_EXCLUDES(lock_);

private:
    void take(Retirable& object) TA_EXCLUDES(lock_);
    void run() TA_EXCLUDES(lock_);
    // Moves objects from fresh_ to pending_, whose grace period has ended afterwards. Returns false if there are none.
    bool begin_batch() TA_EXCLUDES(lock_);
    // True if all datagrams of before the end of that grace period have completed.
    bool sends_completed() const;
    void free_batch();

    Interface& interface_;
    static kernel::LockClass lock_class_;
    kernel::SpinLock lock_ TA_ACQUIRED_AFTER(path_lock){lock_class_, "ipoib_reaper"};
    kernel::List<Retirable> fresh_ TA_GUARDED(lock_);
    // The current batch: objects that wait for sends, up to these indices of the transmit queues' rings. Used by run()
    // and drain() only.
    kernel::List<Retirable> pending_;
    std::uint32_t sends_[SHIM_MAX_TX_QUEUES] = {};
    kernel::Work<&Reaper::run> work_;
};

} // namespace ipoib
