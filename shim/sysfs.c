// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Attributes in /sys/class/net/<interface>/. */
#include "objects.h"
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/sysfs.h>
#include <shim/sysfs.h>

#define SHOW(name, upper)                                                                                              \
	static ssize_t name##_show(struct device *d, struct device_attribute *attr, char *buf)                         \
	{                                                                                                              \
		return ipoib_attribute_show(to_net_dev(d), IPOIB_ATTRIBUTE_##upper, buf);                              \
	}

/*
 * unregister_netdevice() removes the files under RTNL and waits for active writers, so a writer must not wait for RTNL.
 * store() therefore gives up the file's active protection and holds a reference to the netdev.
 */
static ssize_t store(struct device *d, struct device_attribute *attr, enum ipoib_attribute which, const char *buf,
		     size_t count)
{
	struct net_device *dev = to_net_dev(d);
	struct kernfs_node *file;
	ssize_t ret = -ENODEV;

	dev_hold(dev);
	file = sysfs_break_active_protection(&d->kobj, &attr->attr);
	rtnl_lock();
	if (dev->reg_state == NETREG_REGISTERED)
		ret = ipoib_attribute_store(dev, which, buf, count);
	rtnl_unlock();
	if (file)
		sysfs_unbreak_active_protection(file);
	dev_put(dev);
	return ret;
}

#define STORE(name, upper)                                                                                             \
	static ssize_t name##_store(struct device *d, struct device_attribute *attr, const char *buf, size_t count)    \
	{                                                                                                              \
		return store(d, attr, IPOIB_ATTRIBUTE_##upper, buf, count);                                            \
	}

SHOW(mode, MODE)
STORE(mode, MODE)
static DEVICE_ATTR_RW(mode);

SHOW(pkey, PKEY)
static DEVICE_ATTR_RO(pkey);

SHOW(umcast, UMCAST)
STORE(umcast, UMCAST)
static DEVICE_ATTR_RW(umcast);

STORE(create_child, CREATE_CHILD)
static DEVICE_ATTR_WO(create_child);

STORE(delete_child, DELETE_CHILD)
static DEVICE_ATTR_WO(delete_child);

SHOW(parent, PARENT)
static DEVICE_ATTR_RO(parent);

/* Replaces the core's attribute. */
static ssize_t dev_id_show(struct device *d, struct device_attribute *attr, char *buf)
{
	shim_note_dev_id(to_net_dev(d));
	return sysfs_emit(buf, "%#x\n", to_net_dev(d)->dev_id);
}

static DEVICE_ATTR_RO(dev_id);

void shim_replace_dev_id(struct net_device *dev)
{
	device_remove_file(&dev->dev, &dev_attr_dev_id);
	if (device_create_file(&dev->dev, &dev_attr_dev_id))
		netdev_warn(dev, "no memory for the file dev_id\n");
}

/*
 * Two groups, rather than one with files that only some netdevs have: if a netdev moves to a user's network namespace
 * the owner of all files in the group changes, and the kernel warns about missing ones.
 */
static struct attribute *parent_attributes[] = {
	&dev_attr_mode.attr,	     &dev_attr_pkey.attr,	  &dev_attr_umcast.attr,
	&dev_attr_create_child.attr, &dev_attr_delete_child.attr, NULL,
};

const struct attribute_group shim_parent_group = { .attrs = parent_attributes };

static struct attribute *child_attributes[] = {
	&dev_attr_mode.attr, &dev_attr_pkey.attr, &dev_attr_umcast.attr, &dev_attr_parent.attr, NULL,
};

const struct attribute_group shim_child_group = { .attrs = child_attributes };
