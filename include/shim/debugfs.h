/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* /sys/kernel/debug/ipoib/<interface>_<file>. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct dentry;
struct net_device;
struct seq_file;

enum ipoib_debug_file { IPOIB_DEBUG_CM, IPOIB_DEBUG_MCG, IPOIB_DEBUG_NEIGH, IPOIB_DEBUG_PATH, IPOIB_DEBUG_FILES };

/* Create and remove the directory; start and stop ipoib_netdev_renamed(). CONTEXT: process. */
int shim_helper_debugfs_start(void);
void shim_helper_debugfs_stop(void);
/* Creates a file named after the interface. NULL: the name is taken; an error pointer on failure. CONTEXT: process. */
struct dentry *shim_helper_debugfs_create_file(struct net_device *dev, enum ipoib_debug_file which);
/* Removes a file, and waits for its readers. NULL and error pointers are allowed. CONTEXT: process. */
void shim_debugfs_remove(struct dentry *file);
void shim_seq_printf(struct seq_file *file, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes a file's text with shim_seq_printf(). 0 or -ENOMEM. CONTEXT: process. */
int ipoib_debug_show(struct net_device *dev, enum ipoib_debug_file which, struct seq_file *file);
/* The interface has another name. CONTEXT: RTNL. */
void ipoib_netdev_renamed(struct net_device *dev);

SHIM_END
