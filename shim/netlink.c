// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The rtnetlink kind "ipoib". */
#include "compat.h"
#include "objects.h"
#include <net/rtnetlink.h>
#include <rdma/ib_verbs.h>
#include <shim/netdevice.h>
#include <shim/netlink.h>
#include <uapi/linux/if_link.h>

static const struct nla_policy policy[IFLA_IPOIB_MAX + 1] = {
	[IFLA_IPOIB_PKEY] = { .type = NLA_U16 },
	[IFLA_IPOIB_MODE] = { .type = NLA_U16 },
	[IFLA_IPOIB_UMCAST] = { .type = NLA_U16 },
};

static void read_data(struct nlattr *data[], struct shim_link_request *request)
{
	if (!data)
		return;
	request->has_pkey = data[IFLA_IPOIB_PKEY];
	request->has_mode = data[IFLA_IPOIB_MODE];
	request->has_umcast = data[IFLA_IPOIB_UMCAST];
	if (request->has_pkey)
		request->pkey = nla_get_u16(data[IFLA_IPOIB_PKEY]);
	if (request->has_mode)
		request->mode = nla_get_u16(data[IFLA_IPOIB_MODE]);
	if (request->has_umcast)
		request->umcast = nla_get_u16(data[IFLA_IPOIB_UMCAST]);
}

static int add_link(struct net *net, struct net_device *dev, struct nlattr *tb[], struct nlattr *data[],
		    struct netlink_ext_ack *extack)
{
	struct shim_link_request request = { .has_link = tb[IFLA_LINK] };

	if (request.has_link)
		request.link = __dev_get_by_index(net, nla_get_u32(tb[IFLA_LINK]));
	/* The core sets IFLA_MTU unchecked; the driver checks it. */
	read_data(data, &request);
	return ipoib_newlink(dev, &request, extack);
}

#ifdef SHIM_HAVE_RTNL_NEWLINK_PARAMS
static int newlink(struct net_device *dev, struct rtnl_newlink_params *params, struct netlink_ext_ack *extack)
{
	return add_link(rtnl_newlink_link_net(params), dev, params->tb, params->data, extack);
}
#else
static int newlink(struct net *net, struct net_device *dev, struct nlattr *tb[], struct nlattr *data[],
		   struct netlink_ext_ack *extack)
{
	return add_link(net, dev, tb, data, extack);
}
#endif

static int changelink(struct net_device *dev, struct nlattr *tb[], struct nlattr *data[],
		      struct netlink_ext_ack *extack)
{
	struct shim_link_request request = {};

	read_data(data, &request);
	return ipoib_changelink(dev, &request, extack);
}

static void dellink(struct net_device *dev, struct list_head *head) { ipoib_dellink(dev, head); }

static size_t get_size(const struct net_device *dev) { return 3 * nla_total_size(sizeof(u16)); }

static int fill_info(struct sk_buff *skb, const struct net_device *dev)
{
	struct shim_link_info info;

	ipoib_link_info(dev, &info);
	if (nla_put_u16(skb, IFLA_IPOIB_PKEY, info.pkey) || nla_put_u16(skb, IFLA_IPOIB_MODE, info.mode) ||
	    nla_put_u16(skb, IFLA_IPOIB_UMCAST, info.umcast))
		return -EMSGSIZE;
	return 0;
}

static struct net *get_link_net(const struct net_device *dev) { return dev_net(ipoib_link_parent(dev)); }

/* Maximum queues of a netdev, with those of an rdma_netdev. */
static unsigned int max_tx_queues = SHIM_MAX_TX_QUEUES, max_rx_queues = SHIM_MAX_RX_QUEUES;

static unsigned int get_num_tx_queues(void) { return READ_ONCE(max_tx_queues); }
static unsigned int get_num_rx_queues(void) { return READ_ONCE(max_rx_queues); }

static struct rtnl_link_ops link_ops = {
	.kind = "ipoib",
	.priv_size = sizeof(struct rdma_netdev),
	.netns_refund = true,
	.maxtype = IFLA_IPOIB_MAX,
	.policy = policy,
	.setup = shim_netdev_setup,
	.newlink = newlink,
	.changelink = changelink,
	.dellink = dellink,
	.get_size = get_size,
	.fill_info = fill_info,
	.get_link_net = get_link_net,
	.get_num_tx_queues = get_num_tx_queues,
	.get_num_rx_queues = get_num_rx_queues,
};

SHIM int shim_rtnl_link_register(void) { return rtnl_link_register(&link_ops); }

SHIM void shim_rtnl_link_unregister(void) { rtnl_link_unregister(&link_ops); }

/* `ip link add` allocates a netdev before its parent, and so its HCA, is known. */
int shim_link_use(struct net_device *dev, struct ib_device *ca, u32 port)
{
	struct rdma_netdev_alloc_params params = {};
	int ret = -EOPNOTSUPP;

	if (ca->ops.rdma_netdev_get_params)
		ret = ca->ops.rdma_netdev_get_params(ca, port, RDMA_NETDEV_IPOIB, &params);
	if (ret && ret != -EOPNOTSUPP)
		return ret;
	WRITE_ONCE(link_ops.priv_size, max(link_ops.priv_size, params.sizeof_priv));
	WRITE_ONCE(max_tx_queues, max(max_tx_queues, params.txqs));
	WRITE_ONCE(max_rx_queues, max(max_rx_queues, params.rxqs));
	dev->rtnl_link_ops = &link_ops;
	return 0;
}
