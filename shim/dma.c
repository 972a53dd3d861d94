// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* DMA mapping for an HCA. */
#include <linux/skbuff.h>
#include <rdma/ib_verbs.h>
#include <shim/dma.h>

SHIM uint64_t shim_dma_map_to_device(struct ib_device *ca, void *address, size_t bytes)
{
	return ib_dma_map_single(ca, address, bytes, DMA_TO_DEVICE);
}

SHIM void shim_dma_unmap_to_device(struct ib_device *ca, uint64_t address, size_t bytes)
{
	ib_dma_unmap_single(ca, address, bytes, DMA_TO_DEVICE);
}

/* A macro, as its users are one expression. */
#define FRAG(skb, frag) (&skb_shinfo(skb)->frags[frag])

SHIM uint64_t shim_dma_map_frag(struct ib_device *ca, const struct sk_buff *skb, unsigned int frag)
{
	return ib_dma_map_page(ca, skb_frag_page(FRAG(skb, frag)), skb_frag_off(FRAG(skb, frag)),
			       skb_frag_size(FRAG(skb, frag)), DMA_TO_DEVICE);
}

SHIM void shim_dma_unmap_frag(struct ib_device *ca, uint64_t address, size_t bytes)
{
	ib_dma_unmap_page(ca, address, bytes, DMA_TO_DEVICE);
}

SHIM uint64_t shim_dma_map_from_device(struct ib_device *ca, void *address, size_t bytes)
{
	return ib_dma_map_single(ca, address, bytes, DMA_FROM_DEVICE);
}

SHIM void shim_dma_unmap_from_device(struct ib_device *ca, uint64_t address, size_t bytes)
{
	ib_dma_unmap_single(ca, address, bytes, DMA_FROM_DEVICE);
}

SHIM void shim_dma_sync_for_cpu(struct ib_device *ca, uint64_t address, size_t bytes)
{
	ib_dma_sync_single_for_cpu(ca, address, bytes, DMA_FROM_DEVICE);
}

SHIM void shim_dma_sync_for_device(struct ib_device *ca, uint64_t address, size_t bytes)
{
	ib_dma_sync_single_for_device(ca, address, bytes, DMA_FROM_DEVICE);
}

SHIM bool shim_dma_mapping_error(struct ib_device *ca, uint64_t address) { return ib_dma_mapping_error(ca, address); }
