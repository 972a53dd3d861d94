// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Capabilities for the kernel alone have a field, kernel_cap_flags. */
#include <rdma/ib_verbs.h>

int probe(const struct ib_device *ca);
int probe(const struct ib_device *ca)
{
	return ca->attrs.kernel_cap_flags & (IBK_UD_TSO | IBK_VIRTUAL_FUNCTION | IBK_BLOCK_MULTICAST_LOOPBACK);
}
