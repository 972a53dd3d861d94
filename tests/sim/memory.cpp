// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// include/shim/memory.h, and DMA mappings.
#include "memory.hpp"

#include <cstdlib>
#include <cstring>

#include <ipoib/pieces.hpp>

#include "world.hpp"

namespace sim {

namespace {

constexpr std::uint64_t live_magic = 0x11fe11fe11fe11fe, dead_magic = 0xdeaddeaddeaddead;
constexpr std::uint8_t poison = 0x6b;

} // namespace

Memory::~Memory()
{
    while (!quarantine_.empty()) {
        release(quarantine_.front());
        quarantine_.pop_front();
    }
}

bool Memory::fails()
{
    const bool fails = fail_one_in && world->scheduler.random().one_in(fail_one_in);
    if (fails)
        refuse();
    return fails;
}

void Memory::refuse()
{
    if (Fiber* fiber = world->scheduler.current())
        fiber->refused = true;
}

bool Memory::fails_to_receive(std::size_t bytes)
{
    if (!fails())
        return false;
    if (net_device* dev = world->scheduler.current()->polls)
        ++(bytes < ipoib::MessageBuffer::large_piece ? dev->starved : dev->starved_of_large);
    return true;
}

void* Memory::allocate(std::size_t bytes)
{
    world->scheduler.point();
    if (fails())
        return nullptr;
    auto* header = static_cast<Header*>(std::calloc(1, sizeof(Header) + bytes));
    *header = {live_magic, bytes};
    ++live_;
    return header + 1;
}

void Memory::free(void* memory)
{
    auto* header = static_cast<Header*>(memory) - 1;
    SIM_CHECK(header->magic == live_magic, header->magic == dead_magic ? "memory is freed twice" : "no memory of ours");
    check_no_work_within(memory, header->bytes);
    header->magic = dead_magic;
    --live_;
#if defined(__SANITIZE_ADDRESS__)
    std::free(header);
#else
    std::memset(memory, poison, header->bytes);
    quarantine_.push_back(header);
    if (quarantine_.size() > max_quarantine) {
        release(quarantine_.front());
        quarantine_.pop_front();
    }
#endif
}

void Memory::release(Header* header)
{
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(header + 1);
    for (std::size_t i = 0; i < header->bytes; ++i)
        SIM_CHECK(bytes[i] == poison, "%zu bytes of memory are written to at %zu when they are freed",
                  static_cast<std::size_t>(header->bytes), i);
    std::free(header);
}

void Memory::check_nothing_left() const
{
    SIM_CHECK(live_ == 0, "%ld allocations are left", live_);
    SIM_CHECK(free_mappings_.size() == mappings_.size(), "%zu DMA mappings are left",
              mappings_.size() - free_mappings_.size());
    for (const auto& [kind, count] : held_)
        SIM_CHECK(count == 0, "%ld of kind %s are left", count, kind.c_str());
}

// An address: generation, slot, and an offset of 20 bits.

std::uint64_t Memory::map(void* memory, std::size_t bytes, Way way, const void* device)
{
    world->scheduler.point();
    if (way == Way::from_device ? fails_to_receive(bytes) : fails())
        return no_address;
    if (free_mappings_.empty()) {
        free_mappings_.push_back(static_cast<std::uint32_t>(mappings_.size()));
        mappings_.emplace_back();
    }
    const std::uint32_t slot = free_mappings_.back();
    free_mappings_.pop_back();
    Mapping& mapping = mappings_[slot];
    mapping.memory = static_cast<std::uint8_t*>(memory);
    mapping.bytes = bytes;
    mapping.way = way;
    mapping.device = device;
    ++mapping.generation;
    return std::uint64_t(mapping.generation) << 48 | std::uint64_t(slot + 1) << 20;
}

const Memory::Mapping& Memory::mapping(std::uint64_t address) const
{
    const std::uint64_t slot = (address >> 20 & 0xfffffff) - 1;
    SIM_CHECK(slot < mappings_.size() && mappings_[slot].memory && mappings_[slot].generation == address >> 48,
              "DMA address %#llx is not mapped", static_cast<unsigned long long>(address));
    return mappings_[slot];
}

void Memory::unmap(std::uint64_t address, std::size_t bytes, Way way, const void* device)
{
    world->scheduler.point();
    const Mapping& found = mapping(address);
    SIM_CHECK(found.bytes == bytes && found.way == way && found.device == device && !(address & 0xfffff),
              "a DMA mapping of %zu bytes is undone as one of %zu", found.bytes, bytes);
    const auto slot = static_cast<std::uint32_t>((address >> 20 & 0xfffffff) - 1);
    mappings_[slot].memory = nullptr;
    free_mappings_.push_back(slot);
}

void Memory::check_mapped(std::uint64_t address, std::size_t bytes, const void* device) const
{
    const Mapping& found = mapping(address);
    SIM_CHECK((address & 0xfffff) + bytes <= found.bytes && found.device == device, "DMA beyond its mapping");
}

std::uint8_t* Memory::reach(std::uint64_t address, std::size_t bytes, Way way, const void* device) const
{
    check_mapped(address, bytes, device);
    const Mapping& found = mapping(address);
    SIM_CHECK(found.way == way, "DMA in the wrong direction");
    return found.memory + (address & 0xfffff);
}

} // namespace sim

using namespace sim;

void* shim_kzalloc(std::size_t bytes)
{
    may_sleep("kmalloc");
    return world->memory.allocate(bytes);
}
void* shim_kzalloc_atomic(std::size_t bytes) { return world->memory.allocate(bytes); }
void* shim_kvcalloc(std::size_t count, std::size_t bytes)
{
    may_sleep("kvmalloc");
    return world->memory.allocate(count * bytes);
}
unsigned int shim_memalloc_noio_save()
{
    may_sleep("memalloc_noio_save");
    return 0;
}
void shim_memalloc_noio_restore(unsigned int) {}
void shim_kvfree(void* memory)
{
    world->scheduler.point();
    if (memory)
        world->memory.free(memory);
}
