// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Big-endian fields in byte buffers, and offsets of a MAD's fields (IBA 13.4, 14.2). Used by the fabric's logic; never
// includes kernel headers.
#pragma once
#include <cstdint>

namespace soft_ib {

template <class T>
constexpr T load(const std::uint8_t* at)
{
    T value = 0;
    for (unsigned int i = 0; i < sizeof(T); ++i)
        value = static_cast<T>(value << 8 | at[i]);
    return value;
}

template <class T>
constexpr void store(std::uint8_t* at, T value)
{
    for (unsigned int i = sizeof(T); i-- > 0; value = static_cast<T>(value >> 8))
        at[i] = static_cast<std::uint8_t>(value);
}
template <>
constexpr void store(std::uint8_t* at, std::uint8_t value)
{
    *at = value;
}

inline constexpr unsigned int smp_data_bytes = 64;

// At the end of each packet (IBA 5.2).
inline constexpr unsigned int icrc_bytes = 4, vcrc_bytes = 2;

enum class ManagementClass : std::uint8_t { subnet_lid = 0x01, performance = 0x04, subnet_directed = 0x81 };
enum class Method : std::uint8_t { get = 0x01, set = 0x02, trap = 0x05, trap_repress = 0x07, response = 0x81 };

// A MAD in a buffer of 256 bytes.
class Mad {
public:
    static constexpr std::uint16_t direction_bit = 0x8000;
    // The class or its version.
    static constexpr std::uint16_t unsupported_class = 0x0004;
    static constexpr std::uint16_t unsupported_method_attribute = 0x000c;
    static constexpr std::uint16_t invalid_value = 0x001c;

    explicit Mad(std::uint8_t* bytes) : bytes_(bytes) {}
    ManagementClass management_class() const { return static_cast<ManagementClass>(bytes_[1]); }
    bool is_version_1() const { return bytes_[0] == 1 && bytes_[2] == 1; }
    Method method() const { return static_cast<Method>(bytes_[3]); }
    void set_method(Method method) { bytes_[3] = static_cast<std::uint8_t>(method); }
    std::uint16_t status() const { return load<std::uint16_t>(bytes_ + 4); }
    void set_status(std::uint16_t status) { store(bytes_ + 4, status); }
    std::uint16_t attribute() const { return load<std::uint16_t>(bytes_ + 16); }
    std::uint32_t modifier() const { return load<std::uint32_t>(bytes_ + 20); }
    // 64 bytes in an SMP, 192 in others.
    std::uint8_t* data() const { return bytes_ + 64; }

    // Directed route only.
    bool returning() const { return status() & direction_bit; }
    std::uint8_t hop_pointer() const { return bytes_[6]; }
    void set_hop_pointer(unsigned int pointer) { bytes_[6] = static_cast<std::uint8_t>(pointer); }
    std::uint8_t hop_count() const { return bytes_[7]; }
    std::uint16_t directed_slid() const { return load<std::uint16_t>(bytes_ + 32); }
    std::uint16_t directed_dlid() const { return load<std::uint16_t>(bytes_ + 34); }
    std::uint8_t* initial_path() const { return bytes_ + 128; }
    std::uint8_t* return_path() const { return bytes_ + 192; }
    std::uint8_t* bytes() const { return bytes_; }

private:
    std::uint8_t* bytes_;
};

} // namespace soft_ib
