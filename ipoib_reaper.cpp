// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Frees objects that were unlinked while the transmit path may use them, from the interface's work queue.
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
    kernel::List<Retirable> batch;
    {
        kernel::Guard guard(lock_);
        batch.take(fresh_);
    }
    if (!batch.empty())
        shim_synchronize_net();
    // After the grace period no new send uses these objects; earlier ones are in the ring.
    const std::uint32_t sends = interface_.tx[0].ring.index().head();
    for (Retirable& object : batch)
        object.sends_ = sends;
    pending_.take(batch);

    kernel::List<Retirable> done;
    collect(done, false);
    while (Retirable* object = done.pop_front())
        object->free_(*object);
    if (!pending_.empty())
        work_.queue(interface_.work_queue, kernel::milliseconds(100));
}

void Reaper::collect(kernel::List<Retirable>& done, bool all)
{
    for (Retirable& object : pending_) {
        if (all || object.until_ == Retirable::Until::grace_period ||
            interface_.tx[0].ring.index().passed(object.sends_)) {
            object.unlink();
            done.push_back(object);
        }
    }
}

void Reaper::drain()
{
    work_.cancel();
    {
        kernel::Guard guard(lock_);
        pending_.take(fresh_);
    }
    shim_synchronize_net();
    kernel::List<Retirable> done;
    collect(done, true);
    while (Retirable* object = done.pop_front())
        object->free_(*object);
}

} // namespace ipoib
