// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Keys of memory regions: what they permit, and fast registration.
#include <gtest/gtest.h>

#include <regions.h>

namespace {

constexpr std::uint32_t read = 1, write = 2;

class Region : public testing::Test {
protected:
    // Bytes 0x1000 to 0x1fff.
    fabric_region region{&domain, 0x1000, 0x1000, fabric_key(5), read, true};
    bool allows(std::uint64_t address, std::uint64_t bytes, std::uint32_t access = read)
    {
        return fabric_region_allows(&region, region.key, &domain, address, bytes, access);
    }
    int domain = 0, other_domain = 0;
};

TEST_F(Region, access_is_within_the_bounds)
{
    EXPECT_TRUE(allows(0x1000, 0x1000));
    EXPECT_TRUE(allows(0x1fff, 1));
    EXPECT_TRUE(allows(0x2000, 0));
    EXPECT_FALSE(allows(0xfff, 1));
    EXPECT_FALSE(allows(0x1fff, 2));
    EXPECT_FALSE(allows(0x2000, 1));
    EXPECT_FALSE(allows(0x1001, ~std::uint64_t(0)));
    EXPECT_FALSE(allows(~std::uint64_t(0), 2)) << "wraps";
}

TEST_F(Region, whole_address_space_can_be_one_region)
{
    region.address = 0;
    region.length = ~std::uint64_t(0);
    EXPECT_TRUE(allows(0, 1));
    EXPECT_TRUE(allows(0xffff888000000000, 0x40000000));
    EXPECT_FALSE(allows(~std::uint64_t(0), 2));
}

TEST_F(Region, all_requested_rights_are_needed)
{
    EXPECT_FALSE(allows(0x1000, 1, write));
    EXPECT_FALSE(allows(0x1000, 1, read | write));
    region.access = read | write;
    EXPECT_TRUE(allows(0x1000, 1, read | write));
}

TEST_F(Region, key_and_domain_are_the_regions)
{
    EXPECT_FALSE(fabric_region_allows(&region, region.key + 1, &domain, 0x1000, 1, read));
    EXPECT_FALSE(fabric_region_allows(&region, region.key, &other_domain, 0x1000, 1, read));
    EXPECT_EQ(fabric_key_index(region.key + 0xff), 5U);
    EXPECT_EQ(fabric_key_index(fabric_key(FABRIC_MAX_REGION_INDEX)), unsigned(FABRIC_MAX_REGION_INDEX));
}

TEST_F(Region, invalid_region_permits_nothing)
{
    region.valid = false;
    EXPECT_FALSE(allows(0x1000, 1, 0));
}

TEST_F(Region, registration_replaces_key_bounds_and_access)
{
    region.valid = false;
    const fabric_region as{&domain, 0x5000, 0x10, region.key + 7, write, false};
    ASSERT_TRUE(fabric_region_register(&region, &as));
    EXPECT_EQ(region.key, fabric_key(5) + 7);
    EXPECT_TRUE(allows(0x5000, 0x10, write));
    EXPECT_FALSE(allows(0x5000, 0x10, read));
    EXPECT_FALSE(allows(0x1000, 1, write));
    EXPECT_FALSE(fabric_region_allows(&region, fabric_key(5), &domain, 0x5000, 1, write)) << "the key before";
}

TEST_F(Region, registration_needs_a_free_region_of_the_domain)
{
    fabric_region as{&domain, 0x5000, 0x10, region.key + 7, write, false};
    EXPECT_FALSE(fabric_region_register(&region, &as)) << "in use";
    region.valid = false;
    as.domain = &other_domain;
    EXPECT_FALSE(fabric_region_register(&region, &as));
    as.domain = &domain;
    as.key = fabric_key(6);
    EXPECT_FALSE(fabric_region_register(&region, &as)) << "another region's key";
    EXPECT_EQ(region.address, 0x1000U);
    EXPECT_FALSE(region.valid);
}

TEST_F(Region, invalidation_needs_the_present_key_and_the_domain)
{
    EXPECT_FALSE(fabric_region_invalidate(&region, region.key + 1, &domain));
    EXPECT_FALSE(fabric_region_invalidate(&region, region.key, &other_domain));
    EXPECT_TRUE(allows(0x1000, 1));
    EXPECT_TRUE(fabric_region_invalidate(&region, region.key, &domain));
    EXPECT_FALSE(allows(0x1000, 1));
    EXPECT_FALSE(fabric_region_invalidate(&region, region.key, &domain)) << "twice";
}

class FastRegion : public Region {
protected:
    FastRegion()
    {
        region.valid = false;
        lists.used.page = first;
        lists.mapped.page = second;
    }
    void map(void* page, std::uint32_t count)
    {
        for (std::uint32_t i = 0; i < count; i++) {
            lists.mapped.page[i] = page;
        }
        lists.mapped.count = count;
        lists.mapped_anew = true;
    }
    // A registration of 4 KiB, with pages of 2 KiB.
    bool is_registered(std::uint32_t offset = 0, std::uint64_t bytes = 0x1000)
    {
        fabric_region as = region;
        as.length = bytes;
        return fabric_pages_register(&lists, &region, &as, offset, 0x800);
    }
    void invalidate() { EXPECT_TRUE(fabric_region_invalidate(&region, region.key, &domain)); }
    void *first[4] = {}, *second[4] = {};
    fabric_page_lists lists{};
    int a = 0, b = 0;
};

TEST_F(FastRegion, mapping_replaces_the_pages_when_it_is_registered)
{
    map(&a, 2);
    EXPECT_TRUE(is_registered());
    EXPECT_EQ(lists.used.page[1], &a);
    map(&b, 2);
    EXPECT_EQ(lists.used.page[1], &a) << "the region is still in use";
    EXPECT_FALSE(is_registered());
    EXPECT_EQ(lists.used.page[1], &a);
    invalidate();
    EXPECT_TRUE(is_registered());
    EXPECT_EQ(lists.used.page[1], &b);
}

TEST_F(FastRegion, registration_without_a_mapping_keeps_the_pages)
{
    map(&a, 2);
    EXPECT_TRUE(is_registered());
    invalidate();
    EXPECT_TRUE(is_registered());
    EXPECT_EQ(lists.used.page[1], &a);
}

TEST_F(FastRegion, earlier_registration_takes_the_newest_mapping)
{
    map(&a, 2);
    map(&b, 2);
    EXPECT_TRUE(is_registered());
    invalidate();
    EXPECT_TRUE(is_registered());
    EXPECT_EQ(lists.used.page[1], &b);
}

TEST_F(FastRegion, registration_beyond_the_mapping_is_refused)
{
    EXPECT_FALSE(is_registered()) << "nothing is mapped";
    map(&a, 2);
    EXPECT_FALSE(is_registered(1));
    EXPECT_FALSE(is_registered(0, 0x1001));
    EXPECT_FALSE(is_registered(1, ~std::uint64_t(0)));
    EXPECT_TRUE(is_registered(0x7ff, 0x801));
}

} // namespace
