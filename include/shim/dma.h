/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* DMA mapping for an HCA. CONTEXT: any. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct ib_device;
struct sk_buff;

/*
 * Map memory, or a fragment of a packet, for reading (to_device, frag) or writing (from_device) by the HCA. Return a
 * DMA address, which shim_dma_mapping_error() must check before use.
 */
uint64_t shim_dma_map_to_device(struct ib_device *ca, void *address, size_t bytes);
void shim_dma_unmap_to_device(struct ib_device *ca, uint64_t address, size_t bytes);
uint64_t shim_dma_map_frag(struct ib_device *ca, const struct sk_buff *skb, unsigned int frag);
void shim_dma_unmap_frag(struct ib_device *ca, uint64_t address, size_t bytes);
uint64_t shim_dma_map_from_device(struct ib_device *ca, void *address, size_t bytes);
void shim_dma_unmap_from_device(struct ib_device *ca, uint64_t address, size_t bytes);
/* Give the buffer to the CPU, which may read it, and back to the HCA; it remains mapped. */
void shim_dma_sync_for_cpu(struct ib_device *ca, uint64_t address, size_t bytes);
void shim_dma_sync_for_device(struct ib_device *ca, uint64_t address, size_t bytes);
/* Returns true if the mapping failed. */
bool shim_dma_mapping_error(struct ib_device *ca, uint64_t address);

SHIM_END
