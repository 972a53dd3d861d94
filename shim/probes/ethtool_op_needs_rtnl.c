// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* ethtool operations of a netdev with an instance lock take RTNL only where op_needs_rtnl says so. */
#include <linux/ethtool.h>

struct ethtool_ops probe(void);
struct ethtool_ops probe(void) { return (struct ethtool_ops){ .op_needs_rtnl = ETHTOOL_OP_NEEDS_RTNL_GLINK }; }
