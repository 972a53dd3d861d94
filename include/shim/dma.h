/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* DMA mapping for an HCA. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct ib_device;
struct sk_buff;

/* Device addresses. map: 0 when it failed is told by shim_dma_mapping_error. */
uint64_t shim_dma_map_to_device(struct ib_device *ca, void *address, size_t bytes);
void shim_dma_unmap_to_device(struct ib_device *ca, uint64_t address, size_t bytes);
uint64_t shim_dma_map_frag(struct ib_device *ca, const struct sk_buff *skb, unsigned int frag);
void shim_dma_unmap_frag(struct ib_device *ca, uint64_t address, size_t bytes);
uint64_t shim_dma_map_from_device(struct ib_device *ca, void *address, size_t bytes);
void shim_dma_unmap_from_device(struct ib_device *ca, uint64_t address, size_t bytes);
/* Between these the CPU may read what the device wrote, while the mapping stays. */
void shim_dma_sync_for_cpu(struct ib_device *ca, uint64_t address, size_t bytes);
void shim_dma_sync_for_device(struct ib_device *ca, uint64_t address, size_t bytes);
bool shim_dma_mapping_error(struct ib_device *ca, uint64_t address);

SHIM_END
