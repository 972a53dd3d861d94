/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Attributes in /sys/class/net/<interface>/. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct net_device;

enum ipoib_attribute {
	IPOIB_ATTRIBUTE_MODE,
	IPOIB_ATTRIBUTE_PKEY,
	IPOIB_ATTRIBUTE_UMCAST,
	IPOIB_ATTRIBUTE_CREATE_CHILD,
	IPOIB_ATTRIBUTE_DELETE_CHILD,
	IPOIB_ATTRIBUTE_PARENT,
};
/* Writes the value to buffer, a page. Returns its bytes. CONTEXT: process. */
long ipoib_attribute_show(struct net_device *dev, enum ipoib_attribute attribute, char *buffer);
/* Sets the value. Returns bytes or a negative errno. CONTEXT: RTNL; when that is released the netdev may be gone. */
long ipoib_attribute_store(struct net_device *dev, enum ipoib_attribute attribute, const char *text, size_t bytes);

SHIM_END
