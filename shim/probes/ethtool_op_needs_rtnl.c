// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Of a netdev whose operations run under a lock of its own, ethtool's take RTNL only where they say so. */
#include <linux/ethtool.h>

struct ethtool_ops probe(void);
struct ethtool_ops probe(void) { return (struct ethtool_ops){ .op_needs_rtnl = ETHTOOL_OP_NEEDS_RTNL_GLINK }; }
