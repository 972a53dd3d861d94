/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* ethtool: driver, link, statistics, interrupt moderation, rings, channels and private flags. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct net_device;

enum { SHIM_ETHTOOL_NAME_BYTES = 32 };

/* Returns the link's speed in Mb/s; 0: unknown. CONTEXT: RTNL, or the ops lock, as for all functions below. */
unsigned int ipoib_ethtool_speed(const struct net_device *dev);
unsigned int ipoib_ethtool_statistics_count(const struct net_device *dev);
/* Write names of SHIM_ETHTOOL_NAME_BYTES each, and values in the same order. */
void ipoib_ethtool_statistic_names(const struct net_device *dev, char *names);
void ipoib_ethtool_statistics(const struct net_device *dev, uint64_t *values);
/* Interrupt moderation of receives: maximum microseconds and packets; adaptive: by DIM. */
struct shim_moderation {
	unsigned int usecs, frames;
	bool adaptive;
};
void ipoib_ethtool_get_moderation(const struct net_device *dev, struct shim_moderation *moderation);
int ipoib_ethtool_set_moderation(struct net_device *dev, const struct shim_moderation *moderation);
/* The same for one receive queue. -EINVAL: there is no queue of this number. */
int ipoib_ethtool_get_queue_moderation(const struct net_device *dev, uint32_t queue,
				       struct shim_moderation *moderation);
int ipoib_ethtool_set_queue_moderation(struct net_device *dev, uint32_t queue,
				       const struct shim_moderation *moderation);
/* Slots of the rings, and their maxima. */
struct shim_rings {
	unsigned int sends, receives, max_sends, max_receives;
};
void ipoib_ethtool_get_rings(const struct net_device *dev, struct shim_rings *rings);
int ipoib_ethtool_set_rings(struct net_device *dev, unsigned int sends, unsigned int receives);
/* Queues in use, and their maxima. */
struct shim_channels {
	unsigned int transmits, receives, max_transmits, max_receives;
};
void ipoib_ethtool_get_channels(const struct net_device *dev, struct shim_channels *channels);
int ipoib_ethtool_set_channels(struct net_device *dev, unsigned int transmits, unsigned int receives);
/* Private flags: bits of enum ipoib_flag. */
enum ipoib_flag {
	IPOIB_FLAG_ICRC_AS_CHECKSUM = 1,
	IPOIB_FLAGS = 1, /* how many */
};
void ipoib_ethtool_flag_names(char *names);
uint32_t ipoib_ethtool_get_flags(const struct net_device *dev);
int ipoib_ethtool_set_flags(struct net_device *dev, uint32_t flags);

SHIM_END
