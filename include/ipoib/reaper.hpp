// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The end of objects that the transmit path may still look at. The transmit path takes no references: it reads
// under RCU, and an address handle that it posted is the HCA's until the send completes. So what was unlinked waits
// here for a grace period and, if it is an address handle, for every send that was posted before that ended.
#pragma once
#include <cstdint>

#include <kernel/list.hpp>
#include <kernel/lock.hpp>
#include <kernel/memory.hpp>
#include <kernel/rcu.hpp>
#include <kernel/work.hpp>
#include <shim/verbs.h>

namespace ipoib {

class Interface;

// Base of what can be retired. INVARIANT: allocated by make_owned, unlinked from every table when retired.
class Retirable : public kernel::ListNode<Retirable> {
public:
    using Free = void (*)(Retirable& object);
    enum class Until { grace_period, sends_completed };
    Retirable(Free free, Until until) : free_(free), until_(until) {}

private:
    friend class Reaper;
    Free free_;
    Until until_;
    std::uint32_t sends_ = 0;
};

// The Free of a T.
template <class T>
void free_retired(Retirable& object)
{
    kernel::Owned<T>(static_cast<T*>(&object)).reset();
}

// An address handle and its only owner.
class AddressHandle : public Retirable {
public:
    explicit AddressHandle(ib_ah* ah) : Retirable(free_retired<AddressHandle>, Until::sends_completed), ah_(ah) {}
    ~AddressHandle() { shim_ah_destroy(ah_); }
    ib_ah* get() const { return ah_; }

private:
    ib_ah* ah_;
};

class Reaper {
public:
    explicit Reaper(Interface& interface) : interface_(interface), work_(*this) {}

    // Takes the object; a null one is ignored. CONTEXT: any.
    template <class T>
    void retire(kernel::Owned<T> object)
    {
        if (object)
            take(*object.release());
    }
    // Frees everything now; nothing may be posted any more. CONTEXT: process.
    void drain();

private:
    void take(Retirable& object) TA_EXCLUDES(lock_);
    void run();
    // Moves what the sends have passed from pending to done.
    void collect(kernel::List<Retirable>& done, bool all);

    Interface& interface_;
    static kernel::LockClass lock_class_;
    kernel::SpinLock lock_{lock_class_, "ipoib_reaper"};
    kernel::List<Retirable> fresh_ TA_GUARDED(lock_);
    // Past their grace period, waiting for sends; only run() and drain() look at it.
    kernel::List<Retirable> pending_;
    kernel::Work<&Reaper::run> work_;
};

} // namespace ipoib
