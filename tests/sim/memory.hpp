// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Simulated memory: allocations fail on request, freed memory stays poisoned for a while, and remaining allocations are
// counted by kind at the end. DMA mappings are tokens, valid for exactly the mapped bytes and until unmapped.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "base.hpp"

namespace sim {

class Memory {
public:
    ~Memory();

    // Whether this allocation is to fail.
    bool fails();
    // Notes that a fault lets a call of the current context fail.
    static void refuse();
    // Allocation of receive buffers: a poll that gets none is expected to drop a packet, unless it was for a large
    // piece of a message, in whose place small ones may be had.
    bool fails_to_receive(std::size_t bytes);
    // One in this many allocations fails; 0: none does.
    unsigned fail_one_in = 0;

    void* allocate(std::size_t bytes);
    void free(void* memory);

    // Counts objects of a kind that the driver holds.
    void hold(const char* kind, int count) { held_[kind] += count; }
    void check_nothing_left() const;

    enum class Way { to_device, from_device };
    static constexpr std::uint64_t no_address = ~std::uint64_t(0);
    std::uint64_t map(void* memory, std::size_t bytes, Way way, const void* device);
    void unmap(std::uint64_t address, std::size_t bytes, Way way, const void* device);
    void check_mapped(std::uint64_t address, std::size_t bytes, const void* device) const;
    // Memory that the HCA reads or writes; fails if it is not mapped.
    std::uint8_t* reach(std::uint64_t address, std::size_t bytes, Way way, const void* device) const;

private:
    struct Header {
        std::uint64_t magic, bytes;
    };
    struct Mapping {
        std::uint8_t* memory = nullptr;
        std::size_t bytes = 0;
        Way way = Way::to_device;
        const void* device = nullptr;
        std::uint16_t generation = 0;
    };
    static constexpr std::size_t max_quarantine = 512;
    const Mapping& mapping(std::uint64_t address) const;
    void release(Header* header);

    std::map<std::string, long> held_;
    std::deque<Header*> quarantine_;
    std::vector<Mapping> mappings_;
    std::vector<std::uint32_t> free_mappings_;
    long live_ = 0;
};

// Checks that no work item within the memory is pending.
void check_no_work_within(const void* memory, std::size_t bytes);

} // namespace sim
