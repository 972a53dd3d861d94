// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* /sys/kernel/debug/ipoib/: files of each interface, named after it. */
#include "objects.h"
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <shim/debugfs.h>

static struct dentry *directory;

#define DEBUG_FILE(lower, upper)                                                                                       \
	static int lower##_show(struct seq_file *file, void *unused)                                                   \
	{                                                                                                              \
		return ipoib_debug_show(file->private, IPOIB_DEBUG_##upper, file);                                     \
	}                                                                                                              \
	DEFINE_SHOW_ATTRIBUTE(lower)

DEBUG_FILE(cm, CM);
DEBUG_FILE(mcg, MCG);
DEBUG_FILE(neigh, NEIGH);
DEBUG_FILE(path, PATH);

static const struct {
	const char *name;
	const struct file_operations *operations;
} files[] = {
	[IPOIB_DEBUG_CM] = { "cm", &cm_fops },
	[IPOIB_DEBUG_MCG] = { "mcg", &mcg_fops },
	[IPOIB_DEBUG_NEIGH] = { "neigh", &neigh_fops },
	[IPOIB_DEBUG_PATH] = { "path", &path_fops },
};

SHIM struct dentry *shim_helper_debugfs_create_file(struct net_device *dev, enum ipoib_debug_file which)
{
	char name[IFNAMSIZ + 8];
	struct dentry *taken;

	snprintf(name, sizeof(name), "%s_%s", dev->name, files[which].name);
	/* Another namespace may have an interface of that name. */
	taken = debugfs_lookup(name, directory);
	if (!IS_ERR_OR_NULL(taken)) {
		dput(taken);
		return NULL;
	}
	return debugfs_create_file(name, 0444, directory, dev, files[which].operations);
}

SHIM void shim_debugfs_remove(struct dentry *file) { debugfs_remove(file); }

void shim_seq_printf(struct seq_file *file, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	seq_vprintf(file, format, arguments);
	va_end(arguments);
}

static int on_netdev_event(struct notifier_block *block, unsigned long event, void *info)
{
	struct net_device *dev = netdev_notifier_info_to_dev(info);

	/* A netdev that moves to another network namespace may get another name there, and is registered once more. */
	if ((event == NETDEV_CHANGENAME || event == NETDEV_REGISTER) && shim_is_ours(dev))
		ipoib_netdev_renamed(dev);
	return NOTIFY_DONE;
}

static struct notifier_block notifier = {
	.notifier_call = on_netdev_event,
};

SHIM int shim_helper_debugfs_start(void)
{
	int ret = register_netdevice_notifier(&notifier);

	/* Without debugfs there are no files, and nothing else is amiss. */
	if (!ret)
		directory = debugfs_create_dir("ipoib", NULL);
	return ret;
}

SHIM void shim_helper_debugfs_stop(void)
{
	unregister_netdevice_notifier(&notifier);
	debugfs_remove_recursive(directory);
}
