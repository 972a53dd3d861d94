// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <linux/netdevice.h>
#include <linux/printk.h>
#include <rdma/ib_verbs.h>
#include <shim/module.h>

static int add(struct ib_device *ca);

static void remove(struct ib_device *ca, void *state) { ipoib_remove_device(ca, state); }

static struct net_device *get_net_dev_by_params(struct ib_device *ca, u32 port, u16 pkey, const union ib_gid *gid,
						const struct sockaddr *address, void *state)
{
	if (!rdma_protocol_ib(ca, port))
		return NULL;
	return ipoib_find_netdev(state, port, pkey, (const struct shim_gid *)gid, address);
}

static struct ib_client client = {
	.name = "ipoib",
	.add = add,
	.remove = remove,
	.get_net_dev_by_params = get_net_dev_by_params,
};

static int add(struct ib_device *ca)
{
	void *state;
	int ret = ipoib_add_device(ca, &state);

	if (!ret)
		ib_set_client_data(ca, &client, state);
	return ret;
}

SHIM int shim_client_register(void) { return ib_register_client(&client); }
SHIM void shim_client_unregister(void) { ib_unregister_client(&client); }
SHIM uint32_t shim_ib_ports(const struct ib_device *ca) { return rdma_end_port(ca); }
SHIM bool shim_ib_port_is_ib(const struct ib_device *ca, uint32_t port) { return rdma_protocol_ib(ca, port); }

void shim_log(const struct net_device *dev, enum shim_level level, const char *format, ...)
{
	static const char *const marks[] = {
		[SHIM_LOG_WARNING] = KERN_WARNING,
		[SHIM_LOG_INFO] = KERN_INFO,
		[SHIM_LOG_DEBUG] = KERN_DEBUG,
	};
	struct va_format message = { .fmt = format };
	va_list arguments;

	va_start(arguments, format);
	message.va = &arguments;
	printk("%s%s: %pV\n", marks[level], dev ? dev->name : KBUILD_MODNAME, &message);
	va_end(arguments);
}
