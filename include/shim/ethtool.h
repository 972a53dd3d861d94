/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* ethtool: driver, link, statistics and interrupt moderation. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct net_device;

enum { SHIM_STATISTIC_NAME_BYTES = 32 };

/* kernel -> C++. CONTEXT: RTNL. */
/* Mb/s; 0: not known. */
unsigned int ipoib_ethtool_speed(const struct net_device *dev);
unsigned int ipoib_ethtool_statistics_count(void);
/* names: count names of SHIM_STATISTIC_NAME_BYTES each; values in the same order. */
void ipoib_ethtool_statistic_names(char *names);
void ipoib_ethtool_statistics(const struct net_device *dev, uint64_t *values);
/* Of the receive side: an interrupt after so many microseconds or packets; adaptive: as the traffic has it. */
struct shim_moderation {
	unsigned int usecs, frames;
	bool adaptive;
};
void ipoib_ethtool_get_moderation(const struct net_device *dev, struct shim_moderation *moderation);
int ipoib_ethtool_set_moderation(struct net_device *dev, const struct shim_moderation *moderation);
/* Slots of the rings, and the most there can be. */
struct shim_rings {
	unsigned int sends, receives, most_sends, most_receives;
};
void ipoib_ethtool_get_rings(const struct net_device *dev, struct shim_rings *rings);
int ipoib_ethtool_set_rings(struct net_device *dev, unsigned int sends, unsigned int receives);

SHIM_END
