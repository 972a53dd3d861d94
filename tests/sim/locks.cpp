// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// include/shim/sync.h.
#include "locks.hpp"

#include <algorithm>
#include <cstring>

#include "world.hpp"

using sim::world;

struct shim_spinlock {
    std::uint32_t magic;
    unsigned kind;
    sim::Fiber* owner;
    const char* name;
};
struct shim_mutex {
    std::uint32_t magic;
    unsigned kind;
    sim::Fiber* owner;
    const char* name;
};
struct shim_completion {
    std::uint32_t magic;
    bool done;
};

namespace sim {

namespace {

constexpr std::uint32_t spin_magic = 0x5b14a11c, mutex_magic = 0x31d0e7a1, completion_magic = 0xc0371e7e;

} // namespace

Lockdep::Lockdep()
{
    for (const char* name : {"RTNL", "transmit lock", "address list lock", "CM handler", "SA callback",
                             "event handlers", "client data", "NAPI lock"})
        (void)index_of(name, name);
}

unsigned Lockdep::index_of(const void* lock_class, const char* name)
{
    const auto it = std::find(classes_.begin(), classes_.end(), lock_class);
    if (it != classes_.end())
        return static_cast<unsigned>(it - classes_.begin());
    SIM_CHECK(classes_.size() < max_classes, "too many kinds of locks");
    classes_.push_back(lock_class);
    names_.emplace_back(name);
    return static_cast<unsigned>(classes_.size() - 1);
}

bool Lockdep::leads_to(unsigned from, unsigned to) const
{
    std::vector<unsigned> open{from};
    std::array<bool, max_classes> seen{};
    while (!open.empty()) {
        const unsigned here = open.back();
        open.pop_back();
        if (here == to)
            return true;
        if (std::exchange(seen[here], true))
            continue;
        for (unsigned next = 0; next < classes_.size(); ++next)
            if (before_[here][next])
                open.push_back(next);
    }
    return false;
}

void Lockdep::check_order(unsigned which, const void* lock)
{
    for (const Held& held : world->scheduler.current()->held) {
        const unsigned outer = held.kind;
        SIM_CHECK(held.lock != lock, "%s is taken twice by one context", names_[which].c_str());
        SIM_CHECK(outer != which, "two locks of the kind %s are held at a time", names_[which].c_str());
        if (before_[outer][which])
            continue;
        SIM_CHECK(!leads_to(which, outer), "lock order: %s is taken under %s, and the other way round elsewhere",
                  names_[which].c_str(), names_[outer].c_str());
        before_[outer][which] = true;
    }
}

void Lockdep::acquire(unsigned which, const void* lock)
{
    check_order(which, lock);
    world->scheduler.current()->held.push_back({which, lock});
}

void Lockdep::wait_for(unsigned which, const void* lock) { check_order(which, lock); }

void Lockdep::release(const void* lock)
{
    auto& held = world->scheduler.current()->held;
    const auto it = std::find_if(held.rbegin(), held.rend(), [lock](const Held& one) { return one.lock == lock; });
    SIM_CHECK(it != held.rend(), "%s lets go of a lock that it does not hold",
              world->scheduler.current()->name.c_str());
    held.erase(std::next(it).base());
}

void may_sleep(const char* what)
{
    world->scheduler.point();
    const Fiber* fiber = world->scheduler.current();
    SIM_CHECK(fiber, "%s in an interrupt", what);
    SIM_CHECK(fiber->bh == 0 && fiber->rcu == 0, "%s sleeps in atomic context: %s, bottom halves %d, RCU %d", what,
              fiber->name.c_str(), fiber->bh, fiber->rcu);
}

// RCU: bottom halves off is a read section too.

void rcu_reader_left()
{
    world->scheduler.current()->section = ++world->sections;
    world->scheduler.wake(&world->rcu);
}

void synchronize_rcu()
{
    may_sleep("synchronize_rcu");
    std::vector<std::pair<const Fiber*, std::uint64_t>> readers;
    for (const auto& fiber : world->scheduler.fibers())
        if (fiber->reader())
            readers.emplace_back(fiber.get(), fiber->section);
    world->scheduler.wait(&world->rcu, "an RCU grace period", [&readers] {
        const auto reads = [](const auto& reader) {
            return world->scheduler.lives(reader.first) && reader.first->section == reader.second;
        };
        while (!readers.empty() && !reads(readers.back()))
            readers.pop_back();
        return readers.empty();
    });
}

Bh::Bh() { shim_local_bh_disable(); }
Bh::~Bh() { shim_local_bh_enable(); }

RtnlGuard::RtnlGuard() { shim_rtnl_lock(); }
RtnlGuard::~RtnlGuard() { shim_rtnl_unlock(); }

} // namespace sim

using namespace sim;

