// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* /sys/kernel/debug/ipoib/: files of each interface, named after it. */
#include "objects.h"
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <shim/debugfs.h>

struct dentry *shim_debugfs_directory;

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

const struct shim_debugfs_file shim_debugfs_files[] = {
	[IPOIB_DEBUG_CM] = { "cm", &cm_fops },
	[IPOIB_DEBUG_MCG] = { "mcg", &mcg_fops },
	[IPOIB_DEBUG_NEIGH] = { "neigh", &neigh_fops },
	[IPOIB_DEBUG_PATH] = { "path", &path_fops },
};

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

struct notifier_block shim_netdev_notifier = {
	.notifier_call = on_netdev_event,
};
