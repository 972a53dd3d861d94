// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* struct netlink_ext_ack has space for a formatted message. */
#include <linux/netlink.h>

int probe(const struct netlink_ext_ack *extack);
int probe(const struct netlink_ext_ack *extack) { return sizeof(extack->_msg_buf); }