void shim_helper_spinlock_init(shim_spinlock* lock, shim_lock_class* lock_class, const char* name)
{
    *lock = {spin_magic, world->lockdep.index_of(lock_class, name), nullptr, name};
}
void shim_spin_lock_bh(shim_spinlock* lock)
{
    world->scheduler.point();
    Fiber* self = world->scheduler.current();
    SIM_CHECK(lock->magic == spin_magic, "a spinlock that is none is taken");
    SIM_CHECK(self, "%s is taken in an interrupt", lock->name);
    world->lockdep.acquire(lock->kind, lock);
    ++self->bh;
    world->scheduler.wait(lock, lock->name, [lock] { return !lock->owner; });
    lock->owner = self;
}
void shim_spin_unlock_bh(shim_spinlock* lock)
{
    Fiber* self = world->scheduler.current();
    SIM_CHECK(lock->owner == self, "%s is unlocked by a context that does not hold it", lock->name);
    world->scheduler.point();
    lock->owner = nullptr;
    world->lockdep.release(lock);
    world->scheduler.wake(lock);
    shim_local_bh_enable();
}

void shim_mutex_init(shim_mutex* mutex, shim_lock_class* lock_class, const char* name)
{
    *mutex = {mutex_magic, world->lockdep.index_of(lock_class, name), nullptr, name};
}
void shim_mutex_lock(shim_mutex* mutex)
{
    SIM_CHECK(mutex->magic == mutex_magic, "a mutex that is none is taken");
    may_sleep(mutex->name);
    world->lockdep.acquire(mutex->kind, mutex);
    world->scheduler.wait(mutex, mutex->name, [mutex] { return !mutex->owner; });
    mutex->owner = world->scheduler.current();
}
void shim_mutex_unlock(shim_mutex* mutex)
{
    Fiber* self = world->scheduler.current();
    SIM_CHECK(mutex->owner == self, "%s is unlocked by a context that does not hold it", mutex->name);
    world->scheduler.point();
    mutex->owner = nullptr;
    world->lockdep.release(mutex);
    world->scheduler.wake(mutex);
}
void shim_mutex_destroy(shim_mutex* mutex)
{
    SIM_CHECK(mutex->magic == mutex_magic && !mutex->owner, "%s is destroyed while it is held", mutex->name);
    mutex->magic = 0;
}

void shim_init_completion(shim_completion* completion) { *completion = {completion_magic, false}; }
void shim_complete(shim_completion* completion)
{
    SIM_CHECK(completion->magic == completion_magic, "a completion that is none");
    completion->done = true;
    world->scheduler.wake(completion);
    world->scheduler.point();
}
void shim_wait_for_completion(shim_completion* completion)
{
    may_sleep("wait_for_completion");
    world->scheduler.wait(completion, "a completion", [completion] { return completion->done; });
    completion->done = false;
}

void shim_rcu_read_lock()
{
    ++world->scheduler.current()->rcu;
    world->scheduler.point();
}
void shim_rcu_read_unlock()
{
    world->scheduler.point();
    Fiber* self = world->scheduler.current();
    SIM_CHECK(self->rcu > 0, "rcu_read_unlock without its lock");
    if (--self->rcu == 0 && !self->reader())
        rcu_reader_left();
}
void shim_synchronize_net() { synchronize_rcu(); }

void shim_smp_mb() { world->scheduler.point(); }
void shim_atomic64_add(std::uint64_t* value, std::uint64_t amount) { *value += amount; }
void shim_local_bh_disable() { ++world->scheduler.current()->bh; }
void shim_local_bh_enable()
{
    Fiber* self = world->scheduler.current();
    SIM_CHECK(self->bh > (self->kind == Fiber::Kind::softirq), "bottom halves are enabled once too often");
    if (--self->bh == 0 && !self->reader())
        rcu_reader_left();
    world->scheduler.point();
}

unsigned int shim_num_online_cpus() { return 3; }
unsigned long shim_jiffies() { return world->jiffies(); }
std::uint32_t shim_get_random_u32_below(std::uint32_t limit)
{
    return static_cast<std::uint32_t>(world->scheduler.random().below(limit));
}
unsigned long shim_hz() { return World::jiffies_per_second; }
void shim_msleep(unsigned int milliseconds)
{
    may_sleep("msleep");
    world->scheduler.sleep(milliseconds * millisecond + world->scheduler.random().below(World::jiffy));
}

void shim_rtnl_lock()
{
    may_sleep("rtnl_lock");
    world->lockdep.acquire(Lockdep::rtnl, &world->rtnl);
    world->scheduler.wait(&world->rtnl, "RTNL", [] { return !world->rtnl.owner; });
    world->rtnl.owner = world->scheduler.current();
    world->rtnl.owner->rtnl = true;
}
void shim_rtnl_unlock()
{
    Fiber* self = world->scheduler.current();
    SIM_CHECK(world->rtnl.owner == self, "RTNL is unlocked by a context that does not hold it");
    world->scheduler.point();
    // Destructors of the netdevs that were unregistered under the lock run after its release.
    const auto going = std::move(world->stack.going);
    world->stack.going.clear();
    self->rtnl = false;
    world->rtnl.owner = nullptr;
    world->lockdep.release(&world->rtnl);
    world->scheduler.wake(&world->rtnl);
    for (net_device* dev : going)
        world->stack.end(dev);
}
