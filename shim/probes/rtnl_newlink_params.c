// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* rtnl_link_ops.newlink() gets its arguments in one struct. */
#include <net/rtnetlink.h>

static int newlink(struct net_device *dev, struct rtnl_newlink_params *params, struct netlink_ext_ack *extack)
{
	return rtnl_newlink_link_net(params) ? 0 : -1;
}

extern struct rtnl_link_ops probe_ops;
struct rtnl_link_ops probe_ops = {
	.newlink = newlink,
};
