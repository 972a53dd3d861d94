// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Frees objects that were unlinked while the transmit path may use them, from the interface's work queue.
#include <algorithm>

#include <ipoib/interface.hpp>
#include <ipoib/reaper.hpp>
#include <kernel/error_pointer.hpp>
#include <kernel/time.hpp>

namespace ipoib {

constinit kernel::LockClass Reaper::lock_class_;

kernel::Result<kernel::Owned<AddressHandle>> AddressHandle::own(ib_ah* created)
{
    Handle ah(TRY(kernel::check(created)));
    auto handle = kernel::make_owned<AddressHandle>(std::move(ah));
    if (!handle)
        return kernel::no_memory;
    return handle;
}

void Reaper::take(Retirable& object)
{
    kernel::Guard guard(lock_);
    fresh_.push_back(object);
    work_.queue(interface_.work_queue);
}

void Reaper::run()
{
    if (pending_.empty() && !begin_batch())
        return;
    if (!sends_completed()) {
        work_.queue(interface_.work_queue, kernel::milliseconds(100));
        return;
    }
    free_batch();
    // The next batch, if there is one, after what else the queue has.
    work_.queue(interface_.work_queue);
}

bool Reaper::begin_batch()
{
    {
        kernel::Guard guard(lock_);
        pending_.take(fresh_);
    }
    if (pending_.empty())
        return false;
    shim_synchronize_net();
    // After the grace period no new send uses these objects; earlier ones are in the rings.
    for (const TxQueue& queue : interface_.tx)
        sends_[queue.index()] = queue.ring.index().head();
    return true;
}

bool Reaper::sends_completed() const
{
    return std::all_of(interface_.tx.begin(), interface_.tx.end(),
                       [this](const TxQueue& queue) { return queue.ring.index().passed(sends_[queue.index()]); });
}

void Reaper::free_batch()
{
    while (Retirable* object = pending_.pop_front())
        object->free_(*object);
}

void Reaper::drain()
{
    work_.cancel();
    {
        kernel::Guard guard(lock_);
        pending_.take(fresh_);
    }
    shim_synchronize_net();
    free_batch();
}

} // namespace ipoib
