/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* NAPI contexts, and the functions that pass received packets to the stack. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct net_device;
struct shim_napi;
struct sk_buff;

/*
 * Locks the netdev's contexts by its own lock (netdev_lock()); does nothing before 6.16, nor for a netdev with an ops
 * lock, around whose operations the core holds it. Held while contexts are added, enabled, disabled and removed:
 * since 6.17 the kernel waits under it for a disabled context if `threaded` is switched off. CONTEXT: process, may
 * sleep.
 */
void shim_napi_lock(struct net_device *dev);
void shim_napi_unlock(struct net_device *dev);
/*
 * Adds a context, for receiving or for transmit completions alone. poll(context, budget) returns the number of packets
 * handled; budget: there are more. The context is disabled. CONTEXT: process, shim_napi_lock().
 */
void shim_netif_napi_add(struct net_device *dev, struct shim_napi *napi, int (*poll)(void *context, int budget),
			 void *context);
void shim_netif_napi_add_tx(struct net_device *dev, struct shim_napi *napi, int (*poll)(void *context, int budget),
			    void *context);
/* CONTEXT: process, may sleep, shim_napi_lock(); disabled. */
void shim_netif_napi_del(struct shim_napi *napi);
/* Associates a receive queue of the netdev with a context, or with none (NULL), for netdev-genl. CONTEXT: RTNL. */
void shim_netif_queue_set_napi(struct net_device *dev, unsigned int queue, struct shim_napi *napi);
/* CONTEXT: process, shim_napi_lock(). */
void shim_napi_enable(struct shim_napi *napi);
/* Waits for the poll to end. CONTEXT: process, may sleep, shim_napi_lock(). */
void shim_napi_disable(struct shim_napi *napi);
/* Schedules the poll. CONTEXT: any, hard interrupts included. */
void shim_napi_schedule(struct shim_napi *napi);
/* Ends the poll, which handled done packets. Returns false if it runs again. CONTEXT: the poll, as all below. */
bool shim_napi_complete_done(struct shim_napi *napi, int done);
/* Gives a packet to GRO. */
void shim_napi_gro_receive(struct shim_napi *napi, struct sk_buff *skb);
/* Passes a packet to the stack without GRO. GRO must hold no packet, which this one would overtake. */
void shim_netif_receive_skb(struct sk_buff *skb);
/* Marks the packet for busy polling. */
void shim_skb_mark_napi_id(struct sk_buff *skb, struct shim_napi *napi);
/* Returns true if the context holds packets, for GRO to add to or on their way to the stack. */
bool shim_napi_holds_packets(const struct shim_napi *napi);

SHIM_END
